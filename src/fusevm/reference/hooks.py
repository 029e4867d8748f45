"""Watching a run: on every opcode, storage access and call. Without hooks the interpreter runs a loop that has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_BYTE, STORAGE, TRANSIENT
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import Entry, Instruction, refuse, table_of
from fusevm.reference.prices import ENDLESS, price_of
from fusevm.values import BadValue, to_flag


class Step(NamedTuple):
    """One executed instruction, as it was before it ran, and what it cost.

    A call's cost includes the gas it hands down, a creation's does not. An instruction that fails shows what it would
    have cost; nothing, where it does not exist or what it pops is missing.
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
    kind: str  # SLOAD, SSTORE, TLOAD or TSTORE
    address: bytes
    key: int
    value: int  # read, or about to be written


@dataclass(slots=True)
class Hooks:
    on_opcode: Callable[[Step], None] | None = None
    on_storage: Callable[[StorageAccess], None] | None = None
    on_call: Callable[[Message], None] | None = None
    on_return: Callable[[Message, Outcome], None] | None = None
    memory: bool = False  # whether steps carry the memory, which is copied for each

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "memory":
            to_flag(value, name)
        elif not (value is None or callable(value)):
            raise BadValue(f"{name}: expected a function or None, got {type(value).__name__}")
        object.__setattr__(self, name, value)


def observed_table(fork: Fork, hooks: Hooks, entries: tuple[Entry, ...] | None = None) -> tuple[Entry, ...]:
    """The fork's instructions, each wrapped so that it tells the hooks; the checks move inside, to be told too."""
    entries = table_of(fork) if entries is None else entries
    if not (hooks.on_opcode or hooks.on_storage):
        return entries
    return tuple(Entry(_observed(byte, entry, hooks), 0, 0, STACK_LIMIT) for byte, entry in enumerate(entries))


def _observed(byte: int, entry: Entry, hooks: Hooks) -> Instruction:
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
        step = _step(frame, byte, name, with_memory)
        stack, address, mark = frame.stack, frame.message.address, frame.state.mark()
        cost = 0
        try:
            if gas > frame.gas or not needs <= len(stack) <= room:
                refuse(frame, gas, needs)
            frame.gas -= gas
            if calls:
                cost = gas + price_of(frame, step.stack, step.memory_size, instruction, calls=True).gas
            event = instruction(frame)
        except ExceptionalHalt as halt:
            frame.state.revert(mark)
            on_opcode(_failed(frame, step, entry, halt, calls))
            raise
        on_opcode(step._replace(gas_cost=cost or step.gas - frame.gas, refund=frame.state.refund))
        if on_storage is not None:
            value = stack[-1] if loads else step.stack[-2]
            on_storage(StorageAccess(name, address, step.stack[-1], value))
        return event

    return run


def _failed(frame: Frame, step: Step, entry: Entry, halt: ExceptionalHalt, calls: bool) -> Step:
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


def _step(frame: Frame, byte: int, name: str, with_memory: bool) -> Step:
    return Step(
        pc=frame.pc - 1,
        op=byte,
        name=name,
        gas=frame.gas,
        gas_cost=0,
        memory_size=len(frame.memory),
        stack=tuple(frame.stack),
        depth=frame.message.depth + 1,
        refund=frame.state.refund,
        returndata=frame.returndata,
        address=frame.message.address,
        error=None,
        memory=bytes(frame.memory) if with_memory else None,
    )
