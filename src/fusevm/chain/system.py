"""What a block does besides its transactions: calls of system contracts, and the requests they and deposits make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.header import NO_REQUESTS
from fusevm.chain.outcome import Executor, Outcome, Status
from fusevm.chain.processing import clear_away
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.slots import Slots
from fusevm.chain.state import Log, State
from fusevm.evm.forks import Fork

SYSTEM_ADDRESS = bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe")
BEACON_ROOTS = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")  # EIP-4788
HISTORY = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")  # EIP-2935
WITHDRAWAL_REQUESTS = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")  # EIP-7002
CONSOLIDATION_REQUESTS = bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251")  # EIP-7251
SYSTEM_GAS = 30_000_000

DEPOSIT_TYPE = b"\x00"
# The contracts called for requests at the end of a block, by type, in order (EIP-7685).
ASKED = ((b"\x01", WITHDRAWAL_REQUESTS), (b"\x02", CONSOLIDATION_REQUESTS))


RING = 8191  # slots that the two contracts before a block write in turn


def begin_block(
    state: State,
    block: Block,
    fork: Fork,
    execute: Executor,
    parent_hash: bytes,
    beacon_root: bytes | None,
    known: Mapping[bytes, bytes] | None = None,
) -> None:
    """The calls before the first transaction. A contract that is not there, or fails, changes nothing.

    What a contract does whose code is among the `known` is done without running it.
    """
    for address, given, writes in _before(block, fork, parent_hash, beacon_root):
        if known is not None and state.account(address).code == known[address]:
            state.begin_transaction()
            for key, value in writes.items():
                state.set_storage(address, key, value)
        else:
            _call(state, block, fork, execute, address, given)


def expect_block(
    state: State,
    block: Block,
    fork: Fork,
    parent_hash: bytes,
    beacon_root: bytes | None,
    known: Mapping[bytes, bytes] | None,
) -> None:
    """Computes in idle time what `begin_block` will do to the storage roots of the known contracts."""
    for address, _, writes in _before(block, fork, parent_hash, beacon_root):
        account = state.account(address)
        if known is not None and account.code == known[address] and isinstance(account.storage, Slots):
            account.storage.expect(writes)


def _before(
    block: Block, fork: Fork, parent_hash: bytes, beacon_root: bytes | None
) -> Iterator[tuple[bytes, bytes, dict[int, int]]]:
    """The contracts called before a block, what they are given, and the slots they then write."""
    if fork >= Fork.CANCUN and beacon_root is not None:
        place = block.timestamp % RING
        yield BEACON_ROOTS, beacon_root, {place: block.timestamp, place + RING: int.from_bytes(beacon_root, "big")}
    if fork >= Fork.PRAGUE:
        yield HISTORY, parent_hash, {(block.number - 1) % RING: int.from_bytes(parent_hash, "big")}


def requests_of_block(
    state: State,
    block: Block,
    fork: Fork,
    execute: Executor,
    logs: Iterable[Log],
    deposit_contract: bytes,
    known: Mapping[bytes, bytes] | None = None,
) -> list[bytes]:
    """EIP-7685: what the block asks of the consensus layer, each with its type before it; empty ones are left out.

    A queue whose code is among the `known` and whose storage is empty has nothing to say, and is not asked.
    """
    deposits = b"".join(deposit_of(log.data) for log in logs if _is_deposit(log, deposit_contract))
    requests = [DEPOSIT_TYPE + deposits] if deposits else []
    for kind, address in ASKED:
        queue = state.account(address)
        if not queue.code:
            raise InvalidBlock(BlockReason.SYSTEM_CONTRACT_EMPTY, f"0x{address.hex()}")
        if known is not None and queue.code == known[address]:
            state.settle()
            if not queue.storage:
                state.begin_transaction()
                continue
        outcome = _call(state, block, fork, execute, address, b"")
        if outcome is None or outcome.status is not Status.SUCCESS:
            why = "" if outcome is None or outcome.failure is None else f": {outcome.failure}"
            raise InvalidBlock(BlockReason.SYSTEM_CONTRACT_CALL_FAILED, f"0x{address.hex()}{why}")
        if outcome.output:
            requests.append(kind + outcome.output)
    return requests


def requests_hash(requests: Sequence[bytes]) -> bytes:
    if not requests:
        return NO_REQUESTS
    return sha256(b"".join(sha256(request).digest() for request in requests)).digest()


def _call(state: State, block: Block, fork: Fork, execute: Executor, address: bytes, data: bytes) -> Outcome | None:
    """A call whose gas is not paid for; None if the account has no code. Nothing is warm when it begins."""
    code = state.account(address).code
    if not code:
        return None
    context = Context(fork, block, SYSTEM_ADDRESS, block.base_fee)
    message = Message(SYSTEM_ADDRESS, address, code, data, gas=SYSTEM_GAS, transfers=False, code_address=address)
    state.begin_transaction()
    try:
        outcome = execute(message, state, context)
        clear_away(state, context.rules)
    except BaseException:
        state.abandon()
        raise
    return outcome


# -- deposits: EIP-6110


class _Part(NamedTuple):
    offset: int
    size: int


DEPOSIT_TOPIC = 0x649BBC62D0E31342AFEA4E5CD82D4049E7E1EE912FC0889AA790803BE39038C5
DEPOSIT_SIZE = 576
DEPOSIT_PARTS = (
    _Part(160, 48),  # public key
    _Part(256, 32),  # withdrawal credentials
    _Part(320, 8),  # amount
    _Part(384, 96),  # signature
    _Part(512, 8),  # index
)


def _is_deposit(log: Log, contract: bytes) -> bool:
    return log.address == contract and log.topics[:1] == (DEPOSIT_TOPIC,)


def deposit_of(data: bytes) -> bytes:
    """The request in a deposit event: its five parts without their ABI wrapping, which must be exactly this."""
    if len(data) != DEPOSIT_SIZE:
        raise InvalidBlock(BlockReason.INVALID_DEPOSIT_EVENT_LAYOUT, f"{len(data)} bytes, not {DEPOSIT_SIZE}")
    parts = []
    for place, (offset, size) in enumerate(DEPOSIT_PARTS):
        start = offset + 32
        if _word(data, 32 * place) != offset or _word(data, offset) != size:
            raise InvalidBlock(BlockReason.INVALID_DEPOSIT_EVENT_LAYOUT, f"part {place} of the event")
        parts.append(data[start : start + size])
    return b"".join(parts)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 32], "big")
