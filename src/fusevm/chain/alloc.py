"""A state as JSON: geth's `alloc`, as genesis.json, t8n and official tests write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusevm.chain.state import Account, State
from fusevm.values import BadValue, shown, to_address, to_bytes, to_number

_KEYS = ("balance", "nonce", "code", "storage")
_IGNORED = ("secretKey", "comment")


def state_from_alloc(alloc: Mapping[str, Any]) -> State:
    """Accounts by address; numbers are 0x hex or decimal text."""
    state = State()
    for where, fields in alloc.items():
        address = to_address(where, f"alloc: address {shown(where)}")
        if address in state.accounts:
            raise BadValue(f"alloc: account {shown(where)} stands there twice")
        state.accounts[address] = _account(fields, f"alloc[0x{address.hex()}]")
    return state


def _account(fields: Any, what: str) -> Account:
    if not isinstance(fields, Mapping):
        raise BadValue(f"{what}: expected an object of {', '.join(_KEYS)}")
    for key in fields:
        if key not in _KEYS and key not in _IGNORED:
            raise BadValue(f"{what}: {shown(key)} is not a field; expected {', '.join(_KEYS)}")
    storage = fields.get("storage") or {}
    if not isinstance(storage, Mapping):
        raise BadValue(f"{what}.storage: expected an object")
    slots = {
        quantity(key, f"{what}.storage: key {shown(key)}"): quantity(value, f"{what}.storage[{shown(key)}]")
        for key, value in storage.items()
    }
    return Account(
        quantity(fields.get("nonce", 0), f"{what}.nonce", bits=64),
        quantity(fields.get("balance", 0), f"{what}.balance"),
        to_bytes(fields.get("code") or "", f"{what}.code"),
        {key: value for key, value in slots.items() if value},
    )


def quantity(value: Any, what: str, bits: int = 256) -> int:
    """A number as JSON has it: a number, 0x hex, or, as old genesis files write balances, decimal text."""
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) < 80:
            return to_number(int(text), what, bits)
        if text in ("0x", ""):
            return 0
    return to_number(value, what, bits)


def alloc_of(state: State) -> dict[str, Any]:
    """The state in the same form, sorted by address; what is zero or empty is left out, except the balance."""
    return {f"0x{address.hex()}": _fields(account) for address, account in sorted(state.items())}


def _fields(account: Account) -> dict[str, Any]:
    fields: dict[str, Any] = {"balance": hex(account.balance)}
    if account.nonce:
        fields["nonce"] = hex(account.nonce)
    if account.code:
        fields["code"] = "0x" + account.code.hex()
    if account.storage:
        slots = sorted(account.storage.items())
        fields["storage"] = {f"0x{key:064x}": f"0x{value:064x}" for key, value in slots}
    return fields
