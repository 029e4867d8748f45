"""Watching a run: on every opcode, storage access and call. Without hooks the interpreter runs a loop that has none.

Recordings use a separate mechanism: they see the interpreter's frames around the instructions they ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_BYTE, STORAGE, TRANSIENT
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import Instruction, InstructionEntry, refuse, table_of
from fusevm.reference.prices import ENDLESS, price_of
from fusevm.values import BadValue, to_flag


class Step(NamedTuple):
    """One executed instruction, as it was before it ran, and what it cost.

    A call's cost includes the gas it forwards, a creation's does not. An instruction that fails shows what it would
    have cost; nothing, where it does not exist or what it pops is missing.

    >>> from fusevm import EVM
    >>> evm, steps = EVM(), []
    >>> evm.set_code("0x" + "c0" * 20, "0x60016002015f")
    >>> evm.hooks = Hooks(on_opcode=steps.append)
    >>> _ = evm.call("0x" + "c0" * 20)
    >>> [(step.pc, step.name, step.stack) for step in steps[1:3]]
    [(2, 'PUSH1', (1,)), (4, 'ADD', (1, 2))]
    """

    pc: int
    op: int
    name: str
    gas: int
    gas_cost: int
    memory_size: int
    stack: tuple[int, ...]
    depth: int
    refund: int  # the counter, with what this instruction adds to it
    returndata: bytes
    address: bytes
    error: str | None
    memory: bytes | None = None  # where `Hooks.memory` asks for it


class StorageAccess(NamedTuple):
    """A slot that is read or written.

    >>> from fusevm import EVM
    >>> evm, seen = EVM(), []
    >>> evm.set_code("0x" + "c0" * 20, "0x60076001" + "55")  # storage[1] = 7
    >>> evm.hooks = Hooks(on_storage=seen.append)
    >>> _ = evm.call("0x" + "c0" * 20)
    >>> [(access.kind, access.key, access.value) for access in seen]
    [('SSTORE', 1, 7)]
    """

    kind: str  # SLOAD, SSTORE, TLOAD or TSTORE
    address: bytes
    key: int
    value: int  # read, or about to be written


class Watcher(Protocol):
    """Sees frames and instructions as the interpreter has them. What it is shown it must not change."""

    watched: frozenset[int]  # the opcodes of which it is told

    def enter(self, frame: Frame) -> None:
        """A frame is about to begin."""

    def leave(self, frame: Frame) -> None:
        """A frame has ended: its gas, output and error are what its caller gets."""

    def before(self, frame: Frame, byte: int) -> None:
        """An instruction is about to be checked and paid for; `frame.pc` is past it already."""

    def after(self, frame: Frame, byte: int, called: Frame | None) -> None:
        """It has succeeded; `called` is the frame that begins now, if it was a call."""

    def failed(self, frame: Frame, byte: int) -> None:
        """It halted the frame."""


@dataclass(slots=True)
class Hooks:
    """Functions that are told what a call does, while it does it.

    >>> from fusevm import EVM
    >>> names = []
    >>> evm = EVM(hooks=Hooks(on_opcode=lambda step: names.append(step.name)))
    >>> evm.set_code("0x" + "c0" * 20, "0x5f5f01")
    >>> _ = evm.call("0x" + "c0" * 20)
    >>> names
    ['PUSH0', 'PUSH0', 'ADD', 'STOP']
    """

    on_opcode: Callable[[Step], None] | None = None
    on_storage: Callable[[StorageAccess], None] | None = None
    on_call: Callable[[Message], None] | None = None
    on_return: Callable[[Message, Outcome], None] | None = None
    memory: bool = False  # whether steps carry the memory, which is copied for each
    watcher: Watcher | None = None  # of recordings: `EVM.record` sets it

    @property
    def only_watches(self) -> bool:
        """Whether there is nothing but a watcher."""
        return not (self.on_opcode or self.on_storage or self.on_call or self.on_return)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "memory":
            to_flag(value, name)
        elif name != "watcher" and not (value is None or callable(value)):
            raise BadValue(f"{name}: expected a function or None, got {type(value).__name__}")
        object.__setattr__(self, name, value)


def observed_table(
    fork: Fork, hooks: Hooks, entries: tuple[InstructionEntry, ...] | None = None
) -> tuple[InstructionEntry, ...]:
    """The fork's instructions, each wrapped so that it tells the hooks; the checks move inside, to be told too."""
    entries = table_of(fork) if entries is None else entries
    if hooks.on_opcode or hooks.on_storage:
        entries = tuple(
            InstructionEntry(_observed(byte, entry, hooks), 0, 0, STACK_LIMIT) for byte, entry in enumerate(entries)
        )
    watcher = hooks.watcher
    if watcher is None:
        return entries
    return tuple(
        InstructionEntry(_watched(byte, entry, watcher), 0, 0, STACK_LIMIT) if byte in watcher.watched else entry
        for byte, entry in enumerate(entries)
    )


def _watched(byte: int, entry: InstructionEntry, watcher: Watcher) -> Instruction:
    instruction, gas, needs, room = entry
    before, after = watcher.before, watcher.after

    def run(frame: Frame) -> Frame | None:
        if not frame.message.code:
            return instruction(frame)  # nothing runs, so nothing is told
        before(frame, byte)
        try:
            if gas > frame.gas or not needs <= len(frame.stack) <= room:
                refuse(frame, gas, needs)
            frame.gas -= gas
            event = instruction(frame)
        except ExceptionalHalt:
            watcher.failed(frame, byte)
            raise
        after(frame, byte, None if event is frame else event)
        return event

    return run


def _observed(byte: int, entry: InstructionEntry, hooks: Hooks) -> Instruction:
    instruction, gas, needs, room = entry
    on_opcode = hooks.on_opcode or _ignore
    known, with_memory = BY_BYTE.get(byte), hooks.memory
    name = known.name if known else f"0x{byte:02x}"
    calls = known is not None and known.calls
    slots = known is not None and (known.reads | known.writes) & (STORAGE | TRANSIENT) and not calls
    on_storage = hooks.on_storage if slots else None
    loads = known is not None and known.pushes == 1

    def run(frame: Frame) -> Frame | None:
        if not frame.message.code:
            return instruction(frame)  # nothing runs, so nothing is told
        message, state, stack = frame.message, frame.state, frame.stack
        own = message.address
        pc, before, held, size = frame.pc - 1, tuple(stack), frame.gas, len(frame.memory)
        depth, returndata, refund, mark = message.depth + 1, frame.returndata, state.refund, state.mark()
        memory = bytes(frame.memory) if with_memory else None
        cost = 0
        try:
            if gas > held or not needs <= len(before) <= room:
                refuse(frame, gas, needs)
            frame.gas = held - gas
            if calls:
                cost = gas + price_of(frame, before, size, instruction, calls=True).gas
            event = instruction(frame)
        except ExceptionalHalt as halt:
            state.revert(mark)
            step = Step(pc, byte, name, held, 0, size, before, depth, refund, returndata, own, None, memory)
            on_opcode(_failed(frame, step, entry, halt, calls))
            raise
        cost = cost or held - frame.gas
        on_opcode(Step(pc, byte, name, held, cost, size, before, depth, state.refund, returndata, own, None, memory))
        if on_storage is not None:
            value = stack[-1] if loads else before[-2]
            on_storage(StorageAccess(name, own, before[-1], value))
        return event

    return run


def _failed(frame: Frame, step: Step, entry: InstructionEntry, halt: ExceptionalHalt, calls: bool) -> Step:
    """The step of an instruction that failed; the state is as it found it."""
    if halt.reason in (HaltReason.STACK_OVERFLOW, HaltReason.STACK_UNDERFLOW):
        popped = halt.reason is HaltReason.STACK_UNDERFLOW and not _arranges(step.op)
        return step._replace(gas_cost=0 if popped else entry.gas, error=str(halt))
    frame.gas = step.gas - entry.gas if step.gas >= entry.gas else ENDLESS
    price = price_of(frame, step.stack, step.memory_size, entry.instruction, calls=calls)
    return step._replace(gas_cost=entry.gas + price.gas, refund=price.refund, error=str(halt))


def _arranges(byte: int) -> bool:
    op = BY_BYTE.get(byte)
    return op is not None and op.is_stack and op.name != "POP"


def _ignore(step: Step) -> None:
    pass
