"""Transactions, withdrawals and receipts as JSON has them: geth's names, read strictly and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusevm.chain.addresses import create_address
from fusevm.chain.alloc import quantity
from fusevm.chain.forms import data, log_form, receipt_core
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import Withdrawal
from fusevm.chain.signed import LAYOUTS, SignedTransaction, sign
from fusevm.chain.transaction import AUTHORIZATION, Transaction, to_authorizations
from fusevm.values import BadValue, fields_of, to_access_list, to_address, to_bytes, to_hash, to_hashes

ZERO_HASH = "0x" + "00" * 32

# Names in JSON, the first that is there counts; and ours.
_NUMBERS = {
    "nonce": (("nonce",), 64),
    "gas_limit": (("gas", "gasLimit"), 64),
    "value": (("value",), 256),
    "chain_id": (("chainId",), 256),
    "gas_price": (("gasPrice",), 256),
    "max_priority_fee": (("maxPriorityFeePerGas",), 256),
    "max_fee": (("maxFeePerGas",), 256),
    "max_blob_fee": (("maxFeePerBlobGas",), 256),
    "v": (("v",), 256),
    "y_parity": (("yParity",), 8),
    "r": (("r",), 256),
    "s": (("s",), 256),
}
_NOT_SIGNED = ("nonce", "gas_limit", "value", "gas_price", "max_priority_fee", "max_fee", "max_blob_fee")


def transaction_from_json(entry: Any, what: str, chain_id: int) -> SignedTransaction:
    """A signed transaction, or one with a `secretKey` to sign it with."""
    if not isinstance(entry, Mapping):
        raise BadValue(f"{what}: expected an object, got {type(entry).__name__}")
    numbers = {
        name: quantity(_first(entry, keys), f"{what}.{keys[0]}", bits)
        for name, (keys, bits) in _NUMBERS.items()
        if _first(entry, keys) is not None
    }
    kind = _kind(entry, what)
    to = entry.get("to")
    fields: dict[str, Any] = {
        "to": to_address(to, f"{what}.to") if to else None,
        "data": to_bytes(_first(entry, ("input", "data")) or "", f"{what}.input"),
    }
    if kind:
        fields["access_list"] = to_access_list(entry.get("accessList") or (), f"{what}.accessList")
    if kind == 3:
        fields["blob_hashes"] = to_hashes(entry.get("blobVersionedHashes") or (), f"{what}.blobVersionedHashes")
    if kind == 4:
        fields["authorizations"] = _authorizations(entry.get("authorizationList") or (), f"{what}.authorizationList")
    for required in ("nonce", "gas_limit"):
        if required not in numbers:
            raise BadValue(f"{what}: no {_NUMBERS[required][0][0]!r}")
    if entry.get("secretKey"):
        return _sign(entry, kind, numbers, fields, what, chain_id)
    return _signed(kind, numbers, fields, what)


def _first(entry: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((entry[key] for key in keys if entry.get(key) is not None), None)


def _kind(entry: Mapping[str, Any], what: str) -> int:
    if entry.get("type") is not None:
        kind = quantity(entry["type"], f"{what}.type")
        if kind not in LAYOUTS:
            raise BadValue(f"{what}.type: {kind} is not a type of transaction; known: 0 to {max(LAYOUTS)}")
        return kind
    for key, kind in (("authorizationList", 4), ("blobVersionedHashes", 3), ("maxFeePerGas", 2), ("accessList", 1)):
        if entry.get(key) is not None:
            return kind
    return 0


def _authorizations(listed: Any, what: str) -> Any:
    """As JSON-RPC has them; `v` may be given for `yParity`, and a given signer is ignored."""
    if not isinstance(listed, list):
        return to_authorizations(listed, what)
    return to_authorizations([_authorization(each, f"{what}[{at}]") for at, each in enumerate(listed)], what)


def _authorization(entry: Any, what: str) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    named = {"yParity": entry.get("v"), **entry}
    known = {key: named[key] for key in AUTHORIZATION if named.get(key) is not None}
    return {key: value if key == "address" else quantity(value, f"{what}.{key}") for key, value in known.items()}


def _sign(
    entry: Mapping[str, Any], kind: int, numbers: dict[str, int], fields: dict[str, Any], what: str, chain_id: int
) -> SignedTransaction:
    key = to_hash(entry["secretKey"], f"{what}.secretKey")
    given: dict[str, Any] = {name: value for name, value in numbers.items() if name in _NOT_SIGNED}
    if kind >= 2:
        given.setdefault("max_fee", 0)
        given.pop("gas_price", None)
    protected = kind or entry.get("protected", True)
    try:
        signed_for = numbers.get("chain_id", chain_id) if protected else None
        return sign(Transaction(b"", **given, **fields), key, signed_for)
    except ValueError as error:
        raise BadValue(f"{what}.secretKey: {error}") from None


def _signed(kind: int, numbers: dict[str, int], fields: dict[str, Any], what: str) -> SignedTransaction:
    v, parity = numbers.pop("v", None), numbers.pop("y_parity", None)
    for name in ("r", "s"):
        if name not in numbers:
            raise BadValue(f"{what}: no {name!r}; give a signature or a 'secretKey'")
    parity = v if parity is None else parity
    if parity is None:
        raise BadValue(f"{what}: no 'v'; give a signature or a 'secretKey'")
    defaults: dict[str, Any] = {"value": 0}
    if kind == 0:
        legacy = v if v is not None else parity
        numbers.pop("chain_id", None)
        if legacy >= 35:
            defaults |= {"chain_id": (legacy - 35) // 2, "y_parity": (legacy - 35) % 2}
        else:
            defaults["y_parity"] = legacy - 27 if legacy >= 27 else legacy
    else:
        defaults["y_parity"] = parity
    defaults |= {"gas_price": 0} if kind < 2 else {"max_fee": 0, "max_priority_fee": 0}
    if kind >= 2:
        numbers.pop("gas_price", None)
    return SignedTransaction(type=kind, **{**defaults, **numbers, **fields})


def withdrawal_from_json(entry: Any, what: str) -> Withdrawal:
    if not isinstance(entry, Mapping):
        raise BadValue(f"{what}: expected an object, got {type(entry).__name__}")
    index, validator, address, amount = fields_of(entry, ("index", "validatorIndex", "address", "amount"), what)
    return Withdrawal(
        quantity(index, f"{what}.index", 64),
        quantity(validator, f"{what}.validatorIndex", 64),
        to_address(address, f"{what}.address"),
        quantity(amount, f"{what}.amount", 64),
    )


def receipt_json(receipt: BlockReceipt, signed: SignedTransaction, index: int, first_log: int, number: int) -> Any:
    """A receipt in geth's form; `first_log` is how many logs the block had before it."""
    created = create_address(signed.sender, signed.nonce) if signed.to is None else bytes(20)
    core = receipt_core(receipt, signed, index)
    place = {"blockNumber": hex(number), "blockHash": ZERO_HASH}
    place |= {name: core[name] for name in ("transactionHash", "transactionIndex")}
    return {
        **core,
        "root": data(receipt.post_state or b""),
        "logs": [log_form(log, place, at) for at, log in enumerate(receipt.logs, first_log)] or None,
        "contractAddress": data(created),
        "blockHash": ZERO_HASH,
    }
