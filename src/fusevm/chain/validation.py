"""The rules a block must keep before it is run: its header by its parent's, its body by its header."""

from __future__ import annotations

from fusevm.chain.dao import check_dao_extra_data
from fusevm.chain.difficulty import difficulty_after
from fusevm.chain.fees import ELASTICITY, base_fee_after, excess_blob_gas_after
from fusevm.chain.header import NO_OMMERS, ZERO_SEAL, Header
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.schedule import ForkSchedule, Upgrade
from fusevm.chain.sealed import SealedBlock, ommers_hash, transactions_root, withdrawals_root
from fusevm.evm.forks import Fork

B = BlockReason

MAX_EXTRA_DATA = 32
LEAST_GAS_LIMIT = 5_000
GAS_LIMIT_STEP = 1_024
MAX_BLOCK_BYTES = 8_388_608  # EIP-7934


def check_block(block: SealedBlock, parent: Header, step: Upgrade, schedule: ForkSchedule) -> None:
    """All checks that need no execution. Raises InvalidBlock, naming the first rule that is broken."""
    if step.fork >= Fork.OSAKA and len(block.encoded) > MAX_BLOCK_BYTES:
        raise InvalidBlock(B.RLP_BLOCK_LIMIT_EXCEEDED, f"{len(block.encoded)} of {MAX_BLOCK_BYTES} bytes")
    check_header(block.header, parent, step, schedule)
    _check_body(block, step)


def check_header(header: Header, parent: Header, step: Upgrade, schedule: ForkSchedule) -> None:
    header.check_format(step.fork)
    if header.number != parent.number + 1:
        raise InvalidBlock(B.INVALID_BLOCK_NUMBER, f"{header.number} after {parent.number}")
    if header.timestamp <= parent.timestamp:
        raise InvalidBlock(
            B.INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT, f"{header.timestamp}, the parent's is {parent.timestamp}"
        )
    if len(header.extra_data) > MAX_EXTRA_DATA:
        raise InvalidBlock(B.EXTRA_DATA_TOO_BIG, f"{len(header.extra_data)} bytes")
    check_dao_extra_data(header.extra_data, header.number, schedule.dao_block)
    _check_gas(header, parent)
    if step.fork >= Fork.PARIS:
        _check_merged(header)
    else:
        _check_difficulty(header, parent, step)
    if step.blobs is not None:
        _check_blobs(header, parent, step)


def _check_gas(header: Header, parent: Header) -> None:
    if header.gas_used > header.gas_limit:
        raise InvalidBlock(B.INVALID_GAS_USED_ABOVE_LIMIT, f"{header.gas_used} of {header.gas_limit}")
    before = parent.gas_limit
    if header.base_fee is not None and parent.base_fee is None:  # EIP-1559: the limit doubles with its first block
        before *= ELASTICITY
    if abs(header.gas_limit - before) >= before // GAS_LIMIT_STEP or header.gas_limit < LEAST_GAS_LIMIT:
        raise InvalidBlock(B.INVALID_GASLIMIT, f"{header.gas_limit}, the parent's is {before}")
    if header.base_fee is not None and header.base_fee != base_fee_after(parent):
        raise InvalidBlock(B.INVALID_BASEFEE_PER_GAS, f"{header.base_fee}, not {base_fee_after(parent)}")


def _check_merged(header: Header) -> None:
    """EIP-3675: what proof of work has left constant."""
    if header.difficulty:
        raise InvalidBlock(B.IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS, str(header.difficulty))
    if header.nonce != ZERO_SEAL:
        raise InvalidBlock(B.IMPORT_IMPOSSIBLE_PARIS_WRONG_POW, f"0x{header.nonce.hex()}")
    if header.ommers_hash != NO_OMMERS:
        raise InvalidBlock(B.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS)


def _check_difficulty(header: Header, parent: Header, step: Upgrade) -> None:
    has_ommers = parent.ommers_hash != NO_OMMERS
    wanted = difficulty_after(step, header.number, header.timestamp, parent.timestamp, parent.difficulty, has_ommers)
    if header.difficulty != wanted:
        raise InvalidBlock(B.INVALID_DIFFICULTY, f"{header.difficulty}, not {wanted}")


def _check_blobs(header: Header, parent: Header, step: Upgrade) -> None:
    """Blob gas used is compared when the block has run: a transaction with too many blobs is to be named itself."""
    wanted = excess_blob_gas_after(parent, step)
    if header.excess_blob_gas != wanted:
        raise InvalidBlock(B.INCORRECT_EXCESS_BLOB_GAS, f"{header.excess_blob_gas}, not {wanted}")


def _check_body(block: SealedBlock, step: Upgrade) -> None:
    header = block.header
    if step.fork >= Fork.SHANGHAI and block.withdrawals is None:
        raise InvalidBlock(B.RLP_WITHDRAWALS_NOT_READ)
    if step.fork < Fork.SHANGHAI and block.withdrawals is not None:
        raise InvalidBlock(B.INCORRECT_BLOCK_FORMAT, f"withdrawals at {step.name}")
    if block.ommers and step.fork >= Fork.PARIS:
        raise InvalidBlock(B.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS)
    compared = [
        (B.INVALID_TRANSACTIONS_ROOT, header.transactions_root, transactions_root(block.transactions)),
        (B.INVALID_UNCLES_HASH, header.ommers_hash, ommers_hash(block.ommers)),
    ]
    if block.withdrawals is not None and header.withdrawals_root is not None:
        compared.append((B.INVALID_WITHDRAWALS_ROOT, header.withdrawals_root, withdrawals_root(block.withdrawals)))
    for reason, given, computed in compared:
        if given != computed:
            raise InvalidBlock(reason, f"0x{given.hex()}, not 0x{computed.hex()}")
