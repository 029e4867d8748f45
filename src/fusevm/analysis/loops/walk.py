"""Symbolic execution of one iteration of a loop: what each stack slot becomes, and where control can go.

Return addresses are numbers, so calls inside a loop are followed to their return.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Set
from typing import NamedTuple

from fusevm.analysis.loops.words import EMPTY, MEANINGS, LoopStack, Value, joined, negate, slot
from fusevm.analysis.symbolic import ACTIONS, Step, SymbolicStack, actions_of, bounds_of, steps_of
from fusevm.evm.bytecode import JUMPDEST, BasicBlock, Instruction, basic_blocks
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME

MAX_NODES = 400  # a loop of more blocks than this is not analysed
MAX_VISITS = 12  # of one block, because words differed: what is known can only become less, so few are needed
UNKNOWN, NOWHERE = -1, -3  # targets: unknown, and known but not a JUMPDEST
# Whether an opcode touches anything besides the stack.
TOUCHES = {name: bool(op.dynamic or op.reads or op.writes) for name, op in BY_NAME.items()}


class LoopAccess(NamedTuple):
    """An access to memory or storage in the body, with its address as far as it is known."""

    name: str
    address: Value
    pc: int


class LoopBlock(NamedTuple):
    """A basic block; of JUMPDESTs in a row, all from one of them to the last but one."""

    pc: int
    last: Instruction | None  # None: the end of the code
    steps: list[Step[Instruction]]
    gas: int
    needs: int
    grows: int
    falls: int  # the pc after it; -1 where control never is

    @property
    def is_alone(self) -> bool:
        """Whether it is a JUMPDEST and nothing else."""
        return len(self.steps) == 1 and self.last is not None and self.last.byte == JUMPDEST

    @property
    def is_invalid(self) -> bool:
        """Whether it consumes all gas."""
        return self.last is not None and (self.last.op is None or self.last.op.name == "INVALID")


class Edge(NamedTuple):
    """An edge out of a block."""

    pc: int  # its target, or UNKNOWN, or NOWHERE
    node: int  # the number of the target node, -1 if it leaves the loop
    when: Value  # it is taken if this is not zero; 1: always


class BlockRun(NamedTuple):
    """What a block does."""

    after: LoopStack
    accesses: list[LoopAccess]
    target: Value  # of its jump
    condition: Value


class LoopNode:
    """A block with given return addresses on the stack."""

    __slots__ = ("accesses", "after", "before", "block", "edges", "number", "visits")

    def __init__(self, number: int, block: LoopBlock, before: LoopStack) -> None:
        self.number = number
        self.block = block
        self.before = before
        self.after = before
        self.edges: list[Edge] = []
        self.accesses: list[LoopAccess] = []
        self.visits = 0


class NotCounted(Exception):
    """Why a loop is not counted."""


def blocks_of(code: bytes, fork: Fork, dests: Set[int]) -> dict[int, LoopBlock]:
    """The blocks that control can reach, by pc, and a STOP after the last byte.

    Of JUMPDESTs in a row these are the first, the last, and those that the code names.
    """
    end = LoopBlock(len(code), None, [], 0, 0, 0, -1)
    basic = basic_blocks(code, fork)
    found: dict[int, LoopBlock] = {}
    after = end
    for block in reversed(basic):
        start, instructions = block
        gas, falls = _gas(block, fork), after.pc if block.last.op is not None and not block.last.op.ends else -1
        if len(instructions) == 1 and start in dests:
            if after.is_alone:  # JUMPDESTs in a row
                gas, falls = gas + after.gas, after.falls
            made = LoopBlock(start, block.last, [(ACTIONS["JUMPDEST"], 0, block.last)], gas, 0, 0, falls)
        else:
            needs, grows = bounds_of(actions_of(instructions))
            made = LoopBlock(start, block.last, list(steps_of(instructions, instructions)), gas, needs, grows, falls)
        found[start] = after = made
    named = {number for each in found.values() for _, number, step in each.steps if step.push is not None}
    inner = {each.start + 1 for each in basic if len(each.instructions) == 1 and each.start in dests}  # of rows
    work = [pc for pc in found if not pc or (pc in dests and (pc in named or pc not in inner))]
    reached: dict[int, LoopBlock] = {}
    while work:
        pc = work.pop()
        if pc in found and pc not in reached:
            reached[pc] = found[pc]
            work.append(found[pc].falls)
    return dict(sorted(reached.items())) | {end.pc: end}


def _gas(block: BasicBlock, fork: Fork) -> int:
    return sum(each.op.gas_at(fork) for each in block.instructions if each.op)


def run(block: LoopBlock, before: LoopStack) -> BlockRun:
    """Executes a block symbolically."""
    stack: SymbolicStack[Value] = SymbolicStack(slot, operator.index, *before)
    accesses: list[LoopAccess] = []
    target: Value = None
    condition: Value = 1
    for instruction, words in stack.run(block.steps):
        op = instruction.op
        if op is None:
            break
        if op.name == "PC":
            stack.push(instruction.pc)
        elif op.name in MEANINGS:
            stack.push(MEANINGS[op.name](*words))
        elif op.name in ("JUMP", "JUMPI"):
            target, condition = words[0], words[-1] if op.name == "JUMPI" else 1
        else:
            if TOUCHES[op.name]:
                accesses.append(LoopAccess(op.name, words[0] if words else None, instruction.pc))
            if op.pushes:
                stack.push(None)
    return BlockRun(LoopStack(stack.taken, tuple(stack.words)), accesses, target, condition)


class Walk:
    """All nodes that an iteration can reach from a header, distinguished by return addresses on the stack."""

    def __init__(
        self, header: int, blocks: Mapping[int, LoopBlock], inside: Set[int], dests: Set[int], budget: int
    ) -> None:
        self.header = header
        self.blocks = blocks
        self.inside = inside  # blocks that may be on a cycle through the header; callees are followed as well
        self.dests = dests
        self.budget = budget
        self.nodes: list[LoopNode] = []
        self.by_key: dict[tuple[int, tuple[int, ...]], int] = {}
        self.is_loop = False  # whether an edge leads back to the header

    def run(self) -> None:
        self._reach(self.header, EMPTY)
        work = {0}
        while work:
            number = min(work, key=lambda each: self.nodes[each].block.pc)  # the lowest first, so that paths join early
            work.discard(number)
            node = self.nodes[number]
            node.visits += 1
            if node.visits > MAX_VISITS:
                raise NotCounted("too many different paths")
            work.update(self._step(node))
        self.is_loop = any(edge.pc == self.header for node in self.nodes for edge in node.edges)

    def _reach(self, pc: int, state: LoopStack) -> tuple[int, bool]:
        """The node of a block in this state, and whether it must be visited (again)."""
        key = (pc, tuple([word for word in state.words if type(word) is int and word in self.dests]))
        number = self.by_key.get(key, -1)
        if number < 0:
            if len(self.nodes) >= MAX_NODES:
                raise NotCounted(f"more than {MAX_NODES} blocks")
            number = self.by_key[key] = len(self.nodes)
            self.nodes.append(LoopNode(number, self.blocks[pc], state))
            return number, True
        node = self.nodes[number]
        both = joined(node.before, state)
        if both is None:
            raise NotCounted("the stack's height differs between paths")
        changed = both != node.before
        node.before = both
        return number, changed

    def _step(self, node: LoopNode) -> list[int]:
        """Runs a node; the nodes that must be visited after it."""
        self.budget -= len(node.block.steps)
        if self.budget < 0:
            raise NotCounted("the budget for looking at loops is spent")
        found = run(node.block, node.before)
        node.after, node.accesses = found.after, found.accesses
        node.edges, fresh = [], []
        for pc, when in self._ways(node.block, found):
            number = -1
            if pc == self.header:
                number = 0
            elif pc in self.blocks and self._stays(pc, node.after):
                number, changed = self._reach(pc, node.after)
                if changed:
                    fresh.append(number)
            node.edges.append(Edge(pc, number, when))
        return fresh

    def _ways(self, block: LoopBlock, found: BlockRun) -> list[tuple[int, Value]]:
        """Where control goes from a block, and when."""
        name = block.last.name if block.last else ""
        if name not in ("JUMP", "JUMPI"):
            return [(block.falls, 1)] if block.falls >= 0 else []
        target = self._landing(found.target)
        if name == "JUMP" or (type(found.condition) is int and found.condition):
            return [(target, 1)]
        if type(found.condition) is int:
            return [(block.falls, 1)]
        return [(target, found.condition), (block.falls, negate(found.condition))]

    def _landing(self, target: Value) -> int:
        if not isinstance(target, int):
            return UNKNOWN
        return target if target in self.dests else NOWHERE

    def _stays(self, pc: int, state: LoopStack) -> bool:
        if pc in self.inside:
            return True
        return any(isinstance(word, int) and word in self.dests and word in self.inside for word in state.words)
