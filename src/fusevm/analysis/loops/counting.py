"""How often a loop runs: the exit that compares a counter with a bound, and the iterations until it is taken."""

from __future__ import annotations

from typing import NamedTuple

from fusevm.analysis.loops.shape import LoopShape
from fusevm.analysis.loops.walk import NOWHERE
from fusevm.analysis.loops.words import MASK, MIRRORED, Linear, LoopComparison, LoopStack, Value, slot

SIGN = 1 << 255
MAX_STEP = 1 << 62


class Counted(NamedTuple):
    """counter + addend COMPARISON bound + bound_addend, tested once per iteration."""

    slot: int
    addend: int
    step: int  # signed
    relation: str
    bound_slot: int  # 0: the bound is a literal, in bound_addend
    bound_addend: int
    node: int  # the node that has the exit
    way: int  # which of the node's edges leaves


def trips(relation: str, x: int, bound: int, step: int) -> int | None:
    """How often x, x + step, … passes the test before it first fails; None if that is not computed."""
    if relation[0] == "S":
        relation, x, bound = relation[1:], x ^ SIGN, bound ^ SIGN
    if relation[0] == "G":
        relation, x, bound, step = "L" + relation[1], x ^ MASK, bound ^ MASK, -step
    if relation == "EQ":
        return int(x == bound)
    if relation == "NE":
        distance = (bound - x if step > 0 else x - bound) & MASK
        return None if distance % abs(step) else distance // abs(step)
    if x > bound or (x == bound and relation == "LT"):
        return 0
    if step > 0:
        count = (bound - x - (relation == "LT")) // step + 1
        return count if x + count * step <= MASK else None
    count = x // -step + 1
    last = x + count * step & MASK
    return count if last > bound or (last == bound and relation == "LT") else None


def counted_exit(shape: LoopShape, latch: LoopStack, number: int, way: int) -> Counted | None:
    """The exit as a test of a counter against an invariant bound, or None."""
    if number not in shape.spine or len(shape.nodes[number].edges) != 2:
        return None
    going_on, leaving = shape.nodes[number].edges[1 - way], shape.nodes[number].edges[way]
    if going_on.node not in shape.staying or leaving.pc == NOWHERE:
        return None
    test = _as_comparison(going_on.when)
    if test is None:
        return None
    for relation, one, other in (
        (test.relation, test.left, test.right),
        (MIRRORED[test.relation], test.right, test.left),
    ):
        if not isinstance(one, Linear) or len(one.terms) != 1 or one.terms[0][1] != 1:
            continue
        counter, addend = one.terms[0][0], signed(one.constant)
        step = step_of(latch, counter)
        if not step or abs(step) >= MAX_STEP or abs(addend) >= MAX_STEP:
            continue
        if isinstance(other, int):
            return Counted(counter, addend, step, relation, 0, other, number, way)
        if isinstance(other, Linear) and len(other.terms) == 1 and other.terms[0][1] == 1:
            bound = other.terms[0][0]
            if latch.at(bound) == slot(bound) and abs(signed(other.constant)) < MAX_STEP:
                return Counted(counter, addend, step, relation, bound, signed(other.constant), number, way)
    return None


def _as_comparison(condition: Value) -> LoopComparison | None:
    """`x` and `x - y` as conditions: not zero, not equal."""
    if isinstance(condition, LoopComparison):
        if condition.right == 0 and isinstance(condition.left, Linear) and len(condition.left.terms) == 2:
            split = _as_comparison(condition.left)
            if split is not None and condition.relation in ("EQ", "NE"):
                return split._replace(relation=condition.relation)
        return condition
    if not isinstance(condition, Linear):
        return None
    if len(condition.terms) == 2:
        plus = [number for number, coefficient in condition.terms if coefficient == 1]
        minus = [number for number, coefficient in condition.terms if coefficient == MASK]
        if len(plus) == len(minus) == 1:
            return LoopComparison("NE", Linear(condition.constant, ((plus[0], 1),)), slot(minus[0]))
    return LoopComparison("NE", condition, 0)


def step_of(latch: LoopStack, number: int) -> int:
    """The change of a slot per iteration; zero if it does not change, or not by a constant."""
    value = latch.at(number)
    if isinstance(value, Linear) and value.terms == ((number, 1),):
        return signed(value.constant)
    return 0


def signed(word: int) -> int:
    return word - (1 << 256) if word >= SIGN else word
