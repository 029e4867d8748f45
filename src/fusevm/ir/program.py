"""Whole programs as dependency blocks: every block is lifted again with the live-in words that the flow found."""

from __future__ import annotations

from functools import cache

from fusevm.analysis.cfg import Cfg, control_flow
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import ACCESS, MSIZE, OUTSIDE, Effect, Opcode
from fusevm.ir.block import CONTINUES, DependencyBlock, Edge, Mode, Program, Terminator
from fusevm.ir.builder import Builder
from fusevm.ir.copies import pc_of
from fusevm.ir.flow import DEPTH, Flow, Origin, flow_of
from fusevm.ir.lift import run, shape_of
from fusevm.ir.liveness import prune
from fusevm.ir.values import PHI, SPILL, UNSPILL, Value


def lift_program(code: bytes, fork: Fork = LATEST, peel: bool = False) -> Program:
    """Lifts the program without folding it."""
    return build_program(flow_of(control_flow(code, fork), peel), Builder(), Mode.EXECUTION)


def unseen_by(cfg: Cfg) -> Effect:
    """Of memory growth and warmth, the effects that neither the program nor its callees can observe."""
    seen = Effect.NONE
    for node in cfg.nodes.values():
        if node.reached:
            for instruction in node.block.instructions:
                if instruction.op is not None:
                    seen |= _noticed(instruction.op)
    return (MSIZE | ACCESS) & ~seen


@cache
def _noticed(op: Opcode) -> Effect:
    """MSIZE is observed by its readers; warmth by callees, which may have enough gas for a warm access only."""
    grown = MSIZE & op.reads
    return grown | ACCESS if op.writes & OUTSIDE else grown


def build_program(flow: Flow, builder: Builder, mode: Mode) -> Program:
    """Passes every block through the builder, dominators first, then adds the edges between them."""
    cfg = flow.cfg
    unseen = unseen_by(cfg) if mode is Mode.OPTIMISATION else None
    program = Program(cfg.code, cfg, {}, cfg.fork, mode, unseen=unseen)
    for start in flow.order:
        block = shape_of(flow.sources[start])
        program.blocks[start] = block
        builder.begin(block)
        _enter(flow, program, block, builder)
        run(flow.sources[start], cfg.fork, builder)
        builder.finish_block()
    for block in program.blocks.values():
        _connect(flow, program, block)
        _spill(flow, program, block, builder)
    prune(program)
    program.blocks = dict(sorted(program.blocks.items()))
    program.next_id = builder.next_id
    return program


def _enter(flow: Flow, program: Program, block: DependencyBlock, builder: Builder) -> None:
    """Names the entry slots: PHIs, words of dominating blocks, literals, and words on the run-time stack."""
    params = set(flow.params[block.start])
    for depth in range(1, flow.depth[block.start] + 1):
        origin = flow.origins[block.start, depth] if depth in params else None
        if origin is None:
            value = builder.make(UNSPILL, (), -depth)
        elif origin == Origin(block.start, depth, is_phi=True):
            value = builder.make(PHI, (), -depth)
            block.params += (-depth,)
        else:
            value = _word_of(origin, program, builder)
        block.entry.append(value)


def _word_of(origin: Origin, program: Program, builder: Builder) -> Value:
    if origin.literal is not None:
        return builder.const(origin.literal)
    source = program.blocks[origin.block]
    if origin.is_phi:
        return source.entry[origin.index - 1]
    if origin.index < 0:
        return source.entry[-origin.index - 1]
    # The index counts from the deepest slot the block touches, but the block may name deeper slots as well.
    touched = -source.low
    return source.stack[origin.index + len(source.entry) - touched] if source.stack else builder.const(0)


def _connect(flow: Flow, program: Program, block: DependencyBlock) -> None:
    """Adds the terminator's known edges, with the arguments for the PHIs of each successor."""
    for target in ways_on(flow, block):
        following = program.blocks[target]
        edge = Edge(target)
        for slot in following.params:
            value = block.at_exit(slot + block.delta)
            assert value is not None
            edge.args[slot] = value
        block.terminator.edges.append(edge)


def ways_on(flow: Flow, block: DependencyBlock) -> list[int]:
    """The successors that the flow knows, without those that a decided terminator rules out."""
    terminator, known = block.terminator, flow.successors[block.start]
    ways: list[int] = []
    if terminator.op in ("JUMP", "JUMPI"):
        target = terminator.args[0]
        ways = [_block_at(flow, known, target.number)] if target.is_const else list(known)
    if terminator.op in ("JUMPI", "FALL") and terminator.falls is not None:
        ways.append(_block_at(flow, known, terminator.falls))
    return [to for to in dict.fromkeys(ways) if to in flow.plain]


def _block_at(flow: Flow, known: tuple[int, ...], pc: int) -> int:
    return next((key for key in known if pc_of(key) == pc), pc)


def _spill(flow: Flow, program: Program, block: DependencyBlock, builder: Builder) -> None:
    """Spills the words that a successor will read from the run-time stack."""
    terminator = block.terminator
    if terminator.op not in CONTINUES:
        return
    anywhere = flow.last[block.start].unknown and _may_jump_anywhere(terminator)
    wanted = [_expects(flow, edge.target) for edge in terminator.edges]
    builder.block = block
    for index in reversed(range(len(block.stack))):
        depth = len(block.stack) - index
        if not anywhere and not any(depth > deep or (loose and depth not in params) for params, deep, loose in wanted):
            continue
        value, slot = block.stack[index], block.slot_of(index)
        if not (value.op == UNSPILL and value.number == slot and value.block == block.start):
            block.spills.append(builder.make(SPILL, (value,), slot))


def _may_jump_anywhere(terminator: Terminator) -> bool:
    return terminator.op in ("JUMP", "JUMPI") and not terminator.args[0].is_const


def _expects(flow: Flow, target: int) -> tuple[frozenset[int], int, bool]:
    """Its parameters; the depth below which all slots must be spilled; whether all that are not parameters must be."""
    loose = flow.cfg.has_unknown_jumps or flow.cfg.budget_spent
    return frozenset(flow.params[target]), DEPTH, loose or target in flow.open
