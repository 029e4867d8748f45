"""Runs that end soon or not at all: for calls that may be quicker here than natively."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import EngineLimit, Outcome, TimeLimit
from fusevm.chain.state import State
from fusevm.evm.forks import LATEST, Fork, rules_of
from fusevm.evm.gas import keccak_cost
from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.evm.precompiles import Precompile
from fusevm.reference.apart import Runner
from fusevm.reference.frame import Frame, jump_map
from fusevm.reference.instructions import InstructionEntry, refuse, table_of
from fusevm.reference.trampoline import drive

# What a brief run may do beside counting instructions. A step takes some 0.25 µs.
MEMORY = 1 << 16  # bytes over all frames: no instruction works on more
GAS_PER_STEP = 10  # of instructions whose work grows with their operands: hashing takes 20 ns per gas
_EACH = 100  # gas that each of these counts beside its own: a hash takes 5 µs however short
# Gas that one can count: what hashing all memory costs; logs and collisions pay more.
_MOST = keccak_cost(rules_of(LATEST), MEMORY)
_FRAME = 30  # steps that entering a frame, or going on with one, counts
_BYTES_PER_STEP = 16  # of code whose jump targets must be found first
_PRECOMPILE = 8  # gas of its price for each that counts: input that is refused at once costs as much as any
# EXTCODEHASH has no price per word, but the first to ask waits for the hash.
_METERED = frozenset(op.byte for op in OPCODES_TABLE if op.prices or op.name == "EXTCODEHASH")


class TooLong(Exception):
    """What was to be brief is not, and must begin again elsewhere."""

    event: Frame | None = None  # what the last instruction returned: it is done


def execute_briefly(
    message: Message,
    state: State,
    context: Context,
    steps: int,
    run_precompile: Runner,
    go_on: Callable[[Frame], Frame] | None = None,
) -> Outcome | None:
    """As `interpreter.execute`, for about this many instructions; then `go_on` runs each frame there is to its end.

    None, with the state as before, where there is no `go_on`, where it cannot (it raises TooLong), or where memory is
    short.
    """
    if state.pending is not None:
        state.settle()
    entries, original = len(state.journal), dict(state.original)
    brief = _Brief(context, steps, run_precompile, go_on)
    try:
        return drive(Frame(message, state, brief.context), brief.run, run_precompile=brief.run_precompile)
    except TimeLimit:
        raise
    except (TooLong, EngineLimit):  # the limit may be the brief run's own: who runs it in full will see
        state.undo_to_length(entries)
        state.original = original
        return None


class _Brief:
    """The interpreter's loop with a bound on the instructions it runs, and on what they do."""

    __slots__ = ("_go_on", "_left", "_run_precompile", "_table", "context")

    def __init__(
        self, context: Context, steps: int, run_precompile: Runner, go_on: Callable[[Frame], Frame] | None
    ) -> None:
        self._left = steps
        self._go_on = go_on
        self._table = _metered(context.fork)
        self._run_precompile = run_precompile
        self.context = Context(
            context.fork, context.block, context.origin, context.gas_price, context.blob_hashes, context.deadline,
            work_left=steps * GAS_PER_STEP, memory_limit=min(context.memory_limit, MEMORY), rules=context.rules,
            precompiles=context.precompiles, always_warm=context.always_warm,
        )  # fmt: skip

    def run_precompile(
        self, contract: Precompile, data: bytes, fork: Fork, price: int, deadline: float | None
    ) -> bytes:
        try:
            _spend(self.context, price // _PRECOMPILE)
        except TooLong:
            if self._go_on is None:
                raise
            self._left = 0  # it takes as long wherever it runs
        return self._run_precompile(contract, data, fork, price, deadline)

    def run(self, frame: Frame) -> Frame:
        code, stack, table = frame.code, frame.stack, self._table
        message, most = frame.message, self._left - _FRAME
        if message.depth and not frame.pc and message.code not in jump_map:
            most -= len(message.code) // _BYTES_PER_STEP
        if not message.code:
            most = max(most, 1)  # it stops at once
        left = most
        try:
            for left in range(most, 0, -1):  # noqa: B007
                instruction, gas, needs, room = table[code[frame.pc]]
                frame.pc += 1
                if gas > frame.gas or not needs <= len(stack) <= room:
                    refuse(frame, gas, needs)
                frame.gas -= gas
                event = instruction(frame)
                if event is not None:
                    return event
        except TooLong as end:
            if self._go_on is None:
                raise
            left = 0
            if end.event is not None:
                return end.event
        finally:
            self._left = left - 1
        if self._go_on is None:
            raise TooLong
        return self._go_on(frame)


def _spend(context: Context, gas: int) -> None:
    context.work_left -= gas
    if context.work_left < 0:
        raise TooLong


@cache
def _metered(fork: Fork) -> tuple[InstructionEntry, ...]:
    """The fork's instructions; those whose work grows with their operands are counted by gas."""

    def metered(entry: InstructionEntry) -> InstructionEntry:
        def instruction(frame: Frame) -> Frame | None:
            before = frame.gas
            event = entry.instruction(frame)
            handed_on = 0 if event is None else event.message.gas
            try:
                _spend(frame.context, min(before - frame.gas - handed_on, _MOST) + _EACH)
            except TooLong as end:
                end.event = event
                raise
            return event

        return entry._replace(instruction=instruction)

    return tuple(metered(entry) if byte in _METERED else entry for byte, entry in enumerate(table_of(fork)))
