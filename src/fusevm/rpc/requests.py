"""Transactions as clients ask for them: JSON-RPC's fields, read strictly, with what a node fills in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusevm.chain.fees import base_fee_after
from fusevm.chain.transaction import Transaction, to_authorizations
from fusevm.evm.forks import Fork
from fusevm.rpc.errors import INVALID_PARAMS, RpcError
from fusevm.rpc.session import Session
from fusevm.values import to_access_list, to_address, to_bytes, to_hashes, to_number

TIP = 10**9
FIELDS = frozenset(
    (
        *("from", "to", "value", "nonce", "gas", "data", "input", "type", "chainId", "accessList"),
        *("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"),
        *("blobVersionedHashes", "maxFeePerBlobGas", "authorizationList"),
    )
)


def _number(fields: Mapping[str, Any], name: str, bits: int = 256) -> int | None:
    given = fields.get(name)
    return None if given is None else to_number(given, name, bits=bits)


def transaction_of(session: Session, fields: Any, *, priced: bool) -> Transaction:
    """`priced`: a fee is filled in where none is given, as for what is to be sent; else it costs nothing."""
    if not isinstance(fields, Mapping):
        raise RpcError(INVALID_PARAMS, f"transaction: expected an object, got {type(fields).__name__}")
    unknown = sorted(set(fields) - FIELDS)
    if unknown:
        raise RpcError(INVALID_PARAMS, f"transaction: unknown field {unknown[0]!r}")
    payload = fields.get("input", fields.get("data"))
    if fields.get("input") is not None and fields.get("data") not in (None, fields["input"]):
        raise RpcError(INVALID_PARAMS, "transaction: 'data' and 'input' differ; give one of them")
    to, listed, hashes = fields.get("to"), fields.get("accessList"), fields.get("blobVersionedHashes")
    delegations = fields.get("authorizationList")
    price, cap, tip = _fees(session, fields, priced=priced)
    head = session.dev.head.header
    gas = _number(fields, "gas", 64)
    return Transaction(
        to_address(fields.get("from") or bytes(20), "from"),
        to_address(to, "to") if to else None,
        to_bytes(payload or b"", "data"),
        _number(fields, "value") or 0,
        head.gas_limit if gas is None else gas,
        _number(fields, "nonce", 64),
        gas_price=price,
        max_fee=cap,
        max_priority_fee=tip,
        access_list=None if listed is None else to_access_list(listed, "accessList"),
        blob_hashes=None if hashes is None else to_hashes(hashes, "blobVersionedHashes"),
        max_blob_fee=_number(fields, "maxFeePerBlobGas") or 0,
        authorizations=None if delegations is None else to_authorizations(delegations, "authorizationList"),
    )


def _fees(session: Session, fields: Mapping[str, Any], *, priced: bool) -> tuple[int | None, int | None, int | None]:
    price, cap, tip = (_number(fields, name) for name in ("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"))
    if price is not None and not (cap is None and tip is None):
        raise RpcError(INVALID_PARAMS, "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    if price is not None:
        return price, None, None
    market = session.dev.upcoming()[1].fork >= Fork.LONDON
    if not priced:
        return (None, cap or 0, tip or 0) if cap is not None or tip is not None else (0, None, None)
    if not market:
        return TIP, None, None
    tip = TIP if tip is None and (cap is None or cap >= TIP) else tip or 0
    if cap is None:
        cap = 2 * base_fee_after(session.dev.head.header) + tip
    return None, cap, min(tip, cap)
