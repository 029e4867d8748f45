"""geth's `prestateTracer`: accounts and slots as they were before a transaction that uses them, or what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fusevm.chain.state import EMPTY_CODE_HASH, State, delegate_in
from fusevm.evm.forks import rules_of
from fusevm.tracing.requests import Json, Run, TracedMachine, TraceRequest, flag
from fusevm.tracing.touched import Touched, touching

OPTIONS = ("diffMode", "disableCode", "disableStorage", "includeEmpty")


@dataclass(slots=True)
class _Account:
    balance: int
    nonce: int
    code: bytes
    code_hash: bytes
    storage: dict[int, int] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.balance or self.nonce or self.code)


Accounts = dict[bytes, _Account]


class PrestateTracer(NamedTuple):
    """The values before are read when the transaction is undone, so it does not matter when it first used them."""

    diff: bool = False
    code: bool = True
    storage: bool = True
    empty: bool = False

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> PrestateTracer:
        diff, disable_code, disable_storage, include_empty = (flag(config, name) for name in OPTIONS)
        return cls(diff, not disable_code, not disable_storage, include_empty)

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        known = _known_before(state, request)
        with touching(machine, state, run) as (_, found):
            found.accounts |= dict.fromkeys(known)
            destroyed = set(state.destroyed)
            after = _read(state, found)
        before = _read(state, found)
        if not self.diff:
            return self._form(before)
        return self._difference(before, after, destroyed)

    def _form(self, before: Accounts) -> Json:
        kept = {address: account for address, account in before.items() if self.empty or not account.empty}
        return {_hex(address): self._before(account, account.storage) for address, account in sorted(kept.items())}

    def _difference(self, before: Accounts, after: Accounts, destroyed: set[bytes]) -> Json:
        """An account that destroyed itself has no part in `post`; one that was created has none in `pre`."""
        pre: Json = {}
        post: Json = {}
        for address, old in sorted(before.items()):
            new = after[address]
            changed = {key: value for key, value in old.storage.items() if value != new.storage[key]}
            gone = address in destroyed
            changes = {} if gone else self._changes(old, new, changed)
            if not gone and not changes and not changed:
                continue
            if not gone:
                post[_hex(address)] = changes
            if self.empty or not old.empty:
                slots = old.storage if gone else {key: value for key, value in changed.items() if value}
                pre[_hex(address)] = self._before(old, slots)
        return {"post": post, "pre": pre}

    def _before(self, account: _Account, slots: Mapping[int, int]) -> Json:
        form: Json = {"balance": hex(account.balance)}
        if account.code:
            if self.code:
                form["code"] = _hex(account.code)
            form["codeHash"] = _hex(account.code_hash)
        if account.nonce:
            form["nonce"] = account.nonce
        if slots and self.storage:
            form["storage"] = _slots(slots)
        return form

    def _changes(self, old: _Account, new: _Account, changed: Iterable[int]) -> Json:
        form: Json = {}
        if new.balance != old.balance:
            form["balance"] = hex(new.balance)
        if new.code != old.code:
            if self.code:
                form["code"] = _hex(new.code)
            form["codeHash"] = _hex(new.code_hash)
        if new.nonce != old.nonce:
            form["nonce"] = new.nonce
        slots = {key: new.storage[key] for key in changed if new.storage[key]}
        if slots and self.storage:
            form["storage"] = _slots(slots)
        return form


def _known_before(state: State, request: TraceRequest) -> list[bytes]:
    found = [request.caller, request.to, request.coinbase, *request.authorities]
    delegate = delegate_in(state.account(request.to).code) if rules_of(request.fork).delegation else None
    return found if delegate is None else [*found, delegate]


def _read(state: State, touched: Touched) -> Accounts:
    """The current state of everything that was touched."""
    found = {}
    for address in {**touched.accounts, **touched.created, **dict.fromkeys(address for address, _ in touched.slots)}:
        account = state.account(address)
        code_hash = account.code_hash() if account.code else EMPTY_CODE_HASH
        found[address] = _Account(account.balance, account.nonce, account.code, code_hash)
    for address, key in touched.slots:
        found[address].storage[key] = state.storage(address, key)
    return found


def _slots(slots: Mapping[int, int]) -> Json:
    return {f"0x{key:064x}": f"0x{value:064x}" for key, value in sorted(slots.items())}


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
