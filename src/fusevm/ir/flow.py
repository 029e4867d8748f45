"""Data flow between a program's blocks: which stack slots are live-in to each block, and where their words come from.

Where all predecessors of a block are known, its live-in slots become its parameters (PHIs) and never touch the run-time
stack. A block that an unknown jump may enter reads everything from the run-time stack. Slots are counted by depth here:
1 is the top.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.analysis.cfg import Cfg, Node
from fusevm.analysis.graphs import DominatorTree, Loops, natural_loops, preorder
from fusevm.analysis.jumps import Jumps
from fusevm.evm import bytecode
from fusevm.evm.bytecode import JUMPI
from fusevm.evm.limits import STACK_LIMIT
from fusevm.ir.block import DependencyBlock
from fusevm.ir.builder import Builder
from fusevm.ir.copies import pc_of, peel_loops
from fusevm.ir.lift import lift_block
from fusevm.ir.values import CONST, UNSPILL, traits_of

DEPTH = 16  # as deep as an instruction can reach; deeper words stay on the run-time stack
ALL = (1 << DEPTH) - 1
ROOT = -1  # a virtual predecessor of the entry and of all blocks that unknown jumps may enter
_PASSES = 12


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a parameter's word comes from: a literal, a block's exit stack, or a PHI (its own, or another block's)."""

    block: int = 0
    index: int = 0  # in the block's exit stack; of a PHI, its depth
    is_phi: bool = False
    literal: int | None = None


@dataclass(slots=True)
class Shape:
    """A block's stack in bit masks over its entry slots: bit d-1 is depth d."""

    entry: int  # words it touches
    needs: int  # slots its effects and its terminator read
    items: list[int]  # slots that each word of its exit stack depends on, the top first


@dataclass
class Flow:
    cfg: Cfg
    sources: dict[int, bytecode.BasicBlock] = field(default_factory=dict)  # reached blocks, straight lines merged
    last: dict[int, Node] = field(default_factory=dict)  # the node whose jump ends the block
    plain: dict[int, DependencyBlock] = field(default_factory=dict)  # each block lifted on its own
    successors: dict[int, tuple[int, ...]] = field(default_factory=dict)
    predecessors: dict[int, list[int]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # reverse postorder: dominators first
    open: set[int] = field(default_factory=set)  # may be entered with an unknown stack
    params: dict[int, tuple[int, ...]] = field(default_factory=dict)
    depth: dict[int, int] = field(default_factory=dict)  # how many entry slots the block has to name
    origins: dict[tuple[int, int], Origin] = field(default_factory=dict)
    tree: DominatorTree = field(init=False)
    loops: Loops = field(init=False)
    heights: dict[int, int] = field(default_factory=dict)  # the maximum height of the stack on entry


def flow_of(cfg: Cfg, peel: bool = False) -> Flow:
    """`peel` copies the first iteration of small innermost loops: invariants are then known in the other iterations."""
    flow = Flow(cfg)
    unknown = cfg.has_unknown_jumps or cfg.budget_spent
    _join_followers(flow, cfg.dests if unknown else frozenset())
    for start in flow.sources:
        flow.successors[start] = tuple(to for to in flow.last[start].successors if to in flow.sources)
    flow.open = {0} | {start for start in flow.sources if unknown and start in cfg.dests}
    roots = tuple(sorted(flow.open & set(flow.sources)))
    if peel:
        _peel(flow, roots)
    builder = Builder()
    for start, source in flow.sources.items():
        flow.plain[start] = lift_block(source, cfg.fork, builder)
    flow.heights = _heights(cfg, flow.plain)
    graph: dict[int, tuple[int, ...]] = {**flow.successors, ROOT: roots}
    walk = preorder(graph, ROOT)
    flow.order = [start for start in reversed(walk.postorder) if start != ROOT]
    flow.tree = DominatorTree(graph, ROOT, walk)
    flow.loops = natural_loops(graph, ROOT)
    flow.predecessors = {start: [] for start in flow.order}
    for start in flow.order:
        for to in flow.successors[start]:
            flow.predecessors[to].append(start)
    _find_parameters(flow)
    _find_depths(flow)
    _find_origins(flow)
    return flow


def _join_followers(flow: Flow, exposed: frozenset[int]) -> None:
    """Merges a block with its only successor if it is that block's only predecessor."""
    nodes = {start: node for start, node in flow.cfg.nodes.items() if node.reached}
    ways_in = dict.fromkeys(nodes, 0)
    for node in nodes.values():
        for to in node.successors:
            ways_in[to] = ways_in.get(to, 0) + 1
    follower: dict[int, int] = {}
    for start, node in nodes.items():
        if len(node.successors) == 1 and node.block.last.byte != JUMPI and not (node.unknown or node.bad_jump):
            to = node.successors[0]
            if ways_in[to] == 1 and to not in (0, start) and to not in exposed:
                follower[start] = to
    joined = set(follower.values())
    for start, node in nodes.items():
        if start in joined:
            continue
        instructions = list(node.block.instructions)
        at = start
        while at in follower:
            at = follower[at]
            instructions += nodes[at].block.instructions
        flow.sources[start] = bytecode.BasicBlock(start, tuple(instructions))
        flow.last[start] = nodes[at]


def _peel(flow: Flow, roots: tuple[int, ...]) -> None:
    copies, flow.successors = peel_loops(flow.sources, flow.successors, roots)
    for copy, original in copies.items():
        flow.sources[copy] = bytecode.BasicBlock(copy, flow.sources[original].instructions)
        flow.last[copy] = flow.last[original]


# -- how high the stack can be ------------------------------------------------------------------------------------


def _heights(cfg: Cfg, blocks: dict[int, DependencyBlock]) -> dict[int, int]:
    if cfg.budget_spent or cfg.has_unknown_jumps:
        return dict.fromkeys(blocks, STACK_LIMIT)
    entries = _entry_heights(cfg.jumps)
    heights = dict.fromkeys(cfg.nodes, 0)
    for entry, context in cfg.jumps.contexts.items():
        for block, stack in context.states.values():
            height = min(entries[entry] - stack.taken + len(stack.items), STACK_LIMIT)
            heights[block] = max(heights[block], height)
    return {start: heights[pc_of(start)] for start in blocks}


def _entry_heights(jumps: Jumps) -> dict[int, int]:
    """The maximum height on entry to each context, or the limit where callers are recursive."""
    heights = dict.fromkeys(jumps.contexts, 0)
    callees: dict[int, list[tuple[int, int]]] = {}
    for entry, context in jumps.contexts.items():
        for caller, _, stack in context.callers:
            callees.setdefault(caller, []).append((entry, len(stack.items) - stack.taken))
    work, budget = list(heights), 16 * len(heights) + 1_000
    while work:
        caller = work.pop()
        for callee, rise in callees.get(caller, ()):
            height = min(heights[caller] + rise, STACK_LIMIT)
            if height > heights[callee]:
                budget -= 1
                if budget < 0:
                    return dict.fromkeys(heights, STACK_LIMIT)
                heights[callee] = height
                work.append(callee)
    return heights


# -- which slots are live -----------------------------------------------------------------------------------------


def _shape(block: DependencyBlock) -> Shape:
    masks: dict[int, int] = {}
    for index, value in enumerate(block.entry):
        masks[value.id] = 1 << index if index < DEPTH else 0
    needs = 0
    for value in block.instructions:
        mask = 0
        for arg in value.args:
            mask |= masks.get(arg.id, 0)
        masks[value.id] = mask
        if traits_of(value).is_root:
            needs |= mask
    for value in block.terminator.args:
        needs |= masks.get(value.id, 0)
    return Shape(len(block.entry), needs, [masks.get(value.id, 0) for value in reversed(block.stack)])


def _find_parameters(flow: Flow) -> None:
    """Live-in slots of each block: backward data flow, to a fixed point."""
    shapes = {start: _shape(flow.plain[start]) for start in flow.order}
    live = dict.fromkeys(flow.order, 0)
    after: dict[int, int] = {}
    work, queued = list(flow.order), set(flow.order)
    while work:
        start = work.pop()
        queued.discard(start)
        shape, out = shapes[start], 0
        for to in flow.successors[start]:
            out |= live[to]
        after[start] = out
        found = shape.needs | _before(shape, out, flow.heights[start])
        if start in flow.open:
            found = 0
        if found != live[start]:
            live[start] = found
            for previous in flow.predecessors[start]:
                if previous not in queued:
                    queued.add(previous)
                    work.append(previous)
    flow.params = {start: tuple(d for d in range(1, DEPTH + 1) if live[start] >> (d - 1) & 1) for start in flow.order}


def _before(shape: Shape, out: int, height: int) -> int:
    """The entry slots that the exit slots `out` depend on, and those that end up deeper than parameters can be."""
    found = 0
    for depth, mask in enumerate(shape.items):
        if depth >= DEPTH or out >> depth & 1:
            found |= mask
    rise = len(shape.items) - shape.entry
    untouched = ALL & ~((1 << min(shape.entry, DEPTH)) - 1)
    moved = out >> rise if rise >= 0 else out << -rise
    found |= moved & untouched
    if rise > 0:
        sinking = ALL & ~((1 << max(DEPTH - rise, 0)) - 1)
        existing = (1 << min(height, DEPTH)) - 1
        found |= sinking & untouched & existing
    return found & ALL


def _find_depths(flow: Flow) -> None:
    for start in flow.order:
        block = flow.plain[start]
        deepest = max([len(block.entry), *flow.params[start]])
        for to in flow.successors[start]:
            for depth in flow.params[to]:
                deepest = max(deepest, depth - len(block.stack) + len(block.entry))
        flow.depth[start] = deepest


# -- where parameters come from -----------------------------------------------------------------------------------


def _find_origins(flow: Flow) -> None:
    """Optimistic: a parameter is the word that all predecessors agree on, and a PHI only where they do not."""
    firsts = {start: _first_places(flow.plain[start]) for start in flow.order}
    dirty = set(flow.order)
    for _ in range(_PASSES):
        for start in flow.order:
            if start in dirty:
                dirty.discard(start)
                if _update_origins(flow, firsts, start):
                    dirty.update(flow.successors[start])
        if not dirty:
            return
    # No fixed point within the passes: a PHI at every join, which is always correct.
    flow.origins.clear()
    for start in flow.order:
        alone = len(flow.predecessors[start]) == 1
        for depth in flow.params[start]:
            origin = _handed(flow, firsts, flow.predecessors[start][0], depth) if alone else None
            flow.origins[start, depth] = origin or Origin(start, depth, is_phi=True)


def _update_origins(flow: Flow, firsts: dict[int, dict[int, int]], start: int) -> bool:
    changed = False
    for depth in flow.params[start]:
        found = _agreed(flow, firsts, start, depth)
        if found is not None and flow.origins.get((start, depth)) != found:
            flow.origins[start, depth] = found
            changed = True
    return changed


def _first_places(block: DependencyBlock) -> dict[int, int]:
    """The first index of each value on the exit stack, so that a value has one name."""
    places: dict[int, int] = {}
    for index, value in enumerate(block.stack):
        places.setdefault(value.id, index)
    return places


def _agreed(flow: Flow, firsts: dict[int, dict[int, int]], start: int, depth: int) -> Origin | None:
    own = Origin(start, depth, is_phi=True)
    agreed: Origin | None = None
    for previous in flow.predecessors[start]:
        handed = _handed(flow, firsts, previous, depth)
        if handed is None or handed == own:
            continue
        if agreed is None:
            agreed = handed
        elif agreed != handed:
            return own
    return agreed


def _handed(flow: Flow, firsts: dict[int, dict[int, int]], start: int, depth: int) -> Origin | None:
    """What the block leaves at that depth; None while that is not known yet."""
    block = flow.plain[start]
    index = len(block.stack) - depth
    if index >= 0:
        value = block.stack[index]
        if value.op == CONST:
            return Origin(literal=value.number)
        if value.op != UNSPILL:
            return Origin(start, firsts[start][value.id])
        entry_depth = -value.number
    else:
        entry_depth = len(block.entry) - index
    if entry_depth in flow.params[start]:
        return flow.origins.get((start, entry_depth))
    return Origin(start, -entry_depth)  # a word the block reads from the run-time stack
