"""Methods about blocks, and what depends on them alone."""

from __future__ import annotations

from typing import Any

from fusevm.chain.fees import base_fee_after
from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import PENDING, Mined
from fusevm.evm.forks import rules_of
from fusevm.rpc.encoding import Json, block_json, hex_data, receipt_json
from fusevm.rpc.errors import INVALID_PARAMS, RpcError
from fusevm.rpc.requests import TIP
from fusevm.rpc.session import Session, parameters
from fusevm.values import BadValue, to_hash, to_number

MOST_BLOCKS = 1024


def block_number(session: Session, given: list[Any]) -> str:
    return hex(session.dev.head.number)


def chain_id(session: Session, given: list[Any]) -> str:
    return hex(session.dev.chain_id)


def gas_price(session: Session, given: list[Any]) -> str:
    return hex(base_fee_after(session.dev.head.header) + TIP)


def max_priority_fee(session: Session, given: list[Any]) -> str:
    return hex(TIP)


def blob_base_fee(session: Session, given: list[Any]) -> str:
    return hex(blob_base_fee_of(session, session.dev.head))


def blob_base_fee_of(session: Session, block: SealedBlock) -> int:
    chain = session.dev.chain
    step = chain.step_after(block.header) if block.number else chain.step_of(block.hash)
    if step.blobs is None:
        return 0
    environment = chain.environment_after(block.header)
    environment.blob_base_fee_fraction = step.blobs.fraction
    return environment.blob_base_fee(rules_of(step.fork))


def get_block_by_number(session: Session, given: list[Any]) -> Json | None:
    tag, full = parameters(given, 1, 2)
    try:
        which = session.which(tag)
    except BadValue:
        return None
    if which == PENDING:
        with session.dev.pending_block() as (block, receipts):
            return block_json(block, receipts, 0, full=bool(full), pending=True)
    return _block(session, session.dev.chain.block(which), bool(full))


def get_block_by_hash(session: Session, given: list[Any]) -> Json | None:
    tag, full = parameters(given, 1, 2)
    found = to_hash(tag, "block hash")
    if not session.dev.chain.knows(found):
        return None
    return _block(session, session.dev.chain.block(found), bool(full))


def _block(session: Session, block: SealedBlock, full: bool) -> Json:
    chain = session.dev.chain
    return block_json(block, chain.receipts(block.hash), chain.total_difficulty(block.hash), full=full)


def found_block(session: Session, tag: Any) -> SealedBlock | None:
    """By number, tag or hash; None where there is none."""
    try:
        which = session.which(tag)
    except BadValue:
        return None
    return session.dev.head if which == PENDING else session.dev.chain.block(which)


def transaction_count(session: Session, given: list[Any]) -> str | None:
    (tag,) = parameters(given, 1, 1)
    block = found_block(session, tag)
    return None if block is None else hex(len(block.transactions))


def uncle_count(session: Session, given: list[Any]) -> str | None:
    (tag,) = parameters(given, 1, 1)
    block = found_block(session, tag)
    return None if block is None else hex(len(block.ommers))


def block_receipts(session: Session, given: list[Any]) -> list[Json] | None:
    (tag,) = parameters(given, 1, 1)
    block = found_block(session, tag)
    if block is None:
        return None
    receipts, fee = session.dev.chain.receipts(block.hash), blob_base_fee_of(session, block)
    return [receipt_json(Mined(tx, block, index, receipts), fee) for index, tx in enumerate(block.transactions)]


def fee_history(session: Session, given: list[Any]) -> Json:
    count, newest, percentiles = parameters(given, 2, 3)
    wanted = to_number(count, "blockCount", bits=64)
    if not 0 < wanted <= MOST_BLOCKS:
        raise RpcError(INVALID_PARAMS, f"blockCount: expected 1 to {MOST_BLOCKS}, got {wanted}")
    last = found_block(session, newest)
    if last is None:
        raise RpcError(INVALID_PARAMS, f"newestBlock: {newest!r} is not known")
    chain = session.dev.chain
    first = max(chain.genesis.block.number, last.number - wanted + 1)
    blocks = [chain.block(number) for number in range(first, last.number + 1)]
    fees = [block.header.base_fee or 0 for block in blocks]
    body: Json = {
        "oldestBlock": hex(first),
        "baseFeePerGas": [hex(fee) for fee in [*fees, base_fee_after(blocks[-1].header)]],
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
        "baseFeePerBlobGas": [hex(blob_base_fee_of(session, block)) for block in [*blocks, blocks[-1]]],
        "blobGasUsedRatio": [0.0 for _ in blocks],
    }
    if percentiles:
        body["reward"] = [_rewards(session, block, percentiles) for block in blocks]
    return body


def _rewards(session: Session, block: SealedBlock, percentiles: list[float]) -> list[str]:
    """The tips at which so many percent of the block's gas were paid for."""
    base_fee = block.header.base_fee or 0
    paid = sorted((each.gas_price - base_fee, each.gas_used) for each in session.dev.chain.receipts(block.hash))
    rewards = []
    for percentile in percentiles:
        limit, total = block.header.gas_used * percentile / 100, 0
        reward = 0
        for tip, used in paid:
            reward, total = tip, total + used
            if total >= limit:
                break
        rewards.append(hex(reward))
    return rewards


def get_raw_block(session: Session, given: list[Any]) -> str | None:
    """The block's encoding."""
    (tag,) = parameters(given, 1, 1)
    block = found_block(session, tag)
    return None if block is None else hex_data(block.encoded)
