"""Programs as functions: control flow graphs in SSA form, in which calls are instructions.

Yul is lowered to this form, and functions recovered from bytecode are lifted to it. Values are those of dependency
blocks. A block's parameters are PHIs; each edge carries the arguments for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from fusevm.analysis.graphs import postorder
from fusevm.evm.assembler import Source
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.values import TRAITS, FrameState, Value


class SymbolKind(StrEnum):
    DATA_SIZE = "datasize"
    DATA_OFFSET = "dataoffset"
    IMMUTABLE = "loadimmutable"
    LIBRARY = "linkersymbol"


class Symbol(NamedTuple):
    kind: SymbolKind
    name: str


class Verbatim(NamedTuple):
    data: bytes
    inputs: int
    outputs: int


@dataclass(slots=True, eq=False)
class Arc:
    """An edge: the target block and the arguments for its parameters."""

    target: DependencyBlock
    args: list[Value] = field(default_factory=list)


# The terminators besides the EVM's own halting instructions.
JUMP, BRANCH, SWITCH, LEAVE, NEVER = "JUMP", "BRANCH", "SWITCH", "LEAVE", "NEVER"
CONTINUES = (JUMP, "JUMPI", "FALL")  # those of a block on its own after which there is another


@dataclass(slots=True, eq=False)
class End:
    """The terminator of a block. JUMP: one arc. BRANCH: a condition, the arc if it is not zero, the arc if it is.
    SWITCH: a value, an arc per case and a default arc. LEAVE: the function's results. NEVER: unreachable, after a call
    that does not return. Otherwise an instruction that ends the frame, and its operands. A block on its own ends like
    the basic block it is of, without arcs: JUMP, JUMPI and FALL, the pc of the next block as the case of the latter."""

    op: str
    args: tuple[Value, ...] = ()
    arcs: list[Arc] = field(default_factory=list)
    cases: tuple[int, ...] = ()
    where: Source | None = None
    places: tuple[Source, ...] = ()  # source locations of the cases, if known
    words: tuple[Value, ...] = ()  # of a block on its own: the run-time stack, from the deepest word that it was given


@dataclass(slots=True, eq=False)
class DependencyBlock:
    """Instructions with their dependencies. Its parameters are PHIs, or words of the run-time stack, the top first."""

    start: int  # its number, unique in the function; of a block on its own, its pc
    params: list[Value] = field(default_factory=list)
    instructions: list[Value] = field(default_factory=list)
    end: End = field(default_factory=lambda: End("STOP"))
    gas: int = 0  # static gas charged on entry; an instruction that reads the counter carries the gas charged after it
    high: int = 0  # of a block on its own: the maximum height of the stack above its height on entry
    pc: int = -1  # in regions, its place in the code; -1 if it only splits an edge
    state: FrameState | None = None  # in regions, the frame on entry

    @property
    def targets(self) -> list[DependencyBlock]:
        return [arc.target for arc in self.end.arcs]

    @property
    def delta(self) -> int:
        """By how much a block on its own raises the stack."""
        return len(self.end.words) - len(self.params)

    @property
    def sections(self) -> tuple[int, ...]:
        """Static gas, split at the instructions that read the gas counter."""
        return (self.gas, *(value.gas for value in self.instructions if TRAITS[value.op].observes))


@dataclass(slots=True, eq=False)
class Function:
    """`name` is empty for the main code. The entry's parameters are the function's."""

    name: str
    entry: DependencyBlock
    results: int = 0
    returns: bool = True  # whether a call may return
    where: Source | None = None
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # analyses (`ir/analyses.py`)

    @property
    def params(self) -> list[Value]:
        return self.entry.params

    def blocks(self) -> list[DependencyBlock]:
        """The reachable blocks in reverse postorder, the entry first."""
        return postorder(self.entry, attrgetter("targets"))[::-1]

    def instructions(self) -> Iterator[Value]:
        for block in self.blocks():
            yield from block.instructions


@dataclass(slots=True, eq=False)
class Unit:
    """The functions of one object's code. Calls refer to them by number: the index in `names`."""

    fork: Fork = LATEST
    functions: dict[str, Function] = field(default_factory=dict)  # the main code has the empty name
    names: list[str] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    verbatims: list[Verbatim] = field(default_factory=list)
    guard: int | None = None  # memory below this is reserved by the code, if it has a memoryguard
    reserved: int = 0  # bytes after that, which the compiler may use
    keeps_warmth: bool = True  # what makes a slot or an account warm stays where other code is called
    plain: frozenset[int] | None = frozenset()  # constants that are pushed by one PUSH, however long; None: all
    _numbers: dict[str, int] = field(default_factory=dict)
    _symbol_numbers: dict[Symbol, int] = field(default_factory=dict)

    def number_of(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def symbol(self, kind: SymbolKind, name: str) -> int:
        symbol = Symbol(kind, name)
        number = self._symbol_numbers.setdefault(symbol, len(self.symbols))
        if number == len(self.symbols):
            self.symbols.append(symbol)
        return number

    def callee(self, call: Value) -> Function:
        return self.functions[self.names[call.number]]
