"""Block placement: the hottest edges become fall-throughs.

Chains of blocks are merged along edges, the hottest first. An edge merges two chains if it leads from the last block of
one to the first block of the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.codegen.blocks import ISZERO, StackBlock, StackProgram, Terminator
from fusevm.codegen.passes import negate, turns_freely
from fusevm.codegen.weights import damped, undamped
from fusevm.evm.assembler import Source

KEPT = 1.1  # the bonus factor for a block that stays after its old predecessor


def place(program: StackProgram, followed: Mapping[Source, Source] | None = None) -> None:
    """Finds an order, and inverts branches so that they fall through where their condition is zero.

    `followed` maps each block of the original code to the next one. It breaks ties between orders, so that no edge gets
    a jump it did not have because of a guessed weight.
    """
    for block in program.blocks.values():
        if block.end is Terminator.BRANCH and block.code and block.code[-1] == ISZERO:
            negate(block)
    chain_of = {label: [label] for label in program.blocks}
    for _, _, source, target in sorted(_edges(program, followed or {}), key=lambda edge: (-edge[0], edge[1])):
        one, other = chain_of[source], chain_of[target]
        if one is other or one[-1] != source or other[0] != target or target == 0:
            continue
        one += other
        for label in other:
            chain_of[label] = one
    chains: list[list[int]] = []
    for label in program.blocks:
        if chain_of[label][0] == label:
            chains.append(chain_of[label])
    references = program.references()
    chains.sort(key=lambda chain: (chain[0] != 0, -_heat(program, chain, references)))
    program.order = [label for chain in chains for label in chain]
    following = dict(zip(program.order, program.order[1:], strict=False))
    for label, block in program.blocks.items():
        if block.end is Terminator.BRANCH and block.targets[0] == following.get(label) != block.targets[1]:
            negate(block)


def _heat(program: StackProgram, chain: list[int], references: dict[int, int]) -> float:
    """Approximate references per byte: blocks that are referenced most often get the low, short addresses."""
    size = sum(len(program.blocks[label].code) + 4 for label in chain)
    return sum(references[label] for label in chain) / size


def _edges(program: StackProgram, followed: Mapping[Source, Source]) -> list[tuple[float, int, int, int]]:
    """The edges: what falling through saves (gas, plus a little for bytes), a tie-breaker, source, target.

    A jump that is not needed saves 11 gas, a JUMPDEST that is not needed 1. A branch costs the same whether it is taken
    or not: falling through saves the jump on the edge where its condition is zero. To fall through on the other edge,
    the condition must be inverted, by an ISZERO if nothing cheaper does it.
    """
    found: list[tuple[float, int, int, int]] = []
    references = program.references()
    for number, (label, block) in enumerate(program.blocks.items()):
        if block.end in (Terminator.JUMP, Terminator.CALL):
            target = block.targets[0]
            alone = references[target] == 1
            gain = (11 + alone) * block.weight * _kept(program, block, target, followed)
            found.append((gain + 1 + alone, number, label, target))
        elif block.end is Terminator.BRANCH:
            non_zero, zero = block.targets
            one, other = _turns(program, block, references)
            found.append((11 * one * _kept(program, block, zero, followed) + 0.5, number, label, zero))
            label_saved = other if references[non_zero] == 1 else 0.0
            turning = 0.0 if turns_freely(block) else 3 * block.weight
            found.append((10 * one + label_saved - turning + 0.4, number, label, non_zero))
    return found


def _kept(program: StackProgram, block: StackBlock, target: int, followed: Mapping[Source, Source]) -> float:
    """Greater than 1 if the block directly preceded the target in the original code."""
    after = program.blocks[target]
    begins = after.code[0].where if after.code else after.where
    if block.where is None or begins is None:
        return 1.0
    return KEPT if followed.get(block.where[:2]) == begins[:2] else 1.0


def _turns(program: StackProgram, block: StackBlock, references: dict[int, int]) -> tuple[float, float]:
    """Estimates how often a branch's condition is zero, and how often not, from the targets' weights."""
    non_zero, zero = (program.blocks[target] for target in block.targets)
    one, other = min(block.weight, zero.weight), min(block.weight, non_zero.weight)
    if references[non_zero.label] == 1 < references[zero.label]:
        one = min(one, _rest(block.weight, other))
    elif references[zero.label] == 1 < references[non_zero.label]:
        other = min(other, _rest(block.weight, one))
    return one * (0.01 if zero.is_cold else 1), other * (0.01 if non_zero.is_cold else 1)


def _rest(whole: float, part: float) -> float:
    return damped(max(undamped(whole) - undamped(part), 0.0))
