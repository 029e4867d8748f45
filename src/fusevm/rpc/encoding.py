"""Quantities and data as JSON-RPC has them, both ways; and the objects of blocks, transactions, receipts and logs."""

from __future__ import annotations

from typing import Any

from fusevm.chain.addresses import create_address
from fusevm.chain.header import Header
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.state import Log
from fusevm.devchain import Mined
from fusevm.evm.gas import BLOB_GAS

Json = dict[str, Any]


def hex_data(value: bytes) -> str:
    return "0x" + value.hex()


def hex_word(value: int) -> str:
    return f"0x{value:064x}"


_OPTIONAL = {
    "base_fee": "baseFeePerGas",
    "blob_gas_used": "blobGasUsed",
    "excess_blob_gas": "excessBlobGas",
    "withdrawals_root": "withdrawalsRoot",
    "parent_beacon_root": "parentBeaconBlockRoot",
    "requests_hash": "requestsHash",
}


def _shown(value: int | bytes) -> str:
    return hex(value) if isinstance(value, int) else hex_data(value)


def header_json(header: Header, total_difficulty: int) -> Json:
    body = {
        "number": hex(header.number),
        "hash": hex_data(header.hash),
        "parentHash": hex_data(header.parent_hash),
        "nonce": hex_data(header.nonce),
        "mixHash": hex_data(header.prev_randao),
        "sha3Uncles": hex_data(header.ommers_hash),
        "logsBloom": hex_data(header.bloom),
        "transactionsRoot": hex_data(header.transactions_root),
        "stateRoot": hex_data(header.state_root),
        "receiptsRoot": hex_data(header.receipts_root),
        "miner": hex_data(header.coinbase),
        "difficulty": hex(header.difficulty),
        "totalDifficulty": hex(total_difficulty),
        "extraData": hex_data(header.extra_data),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
    }
    body |= {name: _shown(found) for ours, name in _OPTIONAL.items() if (found := getattr(header, ours)) is not None}
    return body


def block_json(
    block: SealedBlock, receipts: tuple[BlockReceipt, ...], total_difficulty: int, *, full: bool, pending: bool = False
) -> Json:
    body = header_json(block.header, total_difficulty)
    body["size"] = hex(len(block.encoded))
    body["uncles"] = [hex_data(ommer.hash) for ommer in block.ommers]
    body["transactions"] = [
        transaction_json(Mined(signed, block, index, receipts, pending)) if full else hex_data(signed.hash)
        for index, signed in enumerate(block.transactions)
    ]
    if block.withdrawals is not None:
        body["withdrawals"] = [
            {
                "index": hex(each.index),
                "validatorIndex": hex(each.validator),
                "address": hex_data(each.address),
                "amount": hex(each.amount),
            }
            for each in block.withdrawals
        ]
    if pending:
        body |= {"hash": None, "nonce": None}
    return body


def transaction_json(mined: Mined) -> Json:
    signed = mined.signed
    body = {**signed_json(signed), **_place(mined)}
    if signed.type >= 2 and not mined.pending:
        body["gasPrice"] = hex(mined.receipt.gas_price)
    return body


def signed_json(signed: SignedTransaction) -> Json:
    """A transaction that is in no block."""
    body: Json = {
        "type": hex(signed.type),
        "hash": hex_data(signed.hash),
        "nonce": hex(signed.nonce),
        "from": hex_data(signed.sender),
        "to": None if signed.to is None else hex_data(signed.to),
        "value": hex(signed.value),
        "gas": hex(signed.gas_limit),
        "gasPrice": hex(signed.gas_price if signed.gas_price is not None else signed.max_fee or 0),
        "input": hex_data(signed.data),
        "v": hex(signed.y_parity if signed.type else signed.v),
        "r": hex(signed.r),
        "s": hex(signed.s),
    }
    if signed.chain_id is not None:
        body["chainId"] = hex(signed.chain_id)
    if signed.type:
        body["yParity"] = hex(signed.y_parity)
        body["accessList"] = [
            {"address": hex_data(address), "storageKeys": [hex_word(key) for key in keys]}
            for address, keys in signed.access_list or ()
        ]
    if signed.type >= 2:
        body["maxFeePerGas"] = hex(signed.max_fee or 0)
        body["maxPriorityFeePerGas"] = hex(signed.max_priority_fee or 0)
    if signed.type == 3:
        body["maxFeePerBlobGas"] = hex(signed.max_blob_fee)
        body["blobVersionedHashes"] = [hex_data(each) for each in signed.blob_hashes or ()]
    if signed.type == 4:
        body["authorizationList"] = [
            {
                "chainId": hex(each.chain_id),
                "address": hex_data(each.address),
                "nonce": hex(each.nonce),
                "yParity": hex(each.y_parity),
                "r": hex(each.r),
                "s": hex(each.s),
            }
            for each in signed.authorizations or ()
        ]
    return body


def _place(mined: Mined) -> Json:
    if mined.pending:
        return {"blockHash": None, "blockNumber": None, "transactionIndex": None}
    return {
        "blockHash": hex_data(mined.block.hash),
        "blockNumber": hex(mined.block.number),
        "transactionIndex": hex(mined.index),
    }


def receipt_json(mined: Mined, blob_base_fee: int) -> Json:
    signed, receipt = mined.signed, mined.receipt
    created = create_address(signed.sender, signed.nonce) if signed.to is None else None
    body: Json = {
        "type": hex(signed.type),
        "transactionHash": hex_data(signed.hash),
        **_place(mined),
        "from": hex_data(signed.sender),
        "to": None if signed.to is None else hex_data(signed.to),
        "cumulativeGasUsed": hex(receipt.cumulative_gas),
        "gasUsed": hex(receipt.gas_used),
        "effectiveGasPrice": hex(receipt.gas_price),
        "contractAddress": None if created is None else hex_data(created),
        "logs": logs_json(mined),
        "logsBloom": hex_data(receipt.bloom),
    }
    if receipt.post_state is None:
        body["status"] = hex(receipt.succeeded)
    else:
        body["root"] = hex_data(receipt.post_state)
    if signed.type == 3:
        body["blobGasUsed"] = hex(BLOB_GAS * len(signed.blob_hashes or ()))
        body["blobGasPrice"] = hex(blob_base_fee)
    return body


def logs_json(mined: Mined) -> list[Json]:
    place = {**_place(mined), "transactionHash": hex_data(mined.signed.hash)}
    stamp = hex(mined.block.header.timestamp)
    return [
        {**log_json(log), **place, "blockTimestamp": stamp, "logIndex": hex(index), "removed": False}
        for index, log in enumerate(mined.receipt.logs, mined.first_log)
    ]


def log_json(log: Log) -> Json:
    return {
        "address": hex_data(log.address),
        "topics": [hex_word(topic) for topic in log.topics],
        "data": hex_data(log.data),
    }
