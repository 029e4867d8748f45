"""Blocks, transactions and receipts as eth-tester's backends give them."""

from __future__ import annotations

from typing import Any

from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.devchain import Mined
from fusevm.evm.gas import BLOB_GAS

Fields = dict[str, Any]

# Header fields that later forks have brought, by eth-tester's names.
_LATER = {
    "base_fee": "base_fee_per_gas",
    "withdrawals_root": "withdrawals_root",
    "parent_beacon_root": "parent_beacon_block_root",
    "blob_gas_used": "blob_gas_used",
    "excess_blob_gas": "excess_blob_gas",
    "requests_hash": "requests_hash",
}


def block_fields(
    block: SealedBlock, receipts: tuple[BlockReceipt, ...], total_difficulty: int, *, full: bool, pending: bool
) -> Fields:
    header = block.header
    transactions: list[Any] = [
        transaction_fields(Mined(signed, block, index, receipts, pending)) if full else signed.hash
        for index, signed in enumerate(block.transactions)
    ]
    fields: Fields = {
        "number": header.number,
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "nonce": header.nonce,
        "sha3_uncles": header.ommers_hash,
        "logs_bloom": int.from_bytes(header.bloom, "big"),
        "transactions_root": header.transactions_root,
        "receipts_root": header.receipts_root,
        "state_root": header.state_root,
        "coinbase": header.coinbase,
        "difficulty": header.difficulty,
        "total_difficulty": total_difficulty,
        "mix_hash": header.prev_randao,
        "size": len(block.encoded),
        "extra_data": header.extra_data.rjust(32, b"\x00"),
        "gas_limit": header.gas_limit,
        "gas_used": header.gas_used,
        "timestamp": header.timestamp,
        "transactions": transactions,
        "uncles": [ommer.hash for ommer in block.ommers],
    }
    fields |= {name: value for ours, name in _LATER.items() if (value := getattr(header, ours)) is not None}
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
        names = ("chain_id", "address", "nonce", "y_parity", "r", "s")
        fields["authorization_list"] = [
            {name: getattr(each, name) for name in names} for each in signed.authorizations or ()
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
