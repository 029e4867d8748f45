"""Recovers functions in SSA form from bytecode, or says why it cannot."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.evm.bytecode import BasicBlock, basic_blocks, jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_NAME
from fusevm.ir.builder import Builder
from fusevm.ir.functions import DependencyBlock, Unit
from fusevm.ir.recovery.build import UnitBuilder
from fusevm.ir.recovery.finder import Finder
from fusevm.ir.recovery.walk import Lifter
from fusevm.ir.recovery.words import GrowingStack, RecoveryFailed

MAX_RECURSIVE = 8
ROUNDS = 4  # of finding which PUSHes are code addresses


_PUSH32 = BY_NAME["PUSH32"].byte


@dataclass(slots=True)
class Recovered:
    unit: Unit
    reached: list[BasicBlock]  # reachable basic blocks, in code order
    sources: dict[DependencyBlock, BasicBlock] = field(default_factory=dict)  # what each was lifted from
    highest: int = 0  # the maximum height of the stack, recursive calls counted once
    growth: tuple[int, int] | None = None  # by how much, at least and at most, a recursive call raises it

    @property
    def end(self) -> int:
        """The end of the reachable code."""
        return self.reached[-1].end if self.reached else 0

    def overlaps(self, start: int, end: int) -> bool:
        return any(block.start < end and start < block.end for block in self.reached)


def recover(code: bytes, fork: Fork = LATEST) -> Recovered:
    """Raises RecoveryFailed if the control flow or the uses of code addresses cannot be determined."""
    blocks = {block.start: block for block in basic_blocks(code, fork)}
    if not blocks:
        raise RecoveryFailed("the code is empty")
    dests = jumpdests(code)
    finder, labels = _found(blocks, dests, fork)
    unit = Unit(fork)
    lifter = Lifter(fork, labels, unfilled(blocks), Builder(), unit)
    builder = UnitBuilder(finder, unit, lifter)
    builder.run()
    escaped = lifter.escaped & finder.used
    if escaped:
        raise RecoveryFailed("a code address is used as a number", min(escaped))
    if finder.main.highest > STACK_LIMIT:
        raise RecoveryFailed("the stack may grow past its limit")
    reached = {key.pc for found in (finder.main, *finder.functions.values()) for key in found.states}
    growth = [each for found in finder.functions.values() for each in found.growth]
    return Recovered(
        unit,
        [blocks[pc] for pc in sorted(reached)],
        builder.sources,
        finder.main.highest,
        (min(growth), max(growth)) if growth else None,
    )


def _found(blocks: dict[int, BasicBlock], dests: frozenset[int], fork: Fork) -> tuple[Finder, dict[int, int]]:
    """Starts again with a function marked as recursive when it is found to raise the stack on every visit."""
    recursive: frozenset[int] = frozenset()
    while True:
        try:
            return _found_with(blocks, dests, fork, recursive)
        except GrowingStack as grows:
            if grows.pc is None or grows.pc in recursive or len(recursive) == MAX_RECURSIVE:
                raise
            recursive |= {grows.pc}


def _found_with(
    blocks: dict[int, BasicBlock], dests: frozenset[int], fork: Fork, recursive: frozenset[int]
) -> tuple[Finder, dict[int, int]]:
    """At first every PUSH of a jump target may be a code address, then only those that were jumped to."""
    labels = candidates(blocks, dests)
    for _ in range(ROUNDS):
        finder = Finder(blocks, dests, Lifter(fork, labels, unfilled(blocks)), recursive)
        finder.run()
        if finder.used >= labels.keys():
            return finder, labels
        labels = {pc: word for pc, word in labels.items() if pc in finder.used}
    raise RecoveryFailed("which numbers are code addresses is not certain")


def candidates(blocks: dict[int, BasicBlock], dests: frozenset[int]) -> dict[int, int]:
    """PUSHes of a jump target, and those directly before a jump, whether or not the target is valid."""
    found: dict[int, int] = {}
    for block in blocks.values():
        jumps = block.last.name in ("JUMP", "JUMPI")
        for place, each in enumerate(block.instructions, 2 - len(block.instructions)):
            if each.push is not None and (each.push in dests or (jumps and place == 0)):
                found[each.pc] = each.push
    return found


def unfilled(blocks: dict[int, BasicBlock]) -> dict[int, str]:
    """PUSH32 of zero: the placeholder of an immutable, filled in on deployment."""
    return {
        each.pc: f"{each.pc + 1}"
        for block in blocks.values()
        for each in block.instructions
        if each.byte == _PUSH32 and each.push == 0 and not each.truncated
    }
