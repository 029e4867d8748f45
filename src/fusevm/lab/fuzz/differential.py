"""The same work on several engines, and where what they say came of it differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fusevm.chain.state import Account, State
from fusevm.lab.peers.work import Observation, PeerEngine, PeerWork


@dataclass(slots=True)
class EngineDifference:
    """What one engine saw otherwise than the first. `str` is one line a field."""

    one: str
    other: str
    fields: list[tuple[str, Any, Any]]  # the field's name, and what either says
    reasons: tuple[str, str] = ("", "")
    gas: int | None = None  # the gas limit, where it is not the work's own

    def __str__(self) -> str:
        lines = [f"{name}: {self.one} {_shown(a)}, {self.other} {_shown(b)}" for name, a, b in self.fields]
        lines += [
            f"{name} says: {text}" for name, text in zip((self.one, self.other), self.reasons, strict=True) if text
        ]
        if self.gas is not None:
            lines.append(f"with a gas limit of {self.gas}")
        return "\n".join(lines)


def compare(work: PeerWork, engines: Sequence[PeerEngine]) -> EngineDifference | None:
    """The first engine against each of the others. The work must fit them all: see `fitted`."""
    first = engines[0]
    expected = first.run(work)
    for engine in engines[1:]:
        seen = engine.run(work)
        fields = list(differences(expected, seen))
        if fields:
            return EngineDifference(first.name, engine.name, fields, (expected.reason, seen.reason))
    return None


def fitted(work: PeerWork, engines: Iterable[PeerEngine]) -> PeerWork:
    for engine in engines:
        work = engine.fit(work)
    return work


def excused(work: PeerWork, engines: Iterable[PeerEngine]) -> str | None:
    """Why a difference on this work would be no news: one of the engines is known to be wrong there."""
    for engine in engines:
        if reason := engine.excuse(work):
            return f"{engine.name}: {reason}"
    return None


def differences(a: Observation, b: Observation) -> Iterator[tuple[str, Any, Any]]:
    """Field by field; what one of them does not tell is passed over."""
    for name in ("status", "gas_used", "refund", "output", "logs"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other and one is not None and other is not None:
            yield name, one, other
    if a.accounts is not None and b.accounts is not None:
        exact = a.knows_empty and b.knows_empty
        yield from _account_differences(_listed(a.accounts, exact), _listed(b.accounts, exact))
    elif _root(a) != _root(b):
        yield "state root", _root(a), _root(b)


def _listed(accounts: dict[bytes, Account], exact: bool) -> dict[bytes, Account]:
    if exact:
        return accounts
    return {address: account for address, account in accounts.items() if not account.empty or account.storage}


def _account_differences(a: dict[bytes, Account], b: dict[bytes, Account]) -> Iterator[tuple[str, Any, Any]]:
    for address in sorted(a.keys() | b.keys()):
        one, other = a.get(address), b.get(address)
        place = f"account 0x{address.hex()}"
        if one is None or other is None:
            yield place, "missing" if one is None else "there", "missing" if other is None else "there"
            continue
        for name in ("nonce", "balance", "code"):
            if getattr(one, name) != getattr(other, name):
                yield f"{place} {name}", getattr(one, name), getattr(other, name)
        for key in sorted(one.storage.keys() | other.storage.keys()):
            left, right = one.storage.get(key, 0), other.storage.get(key, 0)
            if left != right:
                yield f"{place} slot {key:#x}", left, right


def _root(seen: Observation) -> bytes:
    if seen.root is not None:
        return seen.root
    state = State()
    state.accounts = seen.accounts or {}
    return state.root()


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list):
        return (
            "[" + ", ".join(f"0x{x.address.hex()} {[hex(t) for t in x.topics]} 0x{x.data.hex()}" for x in value) + "]"
        )
    return hex(value) if isinstance(value, int) and value >= 1 << 64 else str(value)
