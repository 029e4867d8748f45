"""What recovery knows of a word on the stack, and a stack that reaches down into what lay there before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.ir.values import UNSPILL, Value


class NotUnderstood(Exception):
    """The code cannot be recovered. The message says why, for the report."""

    def __init__(self, reason: str, pc: int | None = None) -> None:
        self.reason, self.pc = reason, pc
        super().__init__(reason if pc is None else f"{reason} (at {pc:#x})")


class GrowingStack(NotUnderstood):
    """A block is come to at greater and greater heights: a function that calls itself, or a loop that never ends."""

    def __init__(self, pc: int) -> None:
        super().__init__("the stack grows with each turn: functions that call each other, or a loop", pc)


class Label(NamedTuple):
    """A code address, by the PUSH instructions it comes from."""

    target: int
    pushes: frozenset[int]


class Param(NamedTuple):
    """A word that lay on the stack as the function was entered; 1 was on top."""

    depth: int


class Number(NamedTuple):
    number: int


class Shifted(NamedTuple):
    """A code address, shifted up: compilers do that to shift it down again."""

    label: Label
    by: int


Known = Label | Param | Number | Shifted | None  # None: any word


class Word(NamedTuple):
    known: Known
    value: Value | None = None  # in SSA form, or what stands for that while one block is walked


@dataclass(slots=True)
class WordStack:
    """The words above what a function found, the top last; `taken` words of what it found are among them."""

    taken: int = 0
    words: list[Word] = field(default_factory=list)
    params: list[Word] | None = None  # what the function found, the top first, where that is known
    peak: int = 0  # the greatest height so far

    def copy(self) -> WordStack:
        return WordStack(self.taken, list(self.words), self.params, self.peak)

    @property
    def height(self) -> int:
        """Over the height at entry."""
        return len(self.words) - self.taken

    def reach(self, depth: int) -> None:
        """Makes the top `depth` words explicit."""
        while len(self.words) < depth:
            self.taken += 1
            self.words.insert(0, self._param(self.taken))

    def _param(self, depth: int) -> Word:
        return Word(Param(depth), Value(UNSPILL)) if self.params is None else self.params[depth - 1]

    def take(self, taken: int) -> None:
        """Makes so many of the words found at entry explicit."""
        if taken > self.taken:
            self.reach(len(self.words) + taken - self.taken)

    def pop(self) -> Word:
        self.reach(1)
        return self.words.pop()

    def push(self, word: Word) -> None:
        self.words.append(word)
        if self.height > self.peak:
            self.peak = self.height

    def labels(self) -> tuple[tuple[int, int], ...]:
        """Where code addresses lie, counted from the height at entry, and which."""
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
    """What holds of both, which have one height; None if that is what held of the first."""
    taken = max(one.taken, other.taken)
    first, second = one.copy(), other.copy()
    first.take(taken)
    second.take(taken)
    words = [Word(joined(a.known, b.known)) for a, b in zip(first.words, second.words, strict=True)]
    return None if taken == one.taken and words == one.words else WordStack(taken, words)


def nameless(stack: WordStack) -> WordStack:
    """The stack as other blocks may see it."""
    return WordStack(stack.taken, [Word(word.known) for word in stack.words])
