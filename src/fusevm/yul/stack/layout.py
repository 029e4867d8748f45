"""Which variables solc's code generator could not reach: its stack layouts, without its code.

Layouts are computed backwards: from what a block needs at its end, through each operation, to what it needs at its
entry. Where that takes a SWAP or DUP deeper than 16, the stack is too deep by the difference, and moving any of the
variables above would help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from fusevm.analysis.graphs import postorder
from fusevm.yul.context import DeepPlace
from fusevm.yul.stack.flowgraph import (
    JUNK,
    FlowBlock,
    FlowOperation,
    FunctionGraph,
    LayoutSlot,
    SlotKind,
    Stack,
    flow_graphs,
    reachable,
)
from fusevm.yul.stack.shuffler import REACH, Shuffle, StackShuffle, shuffle
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect

_FAR = 1000  # what a move out of reach counts
# Deep nests of loops would keep the search for layouts busy for hours. A function of an ordinary contract takes up to a
# few hundred thousand units of work; this many take a second or two.
_BUDGET = 10_000_000
_PUSH, _DUP, _SWAP, _POP, _PUSH0 = 3, 3, 3, 2, 2


class OutOfBudget(Exception):
    """The function is too large to be laid out in reasonable time."""


def stack_too_deep(
    block: Block, dialect: Dialect, budget: int = _BUDGET
) -> tuple[dict[str, list[DeepPlace]], list[str]]:
    """By function ('' is the main code), where its stack is too deep; and the functions that took too long to tell."""
    found: dict[str, list[DeepPlace]] = {}
    unknown: list[str] = []
    for graph in flow_graphs(dialect, block):
        try:
            places = Layouts(graph, budget).too_deep()
        except OutOfBudget:
            unknown.append(graph.name)
        else:
            if places:
                found[graph.name] = places
    return found, unknown


@dataclass(slots=True)
class _Ends:
    """What is on the stack where a block begins and ends."""

    entry: Stack
    exit: Stack


class Layouts:
    """The stack at both ends of every block (`ends`) and before every operation of a graph (`before`)."""

    def __init__(self, graph: FunctionGraph, budget: int = _BUDGET) -> None:
        self.graph = graph
        self.budget = budget
        self.ends: dict[FlowBlock, _Ends] = {}
        self.before: dict[FlowOperation, Stack] = {}  # what is on the stack when the operation runs

        self._lay_out()
        self._stitch()
        self._fill_in_junk()

    def _spend(self, work: int) -> None:
        self.budget -= work
        if self.budget < 0:
            raise OutOfBudget

    # -- backwards ----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Targets before the blocks that lead to them. A jump back takes what its target needed the last time."""
        order = postorder(self.graph.entry, attrgetter("forward_targets"))
        back = [(block, block.targets[0]) for block in order if block.jumps_back]
        open_: set[FlowBlock] = set(order)
        while open_:
            for block in order:
                if block in open_:
                    exit_stack = self._exit_of(block)
                    self.ends[block] = _Ends(self._through_block(exit_stack, block, False), exit_stack)
            open_.clear()
            for jumping, target in back:
                provided = set(self.ends[jumping].exit)
                if any(slot not in provided for slot in self.ends[target].entry):
                    open_ |= _between(target, jumping)

    def _exit_of(self, block: FlowBlock) -> Stack:
        """What has to be there at the block's end."""
        if block.jumps_back:
            known = self.ends.get(block.targets[0])
            return known.entry if known is not None else []
        if block.condition is not None:
            zero, non_zero = block.targets
            one, other = self.ends[zero].entry, self.ends[non_zero].entry
            self._spend((len(one) + len(other)) ** 3)
            return [*_combined(one, other), block.condition]
        if block.targets:
            return self.ends[block.targets[0]].entry
        return list(self.graph.exit_stack) if block.returns else []

    def _through_block(self, exit_stack: Stack, block: FlowBlock, compress: bool) -> Stack:
        stack = exit_stack
        for operation in reversed(block.operations):
            new = self._through_operation(stack, operation, compress)
            if not compress and _places_too_deep(new, stack):
                return self._through_block(exit_stack, block, True)
            stack = new
        return stack

    def _through_operation(self, exit_stack: Stack, operation: FlowOperation, compress: bool) -> Stack:
        self._spend((len(exit_stack) + len(operation.input)) ** 2)
        on_the_fly = compress or operation.is_recursive
        stack = _ideal(operation.output, exit_stack, on_the_fly) + operation.input
        self.before[operation] = list(stack)
        while stack:
            top = stack[-1]
            if top.is_free:
                stack.pop()
                continue
            depth = _depth(stack, top, 1)
            if depth is None or depth + 2 >= REACH:
                break
            stack.pop()
        return stack

    # -- forwards -----------------------------------------------------------------------------------------------------

    def _stitch(self) -> None:
        """Both targets of a branch begin with what the branch leaves; what one of them does not need is junk to it."""
        for block in _forward(self.graph.entry):
            if block.condition is None:
                continue
            left = self.ends[block].exit[:-1]
            for target in block.targets:
                needed = set(self.ends[target].entry)
                self.ends[target].entry = [slot if slot in needed else JUNK for slot in left]

    def _fill_in_junk(self) -> None:
        entry = self.graph.entry
        if self.graph.name and not self.graph.can_continue and entry.allows_junk:
            count = _best_junk(self.graph.parameters[::-1], self.ends[entry].entry)
            if count:
                self._add_junk(entry, count)
        for block in reachable(entry):
            if not block.allows_junk:
                continue
            start = self.ends[block].entry
            next_stack = self.before[block.operations[0]] if block.operations else self.ends[block].exit
            if start != next_stack:
                count = _best_junk(start, next_stack)
                if count:
                    self._add_junk(block, count)
                    self.ends[block].entry = start

    def _add_junk(self, entry: FlowBlock, count: int) -> None:
        junk = [JUNK] * count
        for block in reachable(entry):
            ends = self.ends[block]
            ends.entry, ends.exit = junk + ends.entry, junk + ends.exit
            for operation in block.operations:
                self.before[operation] = junk + self.before[operation]

    def too_deep(self) -> list[DeepPlace]:
        found: list[DeepPlace] = []
        for block in _forward(self.graph.entry):
            stack = self.ends[block].entry
            for operation in block.operations:
                before = self.before[operation]
                found += _places_too_deep(stack, before)
                stack = before[: len(before) - len(operation.input)] + operation.output
            if block.condition is not None:
                stack = stack[:-1] if stack and stack[-1] is block.condition else stack
            for target in block.targets:
                found += _places_too_deep(stack, self.ends[target].entry)
        return found


def _forward(entry: FlowBlock) -> list[FlowBlock]:
    """Breadth first, without the jumps back."""
    seen = {entry}
    queue = [entry]
    for block in queue:
        for target in block.forward_targets:
            if target not in seen:
                seen.add(target)
                queue.append(target)
    return queue


def _between(head: FlowBlock, end: FlowBlock) -> set[FlowBlock]:
    """The blocks of a loop, from its head to the block that jumps back."""
    seen = {end}
    queue = [end]
    for block in queue:
        if block is not head:
            for before in block.entries:
                if before not in seen:
                    seen.add(before)
                    queue.append(before)
    return seen


def _depth(stack: Stack, slot: LayoutSlot, above: int = 0) -> int | None:
    """How far below the top (less `above` slots) it is."""
    for depth, other in enumerate(reversed(stack[: len(stack) - above] if above else stack)):
        if other is slot:
            return depth
    return None


def _places_too_deep(source: Stack, target: Stack) -> list[DeepPlace]:
    stack = list(source)
    found: list[DeepPlace] = []

    def on_swap(depth: int) -> None:
        if depth > REACH:
            found.append(DeepPlace(depth - REACH, _variables(stack[-depth - 1 :])))

    def on_bring(slot: LayoutSlot) -> None:
        if not slot.is_free:
            depth = _depth(stack, slot)
            if depth is not None and depth >= REACH:
                found.append(DeepPlace(depth - REACH + 1, _variables(stack[-depth - 1 :])))

    shuffle(StackShuffle(stack, target, on_swap, on_bring))
    return found


def _variables(stack: Stack) -> list[str]:
    return list(dict.fromkeys(slot.name for slot in stack if slot.kind is SlotKind.VARIABLE))


# -- what should be there before an operation -------------------------------------------------------------------------


class _IdealShuffle(Shuffle):
    """Slots that were there before the operation are numbers here; where each ends up says what it should have been."""

    def __init__(self, layout: list[int | LayoutSlot], post: Stack, made: set[LayoutSlot], on_the_fly: bool) -> None:
        super().__init__(post)
        self.layout = layout
        self.made = made
        self.on_the_fly = on_the_fly
        self.missing: dict[LayoutSlot, int] = {}

    def is_made(self, slot: LayoutSlot) -> bool:
        """By the operation, or by a push."""
        return slot in self.made or (self.on_the_fly and slot.is_free)

    def size(self) -> int:
        return len(self.layout)

    def prepare(self) -> None:
        missing: dict[LayoutSlot, int] = {}
        for slot in self.layout:
            if not isinstance(slot, int):
                missing[slot] = missing.get(slot, 0) - 1
        made = {slot for slot in self.layout if not isinstance(slot, int)}
        self.made = made
        for slot in self.target:
            if slot in made or (self.on_the_fly and slot.is_free):
                missing[slot] = missing.get(slot, 0) + 1
        self.missing = missing

    def fits(self, source: int, target: int) -> bool:
        if source >= len(self.layout) or target >= len(self.target):
            return False
        wanted, slot = self.target[target], self.layout[source]
        return wanted is JUNK or (not self.is_made(wanted) if isinstance(slot, int) else slot is wanted)

    def is_same(self, left: int, right: int) -> bool:
        one, other = self.layout[left], self.layout[right]
        return (isinstance(one, int) and isinstance(other, int)) or one is other

    def missing_of_source(self, offset: int) -> int:
        slot = self.layout[offset]
        return 0 if isinstance(slot, int) else self.missing[slot]

    def missing_of_target(self, offset: int) -> int:
        slot = self.target[offset]
        return self.missing[slot] if self.is_made(slot) else 0

    def swap(self, depth: int) -> None:
        layout = self.layout
        layout[-1], layout[-1 - depth] = layout[-1 - depth], layout[-1]

    def pop(self) -> None:
        self.layout.pop()

    def bring(self, offset: int) -> None:
        self.layout.append(self.target[offset])


def _ideal(output: Stack, post: Stack, on_the_fly: bool) -> Stack:
    """What should be below the operation's inputs so that getting from its outputs to `post` is cheap."""
    made = set(output)
    count = sum(not (slot in made or (on_the_fly and slot.is_free)) for slot in post)
    layout: list[int | LayoutSlot] = [*range(count), *output]
    if not layout:
        return []
    shuffle(_IdealShuffle(layout, post, made, on_the_fly))
    ideal: dict[int, LayoutSlot] = {
        where: slot for slot, where in zip(post, layout, strict=True) if isinstance(where, int)
    }
    return [ideal[number] for number in range(count)]


# -- what should be there before a branch -----------------------------------------------------------------------------


def _combined(one: Stack, other: Stack) -> Stack:
    """A stack from which both can be made cheaply: the best of a few orders of what they need."""
    common = 0
    while common < min(len(one), len(other)) and one[common] is other[common]:
        common += 1
    prefix, one, other = one[:common], one[common:], other[common:]
    if not one or not other:
        return prefix + _compressed(one or other)
    labels = (SlotKind.LITERAL, SlotKind.CALL_LABEL)
    candidate = [slot for slot in dict.fromkeys([*one, *other]) if slot.kind not in labels]

    def cost(stack: Stack) -> int:
        return _moves(prefix, stack, one) + _moves(prefix, stack, other)

    best, best_cost = list(candidate), cost(candidate)
    counters = [0] * len(candidate)
    for index in range(1, len(candidate)):  # Heap's algorithm, without going back: a sample of the permutations
        if counters[index] < index:
            swapped = 0 if index & 1 else counters[index]
            candidate[swapped], candidate[index] = candidate[index], candidate[swapped]
            now = cost(candidate)
            if now < best_cost:
                best, best_cost = list(candidate), now
            counters[index] += 1
    return prefix + best


def _moves(prefix: Stack, source: Stack, target: Stack) -> int:
    stack = list(source)
    cost = 0

    def on_swap(depth: int) -> None:
        nonlocal cost
        cost += 1 + (_FAR if depth > REACH else 0)

    def on_bring(slot: LayoutSlot) -> None:
        nonlocal cost
        if not slot.is_free:
            depth = _depth(prefix + stack, slot)
            if depth is not None and depth >= REACH:
                cost += _FAR

    shuffle(StackShuffle(stack, target, on_swap, on_bring))
    return cost


def _compressed(stack: Stack) -> Stack:
    """Without what can be made again, from the top down."""
    stack = list(stack)
    while (offset := _superfluous(stack)) is not None:
        stack[offset] = stack[-1]
        stack.pop()
    return stack


def _superfluous(stack: Stack) -> int | None:
    for depth, slot in enumerate(reversed(stack)):
        if slot.is_free:
            return len(stack) - depth - 1
        again = _depth(stack, slot, depth + 1)
        if again is not None and depth + again <= REACH:
            return len(stack) - depth - 1
    return None


# -- junk -------------------------------------------------------------------------------------------------------------


def _best_junk(entry: Stack, target: Stack) -> int:
    """How many slots of junk below the target make it cheapest to get there."""
    best, best_cost = 0, _gas(entry, target)
    for count in range(1, len(entry) + 1):
        cost = _gas(entry, [JUNK] * count + target)
        if cost < best_cost:
            best, best_cost = count, cost
    return best


def _gas(source: Stack, target: Stack) -> int:
    stack = list(source)
    gas = 0

    def charge(amount: int) -> None:
        nonlocal gas
        gas += amount

    def on_bring(slot: LayoutSlot) -> None:
        if slot.is_free:
            charge(_PUSH)
        else:
            depth = _depth(stack, slot)
            charge(_PUSH0 if depth is None else _DUP if depth < REACH else _FAR)

    on_swap: Callable[[int], None] = lambda depth: charge(_SWAP if depth <= REACH else _FAR)  # noqa: E731
    shuffle(StackShuffle(stack, target, on_swap, on_bring, lambda: charge(_POP)))
    return gas
