"""Transactions that wait for a block, in the order they came, and an index of them by sender and nonce."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.chain.signed import SignedTransaction

REPLACING_PERCENT = 110  # of the price of the one that is replaced


class NotPooled(ValueError):
    """A transaction that is pending already, or does not pay enough to replace the one of the same nonce."""


class TransactionPool:
    """What is pending. It grows at its end; what is dropped makes a new pool."""

    def __init__(self, listed: Iterable[SignedTransaction] = ()) -> None:
        self.listed = list(listed)
        self._indexed = 0  # how many of them the index has: a sender is recovered when it is asked for
        self._places: dict[bytes, dict[int, int]] = {}
        self._runs: dict[bytes, tuple[int, int]] = {}  # sender: an account's nonce, and the one after what waits

    def add(self, signed: SignedTransaction) -> None:
        """Adds a transaction, or puts it in the place of one of the same sender and nonce. Raises NotPooled."""
        place = self._of(signed.sender).get(signed.nonce)
        if place is None:
            self.listed.append(signed)
            return
        other = self.listed[place]
        if other.hash == signed.hash:
            raise NotPooled(f"already known: transaction 0x{signed.hash.hex()} is pending")
        if 100 * signed.fee_cap < REPLACING_PERCENT * other.fee_cap:
            raise NotPooled("replacement transaction underpriced")
        self.listed[place] = signed

    def next_nonce(self, sender: bytes, nonce: int) -> int:
        """The first nonce, from the account's own on, that no transaction of the sender has."""
        places = self._of(sender)
        first, found = self._runs.get(sender, (nonce, nonce))
        if first != nonce:
            found = nonce
        while found in places:
            found += 1
        self._runs[sender] = nonce, found
        return found

    def _of(self, sender: bytes) -> dict[int, int]:
        """The places of a sender's transactions by nonce."""
        if len(self.listed) < self._indexed:  # the list is open to all: some were taken out of it
            self._indexed, self._places, self._runs = 0, {}, {}
        for place in range(self._indexed, len(self.listed)):
            each = self.listed[place]
            self._places.setdefault(each.sender, {})[each.nonce] = place
        self._indexed = len(self.listed)
        return self._places.get(sender, {})
