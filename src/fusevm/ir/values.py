"""The one thing dependency blocks are made of: a value, which is an instruction and what it depends on.

Opcodes are the EVM's own names, and a few more that only the IR has. Each has a number below 127, its part of the fold
engine's key.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.evm.opcodes import (
    ACCESS,
    BY_NAME,
    GAS,
    MEMORY,
    MSIZE,
    NONE,
    OPCODES_TABLE,
    OUTSIDE,
    RETURNDATA,
    WORLD,
    Opcode,
    Span,
)

_EVERYTHING = WORLD | MEMORY | MSIZE | RETURNDATA | GAS | OUTSIDE

# name: (operands, reads, writes, may halt). Everything else is the EVM's table.
OWN = {
    "CONST": (0, NONE, NONE, False),  # #n: a literal
    "UNSPILL": (0, NONE, NONE, False),  # a word read from the run-time stack
    "SPILL": (1, NONE, NONE, False),  # a word written to the run-time stack
    "PHI": (0, NONE, NONE, False),  # a word handed over by the block before: a block parameter
    "REACH": (2, NONE, MSIZE | GAS, True),  # guard: memory from offset on, size bytes, is paid for and there
    "VALID": (1, NONE, NONE, True),  # guard: a jump may land there
    "HOLDS": (1, NONE, NONE, True),  # guard: a condition is not zero; asked of the engine, never emitted
    "EXPGAS": (1, NONE, GAS, False),  # the price of an exponent whose EXP became something else
    # Of functions (`ir/functions.py`) alone. The number of CALLFN and VERBATIM says which one, that of RESULT which of
    # its results, that of SYMBOL and SETIMMUTABLE what is meant.
    "CALLFN": (0, _EVERYTHING, _EVERYTHING, True),  # calls a function with these operands
    "RESULT": (1, NONE, NONE, False),  # one of a call's results
    "LITERAL": (0, NONE, NONE, False),  # a word that is kept on the stack, where CONST is pushed for each use
    "COPY": (1, NONE, NONE, False),  # a word once more, where it is wanted next
    "SYMBOL": (0, NONE, NONE, False),  # a word that is known when the code is laid out, linked or deployed
    "SETIMMUTABLE": (2, NONE, MEMORY | MSIZE, True),  # fills in an immutable in the copy of the code at an offset
    "VERBATIM": (0, _EVERYTHING, _EVERYTHING, True),  # bytes that nobody looks into
}

NAMES: tuple[str, ...] = (*OWN, *(op.name for op in OPCODES_TABLE if not op.is_stack))
NUMBER_OF: dict[str, int] = {name: number for number, name in enumerate(NAMES)}
ANY = 127
assert len(NAMES) < ANY

CONST, UNSPILL, SPILL, PHI = "CONST", "UNSPILL", "SPILL", "PHI"
WORD = (1 << 256) - 1


class FrameState(NamedTuple):
    """What another tier needs to go on from here: the instruction's place, the words of the stack from the deepest that
    the function looks at to the top, and the static gas that was charged for it and what follows it in its block."""

    pc: int
    words: tuple[Value, ...]
    gas: int = 0


class Value:
    """An instruction. Operands are in stack order, the top first."""

    __slots__ = ("args", "block", "epoch", "gas", "id", "number", "op", "prev", "raw", "state", "uses", "where")

    def __init__(self, op: str, args: tuple[Value, ...] = (), number: int = 0, id: int = -1, block: int = 0) -> None:  # noqa: A002
        self.op = op
        self.args = args
        self.number = number  # a literal's word; the slot of UNSPILL, SPILL and PHI; else the pc it comes from
        self.id = id  # its $ identifier; literals have none
        self.block = block  # the block it stands in
        self.prev: Value | None = None  # the last instruction before it with the same opcode
        self.epoch = 0  # for what reads the world: which state of it was read
        self.gas = 0  # for what looks at the gas counter: the static gas charged when it is done
        self.raw = False  # its reach in memory is secured and its dynamic gas charged, by guards and sections before it
        self.uses = 0
        self.where: Source | None = None  # the place in the source that it was written for
        self.state: FrameState | None = None  # in regions, for what may fail: the frame as it finds it

    @property
    def is_const(self) -> bool:
        return self.op == CONST

    def __repr__(self) -> str:
        if self.op == CONST:
            return f"#{self.number}"
        return f"${self.id}" if self.op in OWN else f"${self.id}:{self.op}"


def opcode_of(name: str) -> Opcode | None:
    """The EVM's table entry, or None for an opcode only the IR has."""
    return BY_NAME.get(name) if name not in OWN else None


# Memory accesses and EXP, whose dynamic gas depends on operands alone: it can be charged apart from them (`raw`).
PREPAYABLE: dict[str, Opcode] = {
    op.name: op for op in OPCODES_TABLE if op.dynamic and not (op.ends or op.calls or op.writes & ACCESS)
}


class Traits:
    """What an opcode does to the world, as the IR sees it: dynamic gas is a write of the gas counter.

    Effects are plain integers here, because everything in the IR asks about them all the time.
    """

    __slots__ = ("calls", "halts", "is_root", "leaves", "observes", "opcode", "priced", "pure", "reads", "writes")

    def __init__(self, name: str, raw: bool = False) -> None:
        self.opcode = opcode = opcode_of(name)
        if opcode is None:
            _, reads, writes, halts = OWN[name]
        else:
            reads, writes, halts = opcode.reads, opcode.writes, opcode.halts
            writes = writes & ~MSIZE if raw else writes | GAS if opcode.dynamic else writes
        self.reads: int = reads.value
        self.writes: int = writes.value
        self.halts = halts
        self.observes = bool(reads & GAS)  # a section of static gas ends here
        self.is_root = bool(writes) or halts or self.observes  # it stays, in its place
        # A value with a price: where gas may fall it can go, if nobody sees what else it did (`leaves`).
        self.leaves: int = (writes & ~GAS).value
        self.priced = not (writes & ~(MSIZE | GAS | ACCESS)) and not halts and opcode is not None and opcode.pushes == 1
        self.pure = not (reads or self.is_root) and name != SPILL
        # Whatever goes to the runtime comes back with the registers gone.
        fixed = opcode is not None and bool(opcode.touches) and all(span.size < 0 for span in opcode.touches)
        inline = name in OWN or (raw and fixed)
        self.calls = not inline and (bool(writes) or bool(reads & ~(GAS | MSIZE | RETURNDATA)))


TRAITS: dict[str, Traits] = {name: Traits(name) for name in NAMES}
RAW_TRAITS: dict[str, Traits] = {name: Traits(name, raw=True) for name in PREPAYABLE}


def traits_of(value: Value) -> Traits:
    return RAW_TRAITS[value.op] if value.raw else TRAITS[value.op]


# Where an instruction touches memory.
READS_MEMORY: dict[str, tuple[Span, ...]] = {op.name: op.reads_at for op in OPCODES_TABLE if op.reads_at}
WRITES_MEMORY: dict[str, tuple[Span, ...]] = {op.name: op.writes_at for op in OPCODES_TABLE if op.writes_at}
