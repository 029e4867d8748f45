"""The machine itself: fetch, check, charge, execute."""

from __future__ import annotations

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome, check_time
from fusevm.chain.state import State
from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks, observed_table
from fusevm.reference.instructions import InstructionEntry, refuse, table_of
from fusevm.reference.trampoline import drive

_TIMED = frozenset(op.byte for op in OPCODES_TABLE if op.is_long)


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """Runs a message and everything it calls."""
    context.memory_used = 0
    table = table_of(context.fork)
    if context.opcodes:
        table = tuple(context.opcodes.get(byte, entry) for byte, entry in enumerate(table))
    if hooks is not None:
        table = observed_table(context.fork, hooks, table)
    if context.deadline is not None:
        table = _timed(table, context.deadline)
    return drive(Frame(message, state, context), lambda frame: run(frame, table), hooks)


def _timed(table: tuple[InstructionEntry, ...], deadline: float) -> tuple[InstructionEntry, ...]:
    """The same instructions with a check of the clock at every jump and at every instruction that may take long."""

    def timed(entry: InstructionEntry) -> InstructionEntry:
        def instruction(frame: Frame) -> Frame | None:
            check_time(deadline)
            return entry.instruction(frame)

        return entry._replace(instruction=instruction)

    return tuple(timed(entry) if byte in _TIMED else entry for byte, entry in enumerate(table))


def run(frame: Frame, table: tuple[InstructionEntry, ...]) -> Frame:
    """Steps until the frame ends (itself is returned) or begins a call (the callee's frame is)."""
    code, stack = frame.code, frame.stack
    while True:
        instruction, gas, needs, room = table[code[frame.pc]]
        frame.pc += 1
        if gas > frame.gas or not needs <= len(stack) <= room:
            refuse(frame, gas, needs)
        frame.gas -= gas
        event = instruction(frame)
        if event is not None:
            return event
