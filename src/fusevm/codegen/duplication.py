"""Tail duplication: short blocks replace jumps to them. A jump costs 12 gas and 4 bytes, a copy only its bytes.

A loop that is entered by a jump to the test at its bottom gets a test at its top as well (loop inversion). A branch
inverted by an ISZERO, because the halting block it would fall through to is elsewhere, gets its own copy of that block.
"""

from __future__ import annotations

from fusevm.codegen.blocks import ISZERO, LABEL, StackBlock, StackProgram, Terminator
from fusevm.codegen.passes import size_of

JUMP_BYTES, JUMP_GAS = 4, 12
LABEL_GAS, TURN_GAS = 1, 3  # of a JUMPDEST, and of an ISZERO
LONGEST = 24  # the maximum size of a copied block, in bytes


def duplicate_short_blocks(program: StackProgram, saves: int, runs: float) -> bool:
    """Copies blocks where that pays, given the current order of blocks; returns whether any was copied."""
    following = dict(zip(program.order, program.order[1:], strict=False))
    before = {after: label for label, after in following.items()}
    references = program.references()
    changed = False
    for label in program.order:
        block = program.blocks[label]
        if block.end is Terminator.BRANCH:
            changed |= _own_end(program, block, following.get(label), references, saves, runs)
        if block.end is not Terminator.JUMP or block.targets[0] == following.get(label):
            continue
        target = program.blocks[block.targets[0]]
        if target is block or not _ends(program, target, before):
            continue
        if any(code.op == LABEL for code in target.code):
            continue
        size = _size(target)
        grows = size - JUMP_BYTES - (1 if references[target.label] == 1 else 0)
        if size <= LONGEST and grows * saves < JUMP_GAS * block.weight * runs:
            block.code = block.code + target.code
            block.end, block.targets = target.end, target.targets
            changed = True
    if changed:
        program.drop_unreached()
    return changed


def _size(block: StackBlock) -> int:
    return sum(size_of(code) for code in block.code) + (4 if block.end is Terminator.BRANCH else 1)


def _own_end(
    program: StackProgram,
    block: StackBlock,
    following: int | None,
    references: dict[int, int],
    saves: int,
    runs: float,
) -> bool:
    """Copies the halting block that a branch could fall through to, if sharing it costs gas; returns whether it did."""
    turned = bool(block.code) and block.code[-1] == ISZERO and block.targets[1] == following
    target = program.blocks[block.targets[0 if turned else 1]]
    if target.end is not Terminator.HALT or references[target.label] == 1 or not (turned or target.label == following):
        return False
    size = _size(target) - 1
    gas = (TURN_GAS - LABEL_GAS) * block.weight if turned else LABEL_GAS * target.weight / references[target.label]
    if size > LONGEST or size * saves >= gas * runs:
        return False
    if turned:
        block.code, block.targets = block.code[:-1], block.targets[::-1]
    copy = program.new(target.weight / references[target.label], block.function)
    copy.code, copy.where = target.code, target.where
    target.weight -= copy.weight
    references[target.label] -= 1
    block.targets = (block.targets[0], copy.label)
    return True


def _ends(program: StackProgram, target: StackBlock, before: dict[int, int]) -> bool:
    """Whether the copy needs no jump at its end: it halts, returns, or can fall through to one of its targets."""
    if target.end in (Terminator.HALT, Terminator.RETURN):
        return True
    return target.end is Terminator.BRANCH and any(_is_free(program, each, before) for each in target.targets)


def _is_free(program: StackProgram, label: int, before: dict[int, int]) -> bool:
    """Whether no block falls through to it."""
    previous = program.blocks.get(before.get(label, -1))
    return previous is None or label not in previous.targets
