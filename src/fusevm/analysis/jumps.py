"""Resolves jump targets: constants are followed through the stack, across calls and returns, within a budget.

Compilers call functions by pushing a return address and jumping. Following every call path separately is exponential,
merging them would lose the addresses, so a callee is analysed once, over a symbolic stack, and its returns are replayed
into each caller. A jump to a known target with a known code address waiting on the stack is taken for a call; whatever
it really is, the replay is exact, so a wrong guess costs time, not correctness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index, neg
from typing import NamedTuple

from fusevm.analysis.symbolic import SymbolicStack, steps_of
from fusevm.evm.bytecode import JUMPI, BasicBlock, Instruction
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS

# A stack element: a constant (0 and up), the n-th element from the top at entry (-n), an operation over elements
# (a tuple beginning with its name), or None: anything.
Element = int | tuple["str | Element", ...] | None

JUMP = BY_NAME["JUMP"].byte
_LARGEST_EXPRESSION = 8  # leaves and operations: enough for masked and selected code addresses
_FOLDED = {name: meaning for name, meaning in INTEGER_MEANINGS.items() if not BY_NAME[name].dynamic}


class Stack(NamedTuple):
    """The entry stack without its top `taken` elements, and `items` on it (the top is the last)."""

    taken: int
    items: tuple[Element, ...]

    def at(self, depth: int) -> Element:
        """The element at that depth; 1 is the top."""
        if depth <= len(self.items):
            return self.items[-depth]
        return -(self.taken + depth - len(self.items))

    def after(self, effect: Stack) -> Stack:
        """This stack, with the effect of another (over a symbolic stack) applied to it."""
        items = tuple([substitute(element, self) for element in effect.items])
        keep = len(self.items) - effect.taken
        if keep >= 0:
            return _normal(self.taken, self.items[:keep] + items)
        return _normal(self.taken - keep, items)


def _normal(taken: int, items: tuple[Element, ...]) -> Stack:
    """Elements that were only taken and put back are not taken at all."""
    same = 0
    while same < len(items) and taken and items[same] == -taken:
        same += 1
        taken -= 1
    return Stack(taken, items[same:])


def substitute(element: Element, stack: Stack) -> Element:
    if element is None:
        return None
    if isinstance(element, int):
        return element if element >= 0 else stack.at(-element)
    return _operation(str(element[0]), [substitute(part, stack) for part in element[1:]])  # type: ignore[arg-type]


def _operation(name: str, arguments: list[Element]) -> Element:
    meaning = _FOLDED.get(name)
    if meaning is None or None in arguments:
        return None
    if all(isinstance(argument, int) and argument >= 0 for argument in arguments):
        return meaning(*arguments)
    expression: Element = (name, *arguments)
    return expression if _size(expression) <= _LARGEST_EXPRESSION else None


def _size(element: Element) -> int:
    return 1 + sum(map(_size, element[1:])) if isinstance(element, tuple) else 1  # type: ignore[arg-type]


class Effect(NamedTuple):
    """The effect of a block on the stack, and the target of its jump."""

    jumped: Stack  # when its JUMP or JUMPI is taken
    fallen: Stack  # when it falls through
    target: Element
    condition: Element  # of its JUMPI
    jumps: bool
    falls: bool


def effect_of(block: BasicBlock) -> Effect:
    """The block over a symbolic stack. Unknown results are `("?", pc)`: they still equal themselves."""
    stack: SymbolicStack[Element] = SymbolicStack(neg, index)
    target: Element = None
    condition: Element = None
    for instruction, operands in stack.run(steps_of(block.instructions, block.instructions)):
        op = instruction.op
        if instruction.byte in (JUMP, JUMPI):
            target, condition = operands[0], operands[-1]
        elif op is not None and op.name == "PC":
            stack.push(instruction.pc)
        elif op is not None and op.pushes:
            result = _operation(op.name, operands)
            stack.push(("?", instruction.pc) if result is None else result)
    taken, items = stack.taken, stack.words
    last = block.last
    jumped = _refined(taken, items, _learnt(condition, True)) if last.byte == JUMPI else _refined(taken, items, {})
    fallen = _refined(taken, items, _learnt(condition, False)) if last.byte == JUMPI else jumped
    jumps = last.byte in (JUMP, JUMPI)
    known = _closed(condition) if last.byte == JUMPI else None
    return Effect(jumped, fallen, _closed(target), known, jumps, falls_through(last))


def _learnt(condition: Element, jumped: bool) -> dict[Element, int]:
    """What a branch implies about other words: a tested flag is zero on one of the two edges."""
    match condition:
        case ("ISZERO", element) if jumped:
            return {element: 0}  # type: ignore[dict-item]
        case ("ISZERO", ("ISZERO", element)):
            return {condition: 0, element: 0}  # type: ignore[dict-item]
        case ("EQ", element, int(word)) | ("EQ", int(word), element) if jumped and word >= 0:
            return {element: word}  # type: ignore[dict-item]
    return {} if jumped else {condition: 0}


def _refined(taken: int, items: list[Element], learnt: dict[Element, int]) -> Stack:
    return _normal(taken, tuple([_closed(learnt.get(item, item)) for item in items]))


def _closed(element: Element) -> Element:
    """The element as other blocks may see it: words that are only known inside this block become unknown."""
    return None if _has_unknown(element) else element


def _has_unknown(element: Element) -> bool:
    return isinstance(element, tuple) and (element[0] == "?" or any(map(_has_unknown, element[1:])))  # type: ignore[arg-type]


def falls_through(last: Instruction) -> bool:
    return last.op is not None and not last.op.ends


@dataclass(slots=True)
class Context:
    """Code entered at one place with an unknown stack: a function, or what looks like one."""

    entry: int
    is_open: bool = False  # it may also be entered from unknown jumps
    states: dict[tuple[object, ...], tuple[int, Stack]] = field(default_factory=dict)
    callers: dict[tuple[int, int, Stack], None] = field(default_factory=dict)  # (context, block, stack at the call)
    returns: dict[tuple[int, int, Element, Stack], None] = field(default_factory=dict)  # (origin, site, target, stack)
    edges: dict[tuple[int, int], None] = field(default_factory=dict)  # block to block, calls stepped over


@dataclass(slots=True)
class Jumps:
    targets: dict[int, set[int]] = field(default_factory=dict)  # of each block that jumps
    unknown: set[int] = field(default_factory=set)  # blocks whose jump may go anywhere
    fallen: set[int] = field(default_factory=set)  # blocks that may fall through to the next one
    bad: set[int] = field(default_factory=set)  # blocks whose jump may go to a constant that is not a target
    reached: set[int] = field(default_factory=set)
    contexts: dict[int, Context] = field(default_factory=dict)
    spent: bool = False  # the budget did not suffice: only jumps to constants of their own block are resolved


class _Spent(Exception):
    pass


STATES_PER_BLOCK = 24
STATES_AT_LEAST = 4_000


def resolve(blocks: Mapping[int, BasicBlock], dests: frozenset[int]) -> Jumps:
    effects = {start: effect_of(block) for start, block in blocks.items()}
    try:
        return _Resolver(blocks, effects, dests).run()
    except _Spent:
        return _resolve_locally(blocks, effects, dests)


def _resolve_locally(blocks: Mapping[int, BasicBlock], effects: Mapping[int, Effect], dests: frozenset[int]) -> Jumps:
    jumps = Jumps(spent=True, reached=set(blocks), fallen=set(blocks))
    for start, effect in effects.items():
        if not effect.jumps:
            continue
        jumps.targets[start] = set()
        if not isinstance(effect.target, int) or effect.target < 0:
            jumps.unknown.add(start)
        elif effect.target in dests:
            jumps.targets[start].add(effect.target)
        else:
            jumps.bad.add(start)
    return jumps


class _Resolver:
    def __init__(self, blocks: Mapping[int, BasicBlock], effects: Mapping[int, Effect], dests: frozenset[int]) -> None:
        self.blocks, self.effects, self.dests = blocks, effects, dests
        self.jumps = Jumps()
        self.contexts = self.jumps.contexts
        self.work: list[tuple[int, int, Stack]] = []
        self.replays: list[tuple[int, tuple[int, int, Stack], int, int, Element, Stack]] = []
        self.budget = STATES_PER_BLOCK * len(blocks) + STATES_AT_LEAST

    def run(self) -> Jumps:
        if not self.blocks:
            return self.jumps
        self.enter(0)
        self.drain()
        if self.jumps.unknown:
            # Whatever an unknown jump reaches is entered with an unknown stack.
            for dest in sorted(self.dests):
                self.open(dest)
            self.drain()
        self.jumps.reached = {block for context in self.contexts.values() for _, block in self.states_of(context)}
        for start in self.jumps.reached:
            if self.effects[start].jumps:
                self.jumps.targets.setdefault(start, set())
        return self.jumps

    @staticmethod
    def states_of(context: Context) -> Iterable[tuple[int, int]]:
        return ((context.entry, block) for block, _ in context.states.values())

    def spend(self, stack: Stack) -> None:
        self.budget -= 1 + len(stack.items) // 16
        if self.budget < 0:
            raise _Spent

    def drain(self) -> None:
        while self.work or self.replays:
            if self.replays:
                self.replay(*self.replays.pop())
            else:
                self.step(*self.work.pop())

    def enter(self, entry: int) -> Context:
        context = self.contexts.get(entry)
        if context is None:
            context = self.contexts[entry] = Context(entry)
            self.reach(entry, entry, Stack(0, ()))
        return context

    def open(self, entry: int) -> None:
        context = self.enter(entry)
        if not context.is_open:
            context.is_open = True
            for block, _, _, _ in context.returns:
                self.jumps.unknown.add(block)

    def reach(self, entry: int, block: int, stack: Stack) -> None:
        """Reaches a block of a context; states with the same code addresses at the same height are joined."""
        context = self.contexts[entry]
        addresses = tuple([element if element in self.dests else None for element in stack.items])
        key = (block, stack.taken, addresses)
        known = context.states.get(key)
        if known is not None:
            joined = _join(known[1], stack)
            if joined == known[1]:
                return
            stack = joined
        self.spend(stack)
        context.states[key] = (block, stack)
        self.work.append((entry, block, stack))

    def step(self, entry: int, block: int, stack: Stack) -> None:
        effect = self.effects[block]
        condition = substitute(effect.condition, stack)
        decided = isinstance(condition, int) and condition >= 0
        if effect.jumps and not (decided and condition == 0):
            after = stack.after(effect.jumped)
            if not _too_deep(after):
                self.jump(entry, block, block, substitute(effect.target, stack), after)
        if effect.falls and not (decided and condition) and (following := self.blocks[block].end) in self.blocks:
            after = stack.after(effect.fallen)
            if not _too_deep(after):
                self.jumps.fallen.add(block)
                self.contexts[entry].edges[block, following] = None
                self.reach(entry, following, after)

    def jump(self, entry: int, origin: int, site: int, target: Element, stack: Stack) -> None:
        """The block `origin` jumps; in this context that happens at the block `site` (the call it returns from)."""
        if target is None:
            self.jumps.unknown.add(origin)
        elif isinstance(target, tuple) or target < 0:
            self.leave(entry, origin, site, target, stack)
        elif target not in self.dests:
            self.jumps.bad.add(origin)
        else:
            self.jumps.targets.setdefault(origin, set()).add(target)
            if any(element in self.dests for element in stack.items):
                self.call(entry, site, target, stack)
            else:
                self.contexts[entry].edges[site, target] = None
                self.reach(entry, target, stack)

    def call(self, entry: int, site: int, target: int, stack: Stack) -> None:
        callee = self.enter(target)
        caller = (entry, site, stack)
        if caller in callee.callers:
            return
        self.spend(stack)
        callee.callers[caller] = None
        self.replays += [(target, caller, *left) for left in callee.returns]

    def leave(self, entry: int, origin: int, site: int, target: Element, stack: Stack) -> None:
        context = self.contexts[entry]
        left = (origin, site, target, stack)
        if left in context.returns:
            return
        self.spend(stack)
        context.returns[left] = None
        if context.is_open:
            self.jumps.unknown.add(origin)
        self.replays += [(entry, caller, *left) for caller in context.callers]

    def replay(
        self, callee: int, caller: tuple[int, int, Stack], origin: int, left: int, target: Element, effect: Stack
    ) -> None:
        entry, site, stack = caller
        self.spend(stack)
        onward = substitute(target, stack)
        if onward == callee:  # a loop whose header's address waits on the stack
            self.contexts[callee].edges[left, callee] = None
        self.jump(entry, origin, site, onward, stack.after(effect))


def _too_deep(stack: Stack) -> bool:
    """Whether it overflows or underflows the stack before it jumps."""
    return len(stack.items) > STACK_LIMIT or stack.taken > STACK_LIMIT


def _join(one: Stack, other: Stack) -> Stack:
    if one == other:
        return one
    return Stack(one.taken, tuple([x if x == y else None for x, y in zip(one.items, other.items, strict=True)]))
