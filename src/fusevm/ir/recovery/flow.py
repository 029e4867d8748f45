"""Finds where control can go in any code, whether or not it can be recovered: the tolerant finder of `fusevm cfg`.

Works like the strict one (`ir/recovery/finder.py`), except that a function may return to several addresses, on stacks
of different heights, and call itself or others that call it: every return is replayed into every caller, whichever is
found first. What an unknown jump may enter is entered with an unknown stack. Code addresses are numbers here, which
may be computed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.bytecode import BasicBlock
from fusevm.evm.forks import Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.ir.recovery.finder import FALLEN, Edge, Finder, FoundFunction, Key, OutEdge, out_edges
from fusevm.ir.recovery.unit import candidates
from fusevm.ir.recovery.walk import Leaving, Lifter, walk
from fusevm.ir.recovery.words import Computed, Known, Label, Number, Param, StackLimitReached, StackWord, WordStack

STATES_PER_BLOCK = 24
STATES_AT_LEAST = 4_000
MAX_HEIGHTS = 8  # of the stack at a block in one routine; at a further one the block is called as a function
ANYWHERE = -1  # in the place of an entry: what unknown jumps enter
_LARGEST_EXPRESSION = 8  # leaves and operations: enough for masked and selected code addresses
_FOLDED = {name: meaning for name, meaning in INTEGER_MEANINGS.items() if not BY_NAME[name].dynamic}


class Return(NamedTuple):
    """How a routine is left: the block that jumps, where it does so in the routine, and what it does to the stack."""

    origin: int
    key: Key
    target: Known
    taken: int
    words: tuple[Known, ...]


class CallSite(NamedTuple):
    """A jump to a routine's entry, and the stack there."""

    routine: int
    edge: Edge
    taken: int
    words: tuple[Known, ...]


@dataclass(slots=True)
class Routine(FoundFunction):
    """Code entered at one place with an unknown stack: a function, the main code, or all that unknown jumps enter."""

    callers: dict[CallSite, None] = field(default_factory=dict)
    returns: dict[Return, None] = field(default_factory=dict)
    graph: dict[Key, dict[Key, None]] = field(default_factory=dict)  # calls stepped over
    calls: dict[Key, set[int]] = field(default_factory=dict)
    work: list[Key] = field(default_factory=list)

    @property
    def blocks(self) -> set[int]:
        return {key.pc for key in self.states}


@dataclass(slots=True)
class Jumps:
    targets: dict[int, set[int]] = field(default_factory=dict)  # of each block that jumps
    unknown: set[int] = field(default_factory=set)  # blocks whose jump may go anywhere
    fallen: set[int] = field(default_factory=set)  # blocks that may fall through to the next one
    bad: set[int] = field(default_factory=set)  # blocks whose jump may go to a constant that is not a target
    reached: set[int] = field(default_factory=set)
    routines: dict[int, Routine] = field(default_factory=dict)  # by entry
    entries: set[int] = field(default_factory=set)  # of functions
    spent: bool = False  # the budget did not suffice: only jumps to constants of their own block are resolved

    @property
    def functions(self) -> dict[int, Routine]:
        """The main code and what it calls, without blocks that are only called because the stack grows up to there."""
        entries = self.entries | {0}
        return {entry: routine for entry, routine in self.routines.items() if entry in entries}


class FlowLifter(Lifter):
    """Code stays where it is, so addresses are numbers; what is computed from parameters is kept as an expression."""

    __slots__ = ("dests",)

    def __init__(self, fork: Fork, blocks: dict[int, BasicBlock], dests: frozenset[int]) -> None:
        super().__init__(fork, candidates(blocks, dests), {}, moves=False)
        self.dests = dests

    def computed(self, op: str, args: list[Known]) -> Known:
        if op not in _FOLDED or None in args:
            return None
        numbers = [number for arg in args if (number := number_of(arg)) is not None]
        if len(numbers) == len(args):
            number = _FOLDED[op](*numbers)
            return Label(number, frozenset()) if number in self.dests else Number(number)
        expression = Computed(op, tuple(args))
        return expression if _size(expression) <= _LARGEST_EXPRESSION else None

    def substituted(self, known: Known, caller: CallSite) -> Known:
        """What a routine knows of a word, as its caller knows it."""
        if isinstance(known, Computed):
            return self.computed(known.op, [self.substituted(part, caller) for part in known.args])
        if not isinstance(known, Param):
            return known
        below = known.depth - len(caller.words)
        return Param(caller.taken + below) if below > 0 else caller.words[-known.depth]


def number_of(known: Known) -> int | None:
    return known.target if isinstance(known, Label) else known.number if isinstance(known, Number) else None


def _length(block: BasicBlock) -> int:
    """What it takes to walk through the block; a long one is as several."""
    return 1 + len(block.instructions) // 16


def _size(known: Known) -> int:
    return 1 + sum(map(_size, known.args)) if isinstance(known, Computed) else 1


class _Spent(Exception):
    pass


class FlowFinder(Finder):
    lifter: FlowLifter

    def __init__(self, blocks: dict[int, BasicBlock], dests: frozenset[int], fork: Fork) -> None:
        super().__init__(blocks, dests, FlowLifter(fork, blocks, dests))
        self.jumps = Jumps(entries=self.known)
        self.routines = self.jumps.routines
        self.waiting: list[Routine] = []
        self.replays: list[tuple[Routine, CallSite, Return]] = []
        self.budget = STATES_PER_BLOCK * sum(map(_length, blocks.values())) + STATES_AT_LEAST

    def found(self) -> Jumps:
        try:
            self.follow_all()
        except _Spent:
            self.follow_none()
        return self.jumps

    def follow_all(self) -> None:
        if self.blocks:
            self.routine(0, 0)
            self.drain()
        if self.jumps.unknown:
            self.routine(ANYWHERE, *sorted(self.dests))
            self.drain()
        self.jumps.reached = {pc for routine in self.routines.values() for pc in routine.blocks}

    def follow_none(self) -> None:
        """Blocks on their own."""
        self.jumps = Jumps(spent=True, reached=set(self.blocks), fallen=set(self.blocks))
        for start, block in self.blocks.items():
            with suppress(StackLimitReached):  # no execution leaves the block
                target = walk(block, WordStack(), self.lifter).target
                if target is not None:
                    self.resolved(start, target.known)

    def drain(self) -> None:
        while self.waiting or self.replays:
            if self.replays:
                self.replay(*self.replays.pop())
            elif self.waiting[-1].work:
                routine = self.waiting[-1]
                self.step(routine, routine.work.pop(), routine.work)
            else:
                self.waiting.pop()

    def routine(self, entry: int, *starts: int) -> Routine:
        if entry not in self.routines:
            states = {Key(pc, 0, ()): WordStack() for pc in starts}
            self.routines[entry] = Routine(entry, states, work=list(states))
            self.waiting.append(self.routines[entry])
        return self.routines[entry]

    # -- following ----------------------------------------------------------------------------------------------------

    def spend(self, units: int, reason: str, pc: int) -> None:
        self.budget -= units
        if self.budget < 0:
            raise _Spent

    def step(self, found: FoundFunction, key: Key, work: list[Key]) -> None:
        self.spend(_length(self.blocks[key.pc]) - 1, "long blocks", key.pc)
        with suppress(StackLimitReached):  # no execution leaves the block
            super().step(found, key, work)

    def out_edges(self, block: BasicBlock, leaving: Leaving, stack: WordStack) -> list[OutEdge]:
        number = number_of(leaving.args[0].known) if leaving.op == "JUMPI" else None
        known = leaving if number is None else leaving._replace(args=(StackWord(Number(number)),))
        return out_edges(block, known, stack)

    def go(self, found: FoundFunction, edge: Edge, target: Known, stack: WordStack, work: list[Key]) -> None:
        assert isinstance(found, Routine)
        key, number = edge
        if number != FALLEN:
            self.jump(found, edge, key.pc, target, stack)
        elif (after := self.blocks[key.pc].end) in self.blocks:
            self.jumps.fallen.add(key.pc)
            self.arrive(found, edge, after, stack)

    def jump(self, routine: Routine, edge: Edge, origin: int, target: Known, stack: WordStack) -> None:
        """The block `origin` jumps; in this routine that happens at an edge: its own, or the call it returns from."""
        if isinstance(target, Param | Computed):
            self.leave(routine, Return(origin, edge[0], target, stack.taken, _knowns(stack)))
        elif (pc := self.resolved(origin, target)) is not None:
            self.arrive(routine, edge, pc, stack)

    def resolved(self, origin: int, target: Known) -> int | None:
        """Notes where the block's jump goes; returns the place, if there is one."""
        pc = number_of(target)
        if pc is None:
            self.jumps.unknown.add(origin)
        elif pc not in self.dests:
            self.jumps.bad.add(origin)
        else:
            self.jumps.targets.setdefault(origin, set()).add(pc)
            return pc
        return None

    def arrive(self, routine: Routine, edge: Edge, pc: int, stack: WordStack) -> None:
        labels, heights = stack.labels(), routine.heights.get(pc, ())
        if routine.entry == ANYWHERE and pc in self.dests and not labels:
            stack = WordStack()  # an unknown jump may enter there with any
        is_call = pc in self.known and bool(labels)
        if is_call:
            routine.calls.setdefault(edge[0], set()).add(pc)
        else:
            routine.graph.setdefault(edge[0], {})[Key(pc, stack.height, labels)] = None
        if is_call or (len(heights) >= MAX_HEIGHTS and stack.height not in heights):
            self.call(routine, edge, pc, stack)
        else:
            self.reach(routine, edge, pc, stack, routine.work)
            self.waiting.append(routine)

    # -- calls and returns --------------------------------------------------------------------------------------------

    def call(self, routine: Routine, edge: Edge, pc: int, stack: WordStack) -> None:
        callee, caller = self.routine(pc, pc), CallSite(routine.entry, edge, stack.taken, _knowns(stack))
        if caller not in callee.callers:
            self.spend(1 + len(stack.words) // 16 + len(callee.returns), "calls", pc)
            callee.callers[caller] = None
            self.replays += [(callee, caller, left) for left in callee.returns]

    def leave(self, routine: Routine, left: Return) -> None:
        if routine.entry == ANYWHERE:
            self.jumps.unknown.add(left.origin)
        elif left not in routine.returns:
            self.spend(1 + len(left.words) // 16 + len(routine.callers), "returns", left.origin)
            routine.returns[left] = None
            self.replays += [(routine, caller, left) for caller in routine.callers]

    def replay(self, callee: Routine, caller: CallSite, left: Return) -> None:
        """A routine returns to one of its callers."""
        self.spend((len(caller.words) + len(left.words)) // 16, "returns", left.origin)
        target, *words = [self.lifter.substituted(known, caller) for known in (left.target, *left.words)]
        below = left.taken - len(caller.words)
        kept = caller.words[: max(-below, 0)]
        stack = WordStack(caller.taken + max(below, 0), [StackWord(known) for known in (*kept, *words)])
        if stack.taken > STACK_LIMIT or len(stack.words) > STACK_LIMIT:
            return  # no execution gets there
        if number_of(target) == callee.entry:  # a loop whose header's address waits on the stack
            callee.graph.setdefault(left.key, {})[Key(callee.entry, 0, ())] = None
        self.jump(self.routines[caller.routine], caller.edge, left.origin, target, stack)


def _knowns(stack: WordStack) -> tuple[Known, ...]:
    return tuple([word.known for word in stack.words])
