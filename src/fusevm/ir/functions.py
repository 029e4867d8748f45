"""Programs as functions: control flow graphs in SSA form, in which calls are instructions.

Yul is lowered to this form, and functions recovered from bytecode are lifted to it. Values are those of dependency
blocks. A block's parameters are PHIs; each edge carries the arguments for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.values import Value


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

    target: GraphBlock
    args: list[Value] = field(default_factory=list)


# The terminators besides the EVM's own halting instructions.
JUMP, BRANCH, SWITCH, LEAVE, NEVER = "JUMP", "BRANCH", "SWITCH", "LEAVE", "NEVER"


@dataclass(slots=True, eq=False)
class End:
    """The terminator of a block. JUMP: one arc. BRANCH: a condition, the arc if it is not zero, the arc if it is.
    SWITCH: a value, an arc per case and a default arc. LEAVE: the function's results. NEVER: unreachable, after a call
    that does not return. Otherwise an instruction that ends the frame, and its operands."""

    op: str
    args: tuple[Value, ...] = ()
    arcs: list[Arc] = field(default_factory=list)
    cases: tuple[int, ...] = ()
    where: Source | None = None
    places: tuple[Source, ...] = ()  # source locations of the cases, if known


@dataclass(slots=True, eq=False)
class GraphBlock:
    start: int  # its number, unique in the function
    params: list[Value] = field(default_factory=list)
    instructions: list[Value] = field(default_factory=list)
    end: End = field(default_factory=lambda: End("STOP"))
    gas: int = 0

    @property
    def targets(self) -> list[GraphBlock]:
        return [arc.target for arc in self.end.arcs]


@dataclass(slots=True, eq=False)
class Function:
    """`name` is empty for the main code. The entry's parameters are the function's."""

    name: str
    entry: GraphBlock
    results: int = 0
    returns: bool = True  # whether a call may return
    where: Source | None = None

    @property
    def params(self) -> list[Value]:
        return self.entry.params

    def blocks(self) -> list[GraphBlock]:
        """The reachable blocks in reverse postorder, the entry first."""
        order: list[GraphBlock] = []
        seen = {self.entry}
        work: list[tuple[GraphBlock, Iterator[GraphBlock]]] = [(self.entry, iter(self.entry.targets))]
        while work:
            block, targets = work[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    work.append((target, iter(target.targets)))
                    break
            else:
                order.append(block)
                work.pop()
        return order[::-1]

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
    plain: frozenset[int] = frozenset()  # constants that are pushed by one PUSH, however long
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
