"""Blocks, transactions, receipts and logs as JSON-RPC has them."""

from __future__ import annotations

from typing import Any

from fusevm.chain.addresses import create_address
from fusevm.chain.header import ZERO_SEAL, Header
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock, Withdrawal
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.state import Log
from fusevm.devchain import Mined
from fusevm.evm.gas import BLOB_GAS
from fusevm.rpc.values import data, word

Json = dict[str, Any]


def header_form(header: Header) -> Json:
    form: Json = {
        "hash": data(header.hash),
        "parentHash": data(header.parent_hash),
        "sha3Uncles": data(header.ommers_hash),
        "miner": data(header.coinbase),
        "stateRoot": data(header.state_root),
        "transactionsRoot": data(header.transactions_root),
        "receiptsRoot": data(header.receipts_root),
        "logsBloom": data(header.bloom),
        "difficulty": hex(header.difficulty),
        "number": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": data(header.extra_data),
        "mixHash": data(header.prev_randao),
        "nonce": data(header.nonce or ZERO_SEAL),
    }
    later: tuple[tuple[str, Any], ...] = (
        ("baseFeePerGas", header.base_fee),
        ("withdrawalsRoot", header.withdrawals_root),
        ("blobGasUsed", header.blob_gas_used),
        ("excessBlobGas", header.excess_blob_gas),
        ("parentBeaconBlockRoot", header.parent_beacon_root),
        ("requestsHash", header.requests_hash),
    )
    for name, value in later:
        if value is not None:
            form[name] = hex(value) if isinstance(value, int) else data(value)
    return form


def block_form(block: SealedBlock, receipts: tuple[BlockReceipt, ...], *, full: bool, pending: bool = False) -> Json:
    form = header_form(block.header)
    form["totalDifficulty"] = "0x0"
    form["size"] = hex(len(block.encoded))
    form["uncles"] = [data(ommer.hash) for ommer in block.ommers]
    form["transactions"] = [
        transaction_form(signed, Mined(signed, block, index, receipts, pending)) if full else data(signed.hash)
        for index, signed in enumerate(block.transactions)
    ]
    if block.withdrawals is not None:
        form["withdrawals"] = [withdrawal_form(each) for each in block.withdrawals]
    if pending:
        form |= {"hash": None, "nonce": None, "logsBloom": None, "miner": None}
    return form


def withdrawal_form(each: Withdrawal) -> Json:
    return {
        "index": hex(each.index),
        "validatorIndex": hex(each.validator),
        "address": data(each.address),
        "amount": hex(each.amount),
    }


def transaction_form(signed: SignedTransaction, mined: Mined | None = None) -> Json:
    """Without `mined` it is pending, and no block is named."""
    placed = mined is not None and not mined.pending
    form: Json = {
        "type": hex(signed.type),
        "hash": data(signed.hash),
        "nonce": hex(signed.nonce),
        "blockHash": data(mined.block.hash) if mined is not None and placed else None,
        "blockNumber": hex(mined.block.number) if mined is not None and placed else None,
        "transactionIndex": hex(mined.index) if mined is not None and placed else None,
        "blockTimestamp": hex(mined.block.header.timestamp) if mined is not None and placed else None,
        "from": data(signed.sender),
        "to": None if signed.to is None else data(signed.to),
        "value": hex(signed.value),
        "gas": hex(signed.gas_limit),
        "input": data(signed.data),
    }
    if signed.type < 2:
        form["gasPrice"] = hex(signed.gas_price or 0)
    else:
        form["maxFeePerGas"] = hex(signed.max_fee or 0)
        form["maxPriorityFeePerGas"] = hex(signed.max_priority_fee or 0)
        form["gasPrice"] = hex(mined.receipt.gas_price if mined is not None and placed else signed.max_fee or 0)
    form |= {"r": hex(signed.r), "s": hex(signed.s)}
    if signed.chain_id is not None:
        form["chainId"] = hex(signed.chain_id)
    if signed.type == 0:
        form["v"] = hex(signed.v)
        return form
    form |= {"v": hex(signed.y_parity), "yParity": hex(signed.y_parity), "accessList": access_list_form(signed)}
    if signed.type == 3:
        form["maxFeePerBlobGas"] = hex(signed.max_blob_fee)
        form["blobVersionedHashes"] = [data(each) for each in signed.blob_hashes or ()]
    if signed.type == 4:
        form["authorizationList"] = [
            {
                "chainId": hex(each.chain_id),
                "address": data(each.address),
                "nonce": hex(each.nonce),
                "yParity": hex(each.y_parity),
                "r": hex(each.r),
                "s": hex(each.s),
            }
            for each in signed.authorizations or ()
        ]
    return form


def access_list_form(signed: SignedTransaction) -> list[Json]:
    return [
        {"address": data(address), "storageKeys": [word(key) for key in keys]}
        for address, keys in signed.access_list or ()
    ]


def receipt_form(mined: Mined, blob_base_fee: int) -> Json:
    signed, receipt, block = mined.signed, mined.receipt, mined.block
    form: Json = {
        "type": hex(signed.type),
        "status": hex(receipt.succeeded),
        "cumulativeGasUsed": hex(receipt.cumulative_gas),
        "logs": log_forms(mined),
        "logsBloom": data(receipt.bloom),
        "transactionHash": data(signed.hash),
        "transactionIndex": hex(mined.index),
        "blockHash": data(block.hash),
        "blockNumber": hex(block.number),
        "blockTimestamp": hex(block.header.timestamp),
        "gasUsed": hex(receipt.gas_used),
        "effectiveGasPrice": hex(receipt.gas_price),
        "from": data(signed.sender),
        "to": None if signed.to is None else data(signed.to),
        "contractAddress": data(create_address(signed.sender, signed.nonce)) if signed.to is None else None,
    }
    if block.header.excess_blob_gas is not None:
        form["blobGasPrice"] = hex(blob_base_fee)
    if signed.type == 3:
        form["blobGasUsed"] = hex(BLOB_GAS * len(signed.blob_hashes or ()))
    return form


def log_forms(mined: Mined) -> list[Json]:
    logs = mined.receipt.logs
    if not logs:
        return []
    place = log_place(mined.signed, mined.block, mined.index)
    return [log_form(log, place, index) for index, log in enumerate(logs, mined.first_log)]


def log_place(signed: SignedTransaction, block: SealedBlock, index: int) -> Json:
    """What all logs of a transaction have in common."""
    return {
        "blockHash": data(block.hash),
        "blockNumber": hex(block.number),
        "blockTimestamp": hex(block.header.timestamp),
        "transactionHash": data(signed.hash),
        "transactionIndex": hex(index),
    }


def log_form(log: Log, place: Json, index: int) -> Json:
    return {
        "address": "0x" + log.address.hex(),
        "topics": [f"0x{topic:064x}" for topic in log.topics],
        "data": "0x" + log.data.hex(),
        **place,
        "logIndex": hex(index),
        "removed": False,
    }
