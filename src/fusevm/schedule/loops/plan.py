"""Loop fusion (seed 001): finds loops, their iteration counts, and whether they may be charged in bulk.

A loop is legal for bulk charging if nothing can read the gas counter while it runs: no gas observer inside, a number of
iterations that follows from a counter, a bound and a step, and, if it has side exits, a bound on everything else it may
be charged. The result is in `LoopMetadata`, with the reason if a loop is not fused.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Effect
from fusevm.schedule.loops.charges import slack_of
from fusevm.schedule.loops.counting import Counted, counted_exit, signed, step_of
from fusevm.schedule.loops.find import regions_of
from fusevm.schedule.loops.shape import Shape
from fusevm.schedule.loops.walk import (
    MASK,
    UNKNOWN,
    Edge,
    Linear,
    Node,
    Refused,
    State,
    Value,
    Walk,
    blocks_of,
    joined,
    slot,
)
from fusevm.schedule.sections import Section, sections_of

BUDGET = 400  # tokens analysed in small code; for large code, plus an eighth of its bytes
LOOP_BUDGET = 400  # of these for one loop: longer ones have little to gain
MOST_LOOPS = 256  # headers analysed in one code
MOST_GAS = 1 << 31  # per iteration
WRITES = Effect.STORAGE | Effect.TRANSIENT | Effect.LOGS | Effect.ACCOUNTS


@dataclass(frozen=True)
class LoopMetadata:
    """What is known about a loop, fused or not. Pcs are block starts; gas is the static part."""

    loop_id: int  # loops are numbered by the pc of their header
    header: int
    kind: str  # while, do-while, break (tested in the middle), endless (no exit seen), or uncounted
    parent_loop_id: int | None = None
    start_value: int | None = None  # if the code just before the loop pushes it
    end_value: int | None = None  # None: a stack slot that the loop does not change
    counter_slot: int | None = None  # how deep the counter is where an iteration begins; 1 is the top
    bound_slot: int | None = None  # how deep the bound is, if it is a stack slot
    increment: int | None = None  # signed
    comparison: str | None = None  # the loop continues while counter COMPARISON end holds
    body: tuple[int, ...] = ()  # the blocks of an iteration
    exit_pc: int | None = None
    early_exits: tuple[int, ...] = ()
    gas_per_iteration: int = 0
    gas_to_test: int = 0  # what the last, failing test costs
    min_stack: int = 0
    max_stack: int = 0
    walks: tuple[str, ...] = ()  # array accesses: "memory +32", "storage +1"
    independent: bool = False  # no iteration needs another's result
    fused: bool = False
    unrolled: int = 0  # edges into it that lead to an unrolled copy
    reason: str = ""  # why it is not fused


@dataclass
class LoopPlan:
    """A fused loop: what its entry must compute, and what its copy is made of."""

    meta: LoopMetadata
    nodes: list[Node]
    members: list[int]  # nodes of an iteration in execution order
    spine: dict[int, int]  # nodes that every iteration passes once, and the gas from the header up to their end
    counted: Counted
    gas: int
    gas_to_test: int
    needs: int
    grows: int
    slack: int = 0  # per iteration: the maximum dynamic gas, if there are side exits
    slack_once: int = 0
    early: list[tuple[int, int]] = field(default_factory=list)  # (node, edge) of exits that give gas back


def loop_plans(
    sections: list[Section], dests: Set[int], code_size: int
) -> tuple[list[LoopMetadata], dict[int, LoopPlan]]:
    """All loops with a static backward jump, and the plans of those that can be fused, by header."""
    headers = {
        last.operand
        for section in sections
        if section.tokens
        and (last := section.tokens[-1]).name in ("JUMP@", "JUMPI@")
        and last.operand <= last.pc
        and last.operand in dests
    }
    most = BUDGET + code_size // 4
    if headers and len(sections) > most:
        sections = _reached(sections)
    if not headers or len(sections) > most:  # nothing but jumps and JUMPDESTs
        return [], {}
    blocks = blocks_of(sections)
    found: list[LoopMetadata] = []
    plans: dict[int, LoopPlan] = {}
    budget = BUDGET + code_size // 8
    regions = sorted(regions_of(blocks, dests, headers))[:MOST_LOOPS]
    numbers = {header: number for number, (header, _) in enumerate(regions)}
    for header, inside in sorted(regions, key=lambda region: (len(region[1]), region[0])):  # inner loops first
        share = min(budget, LOOP_BUDGET)
        walk = Walk(header, blocks, inside, dests, share)
        meta, plan = _examined(walk, numbers[header])
        budget -= share - max(walk.budget, 0)
        if meta is None or (not walk.latches and header not in headers):  # perhaps not a loop
            continue
        if plan is not None:
            plans[header] = plan
        found.append(meta)
    found = _nested(sorted(found, key=lambda meta: meta.header))
    for meta in found:
        if meta.header in plans:
            plans[meta.header].meta = meta
    return found, plans


def _reached(sections: list[Section]) -> list[Section]:
    """Without those JUMPDESTs inside of a row that nothing in the code names."""
    named = {token.operand for section in sections for token in section.tokens}
    before = [None, *[section.tokens for section in sections]]
    return [
        section
        for section, ahead in zip(sections, before, strict=False)
        if not section.row or section.tokens is not ahead or section.pc in named
    ]


def found_loops(code: bytes, fork: Fork) -> list[LoopMetadata]:
    """The loops of some code, as loop fusion sees them."""
    from fusevm.schedule.loops.place import with_loops
    from fusevm.schedule.loops.unroll import start_values
    from fusevm.schedule.threading import threaded

    dests = jumpdests(code)
    native = frozenset(BY_NAME)  # every opcode has a handler
    sections = threaded(sections_of(code, fork, native, dests), dests)
    loops = with_loops(sections, dests, len(code)).loops
    starts = start_values(sections, loops)
    return [replace(each, start_value=starts.get(each.header)) for each in loops]


def _nested(found: list[LoopMetadata]) -> list[LoopMetadata]:
    """The parent is the smallest other loop whose blocks hold the header."""
    by_size = sorted(found, key=lambda meta: len(meta.body))
    result = []
    for meta in found:
        around = [
            each
            for each in by_size
            if each is not meta and meta.header in each.body and len(each.body) > len(meta.body)
        ]
        result.append(replace(meta, parent_loop_id=around[0].loop_id) if around else meta)
    return result


def _examined(walk: Walk, number: int) -> tuple[LoopMetadata | None, LoopPlan | None]:
    meta = LoopMetadata(number, walk.header, "uncounted")
    try:
        walk.run()
    except Refused as refusal:
        return replace(meta, body=_pcs(walk.nodes), reason=str(refusal)), None
    if not walk.latches:
        return None, None  # a call of a function that comes before its caller
    return _planned(Shape(walk), meta)


def _pcs(nodes: list[Node]) -> tuple[int, ...]:
    return tuple(sorted({node.block.pc for node in nodes}))


def _planned(shape: Shape, meta: LoopMetadata) -> tuple[LoopMetadata, LoopPlan | None]:
    """What is known about a loop, and its plan, or the reason why it has none."""
    meta = _outlined(shape, meta)
    try:
        latch = _joined_latch(shape)
    except Refused as refusal:
        return replace(meta, reason=str(refusal)), None
    meta = _described(shape, meta, latch)
    counted = next((each for each in (counted_exit(shape, latch, *leaving) for leaving in shape.exits) if each), None)
    plan = None if counted is None else _plan_of(shape, meta, counted)
    meta = meta if plan is None else plan.meta
    try:
        _require_unobserved(shape)
        if plan is None:
            raise Refused(_why_uncounted(shape, latch))
        _require_bounded(shape, plan)
    except Refused as refusal:
        return replace(meta, reason=str(refusal)), None
    plan.meta = replace(meta, fused=True)
    return plan.meta, plan


def _outlined(shape: Shape, meta: LoopMetadata) -> LoopMetadata:
    """What follows from the blocks alone: the exits, the cost of an iteration, and its effect on the stack."""
    needs, grows = _bounds(shape)
    return replace(
        meta,
        kind="uncounted" if shape.exits else "endless",
        body=_pcs([shape.nodes[each] for each in shape.members]),
        early_exits=tuple(edge.pc for edge in _leaving(shape) if edge.pc >= 0),
        gas_per_iteration=shape.gas,
        min_stack=needs,
        max_stack=grows,
    )


def _leaving(shape: Shape) -> list[Edge]:
    """The exits that do not consume all gas anyway."""
    edges = [shape.nodes[number].edges[way] for number, way in shape.exits]
    return [edge for edge in edges if not _halts(shape, edge)]


def _bounds(shape: Shape) -> tuple[int, int]:
    """Words that an iteration needs on the stack, and its maximum rise, over the nodes that always run."""
    spine = [shape.nodes[each] for each in shape.spine]
    needs = max(0, *(node.block.needs - node.before.height for node in spine))
    grows = max(0, *(node.block.grows + node.before.height for node in spine))
    return needs, grows


def _joined_latch(shape: Shape) -> State:
    """The stack after an iteration, joined over all latches."""
    latch: State | None = None
    for number in shape.latches:
        after = shape.nodes[number].after
        latch = after if latch is None else joined(latch, after)
        if latch is None or latch.height:
            raise Refused("the stack's height changes from one iteration to the next")
    assert latch is not None
    return latch


def _require_unobserved(shape: Shape) -> None:
    for number in shape.members:
        node = shape.nodes[number]
        if node.block.observed:
            raise Refused(f"{node.block.observed} looks at the gas counter, or may leave to Python")
        if any(edge.pc == UNKNOWN for edge in node.edges):
            raise Refused("a jump inside has an unknown target")


def _plan_of(shape: Shape, meta: LoopMetadata, counted: Counted) -> LoopPlan:
    """The plan of a counted loop, including its side exits."""
    nodes, to_test = shape.nodes, shape.spine[counted.node]
    early = [
        (number, way)
        for number, way in shape.exits
        if (number, way) != (counted.node, counted.way) and not _halts(shape, nodes[number].edges[way])
    ]
    needs, grows = meta.min_stack, meta.max_stack
    bottom = nodes[counted.node].number in shape.latches
    meta = replace(
        meta,
        kind="do-while" if bottom else "break" if counted.node else "while",
        end_value=counted.bound_addend if not counted.bound_slot else None,
        counter_slot=counted.slot,
        bound_slot=counted.bound_slot or None,
        increment=counted.step,
        comparison=counted.relation,
        exit_pc=nodes[counted.node].edges[counted.way].pc,
        early_exits=tuple(nodes[number].edges[way].pc for number, way in early),
        gas_to_test=to_test,
    )
    needs = max(needs, counted.slot, counted.bound_slot)
    return LoopPlan(meta, nodes, shape.members, shape.spine, counted, shape.gas, to_test, needs, grows, early=early)


def _require_bounded(shape: Shape, plan: LoopPlan) -> None:
    """Checks that an iteration's charges fit the operands; with side exits, that the dynamic gas is bounded."""
    if shape.gas > MOST_GAS:
        raise Refused("an iteration costs more than a section may")
    if not plan.early:
        return
    plan.slack, plan.slack_once = slack_of(shape)
    if plan.slack > MOST_GAS:
        raise Refused("it can be left early, and may cost more than a section")
    if not all(leaving_depths(plan, number) for number, _ in plan.early):
        raise Refused("an early exit has lost sight of the counter or the bound")


def _described(shape: Shape, meta: LoopMetadata, latch: State) -> LoopMetadata:
    """Arrays walked over, and whether iterations are independent of each other."""
    steps = {number: step for number in range(1, latch.taken + 1) if (step := step_of(latch, number))}
    changed = [number for number in range(1, latch.taken + 1) if latch.at(number) != slot(number)]
    walks: list[str] = []
    independent = all(number in steps for number in changed)
    for number in shape.members:
        for access in shape.nodes[number].accesses:
            stride = _stride(access.address, steps)
            op = BY_NAME[access.name]
            slots = bool((op.reads | op.writes) & Effect.STORAGE)
            if stride and (slots or any(span.size < 0 for span in op.touches)):
                place = "storage" if slots else "memory"
                walks.append(f"{place} {stride:+d} ({access.name} at 0x{access.pc:x})")
            if op.writes & (WRITES | Effect.OUTSIDE) or op.observes_gas:
                independent &= access.name == "SSTORE" and bool(stride)
            elif op.writes & Effect.MEMORY:
                independent &= access.name == "MSTORE" and bool(stride) and abs(stride or 0) >= 32
            elif op.reads & Effect.MEMORY and _writes_memory(shape):
                independent &= access.name == "MLOAD" and bool(stride) and abs(stride or 0) >= 32
    return replace(meta, walks=tuple(dict.fromkeys(walks)), independent=independent)


def _writes_memory(shape: Shape) -> bool:
    return any(
        bool(BY_NAME[access.name].writes & Effect.MEMORY)
        for number in shape.members
        for access in shape.nodes[number].accesses
    )


def _stride(address: Value, steps: Mapping[int, int]) -> int:
    if not isinstance(address, Linear):
        return 0
    return signed(sum(steps.get(number, 0) * coefficient for number, coefficient in address.terms) & MASK)


def _why_uncounted(shape: Shape, latch: State) -> str:
    if not shape.exits:
        return "nothing leaves it but a halt"
    if not any(step_of(latch, number) for number in range(1, latch.taken + 1)):
        return "no stack slot changes by a constant per iteration"
    return "no exit compares a counter with a literal or an unchanging stack slot"


def _halts(shape: Shape, edge: Edge) -> bool:
    """Whether an exit consumes all gas anyway."""
    block = shape.blocks.get(edge.pc)
    if block is None:  # an invalid jump
        return True
    tokens = block.tokens
    return bool(tokens) and tokens[-1].name == "INVALID"


def leaving_depths(plan: LoopPlan, number: int) -> tuple[int, int, int] | None:
    """The depths of the counter and the bound after an exiting node, and how far the counter has moved by then."""
    after, counted = plan.nodes[number].after, plan.counted
    bound = 0
    if counted.bound_slot:
        found = after.depth_of(slot(counted.bound_slot))
        if found is None:
            return None
        bound = found
    for moved in (0, counted.step):
        value = Linear(moved & MASK, ((counted.slot, 1),))
        depth = after.depth_of(value)
        if depth is not None:
            return depth, bound, moved
    return None
