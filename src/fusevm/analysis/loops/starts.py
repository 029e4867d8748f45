"""What counters start with, where the code says it just before the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fusevm.analysis.loops.walk import LoopBlock, run
from fusevm.analysis.loops.words import EMPTY


def start_values(
    blocks: Mapping[int, LoopBlock], targets: Mapping[int, int], counters: Mapping[int, tuple[int, Collection[int]]]
) -> dict[int, int]:
    """The counter's first value by header, if all edges into the loop with a known start value agree on it.

    `counters`: by header, how deep each is where an iteration begins, and the blocks of the loop.
    """
    found: dict[int, set[int]] = {}
    for pc, block in blocks.items():
        header = _way_on(block, targets)
        depth, body = counters.get(header, (0, ()))
        if not depth or pc in body:
            continue
        words = run(block, EMPTY).after.words
        start = words[-depth] if depth <= len(words) else None
        if isinstance(start, int):
            found.setdefault(header, set()).add(start)
    return {header: values.pop() for header, values in found.items() if len(values) == 1}


def _way_on(block: LoopBlock, targets: Mapping[int, int]) -> int:
    """The only successor of a block; -1 if there is none, or more than one."""
    name = block.last.name if block.last else ""
    if name == "JUMP":
        return targets.get(block.pc, -1)
    return -1 if name == "JUMPI" else block.falls
