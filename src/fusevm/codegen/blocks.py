"""Stack code as a graph of blocks: written by `stack_code`, improved by the passes, then assembled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from fusevm.evm.assembler import Source


class _Instruction(NamedTuple):
    op: str
    number: int = 0


class Code(_Instruction):
    """One instruction. `number` is the word of PUSH, and the index of LABEL, SYMBOL, SETIMMUTABLE and VERBATIM.

    Equality ignores the source location, so that passes can merge equal instructions.
    """

    where: Source | None = None

    def at(self, where: Source | None) -> Code:
        """The same instruction with another source location."""
        code = Code(self.op, self.number)
        code.where = where
        return code


PUSH, LABEL, SYMBOL, SETIMMUTABLE, VERBATIM = "PUSH", "LABEL", "SYMBOL", "SETIMMUTABLE", "VERBATIM"
POP, ISZERO = Code("POP"), Code("ISZERO")
DUPS = [Code(f"DUP{n}") for n in range(1, 17)]
SWAPS = [Code(f"SWAP{n}") for n in range(1, 17)]


class Terminator(Enum):
    """How a block ends."""

    HALT = "its last instruction ends the frame"
    JUMP = "goes on to its target"
    BRANCH = "goes to its first target if the word on top is not zero, else to the second"
    CALL = "goes to its target, a function, which comes back to a label on the stack or never"
    RETURN = "goes to the label on top of the stack"


@dataclass(slots=True, eq=False)
class StackBlock:
    label: int
    code: list[Code] = field(default_factory=list)
    end: Terminator = Terminator.HALT
    targets: tuple[int, ...] = ()
    weight: float = 1.0  # its estimated frequency relative to the entry
    function: int = 0  # the label of the function it belongs to
    where: Source | None = None  # the source location of its jump

    def labels(self) -> Iterator[int]:
        """The labels that it pushes."""
        return (code.number for code in self.code if code.op == LABEL)

    def needs_jump(self, following: int | None) -> bool:
        """Whether it ends with a jump to its last target, if `following` is laid out after it."""
        return bool(self.targets) and self.targets[-1] != following

    @property
    def is_cold(self) -> bool:
        """Whether it reverts the frame."""
        return self.end is Terminator.HALT and bool(self.code) and self.code[-1].op in ("REVERT", "INVALID")


@dataclass(slots=True)
class StackProgram:
    """Blocks by label; the entry is block 0."""

    blocks: dict[int, StackBlock] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # in which they are laid out
    next_label: int = 0
    functions: dict[str, int] = field(default_factory=dict)  # the label of each function's entry
    merged: list[tuple[Source, Source]] = field(default_factory=list)  # locations of kept code, of merged equal code

    def merge(self, kept: StackBlock, gone: StackBlock, length: int) -> None:
        """Records that the last instructions of a block now represent those of another, too."""
        ends = zip(kept.code[len(kept.code) - length :], gone.code[len(gone.code) - length :], strict=True)
        for one, other in [*((one.where, other.where) for one, other in ends), (kept.where, gone.where)]:
            if one is not None and other is not None and one != other:
                self.merged.append((one, other))

    def new(self, weight: float = 1.0, function: int = 0) -> StackBlock:
        block = StackBlock(self.next_label, weight=weight, function=function)
        self.blocks[block.label] = block
        self.next_label += 1
        return block

    def references(self) -> dict[int, int]:
        """The number of edges and pushed labels that refer to each block."""
        count = dict.fromkeys(self.blocks, 0)
        for block in self.blocks.values():
            for label in (*block.targets, *block.labels()):
                count[label] += 1
        return count

    def redirect(self, new: dict[int, int]) -> None:
        """Redirects edges and labels to other blocks."""

        def resolved(label: int) -> int:
            while label in new:
                label = new[label]
            return label

        self.functions = {name: resolved(label) for name, label in self.functions.items()}
        for block in self.blocks.values():
            block.targets = tuple([resolved(label) for label in block.targets])
            if any(code.op == LABEL and code.number in new for code in block.code):
                block.code = [
                    Code(LABEL, resolved(code.number)).at(code.where) if code.op == LABEL else code
                    for code in block.code
                ]

    def drop_unreached(self) -> None:
        seen, work = {0}, [0]
        while work:
            block = self.blocks[work.pop()]
            for label in (*block.targets, *block.labels()):
                if label not in seen:
                    seen.add(label)
                    work.append(label)
        self.blocks = {label: block for label, block in self.blocks.items() if label in seen}
