"""Turns comparisons of a word back into comparisons of the shifted word, where that is computed anyway.

Folding turns `x >> a < c` into `x < c << a`, which saves the shift. A dispatcher needs the shifted word in any case, so
there the longer constant, and keeping both words live, cost more than they save.
"""

from __future__ import annotations

from fusevm.ir import analyses
from fusevm.ir.functions import Function
from fusevm.ir.values import CONST, Value

_LOWER = {"LT": (0, 1), "GT": (1, 0)}  # which operand is the lower one


def reuse_shifts(function: Function) -> int:
    """Returns how many comparisons were changed."""
    blocks = analyses.order(function)
    shifts: dict[int, list[tuple[Value, int]]] = {}  # each with its block: blocks are joined after values were made
    for block in blocks:
        for value in block.instructions:
            if value.op == "SHR" and value.args[0].op == CONST and value.args[1].op != CONST:
                shifts.setdefault(value.args[1].id, []).append((value, block.start))
    if not shifts:
        return 0
    tree = analyses.dominators(function)
    changed = 0
    for block in blocks:
        seen: set[int] = set()
        for value in block.instructions:
            seen.add(value.id)
            if value.op not in _LOWER:
                continue
            for shift, home in shifts.get(_compared(value), ()):
                there = shift.id in seen if home == block.start else tree.dominates(home, block.start)
                args = _shifted(value, shift)
                if there and args is not None:
                    value.args = args
                    changed += 1
                    break
    return changed


def _compared(value: Value) -> int:
    """The id of the word that is compared with a literal."""
    words = [arg for arg in value.args if arg.op != CONST]
    return words[0].id if len(words) == 1 else -1


def _shifted(value: Value, shift: Value) -> tuple[Value, Value] | None:
    lower, higher = (value.args[place] for place in _LOWER[value.op])
    by = shift.args[0].number
    if by >= 256:
        return None
    if higher.op == CONST:  # x < c << by: x >> by < c
        number, rest = divmod(higher.number, 1 << by)
        pair = None if rest else (shift, Value(CONST, (), number))
    else:  # (c + 1 << by) - 1 < x: c < x >> by
        number, rest = divmod(lower.number + 1, 1 << by)
        pair = None if rest or not number else (Value(CONST, (), number - 1), shift)
    if pair is None:
        return None
    return pair if value.op == "LT" else pair[::-1]
