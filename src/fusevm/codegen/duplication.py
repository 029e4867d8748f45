"""Short blocks copied to where they are jumped to: a jump costs 12 gas and 4 bytes, a copy only its bytes.

A loop that is entered by a jump to the test at its bottom gets a test at its top as well.
"""

from __future__ import annotations

from fusevm.codegen.blocks import LABEL, StackBlock, StackProgram, Way
from fusevm.codegen.passes import size_of

JUMP_BYTES, JUMP_GAS = 4, 12
LONGEST = 24  # bytes of a block that is copied


def duplicate_short_blocks(program: StackProgram, saves: int, runs: float) -> bool:
    """Copies what pays, given the order that blocks stand in now; whether anything was copied."""
    following = dict(zip(program.order, program.order[1:], strict=False))
    before = {after: label for label, after in following.items()}
    references = program.references()
    changed = False
    for label in program.order:
        block = program.blocks[label]
        if block.way is not Way.JUMP or block.targets[0] == following.get(label):
            continue
        target = program.blocks[block.targets[0]]
        if target is block or not _ends(program, target, before):
            continue
        if any(code.op == LABEL for code in target.code):
            continue
        size = sum(size_of(code) for code in target.code) + (4 if target.way is Way.BRANCH else 1)
        grows = size - JUMP_BYTES - (1 if references[target.label] == 1 else 0)
        if size <= LONGEST and grows * saves < JUMP_GAS * block.weight * runs:
            block.code = block.code + target.code
            block.way, block.targets = target.way, target.targets
            changed = True
    if changed:
        program.drop_unreached()
    return changed


def _ends(program: StackProgram, target: StackBlock, before: dict[int, int]) -> bool:
    """Nothing has to be jumped to after the copy: the frame ends, or one of two ways can be fallen into."""
    if target.way in (Way.HALT, Way.RETURN):
        return True
    return target.way is Way.BRANCH and any(_is_free(program, each, before) for each in target.targets)


def _is_free(program: StackProgram, label: int, before: dict[int, int]) -> bool:
    """No block that stands before it runs on into it."""
    previous = program.blocks.get(before.get(label, -1))
    return previous is None or label not in previous.targets
