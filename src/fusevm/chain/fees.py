"""What a block asks for gas and for blob gas, and how both follow from its parent."""

from __future__ import annotations

from fusevm.chain.header import Header
from fusevm.chain.schedule import Upgrade
from fusevm.evm.forks import Fork
from fusevm.evm.gas import BLOB_GAS

FIRST_BASE_FEE = 1_000_000_000
ELASTICITY = 2
MAX_CHANGE = 8
BLOB_BASE_COST = 1 << 13  # EIP-7918: the execution gas that a blob's price is held against


def base_fee_after(parent: Header) -> int:
    """EIP-1559: the base fee of the block after this one."""
    if parent.base_fee is None:
        return FIRST_BASE_FEE
    return next_base_fee(parent.base_fee, parent.gas_used, parent.gas_limit)


def next_base_fee(base_fee: int, gas_used: int, gas_limit: int) -> int:
    target = gas_limit // ELASTICITY
    if gas_used == target or not target:
        return base_fee
    change = base_fee * abs(gas_used - target) // target // MAX_CHANGE
    return base_fee + max(change, 1) if gas_used > target else base_fee - change


def excess_blob_gas_after(parent: Header, step: Upgrade) -> int:
    """EIP-4844: how far blobs have been over their target, for a block of this step after the parent."""
    return next_excess_blob_gas(parent.excess_blob_gas or 0, parent.blob_gas_used or 0, parent.base_fee or 0, step)


def next_excess_blob_gas(excess: int, used: int, base_fee: int, step: Upgrade) -> int:
    """The same from the parent's excess, blob gas used and base fee (EIP-7918 since Osaka)."""
    if step.blobs is None:
        return 0
    target, most, _ = step.blobs
    if excess + used < target * BLOB_GAS:
        return 0
    if step.fork >= Fork.OSAKA and BLOB_BASE_COST * base_fee > BLOB_GAS * step.blob_price(excess):
        return excess + used * (most - target) // most
    return excess + used - target * BLOB_GAS
