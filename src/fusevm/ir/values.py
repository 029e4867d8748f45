"""Values, the only thing dependency blocks are made of: a value is an instruction and its operands.

Opcodes have the EVM's names; the IR adds a few of its own. Each has a number below 127, which is part of the fold
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
    "PHI": (0, NONE, NONE, False),  # a word passed by the predecessors: a block parameter
    "REACH": (2, NONE, MSIZE | GAS, True),  # guard: memory at offset, size bytes, is paid for and allocated
    "EXPGAS": (1, NONE, GAS, False),  # the price of an exponent whose EXP was replaced
    # Only in functions (`ir/functions.py`). `number` selects the function of CALLFN, the bytes of VERBATIM, the result
    # of RESULT, the symbol of SYMBOL and SETIMMUTABLE.
    "CALLFN": (0, _EVERYTHING, _EVERYTHING, True),  # calls a function with these operands
    "RESULT": (1, NONE, NONE, False),  # one of a call's results
    "LITERAL": (0, NONE, NONE, False),  # a constant that is kept on the stack; CONST is pushed for each use
    "COPY": (1, NONE, NONE, False),  # a copy of an operand, made before the other operands are computed
    "SYMBOL": (0, NONE, NONE, False),  # a word that is known once the code is laid out, linked or deployed
    "SETIMMUTABLE": (2, NONE, MEMORY | MSIZE, True),  # fills in an immutable in the copy of the code at an offset
    "VERBATIM": (0, _EVERYTHING, _EVERYTHING, True),  # opaque bytes
}

NAMES: tuple[str, ...] = (*OWN, *(op.name for op in OPCODES_TABLE if not op.is_stack))
NUMBER_OF: dict[str, int] = {name: number for number, name in enumerate(NAMES)}
ANY = 127
assert len(NAMES) < ANY

CONST, UNSPILL, SPILL, PHI = "CONST", "UNSPILL", "SPILL", "PHI"
WORD = (1 << 256) - 1


class FrameState(NamedTuple):
    """What another tier needs to continue from here: the instruction's pc, the words of the stack from the deepest that
    the function reads to the top, and the static gas already charged for this instruction and the rest of its block."""

    pc: int
    words: tuple[Value, ...]
    gas: int = 0


class Value:
    """An instruction. Operands are in stack order, the top first."""

    __slots__ = (
        "args", "block", "epoch", "gas", "id", "keep", "number", "op", "prechecked", "prev", "state", "uses", "where"
    )  # fmt: skip

    def __init__(self, op: str, args: tuple[Value, ...] = (), number: int = 0, id: int = -1, block: int = 0) -> None:  # noqa: A002
        self.op = op
        self.args = args
        self.number = number  # a literal's word; the slot of UNSPILL, SPILL and PHI; otherwise its pc
        self.id = id  # its $ identifier; literals have none
        self.block = block  # the block that contains it
        self.prev: Value | None = None  # the last instruction before it with the same opcode
        self.epoch = 0  # of instructions that read the world: which version of it was read
        self.gas = 0  # of instructions that read the gas counter: the static gas charged after it
        self.prechecked = False  # earlier guards and sections have expanded memory for it and charged its dynamic gas
        self.keep = False  # what it implies about its operands was used, so it is kept even if it is dead
        self.uses = 0
        self.where: Source | None = None  # the source location it was generated from
        self.state: FrameState | None = None  # in regions, of instructions that may fail: the frame before it

    def __repr__(self) -> str:
        if self.op == CONST:
            return f"#{self.number}"
        return f"${self.id}" if self.op in OWN else f"${self.id}:{self.op}"


def opcode_of(name: str) -> Opcode | None:
    """The EVM's table entry, or None for an opcode only the IR has."""
    return BY_NAME.get(name) if name not in OWN else None


# Memory accesses and EXP, whose dynamic gas depends on operands alone: it can be charged separately (`prechecked`).
PREPAYABLE: dict[str, Opcode] = {
    op.name: op for op in OPCODES_TABLE if op.dynamic and not (op.ends or op.calls or op.writes & ACCESS)
}


class Traits:
    """The effects of an opcode, as the IR sees them: dynamic gas is a write of the gas counter.

    Effects are plain integers here because they are tested in every hot loop of the IR.
    """

    __slots__ = ("calls", "halts", "is_root", "leaves", "observes", "opcode", "priced", "pure", "reads", "writes")

    def __init__(self, name: str, prechecked: bool = False) -> None:
        self.opcode = opcode = opcode_of(name)
        if opcode is None:
            _, reads, writes, halts = OWN[name]
        else:
            reads, writes, halts = opcode.reads, opcode.writes, opcode.halts
            writes = writes & ~MSIZE if prechecked else writes | GAS if opcode.dynamic else writes
        self.reads: int = reads.value
        self.writes: int = writes.value
        self.halts = halts
        self.observes = bool(reads & GAS)  # a section of static gas ends here
        self.is_root = bool(writes) or halts or self.observes  # never dead, never reordered
        # Priced: it has a value, and its effects are gas and `leaves` alone, so optimisation mode may remove it if
        # neither its value nor `leaves` is observed.
        self.leaves: int = (writes & ~GAS).value
        self.priced = not (writes & ~(MSIZE | GAS | ACCESS)) and not halts and opcode is not None and opcode.pushes == 1
        self.pure = not (reads or self.is_root) and name != SPILL
        # A call into the runtime clobbers the registers.
        fixed = opcode is not None and bool(opcode.touches) and all(span.size < 0 for span in opcode.touches)
        inline = name in OWN or (prechecked and fixed)
        self.calls = not inline and (bool(writes) or bool(reads & ~(GAS | MSIZE | RETURNDATA)))


TRAITS: dict[str, Traits] = {name: Traits(name) for name in NAMES}
PRECHECKED_TRAITS: dict[str, Traits] = {name: Traits(name, prechecked=True) for name in PREPAYABLE}


def traits_of(value: Value) -> Traits:
    return PRECHECKED_TRAITS[value.op] if value.prechecked else TRAITS[value.op]


# The spans of memory that an instruction reads and writes.
READS_MEMORY: dict[str, tuple[Span, ...]] = {op.name: op.reads_at for op in OPCODES_TABLE if op.reads_at}
WRITES_MEMORY: dict[str, tuple[Span, ...]] = {op.name: op.writes_at for op in OPCODES_TABLE if op.writes_at}
