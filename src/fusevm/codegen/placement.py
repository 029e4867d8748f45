"""The order of blocks in the code: what runs most often is fallen into rather than jumped to.

Chains of blocks are grown from the hottest ways on. A way between two chains joins them if the one block ends the first
and the other begins the second.
"""

from __future__ import annotations

from fusevm.codegen.blocks import StackBlock, StackProgram, Way
from fusevm.codegen.passes import negate, turns_freely


def place(program: StackProgram) -> None:
    """Finds an order, and turns branches so that what comes next is where their condition is zero."""
    chain_of = {label: [label] for label in program.blocks}
    for _, _, source, target in sorted(_ways(program), key=lambda way: (-way[0], way[1])):
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
        if block.way is Way.BRANCH and block.targets[0] == following.get(label) != block.targets[1]:
            negate(block)


def _heat(program: StackProgram, chain: list[int], references: dict[int, int]) -> float:
    """References per byte, about: short labels go to who is pushed most often."""
    size = sum(len(program.blocks[label].code) + 4 for label in chain)
    return sum(references[label] for label in chain) / size


def _ways(program: StackProgram) -> list[tuple[float, int, int, int]]:
    """What falling through saves, in gas and bytes, a number to keep the order, from where, to where.

    A jump that is not needed saves 11 gas, a label that is not needed 1. A branch costs the same whether it is taken or
    not: what follows it saves the jump of the way where its condition is zero. To follow it, the block of the other way
    needs a condition that is turned round, by an ISZERO if nothing cheaper does it.
    """
    found: list[tuple[float, int, int, int]] = []
    references = program.references()
    for number, (label, block) in enumerate(program.blocks.items()):
        if block.way in (Way.JUMP, Way.CALL):
            target = block.targets[0]
            alone = references[target] == 1
            found.append(((11 + alone) * block.weight + 1 + alone, number, label, target))
        elif block.way is Way.BRANCH:
            non_zero, zero = block.targets
            one, other = (_turns(program, block, target) for target in (zero, non_zero))
            found.append((11 * one + 0.5, number, label, zero))
            label_saved = other if references[non_zero] == 1 else 0.0
            turning = 0.0 if turns_freely(block) else 3 * block.weight
            found.append((10 * one + label_saved - turning + 0.4, number, label, non_zero))
    return found


def _turns(program: StackProgram, block: StackBlock, target: int) -> float:
    """How often the way from the block to the target is taken, about."""
    after = program.blocks[target]
    return min(block.weight, after.weight) * (0.01 if after.is_cold else 1)
