"""Symbolic execution: one virtual stack for every analysis, whatever its words are.

The stack begins empty, above an unknown one: a word that is missing is read from a *slot* of that.
PUSH, DUP, SWAP and POP are handled here. Every other instruction is given to the caller with its operands; the caller
pushes the result. A domain of words is two functions: one for a slot, one for a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from fusevm.evm.bytecode import Instruction
from fusevm.evm.opcodes import BY_NAME, Opcode

W = TypeVar("W")  # a word
S = TypeVar("S")  # the caller's tag of a step: an instruction, a token

PUSHES, COPIES, SWAPS, DROPS, OPERATES = range(5)  # what an instruction does


class Action(NamedTuple):
    """The stack effect of an instruction."""

    kind: int
    needs: int  # how many words it reads; a DUP copies the last of them, a SWAP exchanges it
    change: int  # of the height
    other: int = 1  # how deep the other word of a SWAP is


def action_of(op: Opcode) -> Action:
    if op.is_push:
        kind = PUSHES
    elif op.is_dup:
        kind = COPIES
    elif op.is_swap:
        kind = SWAPS
    else:
        kind = DROPS if op.name == "POP" else OPERATES
    return Action(kind, op.pops, op.pushes - op.pops, min(op.swaps) if op.is_swap else 1)


ACTIONS = {name: action_of(op) for name, op in BY_NAME.items() if not op.variants}
UNKNOWN_OPCODE = Action(OPERATES, 0, 0)  # it halts

Step = tuple[Action, int, S]  # with the number that a PUSH pushes


def actions_of(instructions: Iterable[Instruction]) -> list[Action]:
    ops = [each.op for each in instructions]
    return [UNKNOWN_OPCODE if op is None else ACTIONS.get(op.name) or action_of(op) for op in ops]


def steps_of(instructions: Iterable[Instruction], tags: Iterable[S]) -> Iterable[Step[S]]:
    """Instructions to be run, each known by its tag."""
    return zip(actions_of(instructions), [each.push or 0 for each in instructions], tags, strict=True)


class Bounds(NamedTuple):
    needs: int  # words below the entry's top that are read
    rises: int  # words above the entry's top, where it is highest


def bounds_of(actions: Iterable[Action]) -> Bounds:
    """How deep the stack is read and how far it grows, without a domain of words."""
    height = needs = rises = 0
    for _, looks_at, change, _ in actions:
        if looks_at - height > needs:
            needs = looks_at - height
        height += change
        if height > rises:
            rises = height
    return Bounds(needs, rises)


class SymbolicStack(Generic[W]):
    """`words`, top last, on what is left of the stack below; `taken` of them came from there, or took their place."""

    __slots__ = ("number", "slot", "taken", "words")

    def __init__(
        self,
        slot: Callable[[int], W],  # the word at a depth on entry; 1 is the top
        number: Callable[[int], W],
        taken: int = 0,
        words: Iterable[W] = (),
    ) -> None:
        self.slot, self.number = slot, number
        self.taken = taken
        self.words = list(words)

    def reach(self, count: int) -> None:
        """Takes slots until there are that many words."""
        missing = count - len(self.words)
        if missing > 0:
            reached = self.taken + missing
            self.words[:0] = [self.slot(depth) for depth in range(reached, self.taken, -1)]
            self.taken = reached

    def push(self, word: W) -> None:
        self.words.append(word)

    def pop(self) -> W:
        self.reach(1)
        return self.words.pop()

    def take(self, count: int) -> list[W]:
        """Pops this many words, the top first."""
        if not count:
            return []
        self.reach(count)
        taken = self.words[: -count - 1 : -1]
        del self.words[-count:]
        return taken

    def arrange(self, action: Action, number: int = 0) -> None:
        """One PUSH, DUP, SWAP or POP."""
        for _ in self.run(((action, number, None),)):
            raise ValueError("the instruction does more than to arrange the stack")

    def run(self, steps: Iterable[Step[S]]) -> Iterator[tuple[S, list[W]]]:
        """Yields every step that is not stack manipulation, with its operands, the top first.

        The caller pushes the result before it asks for the next.
        """
        words, number = self.words, self.number
        for (kind, needs, _, other), value, step in steps:
            if len(words) < needs:
                self.reach(needs)
            if kind == PUSHES:
                words.append(number(value))
            elif kind == COPIES:
                words.append(words[-needs])
            elif kind == SWAPS:
                words[-other], words[-needs] = words[-needs], words[-other]
            elif kind == DROPS:
                del words[-1]
            elif needs:
                operands = words[: -needs - 1 : -1]
                del words[-needs:]
                yield step, operands
            else:
                yield step, []
