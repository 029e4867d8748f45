"""Loops of some code (seed 001): what counts each, what an iteration costs and needs, and what it does to memory.

The result is a `LoopMetadata` for each loop, with the reason where no number of iterations follows from a counter, a
bound and a step. Whether native code holds it in a region is told by `native/region/loops.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fusevm.analysis.loops.counting import Counted, counted_exit, signed, step_of, trips
from fusevm.analysis.loops.cycles import cycles_in, headers_in, static_targets
from fusevm.analysis.loops.shape import LoopShape
from fusevm.analysis.loops.starts import start_values
from fusevm.analysis.loops.walk import Edge, LoopNode, NotCounted, Walk, blocks_of
from fusevm.analysis.loops.words import MASK, Linear, LoopStack, Value, joined, slot
from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Effect

BUDGET = 10_000  # instructions walked in small code; for large code, plus four times its bytes
LOOP_BUDGET = 10_000  # of these for one loop
MAX_LOOPS = 256  # headers analysed in one code
WRITES = Effect.STORAGE | Effect.TRANSIENT | Effect.LOGS | Effect.ACCOUNTS


@dataclass(frozen=True)
class SideExit:
    """Where a region is left for the schedule, and why."""

    pc: int
    reason: str


@dataclass(frozen=True)
class LoopMetadata:
    """What is known about a loop. Pcs are block starts; gas is the static part."""

    loop_id: int  # loops are numbered by the pc of their header
    header: int
    kind: str  # while, do-while, break (tested in the middle), endless (no exit seen), or uncounted
    parent_loop_id: int | None = None
    start_value: int | None = None  # if the code just before the loop pushes it
    end_value: int | None = None  # None: a stack slot that the loop does not change
    trips: int | None = None  # how often the test holds, if start and end are known and nothing leaves early
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
    uncounted: str = ""  # why nothing counts it
    fused: bool = False  # whether a region that begins at the header can hold iterations
    side_exits: tuple[SideExit, ...] = ()  # where control leaves that region for the schedule
    reason: str = ""  # why it is not fused


def loops_of(code: bytes, fork: Fork) -> list[LoopMetadata]:
    """All loops with a static backward jump; what regions can do with them is not told yet."""
    dests = jumpdests(code)
    blocks = blocks_of(code, fork, dests)
    targets = static_targets(blocks)
    headers = headers_in(blocks, targets, dests)
    if not headers:
        return []
    cycles = sorted(cycles_in(blocks, targets, dests, headers))[:MAX_LOOPS]
    numbers = {header: number for number, (header, _) in enumerate(cycles)}
    budget = BUDGET + 4 * len(code)
    found: list[LoopMetadata] = []
    tests: dict[int, Counted] = {}  # what counts them, by header
    for header, inside in sorted(cycles, key=lambda cycle: (len(cycle[1]), cycle[0])):  # inner loops first
        share = min(budget, LOOP_BUDGET)
        walk = Walk(header, blocks, inside, dests, share)
        meta, counted = _examined(walk, numbers[header])
        budget -= share - max(walk.budget, 0)
        if meta is None or (not walk.is_loop and header not in headers):  # perhaps not a loop
            continue
        found.append(meta)
        if counted is not None:
            tests[header] = counted
    found = _nested(sorted(found, key=lambda meta: meta.header))
    counters = {each.header: (tests[each.header].slot, each.body) for each in found if each.header in tests}
    starts = start_values(blocks, targets, counters)
    return [_started(each, tests, starts) for each in found]


def _started(meta: LoopMetadata, tests: Mapping[int, Counted], starts: Mapping[int, int]) -> LoopMetadata:
    """With what the counter starts with, and how often the test holds then."""
    start = starts.get(meta.header)
    if start is None:
        return meta
    counted, count = tests[meta.header], None
    if not counted.bound_slot:
        count = trips(counted.relation, start + counted.addend & MASK, counted.bound_addend, counted.step)
    return replace(meta, start_value=start, trips=count)


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


def _examined(walk: Walk, number: int) -> tuple[LoopMetadata | None, Counted | None]:
    meta = LoopMetadata(number, walk.header, "uncounted")
    try:
        walk.run()
    except NotCounted as refusal:
        return replace(meta, body=_pcs(walk.nodes), uncounted=str(refusal)), None
    if not walk.is_loop:
        return None, None  # a call of a function that comes before its caller
    shape = LoopShape(walk)
    meta = _outlined(shape, meta)
    try:
        latch = _joined_latch(shape)
    except NotCounted as refusal:
        return replace(meta, uncounted=str(refusal)), None
    meta = _described(shape, meta, latch)
    for exit_ in shape.exits:
        if counted := counted_exit(shape, latch, *exit_):
            return _counted(shape, meta, counted), counted
    return replace(meta, uncounted=_why_uncounted(shape, latch)), None


def _pcs(nodes: list[LoopNode]) -> tuple[int, ...]:
    return tuple(sorted({node.block.pc for node in nodes}))


def _outlined(shape: LoopShape, meta: LoopMetadata) -> LoopMetadata:
    """What follows from the blocks alone: the exits, the cost of an iteration, and its effect on the stack."""
    needs, grows = _bounds(shape)
    return replace(
        meta,
        kind="uncounted" if shape.exits else "endless",
        body=_pcs([shape.nodes[each] for each in shape.members]),
        early_exits=_left_to(shape, shape.exits),
        gas_per_iteration=shape.gas,
        min_stack=needs,
        max_stack=grows,
    )


def _left_to(shape: LoopShape, exits: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Where these exits lead, if they do not consume all gas anyway."""
    edges = (shape.nodes[number].edges[way] for number, way in exits)
    return tuple(dict.fromkeys(edge.pc for edge in edges if edge.pc >= 0 and not _halts(shape, edge)))


def _bounds(shape: LoopShape) -> tuple[int, int]:
    """Words that an iteration needs on the stack, and its maximum rise, over the nodes that always run."""
    spine = [shape.nodes[each] for each in shape.spine]
    needs = max(0, *(node.block.needs - node.before.height for node in spine))
    grows = max(0, *(node.block.grows + node.before.height for node in spine))
    return needs, grows


def _joined_latch(shape: LoopShape) -> LoopStack:
    """The stack after an iteration, joined over all latches."""
    latch: LoopStack | None = None
    for number in shape.latches:
        after = shape.nodes[number].after
        latch = after if latch is None else joined(latch, after)
        if latch is None or latch.height:
            raise NotCounted("the stack's height changes from one iteration to the next")
    assert latch is not None
    return latch


def _counted(shape: LoopShape, meta: LoopMetadata, counted: Counted) -> LoopMetadata:
    """With the exit that counts the loop."""
    nodes = shape.nodes
    early = [leaving for leaving in shape.exits if leaving != (counted.node, counted.way)]
    return replace(
        meta,
        kind="do-while" if counted.node in shape.latches else "break" if counted.node else "while",
        end_value=counted.bound_addend if not counted.bound_slot else None,
        counter_slot=counted.slot,
        bound_slot=counted.bound_slot or None,
        increment=counted.step,
        comparison=counted.relation,
        exit_pc=nodes[counted.node].edges[counted.way].pc,
        early_exits=_left_to(shape, early),
        gas_to_test=shape.spine[counted.node],
    )


def _described(shape: LoopShape, meta: LoopMetadata, latch: LoopStack) -> LoopMetadata:
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


def _writes_memory(shape: LoopShape) -> bool:
    return any(
        bool(BY_NAME[access.name].writes & Effect.MEMORY)
        for number in shape.members
        for access in shape.nodes[number].accesses
    )


def _stride(address: Value, steps: Mapping[int, int]) -> int:
    if not isinstance(address, Linear):
        return 0
    return signed(sum(steps.get(number, 0) * coefficient for number, coefficient in address.terms) & MASK)


def _why_uncounted(shape: LoopShape, latch: LoopStack) -> str:
    if not shape.exits:
        return "it has no exit but a halt"
    if not any(step_of(latch, number) for number in range(1, latch.taken + 1)):
        return "no stack slot changes by a constant per iteration"
    return "no exit compares a counter with a literal or an unchanging stack slot"


def _halts(shape: LoopShape, edge: Edge) -> bool:
    """Whether an exit consumes all gas anyway."""
    block = shape.blocks.get(edge.pc)
    return block is None or block.is_invalid  # an invalid jump
