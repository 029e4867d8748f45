"""Blocks, transactions, receipts and logs as JSON-RPC has them; headers are read as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fusevm.chain.addresses import create_address
from fusevm.chain.header import ZERO_SEAL, Header
from fusevm.chain.logs import Log, log_json
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.sealed import SealedBlock, Withdrawal
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.transaction import AUTHORIZATION
from fusevm.evm.gas import BLOB_GAS
from fusevm.values import to_address, to_bytes, to_hash, to_number

Json = dict[str, Any]
Reader = Callable[[Any, str], Any]

# JSON's name → ours, and how it is read; in the order of the answers
_HEADER: dict[str, tuple[str, Reader]] = {
    "parentHash": ("parent_hash", to_hash),
    "sha3Uncles": ("ommers_hash", to_hash),
    "miner": ("coinbase", to_address),
    "stateRoot": ("state_root", to_hash),
    "transactionsRoot": ("transactions_root", to_hash),
    "receiptsRoot": ("receipts_root", to_hash),
    "logsBloom": ("bloom", to_bytes),
    "difficulty": ("difficulty", to_number),
    "number": ("number", to_number),
    "gasLimit": ("gas_limit", to_number),
    "gasUsed": ("gas_used", to_number),
    "timestamp": ("timestamp", to_number),
    "extraData": ("extra_data", to_bytes),
    "mixHash": ("prev_randao", to_hash),
    "nonce": ("nonce", to_bytes),
    "baseFeePerGas": ("base_fee", to_number),
    "withdrawalsRoot": ("withdrawals_root", to_hash),
    "blobGasUsed": ("blob_gas_used", to_number),
    "excessBlobGas": ("excess_blob_gas", to_number),
    "parentBeaconBlockRoot": ("parent_beacon_root", to_hash),
    "requestsHash": ("requests_hash", to_hash),
}


@dataclass(frozen=True)
class Mined:
    """A transaction where it stands: in a block of the chain, or pending (`block` is then the one it would be in)."""

    signed: SignedTransaction
    block: SealedBlock
    index: int
    receipts: tuple[BlockReceipt, ...]
    pending: bool = False

    @property
    def receipt(self) -> BlockReceipt:
        return self.receipts[self.index]

    @property
    def first_log(self) -> int:
        """How many logs the block has before this transaction's."""
        return sum(len(each.logs) for each in self.receipts[: self.index])


def data(value: bytes) -> str:
    return "0x" + value.hex()


def word(value: int) -> str:
    return f"0x{value:064x}"


def shown(value: int | bytes) -> str:
    return hex(value) if isinstance(value, int) else data(value)


def header_form(header: Header) -> Json:
    form: Json = {"hash": data(header.hash)}
    for name, (ours, _) in _HEADER.items():
        value = getattr(header, ours)
        if value is not None:
            form[name] = shown(value)
    form["nonce"] = data(header.nonce or ZERO_SEAL)
    return form


def header_from_json(form: Mapping[str, Any]) -> Header:
    """A header as a node gives it."""
    return Header(
        **{ours: read(form[name], name) for name, (ours, read) in _HEADER.items() if form.get(name) not in (None, "")}
    )


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
        form |= {"hash": None, "nonce": None, "miner": None}  # as geth; clients want a bloom
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
            {name: shown(getattr(each, ours)) for name, ours in AUTHORIZATION.items()}
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
        **receipt_core(receipt, signed, mined.index),
        "logs": log_forms(mined),
        "blockHash": data(block.hash),
        "blockNumber": hex(block.number),
        "blockTimestamp": hex(block.header.timestamp),
        "from": data(signed.sender),
        "to": None if signed.to is None else data(signed.to),
        "contractAddress": data(create_address(signed.sender, signed.nonce)) if signed.to is None else None,
    }
    if block.header.excess_blob_gas is not None:
        form["blobGasPrice"] = hex(blob_base_fee)
    if signed.type == 3:
        form["blobGasUsed"] = hex(BLOB_GAS * len(signed.blob_hashes or ()))
    return form


def receipt_core(receipt: BlockReceipt, signed: SignedTransaction, index: int) -> Json:
    """What a receipt says whichever block it is in, without its logs."""
    return {
        "type": hex(signed.type),
        "status": hex(receipt.succeeded),
        "cumulativeGasUsed": hex(receipt.cumulative_gas),
        "logsBloom": data(receipt.bloom),
        "transactionHash": data(signed.hash),
        "transactionIndex": hex(index),
        "gasUsed": hex(receipt.gas_used),
        "effectiveGasPrice": hex(receipt.gas_price),
    }


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
    return {**log_json(log), **place, "logIndex": hex(index), "removed": False}
