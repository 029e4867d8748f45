"""Running a whole block on its parent's state, and holding the result against its header."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.assembly import BlockAssembly
from fusevm.chain.environment import Block, known_block
from fusevm.chain.header import Header
from fusevm.chain.outcome import Executor
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected
from fusevm.chain.rewards import reward_of
from fusevm.chain.schedule import ForkSchedule, Upgrade
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import State
from fusevm.evm.gas import BLOB_GAS

B = BlockReason
Hashes = Callable[[int], bytes]


def environment_of(header: Header, chain_id: int, hashes: Hashes) -> Block:
    """What calls in the block of a header see of it."""
    return known_block(
        number=header.number,
        timestamp=header.timestamp,
        coinbase=header.coinbase,
        gas_limit=header.gas_limit,
        base_fee=header.base_fee or 0,
        prev_randao=int.from_bytes(header.prev_randao, "big"),
        difficulty=header.difficulty,
        chain_id=chain_id,
        excess_blob_gas=header.excess_blob_gas or 0,
        hashes=hashes,
    )


def run_block(
    block: SealedBlock, step: Upgrade, schedule: ForkSchedule, state: State, execute: Executor, hashes: Hashes
) -> BlockAssembly:
    """Runs a block whose header was checked. Raises InvalidBlock; undoing what was done is the caller's."""
    header = block.header
    environment = environment_of(header, schedule.chain_id, hashes)
    assembly = BlockAssembly(state, environment, step, schedule, execute)
    assembly.begin(header.parent_hash, header.parent_beacon_root)
    for place, signed in enumerate(block.transactions):
        try:
            assembly.add(signed)
        except Rejected as error:
            detail = f"transaction {place}" + (f": {error.detail}" if error.detail else "")
            raise InvalidBlock(error.reason, detail) from None
    ommers = [(ommer.number, ommer.coinbase) for ommer in block.ommers]
    assembly.end(block.withdrawals, reward_of(step.fork), ommers)
    _compare(assembly, header)
    return assembly


def _compare(assembly: BlockAssembly, header: Header) -> None:
    if assembly.gas_used != header.gas_used:
        raise InvalidBlock(B.INVALID_GAS_USED, f"{header.gas_used}, not {assembly.gas_used}")
    if header.blob_gas_used is not None and assembly.blob_gas_used != header.blob_gas_used:
        over = header.blob_gas_used > assembly.most_blobs * BLOB_GAS
        reason = B.BLOB_GAS_USED_ABOVE_LIMIT if over else B.INCORRECT_BLOB_GAS_USED
        raise InvalidBlock(reason, f"{header.blob_gas_used}, not {assembly.blob_gas_used}")
    if assembly.bloom != header.bloom:
        raise InvalidBlock(B.INVALID_LOG_BLOOM)
    for reason, given, computed in (
        (B.INVALID_RECEIPTS_ROOT, header.receipts_root, assembly.receipts_root),
        (B.INVALID_REQUESTS, header.requests_hash, assembly.requests_hash),
        (B.INVALID_STATE_ROOT, header.state_root, assembly.state.root()),
    ):
        if given != computed:
            raise InvalidBlock(reason, f"0x{(given or b'').hex()}, not 0x{(computed or b'').hex()}")
