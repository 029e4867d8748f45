"""Pending transactions by sender and nonce: an index of a list that mostly grows at its end."""

from __future__ import annotations

from fusevm.chain.signed import SignedTransaction


class Waiting:
    """Positions of transactions in a list. The list may grow, be replaced by another, or have one transaction in the
    place of another of the same sender and nonce."""

    def __init__(self) -> None:
        self._listed: list[SignedTransaction] = []
        self._seen = 0  # how many of the list the index has
        self._places: dict[bytes, dict[int, int]] = {}
        self._runs: dict[bytes, tuple[int, int]] = {}  # sender: an account's nonce, and the one after what waits

    def of(self, pending: list[SignedTransaction], sender: bytes) -> dict[int, int]:
        """The places of a sender's transactions by nonce."""
        if pending is not self._listed or len(pending) < self._seen:
            self._listed, self._seen, self._places, self._runs = pending, 0, {}, {}
        for place in range(self._seen, len(pending)):
            each = pending[place]
            self._places.setdefault(each.sender, {})[each.nonce] = place
        self._seen = len(pending)
        return self._places.get(sender, {})

    def next_nonce(self, pending: list[SignedTransaction], sender: bytes, nonce: int) -> int:
        """The first nonce, from the account's own on, that no transaction of the sender has."""
        places = self.of(pending, sender)
        first, found = self._runs.get(sender, (nonce, nonce))
        if first != nonce:
            found = nonce
        while found in places:
            found += 1
        self._runs[sender] = nonce, found
        return found
