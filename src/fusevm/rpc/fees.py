"""What gas costs: prices that are suggested, and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.sealed import SealedBlock
from fusevm.rpc.blocks import blob_fee
from fusevm.rpc.errors import invalid
from fusevm.rpc.values import number_of, which_block
from fusevm.values import shown

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

MAX_BLOCKS = 1024


def suggested_tip(session: Session) -> int:
    return session.config.tip


def gas_price(session: Session) -> str:
    return hex((session.dev.upcoming()[0].base_fee or 0) + suggested_tip(session))


def max_priority_fee(session: Session) -> str:
    return hex(suggested_tip(session))


def blob_base_fee(session: Session) -> str:
    header, step = session.dev.upcoming()
    return hex(step.blob_price(header.excess_blob_gas))


def fee_history(session: Session, count: Any, newest: Any, percentiles: Any = None) -> Any:
    wanted = number_of(count, "block count", 64)
    if not isinstance(percentiles, list | None) or not all(map(_is_percentile, percentiles or ())):
        raise invalid(f"reward percentiles: expected a list of numbers from 0 to 100, got {shown(percentiles)}")
    which = which_block(session, newest)
    chain = session.dev.chain
    last = session.dev.head.number if which == "pending" else chain.block(which).number
    first = max(chain.genesis.block.number, last - min(wanted, MAX_BLOCKS) + 1)
    blocks = [chain.block(number) for number in range(first, last + 1)]
    following = session.dev.upcoming()[0] if last == session.dev.head.number else chain.block(last + 1).header
    form: dict[str, Any] = {
        "oldestBlock": hex(first),
        "baseFeePerGas": [hex(each.header.base_fee or 0) for each in blocks] + [hex(following.base_fee or 0)],
        "gasUsedRatio": [each.header.gas_used / each.header.gas_limit for each in blocks],
        "baseFeePerBlobGas": [hex(blob_fee(session, each)) for each in blocks] + [blob_base_fee(session)],
        "blobGasUsedRatio": [_blob_ratio(session, each) for each in blocks],
    }
    if percentiles:
        form["reward"] = [_rewards(session, each, percentiles) for each in blocks]
    return form


def _is_percentile(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


def _blob_ratio(session: Session, block: SealedBlock) -> float:
    from fusevm.evm.gas import BLOB_GAS

    blobs = session.dev.chain.step_of(block.hash).blobs
    return 0.0 if blobs is None else (block.header.blob_gas_used or 0) / (blobs.most * BLOB_GAS)


def _rewards(session: Session, block: SealedBlock, percentiles: list[Any]) -> list[str]:
    """The tips below which shares of the block's gas were paid."""
    base_fee = block.header.base_fee or 0
    paid = sorted((each.gas_price - base_fee, each.gas_used) for each in session.dev.chain.receipts(block.hash))
    if not paid:
        return ["0x0"] * len(percentiles)
    found = []
    for percentile in percentiles:
        limit, total, tip = block.header.gas_used * float(percentile) / 100, 0, paid[0][0]
        for tip, used in paid:  # noqa: B007 - the last one counts
            total += used
            if total >= limit:
                break
        found.append(hex(tip))
    return found


METHODS = {
    "eth_gasPrice": gas_price,
    "eth_maxPriorityFeePerGas": max_priority_fee,
    "eth_blobBaseFee": blob_base_fee,
    "eth_feeHistory": fee_history,
}
