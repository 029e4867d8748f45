"""The control-flow graph: basic blocks, their successors, and the loops among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from fusevm.analysis.graphs import Loop, Loops, natural_loops, nest
from fusevm.analysis.jumps import Context, Jumps, falls_through, resolve
from fusevm.evm.bytecode import BasicBlock, basic_blocks, jumpdests
from fusevm.evm.forks import LATEST, Fork


@dataclass(slots=True)
class Node:
    block: BasicBlock
    taken: tuple[int, ...] = ()  # where its jump may land
    falls: int | None = None  # the next block, if control can fall through
    unknown: bool = False  # its jump may land on any JUMPDEST
    bad_jump: bool = False  # its jump may have an invalid target, and halt
    reached: bool = False
    predecessors: list[int] = field(default_factory=list)

    @property
    def successors(self) -> tuple[int, ...]:
        if self.falls is None or self.falls in self.taken:
            return self.taken
        return (*self.taken, self.falls)


@dataclass
class Cfg:
    code: bytes
    fork: Fork
    nodes: dict[int, Node]  # by the pc of the block
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
        return _loops_of_contexts(self.jumps)


def control_flow(code: bytes, fork: Fork = LATEST) -> Cfg:
    blocks = {block.start: block for block in basic_blocks(code, fork)}
    dests = jumpdests(code)
    jumps = resolve(blocks, dests)
    nodes = {start: _node(block, jumps, blocks) for start, block in blocks.items()}
    for start, node in nodes.items():
        for successor in node.successors:
            nodes[successor].predecessors.append(start)
    return Cfg(code, fork, nodes, dests, jumps)


def _node(block: BasicBlock, jumps: Jumps, blocks: dict[int, BasicBlock]) -> Node:
    start = block.start
    may_fall = falls_through(block.last) and (start in jumps.fallen or start not in jumps.reached)
    falls = block.end if may_fall and block.end in blocks else None
    taken = tuple(sorted(jumps.targets.get(start, ())))
    return Node(block, taken, falls, start in jumps.unknown, start in jumps.bad, start in jumps.reached)


def _loops_of_contexts(jumps: Jumps) -> Loops:
    """The loops of every context on its own, those with one header joined, callees counted into the body."""
    found = Loops()
    for context in jumps.contexts.values():
        graph: dict[int, list[int]] = {context.entry: []}
        for source, target in context.edges:
            graph.setdefault(source, []).append(target)
        part = natural_loops(graph, context.entry)
        found.irreducible |= part.irreducible
        found.complete &= part.complete
        for loop in part:
            known = found.by_header.get(loop.header)
            found.by_header[loop.header] = loop if known is None else _joined(known, loop)
    _count_callees(found, jumps)
    for loop in found:
        loop.parent = None
    nest(found)
    return found


def _joined(one: Loop, other: Loop) -> Loop:
    body = one.body | other.body
    exits = {edge for edge in one.exits + other.exits if edge[1] not in body}
    return Loop(one.header, tuple(sorted({*one.latches, *other.latches})), body, tuple(sorted(exits)))


_CALLEE_BUDGET = 200_000


def _count_callees(loops: Loops, jumps: Jumps) -> None:
    """Blocks that run inside a loop because its body calls them belong to its body."""
    calls: dict[int, set[int]] = {}  # block to the contexts it calls
    for context in jumps.contexts.values():
        for _, site, _ in context.callers:
            calls.setdefault(site, set()).add(context.entry)
    budget = _CALLEE_BUDGET
    for loop in loops:
        body = set(loop.body)
        work = [entry for block in body for entry in calls.get(block, ())]
        seen: set[int] = set()
        while work and budget > 0:
            entry = work.pop()
            if entry in seen:
                continue
            seen.add(entry)
            blocks = _blocks_of(jumps.contexts[entry])
            budget -= len(blocks)
            for block in blocks - body:
                work += calls.get(block, ())
            body |= blocks
        loop.body = frozenset(body)
        loop.exits = tuple(edge for edge in loop.exits if edge[1] not in body)
    if budget <= 0:
        loops.complete = False


def _blocks_of(context: Context) -> set[int]:
    return {block for block, _ in context.states.values()}
