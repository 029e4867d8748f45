"""Tracing transactions of a chain's blocks: the block is run again on its parent's state, up to what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fusevm.chain.assembly import BlockAssembly
from fusevm.chain.checks import Checks
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.processing import process
from fusevm.chain.result import Result
from fusevm.chain.schedule import ForkSchedule, Upgrade
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.state import State
from fusevm.reference.hooks import Hooks
from fusevm.tracing.requests import Json, Tracer, TraceRequest
from fusevm.tracing.session import RecordingSession
from fusevm.tracing.tracers import target_of, tracer_named
from fusevm.values import BadValue

TierExecutor = Callable[[Message, State, Context, Hooks | None], Outcome]


class Blocks(Protocol):
    """A `Chain`, as far as tracing uses it."""

    @property
    def schedule(self) -> ForkSchedule: ...

    @property
    def checks(self) -> Checks: ...

    @property
    def head(self) -> SealedBlock: ...

    def block(self, which: int | bytes | str) -> SealedBlock: ...

    def step_of(self, which: int | bytes | str) -> Upgrade: ...

    def environment(self, which: int | bytes | str) -> Block: ...

    def at(self, which: int | bytes | str) -> AbstractContextManager[State]: ...


class Replay:
    """A block that is run again. Hooks and recordings watch what `execute` runs."""

    def __init__(self, chain: Blocks, block: SealedBlock, state: State, executor: TierExecutor) -> None:
        self.session: RecordingSession | None = None
        self.hooks: Hooks | None = None
        self._state = state
        self._executor = executor
        environment, step = chain.environment(block.hash), chain.step_of(block.hash)
        self._assembly = BlockAssembly(state, environment, step, chain.schedule, self.execute, chain.checks)
        self._assembly.begin(block.header.parent_hash, block.header.parent_beacon_root)

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        hooks = self.hooks if self.session is None else self.session.hooks(self.hooks)
        return self._executor(message, state, context, hooks)

    def add(self, signed: SignedTransaction) -> None:
        self._assembly.add(signed)

    def trace(self, signed: SignedTransaction, tracer: Tracer) -> Json:
        """What the tracer says of the next transaction, which has not run when this returns."""
        assembly, state, tx = self._assembly, self._state, signed.transaction()
        block, fork = assembly.block, assembly.step.fork
        logs = sum(len(receipt.logs) for receipt in assembly.receipts)
        request = TraceRequest.of(tx, target_of(tx, state), block, fork, first_log=logs)

        def run() -> Result:
            return process(tx, state, block, fork, self.execute, assembly.room, assembly.checks)

        return tracer.run(self, state, request, run)


def trace_block(
    chain: Blocks,
    executor: TierExecutor,
    which: int | bytes | str,
    tracer: str | None,
    config: Mapping[str, Any] | None,
) -> list[Json]:
    """As geth's debug_traceBlockByNumber: for each transaction its hash and what the tracer says of it."""
    chosen = tracer_named(tracer, config)
    block = chain.block(which)
    if not block.transactions:
        return []
    with chain.at(block.header.parent_hash) as state:
        replay = Replay(chain, block, state, executor)
        return list(_traced(replay, block, chosen))


def _traced(replay: Replay, block: SealedBlock, tracer: Tracer) -> Iterator[Json]:
    for signed in block.transactions:
        yield {"txHash": "0x" + signed.hash.hex(), "result": replay.trace(signed, tracer)}
        replay.add(signed)


def trace_mined(
    chain: Blocks,
    executor: TierExecutor,
    transaction: bytes,
    tracer: str | None,
    config: Mapping[str, Any] | None,
    within: int | bytes | str | None = None,
) -> Json:
    """As geth's debug_traceTransaction, of a transaction in the canonical chain; `within` a block where it is known."""
    chosen = tracer_named(tracer, config)
    block, index = _find(chain, transaction, chain.head if within is None else chain.block(within))
    with chain.at(block.header.parent_hash) as state:
        replay = Replay(chain, block, state, executor)
        for signed in block.transactions[:index]:
            replay.add(signed)
        return replay.trace(block.transactions[index], chosen)


def _find(chain: Blocks, transaction: bytes, block: SealedBlock) -> tuple[SealedBlock, int]:
    """The block that has a transaction, and its place there: this block, or one before it."""
    while True:
        for index, signed in enumerate(block.transactions):
            if signed.hash == transaction:
                return block, index
        try:
            block = chain.block(block.header.parent_hash)
        except BadValue:  # that was the first
            raise BadValue(f"transaction 0x{transaction.hex()}: not in the chain") from None
