"""What a transaction keeps beside the accounts until it ends: refund, logs, what is warm, transient storage."""

from __future__ import annotations

from collections.abc import Container, MutableSet, Sequence
from typing import Any, Protocol

from fusevm.chain.accounts import Account, put_slot
from fusevm.chain.journal import Journal
from fusevm.chain.logs import Log


class Ledger(Protocol):
    """Keeps balances, nonces and new contracts, and undoes them, while a tier runs."""

    def set_balance(self, address: bytes, account: Account, balance: int) -> None: ...

    def set_nonce(self, address: bytes, account: Account, nonce: int) -> None: ...

    def end(self, state: Any) -> None:
        """Leaves the state to itself; what was not settled never was."""


class TransactionScope(Journal):
    """Of the running transaction, or of the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger: Ledger | None = None
        self.began = 0  # the mark as it began
        self.leftovers = False  # whether there may be anything of it
        self.refund = 0
        self.logs: Sequence[Log] = []
        self.warm_addresses: MutableSet[bytes] = set()
        self.always_warm: Container[bytes] = ()
        self.warm_slots: set[tuple[bytes, int]] = set()
        self.transient: dict[tuple[bytes, int], int] = {}
        self.original: dict[tuple[bytes, int], int] = {}  # slots written: their values as the transaction began
        self.created: set[bytes] = set()
        self.destroyed: set[bytes] = set()
        self.touched: set[bytes] = set()

    def begin_transaction(self, *, resumed: bool = False) -> None:
        """Forgets what the last one kept. What is empty stays: this runs before every call.

        A tier may have done that and run the call already (`resumed`).
        """
        if self.ledger is not None and not resumed:
            raise RuntimeError("a call is running on this state already")
        if self.pending is not None:
            self.settle()
        if not resumed:
            self.forget_transaction()
        self.leftovers = True
        self.began = self._forgotten + len(self.journal)
        self.always_warm = ()
        self.warm_addresses = set()

    def forget_transaction(self) -> None:
        """All but what is warm."""
        if self.journal and not self._open:
            self._forgotten += len(self.journal)
            self.journal = []
        self.refund = 0
        if self.logs:
            self.logs = []
        if self.warm_slots:
            self.warm_slots = set()
        if self.transient:
            self.transient = {}
        if self.original:
            self.original = {}
        if self.created:
            self.created = set()
        if self.destroyed:
            self.destroyed = set()
        if self.touched:
            self.touched = set()
        self.leftovers = bool(self.journal)

    def abandon(self, mark: int | None = None) -> None:
        """The running transaction, or its part since a mark, never was."""
        if self.ledger is not None:
            self.ledger.end(self)
        self.revert(self.began if mark is None else mark)

    def transient_storage(self, address: bytes, key: int) -> int:
        return self.transient.get((address, key), 0)

    def set_transient(self, address: bytes, key: int, value: int) -> None:
        self.leftovers = True
        place = (address, key)
        self.journal.append((put_slot, self.transient, place, self.transient.get(place, 0)))
        put_slot(self.transient, place, value)

    def add_refund(self, amount: int) -> None:
        self.leftovers = True
        self.journal.append((setattr, self, "refund", self.refund))
        self.refund += amount

    def add_log(self, log: Log) -> None:
        self.leftovers = True
        if not isinstance(self.logs, list):
            self.logs = list(self.logs)
        self.journal.append((_truncate, self.logs, len(self.logs)))
        self.logs.append(log)

    def add_logs(self, logs: Sequence[Log]) -> None:
        """Many at once, perhaps not yet decoded."""
        self.leftovers = True
        self.journal.append((setattr, self, "logs", self.logs))
        self.logs = [*self.logs, *logs] if self.logs else logs

    def logs_so_far(self) -> Sequence[Log]:
        """The logs, to keep: an enclosing snapshot undoes the state's own list."""
        return list(self.logs) if isinstance(self.logs, list) else self.logs

    def is_warm(self, address: bytes) -> bool:
        return address in self.warm_addresses or address in self.always_warm

    def warm_address(self, address: bytes) -> None:
        if not self.is_warm(address):
            self._add(self.warm_addresses, address)

    def is_warm_slot(self, address: bytes, key: int) -> bool:
        return (address, key) in self.warm_slots

    def warm_slot(self, address: bytes, key: int) -> None:
        self._add(self.warm_slots, (address, key))

    def mark_created(self, address: bytes) -> None:
        self._add(self.created, address)

    def mark_destroyed(self, address: bytes) -> None:
        self._add(self.destroyed, address)

    def _add(self, members: MutableSet[Any], member: Any) -> None:
        if member not in members:
            self.leftovers = True
            self.journal.append((members.discard, member))
            members.add(member)


def _truncate(items: list[Any], length: int) -> None:
    del items[length:]
