"""State transition without a chain: accounts, a block's surroundings and transactions in, a post-state and roots out.

The forms are those of geth's `evm t8n`, so that test fillers can use either.

>>> env = {"currentCoinbase": "0x" + "00" * 20, "currentNumber": "1", "currentTimestamp": "1000",
...        "currentGasLimit": "0x1000000", "currentDifficulty": "0x20000"}
>>> transition({"0x" + "aa" * 20: {"balance": "5"}}, env, [], "Homestead", reward=8).alloc["0x" + "00" * 20]
{'balance': '0x8'}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusevm.chain.alloc import alloc_of, quantity, state_from_alloc
from fusevm.chain.assembly import BlockAssembly
from fusevm.chain.difficulty import difficulty_after
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.fees import next_base_fee, next_excess_blob_gas
from fusevm.chain.header import NO_OMMERS
from fusevm.chain.outcome import Outcome
from fusevm.chain.reasons import InvalidBlock, Rejected
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.rlp import Item, MalformedRLP, decode, encode
from fusevm.chain.schedule import BlobSchedule, Upgrade, schedule_named
from fusevm.chain.sealed import Withdrawal, transactions_root, withdrawals_root
from fusevm.chain.signed import SignedTransaction, transaction_from_item
from fusevm.chain.state import State, logs_hash
from fusevm.chain.system import requests_hash
from fusevm.chain.transaction_json import receipt_json, transaction_from_json, withdrawal_from_json
from fusevm.evm.forks import Fork
from fusevm.reference.hooks import Hooks
from fusevm.tiers import executor_for
from fusevm.values import BadValue, to_address, to_bytes, to_hash


class MissingHash(LookupError):
    """BLOCKHASH asked for a block whose hash `env` does not give."""


@dataclass(frozen=True)
class Transition:
    """What came of it, ready to be written as JSON. `body` is the RLP of the transactions that ran."""

    alloc: dict[str, Any]
    result: dict[str, Any]
    body: bytes
    state: State


Watcher = Callable[[int, SignedTransaction, BlockReceipt | None], None]


def transition(
    alloc: Mapping[str, Any],
    env: Mapping[str, Any],
    txs: Sequence[Any] | bytes,
    fork: str,
    *,
    chain_id: int = 1,
    reward: int = -1,
    blobs: BlobSchedule | None = None,
    tier: str = "auto",
    hooks: Hooks | None = None,
    watch: Watcher | None = None,
) -> Transition:
    """Runs a block's transactions; those that may not run are listed, not refused.

    `txs` are JSON objects or the RLP list of a block's body. A negative `reward` is none. `watch` is told of each
    transaction before it runs, without a receipt, and after, with it.
    """
    schedule = schedule_named(fork, chain_id)
    number, time = quantity(_given(env, "currentNumber"), "env.currentNumber", 64), _time(env, "currentTimestamp")
    step = schedule.at(number, time)
    if blobs is not None:
        step = step._replace(blobs=blobs)
    state = state_from_alloc(alloc)
    run = executor_for(tier)

    def execute(message: Message, state: State, context: Context) -> Outcome:
        return run(message, state, context, hooks)

    hashes = _hashes(env)
    withdrawals = _withdrawals(env, step)
    assembly = BlockAssembly(state, _block(env, step, chain_id, number, time, hashes), step, schedule, execute)
    assembly.begin(hashes.get(number - 1, bytes(32)), _beacon_root(env, step))
    rejected = []
    for index, signed in enumerate(_transactions(txs, chain_id)):
        try:
            _add(assembly, index, signed, watch)
        except Rejected as why:
            rejected.append({"index": index, "error": f"{why.official_name}: {why}"})
    failure = None
    try:
        assembly.end(withdrawals, None if reward < 0 else reward, _ommers(env, number))
    except InvalidBlock as why:
        failure = f"{why.official_name}: {why}"
    result = _result(assembly, withdrawals, rejected, failure)
    body = encode([signed.item for signed in assembly.transactions])
    return Transition(alloc_of(state), result, body, state)


def _add(assembly: BlockAssembly, index: int, signed: SignedTransaction | Rejected, watch: Watcher | None) -> None:
    if isinstance(signed, Rejected):
        raise signed
    if watch is not None:
        watch(index, signed, None)
    receipt = assembly.add(signed)
    if watch is not None:
        watch(index, signed, receipt)


# -- reading


def _given(env: Mapping[str, Any], key: str) -> Any:
    if env.get(key) is None:
        raise BadValue(f"env: no {key!r}")
    return env[key]


def _time(env: Mapping[str, Any], key: str) -> int:
    return quantity(_given(env, key), f"env.{key}", 64)


def _number(env: Mapping[str, Any], key: str) -> int:
    return quantity(_given(env, key), f"env.{key}")


def _hashes(env: Mapping[str, Any]) -> dict[int, bytes]:
    listed = env.get("blockHashes") or {}
    if not isinstance(listed, Mapping):
        raise BadValue("env.blockHashes: expected an object of hashes by number")
    return {
        quantity(key, f"env.blockHashes: key {key!r}"): to_hash(value, f"env.blockHashes[{key}]")
        for key, value in listed.items()
    }


def _block(
    env: Mapping[str, Any], step: Upgrade, chain_id: int, number: int, time: int, hashes: Mapping[int, bytes]
) -> Block:
    def hash_of(asked: int) -> bytes:
        if asked not in hashes:
            raise MissingHash(f"the hash of block {asked} is asked for, and env.blockHashes does not give it")
        return hashes[asked]

    merged = step.fork >= Fork.PARIS
    return Block(
        number=number,
        timestamp=time,
        coinbase=to_address(_given(env, "currentCoinbase"), "env.currentCoinbase"),
        gas_limit=quantity(_given(env, "currentGasLimit"), "env.currentGasLimit", 64),
        base_fee=_base_fee(env) if step.fork >= Fork.LONDON else 0,
        prev_randao=_number(env, "currentRandom") if merged else 0,
        difficulty=0 if merged else _difficulty(env, step, number, time),
        chain_id=chain_id,
        excess_blob_gas=_excess_blob_gas(env, step) if step.blobs is not None else 0,
        hashes=hash_of,
    )


def _base_fee(env: Mapping[str, Any]) -> int:
    if env.get("currentBaseFee") is not None:
        return _number(env, "currentBaseFee")
    return next_base_fee(*(_number(env, key) for key in ("parentBaseFee", "parentGasUsed", "parentGasLimit")))


def _difficulty(env: Mapping[str, Any], step: Upgrade, number: int, time: int) -> int:
    if env.get("currentDifficulty") is not None:
        return _number(env, "currentDifficulty")
    ommers = to_hash(env.get("parentUncleHash") or NO_OMMERS, "env.parentUncleHash")
    before = _time(env, "parentTimestamp")
    return difficulty_after(step, number, time, before, _number(env, "parentDifficulty"), ommers != NO_OMMERS)


def _excess_blob_gas(env: Mapping[str, Any], step: Upgrade) -> int:
    if env.get("currentExcessBlobGas") is not None:
        return quantity(env["currentExcessBlobGas"], "env.currentExcessBlobGas", 64)
    names = ("parentExcessBlobGas", "parentBlobGasUsed", "parentBaseFee")
    excess, used, base_fee = (quantity(env.get(key) or 0, f"env.{key}") for key in names)
    return next_excess_blob_gas(excess, used, base_fee, step)


def _beacon_root(env: Mapping[str, Any], step: Upgrade) -> bytes | None:
    if step.fork < Fork.CANCUN:
        return None
    return to_hash(_given(env, "parentBeaconBlockRoot"), "env.parentBeaconBlockRoot")


def _withdrawals(env: Mapping[str, Any], step: Upgrade) -> list[Withdrawal] | None:
    if step.fork < Fork.SHANGHAI:
        return None
    listed = _given(env, "withdrawals")
    if not isinstance(listed, list):
        raise BadValue("env.withdrawals: expected a list")
    return [withdrawal_from_json(each, f"env.withdrawals[{at}]") for at, each in enumerate(listed)]


def _ommers(env: Mapping[str, Any], number: int) -> list[tuple[int, bytes]]:
    return [
        (
            number - quantity(_given(each, "delta"), f"env.ommers[{at}].delta"),
            to_address(_given(each, "address"), f"env.ommers[{at}].address"),
        )
        for at, each in enumerate(env.get("ommers") or ())
    ]


def _transactions(txs: Sequence[Any] | bytes, chain_id: int) -> list[SignedTransaction | Rejected]:
    """Each transaction, or why it is none."""
    if not isinstance(txs, bytes):
        return [transaction_from_json(each, f"txs[{at}]", chain_id) for at, each in enumerate(txs)]
    try:
        items = decode(txs)
    except MalformedRLP as error:
        raise BadValue(f"txs: {error}") from None
    if isinstance(items, bytes):
        raise BadValue("txs: the RLP is not a list of transactions")
    return [_read(item) for item in items]


def _read(item: Item) -> SignedTransaction | Rejected:
    try:
        return transaction_from_item(item)
    except Rejected as error:
        return error


def body_from_text(text: str) -> bytes:
    """The RLP of transactions as files have it: hex, in quotation marks or not."""
    return to_bytes(text.strip().strip('"'), "txs")


# -- writing


def _result(
    assembly: BlockAssembly, withdrawals: list[Withdrawal] | None, rejected: list[dict[str, Any]], failure: str | None
) -> dict[str, Any]:
    block, step = assembly.block, assembly.step
    logs = [log for receipt in assembly.receipts for log in receipt.logs]
    result: dict[str, Any] = {
        "stateRoot": _hex(assembly.state.root()),
        "txRoot": _hex(transactions_root(assembly.transactions)),
        "receiptsRoot": _hex(assembly.receipts_root),
        "logsHash": _hex(logs_hash(logs)),
        "logsBloom": _hex(assembly.bloom),
        "receipts": _receipts(assembly),
        "currentDifficulty": hex(block.difficulty) if step.fork < Fork.PARIS else None,
        "gasUsed": hex(assembly.gas_used),
    }
    if rejected:
        result["rejected"] = rejected
    if step.fork >= Fork.LONDON:
        result["currentBaseFee"] = hex(block.base_fee)
    if withdrawals is not None:
        result["withdrawalsRoot"] = _hex(withdrawals_root(withdrawals))
    if step.blobs is not None:
        result["currentExcessBlobGas"] = hex(block.excess_blob_gas)
        result["blobGasUsed"] = hex(assembly.blob_gas_used)
    if step.fork >= Fork.PRAGUE:
        requests = assembly.requests or []
        result["requestsHash"] = _hex(requests_hash(requests))
        result["requests"] = [_hex(request) for request in requests]
    if failure is not None:
        result["blockException"] = failure
    return result


def _receipts(assembly: BlockAssembly) -> list[Any]:
    found, logs = [], 0
    for index, (receipt, signed) in enumerate(zip(assembly.receipts, assembly.transactions, strict=True)):
        found.append(receipt_json(receipt, signed, index, logs, assembly.block.number))
        logs += len(receipt.logs)
    return found


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
