"""Symbolic execution of one iteration of a loop: what each stack slot becomes, and where control can go.

A word is a number, a `Linear` form over the live-in stack slots of the iteration, a `Comparison` of two of them, or
None where nothing is known. Return addresses are numbers, so calls inside a loop are followed to their return.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Set
from functools import cache, partial
from typing import NamedTuple

from fusevm.analysis.symbolic import SymbolicStack
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS
from fusevm.schedule.sections import FOLDED, JUMPS, OUTWARD, UNCLEAR, Section, Token, steps_of

MASK = (1 << 256) - 1
MOST_NODES = 96  # a loop of more blocks than this is not analysed
MOST_VISITS = 12  # of one block, because words differed: what is known can only become less, so few are needed

NEGATED = {"LT": "GE", "GT": "LE", "SLT": "SGE", "SGT": "SLE", "EQ": "NE"}
NEGATED |= {after: before for before, after in NEGATED.items()}
MIRRORED = {"LT": "GT", "LE": "GE", "SLT": "SGT", "SLE": "SGE", "EQ": "EQ", "NE": "NE"}
MIRRORED |= {after: before for before, after in MIRRORED.items()}
COMPARES = frozenset(("LT", "GT", "SLT", "SGT", "EQ"))
UNKNOWN, NOWHERE = -1, -3  # targets: unknown, and known but not a JUMPDEST


OBSERVERS = frozenset(("SYNC", *OUTWARD, *(name for name, op in BY_NAME.items() if op.observes_gas)))


class Linear(NamedTuple):
    """constant + the sum of coefficient · slot; slot 1 is the top of the stack where the iteration begins."""

    constant: int
    terms: tuple[tuple[int, int], ...]  # (slot, coefficient), by slot


class Comparison(NamedTuple):
    relation: str
    left: Value
    right: Value


Value = int | Linear | Comparison | None


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
    if isinstance(value, Comparison):
        return Comparison(NEGATED[value.relation], value.left, value.right)
    return Comparison("EQ", value, 0) if isinstance(value, Linear) else None


class Access(NamedTuple):
    """An access to memory or storage in the body, with its address as far as it is known."""

    name: str
    address: Value
    size: Value
    value: Value  # what is stored
    pc: int


class State(NamedTuple):
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

    def depth_of(self, value: Value) -> int | None:
        """How deep below the top a word of this value is; 1 is the top."""
        for depth, word in enumerate(reversed(self.words), 1):
            if word == value:
                return depth
        if isinstance(value, Linear) and not value.constant and len(value.terms) == 1:
            ((number, coefficient),) = value.terms
            if coefficient == 1 and number > self.taken:
                return number + self.height
        return None


EMPTY = State(0, ())


def joined(one: State, other: State) -> State | None:
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
    return State(taken, tuple(words))


def _reaching(state: State, taken: int) -> list[Value]:
    return [*(slot(number) for number in range(taken, state.taken, -1)), *state.words]


class Block(NamedTuple):
    pc: int
    tokens: list[Token]
    gas: int
    needs: int
    grows: int
    falls: int  # the pc after it
    observed: str  # the instruction that reads the gas counter or leaves to Python; empty if there is none


class Edge(NamedTuple):
    """An edge out of a block."""

    pc: int  # its target, or UNKNOWN, or NOWHERE
    node: int  # the number of the target node, -1 if it leaves the loop
    when: Value  # it is taken if this is not zero; 1: always


class Node:
    """A block with given return addresses on the stack."""

    __slots__ = ("accesses", "after", "before", "block", "edges", "number", "returns", "visits")

    def __init__(self, number: int, block: Block, before: State) -> None:
        self.number = number
        self.block = block
        self.before = before
        self.after = before
        self.edges: list[Edge] = []
        self.accesses: list[Access] = []
        self.returns = False  # its JUMP has a target from the stack
        self.visits = 0


class Refused(Exception):
    """Why a loop is not fused."""


def blocks_of(sections: list[Section]) -> dict[int, Block]:
    """Blocks by pc, the sections of each merged."""
    blocks: dict[int, Block] = {}
    opening: list[Section] = []
    for index, section in enumerate(sections):
        opening.append(section)
        following = sections[index + 1] if index + 1 < len(sections) else None
        if following is not None and following.needs < 0:
            continue
        first = opening[0]
        falls = -1 if following is None else following.pc
        looks = _observer(first)
        if len(opening) == 1:
            blocks[first.pc] = Block(first.pc, first.tokens, first.gas, first.needs, first.grows, falls, looks)
        else:
            tokens = [token for part in opening for token in part.tokens]
            gas = sum(part.gas for part in opening)
            looks = looks or "a very long block"
            blocks[first.pc] = Block(first.pc, tokens, gas, first.needs, first.grows, falls, looks)
        opening = []
    return blocks


def _observer(section: Section) -> str:
    """The instruction at the section's end, if it reads the gas counter or may leave to Python; else empty."""
    name = section.tokens[-1].name if section.tokens else ""
    return name if name in OBSERVERS else ""


class Walk:
    """All nodes that an iteration can reach from a header, distinguished by return addresses on the stack."""

    def __init__(
        self, header: int, blocks: Mapping[int, Block], inside: Set[int], dests: Set[int], budget: int
    ) -> None:
        self.header = header
        self.blocks = blocks
        self.inside = inside  # blocks that may be on a cycle through the header; callees are followed as well
        self.dests = dests
        self.budget = budget
        self.nodes: list[Node] = []
        self.by_key: dict[tuple[int, tuple[int, ...]], int] = {}
        self.latches: list[tuple[int, State]] = []
        self.unknown: set[int] = set()  # nodes whose jump has an unknown target

    def run(self) -> None:
        self._reach(self.header, EMPTY)
        work = {0}
        while work:
            number = min(
                work, key=lambda each: self.nodes[each].block.pc
            )  # the lowest pc first, so that paths join early
            work.discard(number)
            node = self.nodes[number]
            node.visits += 1
            if node.visits > MOST_VISITS:
                raise Refused("too many different paths")
            self.step(node)
            node.edges, fresh = self._edges(node)
            work.update(fresh)
        self.latches = [
            (node.number, node.after) for node in self.nodes for edge in node.edges if edge.pc == self.header
        ]

    def _reach(self, pc: int, state: State) -> tuple[int, bool]:
        """The node of a block in this state, and whether it must be visited (again)."""
        key = (pc, tuple([word for word in state.words if type(word) is int and word in self.dests]))
        number = self.by_key.get(key, -1)
        if number < 0:
            if len(self.nodes) >= MOST_NODES:
                raise Refused(f"more than {MOST_NODES} blocks")
            number = self.by_key[key] = len(self.nodes)
            self.nodes.append(Node(number, self.blocks[pc], state))
            return number, True
        node = self.nodes[number]
        both = joined(node.before, state)
        if both is None:
            raise Refused("the stack's height differs between paths")
        changed = both != node.before
        node.before = both
        return number, changed

    def _edges(self, node: Node) -> tuple[list[Edge], list[int]]:
        last = node.block.tokens[-1] if node.block.tokens else None
        name = last.name if last else ""
        falls = node.block.falls
        node.returns = False
        if name == "JUMP@" and last:
            ways: list[tuple[int, Value]] = [(self._landing(last.operand), 1)]
        elif name == "JUMPI@" and last:
            condition = node.accesses.pop().address
            ways = [(self._landing(last.operand), condition), (falls, negate(condition))]
        elif name == "JUMP":
            target = node.accesses.pop().address
            node.returns = isinstance(target, int) and target in self.dests
            ways = [(target, 1)] if node.returns and isinstance(target, int) else [(UNKNOWN, 1)]
        elif name == "JUMPI":
            del node.accesses[-1]
            ways = [(UNKNOWN, None), (falls, None)]
        elif last and (name == "INVALID" or BY_NAME[name].ends if name in BY_NAME else False):
            ways = []
        else:
            ways = [(falls, 1)]
        edges, fresh = [], []
        for pc, when in ways:
            number = -1
            if pc == self.header:
                number = 0
            elif pc in self.blocks and self._stays(pc, node.after):
                number, changed = self._reach(pc, node.after)
                if changed:
                    fresh.append(number)
            edges.append(Edge(pc, number, when))
        return edges, fresh

    def _landing(self, target: int) -> int:
        return target if target in self.dests else NOWHERE

    def _stays(self, pc: int, state: State) -> bool:
        if pc in self.inside:
            return True
        return any(isinstance(word, int) and word in self.dests and word in self.inside for word in state.words)

    def step(self, node: Node) -> None:
        """Executes a block's tokens symbolically. Condition and target of its jump are left as the last access."""
        self.budget -= len(node.block.tokens)
        if self.budget < 0:
            raise Refused("the budget for looking at loops is spent")
        stack: SymbolicStack[Value] = SymbolicStack(slot, operator.index, *node.before)
        accesses: list[Access] = []
        for (name, _, pc, _), words in stack.run(steps_of(node.block.tokens)):
            if name in JUMPS:
                if words:
                    accesses.append(Access(name, words[0], None, None, pc))
            elif name in UNCLEAR:
                raise Refused("an instruction that Python does, or that reaches deep into the stack")
            elif name in MEANINGS:
                stack.push(MEANINGS[name](*words))
            else:
                touches, pushes = TRAITS[name]
                if touches:
                    address, size = words[0] if words else None, words[1] if len(words) > 1 else None
                    accesses.append(Access(name, address, size, size, pc))
                if pushes:
                    stack.push(None)
        node.after = State(stack.taken, tuple(stack.words))
        node.accesses = accesses


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
    return Comparison(name, left, right)


KNOWN: dict[str, Callable[..., Value]] = {
    "ADD": add,
    "SUB": partial(add, sign=-1),
    "ISZERO": negate,
    "MUL": scale,
    "SHL": _shifted,
}
# The symbolic result of a pure opcode, operands from the top of the stack down.
MEANINGS = {name: KNOWN.get(name) or partial(_compared if name in COMPARES else _of_numbers, name) for name in FOLDED}
# Whether an opcode touches anything besides the stack, and whether it pushes a word.
TRAITS = {name: (bool(op.dynamic or op.reads or op.writes), bool(op.pushes)) for name, op in BY_NAME.items()}
