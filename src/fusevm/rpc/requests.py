"""Transactions as requests describe them: fields by JSON's names, with whatever is missing filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.checks import rules_with
from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.chain.transaction import AUTHORIZATION
from fusevm.evm.forks import rules_of
from fusevm.machine.estimate import EstimateFailed
from fusevm.rpc.errors import RpcError, invalid
from fusevm.rpc.values import number_of
from fusevm.values import shown, to_access_list, to_address, to_bytes, to_hashes

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

Fields = dict[str, Any]


def _quantity(value: Any, what: str) -> int:
    return number_of(value, what)


def _uint64(value: Any, what: str) -> int:
    return number_of(value, what, 64)


def _authorizations(listed: Any, what: str) -> list[Fields]:
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise invalid(f"{what}: expected a list of authorizations")
    return [{name: each.get(name, each.get("v") if name == "yParity" else None) for name in AUTHORIZATION}
            for each in listed]  # fmt: skip


# JSON's name → ours (those of `EVM.transact`), and how it is read
_FIELDS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "to": ("to", to_address),
    "value": ("value", _quantity),
    "gas": ("gas", _uint64),
    "gasLimit": ("gas", _uint64),
    "nonce": ("nonce", _uint64),
    "gasPrice": ("gas_price", _quantity),
    "maxFeePerGas": ("max_fee", _quantity),
    "maxPriorityFeePerGas": ("max_priority_fee", _quantity),
    "accessList": ("access_list", to_access_list),
    "blobVersionedHashes": ("blob_hashes", to_hashes),
    "maxFeePerBlobGas": ("max_blob_fee", _quantity),
    "authorizationList": ("authorizations", _authorizations),
}


def read_request(form: Any) -> Fields:
    """The fields of `EVM.transact` that a request gives, and `sender`. Unknown fields are ignored."""
    if not isinstance(form, Mapping):
        raise invalid(f"transaction: expected an object, got {shown(form)}")
    fields: Fields = {
        ours: read(form[name], f"transaction.{name}")
        for name, (ours, read) in _FIELDS.items()
        if form.get(name) is not None and form.get(name) != ""
    }
    given = [to_bytes(form[name], f"transaction.{name}") for name in ("input", "data") if form.get(name) is not None]
    fields["data"] = given[0] if given else b""  # "input" counts where there are both
    if "gas_price" in fields and ("max_fee" in fields or "max_priority_fee" in fields):
        raise invalid("transaction: give gasPrice or maxFeePerGas and maxPriorityFeePerGas, not both")
    fields.setdefault("to", None)
    sender = form.get("from")
    fields["sender"] = ZERO_ADDRESS if sender is None else to_address(sender, "transaction.from")
    return fields


def filled(session: Session, fields: Fields, form: Mapping[str, Any], *, may_fail: bool = False) -> Fields:
    """With nonce, fees and gas limit, as a wallet would choose them. One that would fail gets the most gas that it may
    have, where it `may_fail`: it is mined nevertheless, and its receipt tells. Else raises EstimateFailed."""
    from fusevm.rpc.calls import estimate
    from fusevm.rpc.fees import suggested_tip

    found = dict(fields)
    found.setdefault("nonce", session.dev.next_nonce(found["sender"]))
    kind = number_of(form["type"], "transaction.type") if form.get("type") is not None else None
    legacy = kind in (0, 1) or "gas_price" in found
    base_fee = session.dev.upcoming()[0].base_fee
    if legacy or base_fee is None:
        found.setdefault("gas_price", (base_fee or 0) + suggested_tip(session))
    else:
        tip = found.setdefault("max_priority_fee", suggested_tip(session))
        found.setdefault("max_fee", max(base_fee + suggested_tip(session), tip))
        if "maxPriorityFeePerGas" not in form:
            found["max_priority_fee"] = min(tip, found["max_fee"])
    if kind == 1:
        found.setdefault("access_list", ())
    if "gas" not in found:
        try:
            found["gas"] = estimate(session, {name: each for name, each in found.items() if name != "nonce"})
        except (EstimateFailed, RpcError) as error:
            failed = isinstance(error, EstimateFailed) or isinstance(error.__cause__, EstimateFailed)
            if not (may_fail and failed):
                raise
            header, step = session.dev.upcoming()
            found["gas"] = min(header.gas_limit, rules_with(rules_of(step.fork), session.config.checks).tx_gas_cap)
    return found
