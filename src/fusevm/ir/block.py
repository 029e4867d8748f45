"""Dependency blocks, and programs made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fusevm.analysis.cfg import Cfg
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import Effect
from fusevm.ir.values import TRAITS, Value


class Mode(StrEnum):
    EXECUTION = "execution"  # gas and memory size stay exact
    OPTIMISATION = "optimisation"  # what a caller can observe is preserved; gas may only fall


CONTINUES = ("JUMP", "JUMPI", "FALL")  # terminators with a successor; FALL falls through to the next block


@dataclass(slots=True)
class Edge:
    """A successor and the arguments for its parameters, by slot relative to the top of the successor's entry stack."""

    target: int
    args: dict[int, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Terminator:
    op: str  # an EVM opcode that ends a block, or FALL
    args: tuple[Value, ...] = ()
    falls: int | None = None  # the fall-through block of JUMPI and FALL; None: past the end of the code, which stops
    edges: list[Edge] = field(default_factory=list)  # known successors of a program's block


@dataclass(slots=True)
class DependencyBlock:
    """One basic block as instructions with their dependencies.

    `entry[i]` is the word at slot -1-i on entry. `stack` is the run-time stack on exit, from slot -len(entry) upwards.
    """

    start: int
    entry: list[Value] = field(default_factory=list)
    instructions: list[Value] = field(default_factory=list)
    stack: tuple[Value, ...] = ()
    terminator: Terminator = field(default_factory=lambda: Terminator("STOP"))
    spills: list[Value] = field(default_factory=list)
    gas: int = 0  # static gas charged on entry; an instruction that reads the counter carries the gas charged after it
    low: int = 0  # the deepest slot it needs: -2 needs two words
    high: int = 0  # the maximum height of the stack above its height on entry
    opcodes: int = 0  # how many EVM instructions it was lifted from
    stack_opcodes: int = 0  # of those, how many only arranged the stack
    params: tuple[int, ...] = ()  # slots passed as PHIs
    live_out: dict[int, Value] = field(default_factory=dict)  # its values that other blocks use, by id

    @property
    def delta(self) -> int:
        return len(self.stack) - len(self.entry)

    @property
    def halts(self) -> bool:
        return self.terminator.op not in CONTINUES

    def slot_of(self, index: int) -> int:
        """The slot of `stack[index]`."""
        return index - len(self.entry)

    def at_exit(self, slot: int) -> Value | None:
        """The word in that slot (relative to the entry top) on exit, or None if the block does not name it."""
        index = slot + len(self.entry)
        return self.stack[index] if 0 <= index < len(self.stack) else None

    @property
    def sections(self) -> tuple[int, ...]:
        """Static gas, split at the instructions that read the gas counter."""
        return (self.gas, *(value.gas for value in self.instructions if TRAITS[value.op].observes))


@dataclass(slots=True)
class Program:
    code: bytes
    cfg: Cfg
    blocks: dict[int, DependencyBlock] = field(default_factory=dict)
    fork: Fork = LATEST
    mode: Mode = Mode.EXECUTION
    next_id: int = 0
    unseen: Effect | None = None  # optimisation mode: effects that are not observed and may go. None: all are kept
