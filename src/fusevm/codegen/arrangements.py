"""Beam search over stack arrangements: the cheapest few after each instruction, with the code that leads to them.

A slot of the stack holds a value, or something that can be pushed anywhere: a constant, a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusevm.codegen import moves
from fusevm.codegen.blocks import DUPS, POP, PUSH, SWAPS, Code
from fusevm.codegen.ordering import FREE
from fusevm.evm.assembler import Source

DEAD = moves.DEAD
RETURN_LABEL = -3
FIRST_FREE = 1 << 40  # slots from here on can be pushed anywhere


class Unreachable(Exception):
    """A value is out of reach of SWAP and DUP."""

    def __init__(self, function: str, candidates: set[int]) -> None:
        self.function = function
        self.candidates = candidates  # values that could be spilled to bring it into reach
        super().__init__(function)


class Step(NamedTuple):
    """An instruction with the slots it takes (the first on top) and leaves (the last on top)."""

    code: Code | None
    takes: tuple[int, ...]
    leaves: tuple[int, ...]
    dies: frozenset[int]  # slots it takes that are dead afterwards
    swapped: Code | None = None  # the instruction for swapped first two operands
    calls: int | None = None  # the block of the function it calls
    label: int | None = None  # the slot of the return label
    clears: bool = False  # no dead slots may be left below: it calls a recursive function
    ends: bool = False  # a branch: its condition stays for the JUMPI, so nothing can be popped after it
    where: Source | None = None


class Called(NamedTuple):
    target: int
    label: int | None


class At(NamedTuple):
    """Sets the source location of the instructions that follow."""

    where: Source | None


class State(NamedTuple):
    cost: int
    stack: tuple[int, ...]
    code: tuple[object, ...]  # a linked list, the last instruction first


class Arrangements:
    """The search for one function."""

    def __init__(self, name: str, beam: int) -> None:
        self.name, self.beam = name, beam
        self.made: dict[int, Code] = {}  # the code that pushes a slot, if it can be pushed anywhere
        self.slots: dict[object, int] = {}

    def free(self, key: object, code: Code) -> int:
        if key not in self.slots:
            self.slots[key] = FIRST_FREE + len(self.slots)
            self.made[self.slots[key]] = code
        return self.slots[key]

    def price(self, slot: int) -> int:
        """The cost of pushing it: gas, plus a little for bytes."""
        code = self.made[slot]
        if code.op == PUSH:
            return 3 if code.number == 0 else 3 + 1 + (code.number.bit_length() + 7) // 8
        return 3 if code.op in FREE else 6

    def follow(self, states: list[State], step: Step, needed: set[int], cleans: bool) -> list[State]:
        found: dict[tuple[int, ...], State] = {}
        for state in states:
            for after in self.done(state, step, needed, cleans):
                known = found.get(after.stack)
                if known is None or after.cost < known.cost:
                    found[after.stack] = after
        if not found:
            raise self.unreachable(states, step.takes)
        ranked = sorted(found.values(), key=lambda state: (self.rank(state, cleans), state.stack))
        return ranked[: self.beam]

    def unreachable(self, states: list[State], takes: tuple[int, ...]) -> Unreachable:
        stack = {slot for state in states for slot in state.stack if 0 <= slot < FIRST_FREE}
        return Unreachable(self.name, stack - set(takes) or stack)

    @staticmethod
    def rank(state: State, cleans: bool) -> int:
        return state.cost + (3 * state.stack.count(DEAD) if cleans else 0)

    def done(self, state: State, step: Step, needed: set[int], cleans: bool) -> list[State]:
        """The states after a step, one per good sequence of moves that brings its operands to the top."""
        found: list[State] = []
        if step.clears:
            cleared = self.cleared(state, step, needed)
            if cleared is not None:
                return [cleared]
        variants = [(step.takes, step.code)]
        if step.swapped is not None and step.takes[0] != step.takes[1]:
            variants.append(((step.takes[1], step.takes[0], *step.takes[2:]), step.swapped))
        for takes, code in variants:
            for way in self.ways(state.stack, takes, step.dies):
                order = list(dict.fromkeys(takes))
                found.append(self.after(state, way, order, code, step, needed, cleans))
        return found

    def cleared(self, state: State, step: Step, needed: set[int]) -> State | None:
        """The state after a step with only live slots below its operands; None if a slot is out of reach."""
        below = [slot for slot in dict.fromkeys(state.stack) if slot == RETURN_LABEL or slot in needed]
        wanted = (*below, *reversed(step.takes))
        prices = {slot: self.price(slot) for slot in wanted if slot in self.made}
        way = moves.shuffle(state.stack, wanted, prices)
        return None if way is None else self.after(state, way, wanted, step.code, step, needed, cleans=False)

    def ways(self, stack: tuple[int, ...], takes: tuple[int, ...], dies: frozenset[int]) -> tuple[moves.Found, ...]:
        names: dict[int, int] = {}
        for slot in takes:
            names.setdefault(slot, len(names))
        pattern: list[int] = []
        last = 0
        for depth in range(min(len(stack), moves.REACH + 1)):
            slot = stack[-1 - depth]
            kind = names.get(slot, moves.OTHER) if slot != DEAD else DEAD
            pattern.append(kind)
            if kind >= 0 or (kind == DEAD and depth < 2):
                last = depth + 1
        bits = pushed = 0
        for slot, number in names.items():
            bits |= (slot in dies) << number
            pushed |= (slot >= FIRST_FREE) << number
        wanted = tuple([names[slot] for slot in reversed(takes)])
        return moves.bring(tuple(pattern[:last]), wanted, bits, pushed)

    def after(
        self,
        state: State,
        way: moves.Found,
        order: Sequence[int],
        code: Code | None,
        step: Step,
        needed: set[int],
        cleans: bool,
    ) -> State:
        stack = list(state.stack)
        written: tuple[object, ...] = (At(step.where), state.code)
        for move in way.moves:
            written = (self.move(stack, move, order), written)
        del stack[len(stack) - len(step.takes) :]
        if code is not None:
            written = (code, written)
        if step.calls is not None:
            written = (Called(step.calls, step.label), written)
        stack += step.leaves
        for at, slot in enumerate(stack):
            if slot != DEAD and slot != RETURN_LABEL and slot not in needed:
                stack[at] = DEAD
        cost = state.cost + way.cost
        while cleans and stack and stack[-1] == DEAD:
            stack.pop()
            written = (POP, written)
            cost += 3
        return State(cost, tuple(stack), written)

    def move(self, stack: list[int], move: int, order: Sequence[int]) -> Code:
        """Applies a move to the stack; returns its code."""
        kind = move & 0xE0
        if move & 0xFF == moves.PUSH:
            stack.append(order[move >> 8])
            return self.made[stack[-1]]
        if kind == moves.DUP:
            stack.append(stack[-move])
            return DUPS[move - 1]
        if kind == moves.SWAP:
            depth = move - moves.SWAP
            stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]
            return SWAPS[depth - 1]
        stack.pop()
        return POP
