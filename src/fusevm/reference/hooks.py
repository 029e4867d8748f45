"""Watching a run: on every opcode, storage access and call. Without hooks the interpreter runs a loop that has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Outcome
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt
from fusevm.evm.opcodes import BY_BYTE
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import STACK_LIMIT, Entry, Instruction, refuse, table_of
from fusevm.values import BadValue

STORAGE_OPCODES = ("SLOAD", "SSTORE", "TLOAD", "TSTORE")


class Step(NamedTuple):
    """One executed instruction, as it was before it ran, and what it cost."""

    pc: int
    op: int
    name: str
    gas: int
    gas_cost: int
    memory_size: int
    stack: tuple[int, ...]
    depth: int
    refund: int
    returndata: bytes
    address: bytes
    error: str | None


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

    def __setattr__(self, name: str, value: Any) -> None:
        if not (value is None or callable(value)):
            raise BadValue(f"{name}: expected a function or None, got {type(value).__name__}")
        object.__setattr__(self, name, value)


def observed_table(fork: Fork, hooks: Hooks) -> tuple[Entry, ...]:
    """The fork's instructions, each wrapped so that it tells the hooks; the checks move inside, to be told too."""
    entries = table_of(fork)
    if not (hooks.on_opcode or hooks.on_storage):
        return entries
    return tuple(Entry(_observed(byte, entry, hooks), 0, 0, STACK_LIMIT) for byte, entry in enumerate(entries))


def _observed(byte: int, entry: Entry, hooks: Hooks) -> Instruction:
    instruction, gas, needs, room = entry
    on_opcode = hooks.on_opcode or _ignore
    known = BY_BYTE.get(byte)
    name = known.name if known else f"0x{byte:02x}"
    on_storage = hooks.on_storage if name in STORAGE_OPCODES else None

    def run(frame: Frame) -> Frame | None:
        step = _step(frame, byte, name)
        stack, address = frame.stack, frame.message.address
        try:
            if gas > frame.gas or not needs <= len(stack) <= room:
                refuse(frame, gas, needs)
            frame.gas -= gas
            event = instruction(frame)
        except ExceptionalHalt as halt:
            on_opcode(step._replace(gas_cost=step.gas, error=str(halt)))
            raise
        on_opcode(step._replace(gas_cost=step.gas - frame.gas))
        if on_storage is not None:
            value = stack[-1] if name.endswith("LOAD") else step.stack[-2]
            on_storage(StorageAccess(name, address, step.stack[-1], value))
        return event

    return run


def _ignore(step: Step) -> None:
    pass


def _step(frame: Frame, byte: int, name: str) -> Step:
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
    )
