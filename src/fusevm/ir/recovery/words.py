"""What recovery knows about a word on the stack, and a stack that extends down into the caller's words on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.ir.values import UNSPILL, Value


class RecoveryFailed(Exception):
    """The code cannot be recovered. The message says why, for the report."""

    def __init__(self, reason: str, pc: int | None = None) -> None:
        self.reason, self.pc = reason, pc
        super().__init__(reason if pc is None else f"{reason} (at {pc:#x})")


class GrowingStack(RecoveryFailed):
    """A block is reached at ever greater stack heights: a recursive function, or a loop that grows the stack."""

    def __init__(self, pc: int) -> None:
        super().__init__("the stack grows with each turn: functions that call each other, or a loop", pc)


class StackLimitReached(RecoveryFailed):
    """A block needs a larger stack than there can be: it halts."""

    def __init__(self, pc: int) -> None:
        super().__init__("the stack grows past its limit: calls that are recursive, or a loop", pc)


class Label(NamedTuple):
    """A code address, and the PUSH instructions it comes from."""

    target: int
    pushes: frozenset[int]


@dataclass(slots=True, unsafe_hash=True)
class Param:
    """A live-in word of the function; depth 1 was on top. No tuple: it would equal the `Number` of its depth."""

    depth: int


class Number(NamedTuple):
    number: int


class Shifted(NamedTuple):
    """A code address shifted left, as compilers pack it, to be shifted right again."""

    label: Label
    by: int


class Computed(NamedTuple):
    """An operation over constants and live-in words; only `ir/recovery/flow.py` follows those."""

    op: str
    args: tuple[Known, ...]


Known = Label | Param | Number | Shifted | Computed | None  # None: any word


class StackWord(NamedTuple):
    known: Known
    value: Value | None = None  # its SSA value, or a placeholder while a single block is walked


@dataclass(slots=True)
class WordStack:
    """The words above the function's entry stack, the top last, and below them the `taken` live-in words."""

    taken: int = 0
    words: list[StackWord] = field(default_factory=list)
    params: list[StackWord] | None = None  # the live-in words, the top first, if they have values
    peak: int = 0  # the maximum height so far

    def copy(self) -> WordStack:
        return WordStack(self.taken, list(self.words), self.params, self.peak)

    @property
    def height(self) -> int:
        """Relative to the height on entry."""
        return len(self.words) - self.taken

    def reach(self, depth: int) -> None:
        """Makes the top `depth` words explicit."""
        missing = depth - len(self.words)
        if missing > 0:
            self.words[:0] = [self._param(each) for each in range(self.taken + missing, self.taken, -1)]
            self.taken += missing

    def _param(self, depth: int) -> StackWord:
        return StackWord(Param(depth), Value(UNSPILL)) if self.params is None else self.params[depth - 1]

    def take(self, taken: int) -> None:
        """Makes this many live-in words explicit."""
        if taken > self.taken:
            self.reach(len(self.words) + taken - self.taken)

    def pop(self) -> StackWord:
        self.reach(1)
        return self.words.pop()

    def push(self, word: StackWord) -> None:
        self.words.append(word)
        if self.height > self.peak:
            self.peak = self.height

    def labels(self) -> tuple[tuple[int, int], ...]:
        """The code addresses on the stack, with their positions relative to the height on entry."""
        return tuple(
            [
                (at - self.taken, word.known.target if isinstance(word.known, Label) else ~word.known.label.target)
                for at, word in enumerate(self.words)
                if isinstance(word.known, Label | Shifted)
            ]
        )


def joined(one: Known, other: Known) -> Known:
    if one == other:
        return one
    if isinstance(one, Label) and isinstance(other, Label) and one.target == other.target:
        return Label(one.target, one.pushes | other.pushes)
    if isinstance(one, Shifted) and isinstance(other, Shifted) and one.by == other.by:
        label = joined(one.label, other.label)
        return Shifted(label, one.by) if isinstance(label, Label) else None
    return None


def join_stacks(one: WordStack, other: WordStack) -> WordStack | None:
    """The join of two stacks of equal height; None if it equals the first."""
    taken = max(one.taken, other.taken)
    first, second = one.copy(), other.copy()
    first.take(taken)
    second.take(taken)
    words = [StackWord(joined(a.known, b.known)) for a, b in zip(first.words, second.words, strict=True)]
    return None if taken == one.taken and words == one.words else WordStack(taken, words)


def nameless(stack: WordStack) -> WordStack:
    """The stack without values, which are valid in one block only."""
    return WordStack(stack.taken, [StackWord(word.known) for word in stack.words])
