"""Unrolls small loops with literal start, bound and step: no test, no jump, constants in place of the counter.

The gas of all iterations is charged by one section, exactly, so only loops with a single exit, the counted one, are.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.analysis.symbolic import OPERATES, SymbolicStack
from fusevm.evm.opcodes import BY_NAME
from fusevm.schedule.loops.counting import trips
from fusevm.schedule.loops.plan import LoopMetadata, LoopPlan
from fusevm.schedule.loops.walk import EMPTY, Block, Node, Refused, State, Walk
from fusevm.schedule.sections import ACTIONS, FOLDED, PUSHES, SMALL, Section, Token

MOST_TRIPS = 16
MOST_TOKENS = 128
MASK = (1 << 256) - 1


def unrolled(plan: LoopPlan, before: Section) -> Section | None:
    """The loop unrolled for this predecessor, or None if its start value is not known there or it is too long."""
    if len(plan.spine) != len(plan.members) or any(_other_exits(plan, number) for number in plan.members):
        return None
    if any(BY_NAME[token.name].halts for token in before.tokens[:-1] if token.name in BY_NAME):
        return None
    stack = _stack_behind(before)
    count = _trips(plan, stack)
    if count is None or count > MOST_TRIPS:
        return None
    tokens = [token for number in plan.members for token in _body(plan, number)]
    last = plan.members.index(plan.counted.node) + 1
    ending = [token for number in plan.members[:last] for token in _body(plan, number)]
    if len(tokens) * count + len(ending) > MOST_TOKENS:
        return None
    folder = _Folder(stack)
    for token in tokens * count + ending:
        folder.take(token)
    gas = plan.gas * count + plan.gas_to_test
    return Section(plan.meta.header, gas, plan.needs, plan.grows, folder.tokens)


def _other_exits(plan: LoopPlan, number: int) -> bool:
    members = frozenset(plan.members)
    return any(
        edge.node not in members and (number, way) != (plan.counted.node, plan.counted.way)
        for way, edge in enumerate(plan.nodes[number].edges)
    )


def way_on(section: Section, following: Section | None) -> int:
    """The only successor of a section: by a static jump or fall-through; -1 if there is none."""
    last = section.tokens[-1] if section.tokens else None
    if last is not None and last.name == "JUMP@":
        return last.operand
    if following is None or following.needs < 0 or last is None or _ends(last.name):
        return -1
    return following.pc


def _ends(name: str) -> bool:
    return name in ("JUMPI@", "JUMPI", "INVALID") or (name in BY_NAME and BY_NAME[name].ends)


def start_values(sections: list[Section], loops: Iterable[LoopMetadata]) -> dict[int, int]:
    """The counter's first value by header, if all edges into the loop with a known start value agree on it."""
    wanted = {each.header: each for each in loops if each.counter_slot is not None}
    found: dict[int, set[int]] = {}
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        loop = wanted.get(way_on(section, following))
        if loop is None or section.pc in loop.body:
            continue
        start = _at(_stack_behind(section), loop.counter_slot or 0)
        if start is not None:
            found.setdefault(loop.header, set()).add(start)
    return {header: values.pop() for header, values in found.items() if len(values) == 1}


def _stack_behind(section: Section) -> list[int | None]:
    """The known words on top of the stack after a section, whatever was there before."""
    tokens = section.tokens[:-1] if section.tokens[-1].name == "JUMP@" else section.tokens
    node = Node(0, Block(section.pc, tokens, 0, 0, 0, -1, ""), EMPTY)
    try:
        Walk(section.pc, {}, frozenset(), frozenset(), len(tokens)).step(node)
    except Refused:  # it ends in Python, and what that leaves on the stack is unknown
        return []
    after: State = node.after
    return [word if isinstance(word, int) else None for word in after.words]


def _trips(plan: LoopPlan, stack: list[int | None]) -> int | None:
    counted = plan.counted
    start = _at(stack, counted.slot)
    bound = _at(stack, counted.bound_slot) if counted.bound_slot else 0
    if start is None or bound is None:
        return None
    return trips(counted.relation, start + counted.addend & MASK, bound + counted.bound_addend & MASK, counted.step)


def _at(stack: list[int | None], depth: int) -> int | None:
    return stack[-depth] if depth <= len(stack) else None


def _body(plan: LoopPlan, number: int) -> list[Token]:
    """A block's tokens without its jump, whose target is known."""
    node = plan.nodes[number]
    tokens = list(node.block.tokens)
    last = tokens[-1] if tokens else None
    if last is not None and last.name == "JUMP@":
        tokens.pop()
    elif last is not None and (last.name == "JUMPI@" or node.returns):
        tokens[-1] = Token("POP", 0, last.pc, last.steps)
    return tokens


class _Folder:
    """Rewrites tokens with the known words of the stack."""

    def __init__(self, stack: list[int | None]) -> None:
        self.stack: SymbolicStack[int | None] = SymbolicStack(_unknown, _number, 0, stack)
        self.tokens: list[Token] = []

    def take(self, token: Token) -> None:
        action, tokens = ACTIONS[token.name], self.tokens
        if action.kind == OPERATES:
            self._operate(token)
            return
        self.stack.arrange(action, token.operand)
        if action.change == 1 and (value := self.stack.words[-1]) is not None:  # it leaves a known word
            self._write(value, token)
        elif token.name == "POP" and tokens and tokens[-1].name in PUSHES:
            tokens.pop()
        else:
            tokens.append(token)

    def _write(self, value: int, token: Token) -> None:
        self.tokens.append(Token("PUSH" if value < SMALL else "PUSHW", value, token.pc, token.steps))

    def _operate(self, token: Token) -> None:
        op = BY_NAME[token.name]
        operands = self.stack.take(op.pops)
        if token.name in FOLDED and None not in operands:
            value = FOLDED[token.name](*operands)
            self.stack.push(value)
            pushed = self.tokens[-op.pops :] if len(self.tokens) >= op.pops else []
            if pushed and all(each.name in PUSHES for each in pushed):
                del self.tokens[-op.pops :]
                self._write(value, token)
                return
        elif op.pushes:
            self.stack.push(None)
        self.tokens.append(token)


def _unknown(depth: int) -> int | None:
    return None


def _number(word: int) -> int | None:
    return word
