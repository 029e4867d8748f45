"""Blocks, transactions and receipts as eth-tester's backends give them."""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import Any

from fusevm.chain.forms import Mined
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.transaction import AUTHORIZATION
from fusevm.evm.gas import BLOB_GAS

Fields = dict[str, Any]

# eth-tester's names of a header's fields, where they are not ours.
_RENAMED = {
    "ommers_hash": "sha3_uncles",
    "bloom": "logs_bloom",
    "prev_randao": "mix_hash",
    "base_fee": "base_fee_per_gas",
    "parent_beacon_root": "parent_beacon_block_root",
}


def block_fields(
    block: SealedBlock, receipts: tuple[BlockReceipt, ...], total_difficulty: int, *, full: bool, pending: bool
) -> Fields:
    header = block.header
    transactions: list[Any] = [
        transaction_fields(Mined(signed, block, index, receipts, pending)) if full else signed.hash
        for index, signed in enumerate(block.transactions)
    ]
    given = {each.name: getattr(header, each.name) for each in fields_of(header)}
    fields: Fields = {_RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    fields |= {
        "hash": header.hash,
        "logs_bloom": int.from_bytes(header.bloom, "big"),
        "total_difficulty": total_difficulty,
        "size": len(block.encoded),
        "extra_data": header.extra_data.rjust(32, b"\x00"),
        "transactions": transactions,
        "uncles": [ommer.hash for ommer in block.ommers],
    }
    if block.withdrawals is not None:
        fields["withdrawals"] = [
            {
                "index": each.index,
                "validator_index": each.validator,
                "address": each.address,
                "amount": each.amount,
            }
            for each in block.withdrawals
        ]
    return fields


def transaction_fields(mined: Mined) -> Fields:
    signed = mined.signed
    fields: Fields = {
        "type": signed.type,
        "hash": signed.hash,
        "nonce": signed.nonce,
        **_place(mined),
        "from": signed.sender,
        "to": signed.to or b"",
        "value": signed.value,
        "gas": signed.gas_limit,
        "data": signed.data,
        **_fees(signed, mined),
    }
    if signed.type:
        fields["chain_id"] = signed.chain_id
        fields["access_list"] = signed.access_list or ()
    if signed.type == 3:
        fields["max_fee_per_blob_gas"] = signed.max_blob_fee
        fields["blob_versioned_hashes"] = signed.blob_hashes
    if signed.type == 4:
        fields["authorization_list"] = [
            {name: getattr(each, name) for name in AUTHORIZATION.values()} for each in signed.authorizations or ()
        ]
    fields |= {"v": signed.y_parity if signed.type else signed.v, "s": signed.s, "r": signed.r}
    if signed.type:
        fields["y_parity"] = signed.y_parity
    return fields


def _place(mined: Mined) -> Fields:
    if mined.pending:
        return {"block_hash": None, "block_number": None, "transaction_index": None}
    return {"block_hash": mined.block.hash, "block_number": mined.block.number, "transaction_index": mined.index}


def _fees(signed: SignedTransaction, mined: Mined) -> Fields:
    if signed.type < 2:
        return {"gas_price": signed.gas_price}
    return {
        "max_fee_per_gas": signed.max_fee,
        "max_priority_fee_per_gas": signed.max_priority_fee,
        "gas_price": signed.max_fee if mined.pending else mined.receipt.gas_price,
    }


def receipt_fields(mined: Mined, blob_base_fee: int) -> Fields:
    signed, receipt = mined.signed, mined.receipt
    created = receipt.created
    if signed.to is None and created is None:  # a failed creation has an address, too
        from fusevm.chain.addresses import create_address

        created = create_address(signed.sender, signed.nonce)
    fields: Fields = {
        **_place(mined),
        "contract_address": created if signed.to is None else None,
        "cumulative_gas_used": receipt.cumulative_gas,
        "effective_gas_price": receipt.gas_price,
        "from": signed.sender,
        "gas_used": receipt.gas_used,
        "logs": log_fields(mined),
        "state_root": receipt.post_state or (b"\x01" if receipt.succeeded else b""),
        "status": int(receipt.succeeded),
        "to": signed.to or b"",
        "transaction_hash": signed.hash,
        "type": signed.type,
    }
    if signed.type == 3:
        fields["blob_gas_used"] = BLOB_GAS * len(signed.blob_hashes or ())
        fields["blob_gas_price"] = blob_base_fee
    return fields


def log_fields(mined: Mined) -> list[Fields]:
    return [
        {
            "type": "pending" if mined.pending else "mined",
            "log_index": index,
            "transaction_hash": mined.signed.hash,
            **_place(mined),
            "address": log.address,
            "data": log.data,
            "topics": [topic.to_bytes(32, "big") for topic in log.topics],
        }
        for index, log in enumerate(mined.receipt.logs, mined.first_log)
    ]
