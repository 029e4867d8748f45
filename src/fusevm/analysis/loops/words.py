"""The words that one iteration of a loop computes, and the stack of them.

A word is a number, a `Linear` form over the live-in stack slots of the iteration, a `Comparison` of two of them, or
None where nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS

MASK = (1 << 256) - 1
NEGATED = {"LT": "GE", "GT": "LE", "SLT": "SGE", "SGT": "SLE", "EQ": "NE"}
NEGATED |= {after: before for before, after in NEGATED.items()}
MIRRORED = {"LT": "GT", "LE": "GE", "SLT": "SGT", "SLE": "SGE", "EQ": "EQ", "NE": "NE"}
MIRRORED |= {after: before for before, after in MIRRORED.items()}
COMPARES = frozenset(("LT", "GT", "SLT", "SGT", "EQ"))


class Linear(NamedTuple):
    """constant + the sum of coefficient · slot; slot 1 is the top of the stack where the iteration begins."""

    constant: int
    terms: tuple[tuple[int, int], ...]  # (slot, coefficient), by slot


class LoopComparison(NamedTuple):
    relation: str
    left: Value
    right: Value


Value = int | Linear | LoopComparison | None


@cache
def slot(number: int) -> Linear:
    return Linear(0, ((number, 1),))


def add(x: Value, y: Value, sign: int = 1) -> Value:
    """x + sign · y."""
    if isinstance(x, int) and isinstance(y, int):
        return x + sign * y & MASK
    if isinstance(x, int):
        x = Linear(x, ())
    if isinstance(y, int):
        y = Linear(y, ())
    if not isinstance(x, Linear) or not isinstance(y, Linear):
        return None
    constant = x.constant + sign * y.constant & MASK
    if not y.terms:
        return Linear(constant, x.terms)
    sums = dict(x.terms)
    for number, coefficient in y.terms:
        sums[number] = sums.get(number, 0) + sign * coefficient & MASK
    terms = tuple(sorted((number, coefficient) for number, coefficient in sums.items() if coefficient))
    return Linear(constant, terms) if terms else constant


def scale(x: Value, factor: Value) -> Value:
    if isinstance(x, int) and not isinstance(factor, int):
        x, factor = factor, x
    if not isinstance(factor, int):
        return None
    if isinstance(x, int):
        return x * factor & MASK
    if not isinstance(x, Linear) or not factor:
        return None
    terms = tuple((number, coefficient * factor & MASK) for number, coefficient in x.terms)
    return Linear(x.constant * factor & MASK, tuple(each for each in terms if each[1]))


def negate(value: Value) -> Value:
    """ISZERO."""
    if isinstance(value, int):
        return int(not value)
    if isinstance(value, LoopComparison):
        return LoopComparison(NEGATED[value.relation], value.left, value.right)
    return LoopComparison("EQ", value, 0) if isinstance(value, Linear) else None


class LoopStack(NamedTuple):
    """The stack: `words`, top last, above what is untouched; `taken` of them came from below the iteration's start."""

    taken: int
    words: tuple[Value, ...]

    @property
    def height(self) -> int:
        return len(self.words) - self.taken

    def at(self, number: int) -> Value:
        """The word that is now in slot `number`."""
        if number > self.taken:
            return slot(number)
        return self.words[self.taken - number] if self.taken - number < len(self.words) else None


EMPTY = LoopStack(0, ())


def joined(one: LoopStack, other: LoopStack) -> LoopStack | None:
    """The join of two states; None if their heights differ."""
    if one == other:
        return one
    if one.height != other.height:
        return None
    taken = max(one.taken, other.taken)
    words = [
        left if left == right else None
        for left, right in zip(_reaching(one, taken), _reaching(other, taken), strict=True)
    ]
    return LoopStack(taken, tuple(words))


def _reaching(state: LoopStack, taken: int) -> list[Value]:
    return [*(slot(number) for number in range(taken, state.taken, -1)), *state.words]


def _shifted(shift: Value, word: Value) -> Value:
    if not isinstance(shift, int):
        return None
    return scale(word, 1 << min(shift, 256))


def _of_numbers(name: str, *operands: Value) -> Value:
    for each in operands:
        if not isinstance(each, int):
            return None
    return INTEGER_MEANINGS[name](*operands)


def _compared(name: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return INTEGER_MEANINGS[name](left, right)
    return LoopComparison(name, left, right)


KNOWN: dict[str, Callable[..., Value]] = {
    "ADD": add,
    "SUB": partial(add, sign=-1),
    "ISZERO": negate,
    "MUL": scale,
    "SHL": _shifted,
}
# The symbolic result of a pure opcode, operands from the top of the stack down.
MEANINGS = {
    name: KNOWN.get(name) or partial(_compared if name in COMPARES else _of_numbers, name)
    for name in INTEGER_MEANINGS
    if not BY_NAME[name].dynamic
}
