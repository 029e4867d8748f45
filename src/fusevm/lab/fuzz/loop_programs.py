"""Loops in all the forms compilers and people give them.

Tested at the top, in the middle or at the bottom; counting up or down by any step, with any comparison, against a
literal or a bound kept on the stack; nested, left early, skipped ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fusevm.lab.fuzz.constants import SIGN, WORD
from fusevm.lab.fuzz.writer import Writer

Body = Callable[[Writer], None]

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "LT": lambda a, b: a < b,
    "GT": lambda a, b: a > b,
    "SLT": lambda a, b: (a ^ SIGN) < (b ^ SIGN),
    "SGT": lambda a, b: (a ^ SIGN) > (b ^ SIGN),
    "EQ": lambda a, b: a == b,
}
_STARTS = (0, 0, 0, 1, 5, 10, 255, 256, SIGN - 2, SIGN + 3, WORD - 3, WORD)
_STEPS = (1, 1, 1, 2, 3, 7, 32)
_TRIPS = 12


@dataclass(frozen=True, slots=True)
class Control:
    """How a counted loop counts and when it continues."""

    start: int
    bound: int
    step: int  # added each time, modulo 2^256
    compare: str
    swapped: bool  # compare(bound, counter) instead of compare(counter, bound)
    while_false: bool  # continues while the comparison is false

    def goes_on(self, counter: int) -> bool:
        left, right = (self.bound, counter) if self.swapped else (counter, self.bound)
        return _COMPARE[self.compare](left, right) != self.while_false

    def trips(self, limit: int) -> int:
        """How often the test is passed, up to a limit."""
        counter, count = self.start, 0
        while count < limit and self.goes_on(counter):
            counter = counter + self.step & WORD
            count += 1
        return count


def control(rng: Random) -> Control:
    """Any loop that ends after a few rounds; one in fifty may not."""
    careless = rng.random() < 0.02
    for _ in range(12):
        start = rng.choice(_STARTS)
        step = rng.choice(_STEPS) * rng.choice((1, 1, -1)) & WORD
        bound = (
            start + (step if step < SIGN else step - WORD - 1) * rng.randint(0, 8) + rng.choice((0, 0, 0, 1, -1)) & WORD
        )
        tried = Control(
            start, bound, step, rng.choice(tuple(_COMPARE)), rng.random() < 0.5, rng.random() < 0.5
        )  # fmt: skip
        if careless or 0 < tried.trips(_TRIPS + 1) <= _TRIPS:
            return tried
    return Control(0, rng.randint(1, 8), 1, "LT", False, False)


def loop(w: Writer, body: Body) -> None:
    """Writes a loop whose body is written by `body`; the stack is afterwards as it was."""
    rng, base, c = w.rng, w.height, control(w.rng)
    bound_on_stack = rng.random() < 0.3
    if bound_on_stack:
        w.push(c.bound)
    w.push(c.start)
    inner = w.height
    top, step, exit_ = w.new_label(), w.new_label(), w.new_label()

    def test(to: int, when_going_on: bool) -> None:
        """Jumps to `to` if the loop continues (or if it does not)."""
        bound_depth = 2
        if bound_on_stack:
            operands: list[Callable[[], None]] = [lambda: w.op(f"DUP{w.height - inner + bound_depth}")]
        else:
            operands = [lambda: w.push(c.bound)]
        operands.append(lambda: w.op(f"DUP{w.height - inner + 1}"))
        if c.swapped:
            operands.reverse()
        for operand in operands:
            operand()
        w.op(c.compare)
        if c.while_false == when_going_on:
            w.op("ISZERO")
        elif rng.random() < 0.1:
            w.ops("ISZERO", "ISZERO")
        w.ref(to)
        w.op("JUMPI")

    form = rng.choice(("top", "top", "bottom", "bottom", "middle"))
    if rng.random() < 0.05:  # a side entry
        w.condition()
        w.settle(inner + 1)
        w.ref(step)
        w.op("JUMPI")
    w.label(top)
    if form == "top":
        test(exit_, False)
    _body(w, body, inner, step, exit_)
    if form == "middle":
        test(exit_, False)
        _body(w, body, inner, step, exit_)
    w.label(step)
    _advance(w, c.step)
    if form == "bottom":
        test(top, True)
    else:
        w.ref(top)
        w.op("JUMP")
    w.label(exit_)
    w.settle(base)


def _body(w: Writer, body: Body, inner: int, step: int, exit_: int) -> None:
    floor, w.floor = w.floor, inner
    w.loops += 1
    if w.chance(0.3):
        _walk(w)
    body(w)
    w.settle(inner)
    if w.chance(0.25):  # break or continue
        if w.chance(0.5):
            w.op("DUP1")
            w.push(w.rng.randrange(6))
            w.op("EQ")
        else:
            w.condition()
        w.ref(exit_ if w.chance(0.6) else step)
        w.op("JUMPI")
        w.settle(inner)
        if w.chance(0.5):
            body(w)
            w.settle(inner)
    w.loops -= 1
    w.floor = floor


def _walk(w: Writer) -> None:
    """Reads or writes the element of an array that the counter, on top of the stack, is the index of."""
    kind = w.rng.choice(
        [name for name in ("MLOAD", "MSTORE", "SLOAD", "SSTORE", "CALLDATALOAD", "TLOAD") if w.has(name)]
    )
    if kind.endswith("STORE"):
        w.operand()
    w.op(f"DUP{w.height - w.floor + 1}")
    w.push(0x0F)
    w.op("AND")
    if kind not in ("SLOAD", "SSTORE", "TLOAD"):
        w.push(5 if w.has("SHL") else 32)
        w.op("SHL" if w.has("SHL") else "MUL")
    w.op(kind)


def _advance(w: Writer, step: int) -> None:
    if step < SIGN:
        w.push(step)
        if w.chance(0.5):
            w.op("SWAP1")
        w.op("ADD")
    elif w.chance(0.7):
        w.push(WORD + 1 - step)
        w.ops("SWAP1", "SUB")
    else:
        w.push(step)
        w.op("ADD")


def flood(w: Writer) -> None:
    """Pushes until the stack is full."""
    top = w.new_label()
    w.label(top)
    w.op(w.rng.choice(("ADDRESS", "CALLVALUE", "PC", "GAS")))
    w.ref(top)
    w.op("JUMP")
    w.height -= 1
