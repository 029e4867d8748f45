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
COMPACTED_FROM = 9  # depth of a live slot
RESCUED_FROM = 12  # depth of a slot that changes places with one that is needed later
FAR = 1 << 30
FIRST_FREE = 1 << 40  # slots from here on can be pushed anywhere


class OutOfReach(Exception):
    """A value is out of reach of SWAP and DUP."""

    def __init__(self, function: str, candidates: set[int], wanted: set[int]) -> None:
        self.function = function
        self.candidates = candidates  # values that could be spilled to bring it into reach
        self.wanted = wanted  # the values that are out of reach
        super().__init__(function)


class StackStep(NamedTuple):
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


class CalledFunction(NamedTuple):
    target: int
    label: int | None


class At(NamedTuple):
    """Sets the source location of the instructions that follow."""

    where: Source | None


class StackState(NamedTuple):
    cost: int
    stack: tuple[int, ...]
    code: tuple[object, ...]  # a linked list, the last instruction first


class Arrangements:
    """The search for one function."""

    def __init__(self, name: str, beam: int) -> None:
        self.name, self.beam = name, beam
        self.made: dict[int, Code] = {}  # the code that pushes a slot, if it can be pushed anywhere
        self.slots: dict[object, int] = {}
        self.rescues = False  # whether words that are soon out of reach change places with others
        self.uses: dict[int, list[int]] = {}  # the steps of the block that take a slot
        self.number = 0  # of the step
        self.compacts = False  # whether dead slots are removed before they push live ones out of reach

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

    def follow(self, states: list[StackState], step: StackStep, needed: set[int], cleans: bool) -> list[StackState]:
        found: dict[tuple[int, ...], StackState] = {}
        if self.compacts:
            states = [self.compacted(each, step) for each in states]
        if self.rescues:
            states = [self.rescued(each, step) for each in states]
        for state in states:
            for after in self.done(state, step, needed, cleans):
                known = found.get(after.stack)
                if known is None or after.cost < known.cost:
                    found[after.stack] = after
        if not found:
            raise self.unreachable(states, step.takes)
        ranked = sorted(found.values(), key=lambda state: (self.rank(state, cleans), state.stack))
        return ranked[: self.beam]

    def unreachable(self, states: list[StackState], takes: tuple[int, ...]) -> OutOfReach:
        stack = {slot for state in states for slot in state.stack if 0 <= slot < FIRST_FREE}
        wanted = {slot for state in states for slot in state.stack[: -moves.REACH] if slot in takes}
        return OutOfReach(self.name, stack - set(takes) or stack, wanted)

    @staticmethod
    def rank(state: StackState, cleans: bool) -> int:
        return state.cost + (3 * state.stack.count(DEAD) if cleans else 0)

    def done(self, state: StackState, step: StackStep, needed: set[int], cleans: bool) -> list[StackState]:
        """The states after a step, one per good sequence of moves that brings its operands to the top."""
        found: list[StackState] = []
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
        if not found:
            cleared = self.cleared(state, step, needed)
            return [] if cleared is None else [cleared]
        return found

    def cleared(self, state: StackState, step: StackStep, needed: set[int]) -> StackState | None:
        """The state after a step with only live slots below its operands; None if a slot is out of reach."""
        below = [slot for slot in dict.fromkeys(state.stack) if slot == RETURN_LABEL or slot in needed]
        wanted = (*below, *reversed(step.takes))
        prices = {slot: self.price(slot) for slot in wanted if slot in self.made}
        way = moves.shuffle(state.stack, wanted, prices)
        return None if way is None else self.after(state, way, wanted, step.code, step, needed, cleans=False)

    def compacted(self, state: StackState, step: StackStep) -> StackState:
        """The state with no dead slots and no copies, if its deepest live slot is soon out of reach."""
        live = tuple(dict.fromkeys(slot for slot in state.stack if slot != DEAD))
        deepest = next((len(state.stack) - at for at, slot in enumerate(state.stack) if slot != DEAD), 0)
        if deepest <= COMPACTED_FROM or len(live) == len(state.stack):
            return state
        way = moves.shuffle(state.stack, live, {})
        nothing = StackStep(None, (), (), frozenset(), where=step.where)
        return state if way is None else self.after(state, way, live, None, nothing, set(live), cleans=False)

    def rescued(self, state: StackState, step: StackStep) -> StackState:
        """The state in which words that are soon out of reach have changed places with others that are needed later."""
        stack, cost = list(state.stack), state.cost
        written: tuple[object, ...] = (At(step.where), state.code)
        for depth in range(min(len(stack) - 1, moves.REACH), RESCUED_FROM, -1):
            above = range(depth)
            later = max(above, key=lambda at: self.next_use(stack[-1 - at]))
            if self.next_use(stack[-1 - depth]) >= self.next_use(stack[-1 - later]):
                continue
            for swap in (depth, later, depth) if later else (depth,):
                written, cost = (self.move(stack, moves.SWAP + swap, ()), written), cost + 4
        return StackState(cost, tuple(stack), written) if cost > state.cost else state

    def next_use(self, slot: int) -> int:
        """The number of the step that needs the slot next; far away if none in the block does."""
        return next((at for at in self.uses.get(slot, ()) if at >= self.number), FAR)

    def ways(
        self, stack: tuple[int, ...], takes: tuple[int, ...], dies: frozenset[int]
    ) -> tuple[moves.FoundMoves, ...]:
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
        state: StackState,
        way: moves.FoundMoves,
        order: Sequence[int],
        code: Code | None,
        step: StackStep,
        needed: set[int],
        cleans: bool,
    ) -> StackState:
        stack = list(state.stack)
        written: tuple[object, ...] = (At(step.where), state.code)
        for move in way.moves:
            written = (self.move(stack, move, order), written)
        del stack[len(stack) - len(step.takes) :]
        if code is not None:
            written = (code, written)
        if step.calls is not None:
            written = (CalledFunction(step.calls, step.label), written)
        stack += step.leaves
        for at, slot in enumerate(stack):
            if slot != DEAD and slot != RETURN_LABEL and slot not in needed:
                stack[at] = DEAD
        cost = state.cost + way.cost
        while cleans and stack and stack[-1] == DEAD:
            stack.pop()
            written = (POP, written)
            cost += 3
        return StackState(cost, tuple(stack), written)

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
