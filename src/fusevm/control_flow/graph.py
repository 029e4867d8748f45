"""The control-flow graph: basic blocks, their successors, and the loops among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fusevm.analysis.graphs import Loops, natural_loops
from fusevm.control_flow.loops import loops_of
from fusevm.evm.bytecode import BasicBlock, basic_blocks, jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.recovery.flow import FlowFinder, Jumps


@dataclass(slots=True)
class GraphNode:
    block: BasicBlock
    taken: tuple[int, ...] = ()  # where its jump may land
    falls: int | None = None  # the next block, if control can fall through
    unknown: bool = False  # its jump may land on any JUMPDEST
    bad_jump: bool = False  # its jump may have an invalid target, and halt
    reached: bool = False

    @property
    def successors(self) -> tuple[int, ...]:
        if self.falls is None or self.falls in self.taken:
            return self.taken
        return (*self.taken, self.falls)


@dataclass
class Cfg:
    code: bytes
    fork: Fork
    nodes: dict[int, GraphNode]  # by the pc of the block
    dests: frozenset[int]
    jumps: Jumps

    @cached_property
    def has_unknown_jumps(self) -> bool:
        return any(node.unknown for node in self.nodes.values() if node.reached)

    @property
    def budget_spent(self) -> bool:
        return self.jumps.spent

    @cached_property
    def loops(self) -> Loops:
        """Natural loops, calls stepped over: a function called twice in a row makes no loop."""
        if self.jumps.spent:
            graph = {start: node.successors for start, node in self.nodes.items()}
            return natural_loops(graph, 0) if graph else Loops()
        return loops_of(self.jumps)


def control_flow(code: bytes, fork: Fork = LATEST) -> Cfg:
    blocks = {block.start: block for block in basic_blocks(code, fork)}
    dests = jumpdests(code)
    jumps = FlowFinder(blocks, dests, fork).found()
    nodes = {start: _node(block, jumps, blocks) for start, block in blocks.items()}
    return Cfg(code, fork, nodes, dests, jumps)


def _node(block: BasicBlock, jumps: Jumps, blocks: dict[int, BasicBlock]) -> GraphNode:
    start = block.start
    last = block.last.op
    may_fall = last is not None and not last.ends and (start in jumps.fallen or start not in jumps.reached)
    falls = block.end if may_fall and block.end in blocks else None
    taken = tuple(sorted(jumps.targets.get(start, ())))
    return GraphNode(block, taken, falls, start in jumps.unknown, start in jumps.bad, start in jumps.reached)
