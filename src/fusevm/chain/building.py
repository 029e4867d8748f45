"""Headers of blocks to be built: what follows from the parent, and what is known when the block has run."""

from __future__ import annotations

from typing import Any

from fusevm.chain.assembly import BlockAssembly
from fusevm.chain.difficulty import difficulty_after
from fusevm.chain.fees import ELASTICITY, base_fee_after, excess_blob_gas_after
from fusevm.chain.header import NO_OMMERS, ZERO_HASH, Header
from fusevm.chain.schedule import Upgrade
from fusevm.chain.sealed import SealedBlock, Withdrawal, transactions_root, withdrawals_root
from fusevm.evm.forks import Fork


def following(
    parent: Header, header: Header, step: Upgrade, gas_limit: int | None, beacon_root: bytes
) -> dict[str, Any]:
    """The header fields that follow from the parent's, for a block to be built."""
    fields: dict[str, Any] = {"gas_limit": parent.gas_limit if gas_limit is None else gas_limit}
    if step.fork >= Fork.LONDON:
        fields["base_fee"] = base_fee_after(parent)
        if parent.base_fee is None and gas_limit is None:
            fields["gas_limit"] = parent.gas_limit * ELASTICITY
    if step.blobs is not None:
        fields["excess_blob_gas"] = excess_blob_gas_after(parent, step)
        fields["blob_gas_used"] = 0
        fields["parent_beacon_root"] = beacon_root
    if step.fork < Fork.PARIS:
        has_ommers = parent.ommers_hash != NO_OMMERS
        times = header.timestamp, parent.timestamp
        fields["difficulty"] = difficulty_after(step, header.number, *times, parent.difficulty, has_ommers)
    return fields


def sealed(
    assembly: BlockAssembly, header: Header, ommers: tuple[Header, ...], withdrawals: tuple[Withdrawal, ...] | None
) -> SealedBlock:
    """The built block, with everything its header commits to. A state that is not fully known has no root: zero."""
    transactions = tuple(assembly.transactions)
    fields: dict[str, Any] = {
        "state_root": ZERO_HASH if assembly.state.source is not None else assembly.state.root(),
        "transactions_root": transactions_root(transactions),
        "receipts_root": assembly.receipts_root,
        "bloom": assembly.bloom,
        "gas_used": assembly.gas_used,
        "requests_hash": assembly.requests_hash,
    }
    if withdrawals is not None:
        fields["withdrawals_root"] = withdrawals_root(withdrawals)
    if header.blob_gas_used is not None:
        fields["blob_gas_used"] = assembly.blob_gas_used
    return SealedBlock(header.having(fields), transactions, ommers, withdrawals)
