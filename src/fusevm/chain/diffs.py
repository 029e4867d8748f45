"""What a block changed, read off the state's journal, so that the state can be taken to any block of any branch.

A diff names the objects it changes (accounts and their storage), not their addresses: accounts that leave the state on
one branch come back as the same objects, so going back and forth along branches restores exactly what was there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fusevm.chain.state import Account, State, put_slot


class FieldChange(NamedTuple):
    account: Account
    name: str
    before: Any
    after: Any


class SlotChange(NamedTuple):
    storage: dict[int, int]
    key: int
    before: int
    after: int


class Presence(NamedTuple):
    address: bytes
    before: Account | None
    after: Account | None


class Diff(NamedTuple):
    fields: list[FieldChange]
    slots: list[SlotChange]
    presence: list[Presence]

    def apply(self, state: State) -> None:
        """From the state before it to the one after; the state's journal can undo it."""
        self._set(state, forward=True)

    def undo(self, state: State) -> None:
        Diff(self.fields[::-1], self.slots[::-1], self.presence[::-1])._set(state, forward=False)

    def followed_by(self, later: Diff) -> Diff:
        """Both as one; where they change the same thing, the later one has the last word."""
        return Diff(self.fields + later.fields, self.slots + later.slots, self.presence + later.presence)

    def _set(self, state: State, *, forward: bool) -> None:
        state.remake()
        accounts, journal = state.journalled, state.journal
        for account, name, before, after in self.fields:
            journal.append((setattr, account, name, getattr(account, name)))
            setattr(account, name, after if forward else before)
        for storage, key, old, new in self.slots:
            journal.append((put_slot, storage, key, storage.get(key, 0)))
            put_slot(storage, key, new if forward else old)
        for address, was, is_now in self.presence:
            found = accounts.get(address)
            journal.append((accounts.pop, address, None) if found is None else (accounts.__setitem__, address, found))
            wanted = is_now if forward else was
            if wanted is None:
                accounts.pop(address, None)
            else:
                accounts[address] = wanted


def diff_since(state: State, mark: int) -> Diff:
    """What has changed since the mark. The values before are those of the oldest entries, those after are current."""
    fields: dict[tuple[int, str], tuple[Account, str, Any]] = {}
    slots: dict[tuple[int, int], tuple[dict[int, int], int, int]] = {}
    presence: dict[bytes, Account | None] = {}
    accounts = state.journalled
    created, removed = (accounts.pop, state.remove), accounts.__setitem__
    for entry in state.entries_since(mark):
        undo, first = entry[:2]
        if undo is setattr:
            if isinstance(first, Account) and (key := (id(first), entry[2])) not in fields:
                fields[key] = entry[1:]
        elif undo is put_slot:
            if isinstance(entry[2], int) and (place := (id(first), entry[2])) not in slots:  # transient: keys are pairs
                slots[place] = entry[1:]
        elif undo in created:
            presence.setdefault(first, None)
        elif undo == removed:
            presence.setdefault(first, entry[2])
    return Diff(
        list(_changed_fields(fields.values())),
        [
            SlotChange(storage, key, before, storage.get(key, 0))
            for storage, key, before in slots.values()
            if storage.get(key, 0) != before
        ],
        [
            Presence(address, before, accounts.get(address))
            for address, before in presence.items()
            if accounts.get(address) is not before
        ],
    )


def _changed_fields(found: Iterable[tuple[Account, str, Any]]) -> Iterable[FieldChange]:
    for account, name, before in found:
        after = getattr(account, name)
        if after != before:
            yield FieldChange(account, name, before, after)
