"""Transactions as eth-tester hands them to a backend: defaults filled in, then as fusevm has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusevm.chain.signed import SignedTransaction
from fusevm.chain.transaction import AUTHORIZATION, Authorization, Transaction
from fusevm.values import AccessList

Fields = Mapping[str, Any]
DEFAULT_FEE = 10**9
MARKET = ("max_fee_per_gas", "max_priority_fee_per_gas")


def request(fields: Fields, *, nonce: int | None, gas: int, base_fee: int, market: bool) -> Transaction:
    """A transaction from its fields. `market` tells whether fees of EIP-1559 are the default."""
    legacy = "gas_price" in fields or not (market or any(name in fields for name in MARKET))
    cap, tip = fields.get("max_fee_per_gas"), fields.get("max_priority_fee_per_gas")
    if cap is None and tip is None:
        cap = tip = DEFAULT_FEE
    elif cap is None:
        cap = (tip or 0) + 2 * base_fee
    listed = fields.get("access_list")
    hashes = fields.get("blob_versioned_hashes")
    delegations = fields.get("authorization_list")
    return Transaction(
        fields["from"],
        fields.get("to") or None,
        bytes(fields.get("data", b"")),
        fields.get("value", 0),
        fields.get("gas", gas),
        fields.get("nonce", nonce),
        gas_price=fields.get("gas_price", DEFAULT_FEE) if legacy else None,
        max_fee=None if legacy else cap,
        max_priority_fee=None if legacy else (tip or 0),
        access_list=None if listed is None and legacy else _access_list(listed or ()),
        blob_hashes=None if hashes is None else tuple(map(bytes, hashes)),
        max_blob_fee=fields.get("max_fee_per_blob_gas", 0),
        authorizations=None if delegations is None else tuple(map(_authorization, delegations)),
    )


def signed_request(fields: Fields, tx: Transaction, chain_id: int) -> SignedTransaction:
    """The same with the signature that came with it."""
    v = fields["v"]
    if tx.type:
        named: int | None = fields.get("chain_id", chain_id)
    else:
        named, v = ((v - 35) // 2, (v - 35) % 2) if v >= 35 else (None, v - 27)
    return SignedTransaction(
        tx.type,
        tx.nonce or 0,
        tx.gas_limit,
        tx.to,
        tx.value,
        tx.data,
        *(v, fields["r"], fields["s"]),
        chain_id=named,
        gas_price=tx.gas_price,
        max_priority_fee=tx.max_priority_fee,
        max_fee=tx.max_fee,
        access_list=tx.access_list,
        max_blob_fee=tx.max_blob_fee,
        blob_hashes=tx.blob_hashes,
        authorizations=tx.authorizations,
    )


def _access_list(listed: Any) -> AccessList:
    return tuple((bytes(address), tuple(map(_slot, keys))) for address, keys in map(_entry, listed))


def _entry(entry: Any) -> Any:
    return (entry["address"], entry["storage_keys"]) if isinstance(entry, Mapping) else entry


def _slot(key: Any) -> int:
    return key if isinstance(key, int) else int.from_bytes(key, "big")


def _authorization(entry: Any) -> Authorization:
    names = AUTHORIZATION.values()
    return Authorization(*(entry[name] for name in names)) if isinstance(entry, Mapping) else Authorization(*entry)
