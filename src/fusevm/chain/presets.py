"""Blocks as public networks have them, by name: chain id, gas limit, blob parameters, and the fork of that moment."""

from __future__ import annotations

from typing import Any

from fusevm.chain.environment import Block
from fusevm.chain.networks import NETWORKS
from fusevm.evm.forks import LATEST, Fork
from fusevm.values import BadValue, shown

GAS_LIMIT = 60_000_000  # EIP-7935
DEV = "dev"  # what development nodes are: anvil's and Hardhat's chain id, the latest fork
DEV_CHAIN_ID = 31_337


def preset(name: str, fields: dict[str, Any]) -> tuple[Fork, Block]:
    """The fork and the block of a network; `fields` are the block's that shall be otherwise.

    The fork is that of the block's number and timestamp. Without them it is the moment of the last upgrade; a number
    before the merge tells its fork alone.
    """
    if name == DEV:
        return LATEST, Block(**{"chain_id": DEV_CHAIN_ID, **fields})
    if not isinstance(name, str) or name not in NETWORKS:
        raise BadValue(f"preset: {shown(name)} is not one of {', '.join([*NETWORKS, DEV])}")
    schedule = NETWORKS[name]
    merge = max(each.block or 0 for each in schedule.activations)
    block = Block(**{"chain_id": schedule.chain_id, "gas_limit": GAS_LIMIT, "number": merge + 1, **fields})
    if "timestamp" not in fields:
        block.timestamp = (schedule.activations[-1].time or 0) if block.number > merge else 0
    step = schedule.at(block.number, block.timestamp)
    if step.blobs is not None:
        if "blob_base_fee_fraction" not in fields:
            block.blob_base_fee_fraction = step.blobs.fraction
        if "blob_max" not in fields:
            block.blob_max = step.blobs.most
    return step.fork, block
