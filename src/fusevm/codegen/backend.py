"""The back end: functions in SSA form to stack code.

functions → fold → straighten → inline → fold → layouts → blocks → passes → placement → assembly
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from fusevm.codegen.arrangements import Unreachable
from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.blocks import StackProgram
from fusevm.codegen.constants import DEPOSIT, pushed
from fusevm.codegen.dispatch import lower_switches, split_ways
from fusevm.codegen.duplication import duplicate_short_blocks
from fusevm.codegen.inlining import calls_of, inline_what_pays, largest_size, recursive_functions
from fusevm.codegen.passes import join_blocks, merge_equal_blocks, merge_tails, peephole, thread_jumps
from fusevm.codegen.placement import place
from fusevm.codegen.spilling import cost_of_spilling, is_cheap, keep_in_memory, recompute, users
from fusevm.codegen.stack_code import CodeWriter
from fusevm.codegen.weights import Weights, all_weights
from fusevm.codegen.yul_functions import unit_of
from fusevm.evm.assembler import WORD_BYTES, Assembly, Source
from fusevm.evm.opcodes import MSIZE
from fusevm.ir.dead_stores import drop_unread_stores
from fusevm.ir.fold.functions import fold_unit
from fusevm.ir.fold.recorder import Recorder
from fusevm.ir.fold.summaries import summaries
from fusevm.ir.functions import Function, GraphBlock, Unit
from fusevm.ir.graphs import drop_choices, prune, straighten, unseen_in
from fusevm.ir.sharing import Reach, share_constants
from fusevm.ir.sinking import sink
from fusevm.ir.threading import hoist_value_check, thread_branches
from fusevm.ir.values import Value
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect

Changed = TypeVar("Changed")

ROUNDS = 3  # of inlining and folding
BEAM = 6  # stack arrangements kept by the beam search
SHARED = ((21, Reach(4, joins=True)), (6, Reach(2)))  # how far constants of at least this many bytes are kept
ATTEMPTS = 4  # to find how much memory spilling needs
MOST_SPILLS = 2  # of one value: again where its store has to come before that of another, but not without end


class Runner(Protocol):
    """Runs a named pass over a unit. A checker of passes replaces `just_run`."""

    def __call__(self, name: str, unit: Unit, change: Callable[[], Changed]) -> Changed: ...


def just_run(name: str, unit: Unit, change: Callable[[], Changed]) -> Changed:
    return change()


def generate(
    code: Block,
    dialect: Dialect,
    runs: int = 200,
    *,
    exact: bool = False,
    run: Runner = just_run,
    recorder: Recorder | None = None,
) -> Assembly:
    """The code of a block of Yul whose names are unique; `exact` keeps the computation as written."""
    spills = Spills()
    for _ in range(ATTEMPTS):
        reserved = spills.used
        unit = unit_of(code, dialect, reserved)
        if recorder is not None:
            recorder.start()
        if exact:
            keep_as_written(unit)
        else:
            optimise(unit, runs, run, recorder)
        if recorder is not None:
            recorder.finish(unit)
        spills.used = 0
        program = stack_code(unit, runs, spills, exact=exact, run=run)
        if spills.used <= reserved:
            improve(program, runs)
            if recorder is not None:
                recorder.merged(program.merged)
            return assembly_of(program, unit, runs)
    raise StackTooDeep({})


def optimise(unit: Unit, runs: int = 200, run: Runner = just_run, recorder: Recorder | None = None) -> None:
    def fold() -> None:
        run("fold", unit, lambda: fold_unit(unit, recorder))
        run("clean", unit, lambda: clean(unit))
        drop_uncalled(unit)

    drop_uncalled(unit)
    fold()
    largest = largest_size(unit, runs)
    for _ in range(ROUNDS):
        if not run("inline", unit, lambda: inline_what_pays(unit, all_weights(unit), runs, largest)):
            break
        drop_uncalled(unit)
        fold()
    fold()


def keep_as_written(unit: Unit) -> None:
    """No folding and no inlining; only straight lines of blocks are merged."""
    drop_uncalled(unit)
    for function in unit.functions.values():
        straighten(function)


def drop_uncalled(unit: Unit) -> None:
    """Removes functions that are not reachable from the main code."""
    needed, work = {""}, [""]
    while work:
        for callee in calls_of(unit.functions[work.pop()], unit):
            if callee not in needed:
                needed.add(callee)
                work.append(callee)
    unit.functions = {name: function for name, function in unit.functions.items() if name in needed}


def clean(unit: Unit) -> None:
    effects, unseen = summaries(unit), unseen_in(unit)
    for function in unit.functions.values():
        drop_choices(function)
        if unseen & MSIZE:
            drop_unread_stores(unit, function, effects)
        prune(unit, function, effects, unseen)
        straighten(function)
        if thread_branches(function):
            straighten(function)


@dataclass(slots=True)
class Spills:
    """Values that did not fit on the stack."""

    used: int = 0  # bytes of memory they take
    known: dict[str, list[int]] = field(default_factory=dict)  # value ids by function, reused by the next attempt


def stack_code(
    unit: Unit, runs: int, spills: Spills, *, exact: bool = False, low: bool = False, run: Runner = just_run
) -> StackProgram:
    """`low`: recursive functions raise the stack as little as possible."""
    if not exact:
        run("hoist", unit, lambda: _each(unit, hoist_value_check))
    lower(unit)
    run("sink", unit, lambda: _each(unit, sink))
    run("share", unit, lambda: _share(unit, runs))
    return write(unit, runs, spills, low=low)


def lower(unit: Unit) -> None:
    """Lowers switches to branches, and splits critical edges."""
    _each(unit, lower_switches)
    _each(unit, split_ways)


def write(unit: Unit, runs: int, spills: Spills, beam: int = BEAM, low: bool = False) -> StackProgram:
    """Writes the code of a lowered unit; a narrow beam is faster, a wide one finds better code."""
    recursive = recursive_functions(unit)
    writer = CodeWriter(unit, unseen_in(unit), runs, beam, frozenset(recursive) if low else frozenset())
    weights = all_weights(unit)
    for name, function in unit.functions.items():
        room = None if unit.guard is None or name in recursive else unit.guard
        write_function(writer, function, weights[name], room, spills)
    return writer.program


def _each(unit: Unit, change: Callable[[Function], object]) -> None:
    for function in unit.functions.values():
        change(function)


def _share(unit: Unit, runs: int) -> None:
    weights = all_weights(unit)
    for name, function in unit.functions.items():
        share_constants(function, partial(_reach, unit, runs, weights[name]))


def _reach(unit: Unit, runs: int, weights: Weights, word: int, block: GraphBlock) -> Reach | None:
    """How far the word is worth keeping on the stack, with a DUP instead of a PUSH."""
    length = len(pushed(word, unit, runs * weights.get(block, 1.0)))
    return next((reach for least, reach in SHARED if length >= least), None)


def write_function(writer: CodeWriter, function: Function, weights: Weights, room: int | None, spills: Spills) -> None:
    """Writes a function, spilling as few values as possible; `room`: where free memory begins, or None."""
    known = spills.known.setdefault(function.name, [])
    again = list(known)
    known.clear()
    while True:
        remembered = bool(again)
        try:
            if not remembered:
                writer.write(function, weights)
                return
            candidates = {again.pop(0)}
        except Unreachable as reason:
            candidates = reason.candidates
        candidates = {each for each in candidates if known.count(each) < MOST_SPILLS}
        value = _to_spill(function, candidates, weights, room is not None)
        if value is None and remembered:
            continue
        if value is None:
            raise StackTooDeep({function.name: []})
        known.append(value.id)
        if is_cheap(value):
            recompute(function, value)
        else:
            assert room is not None
            keep_in_memory(function, value, room + spills.used)
            spills.used += WORD_BYTES


def _to_spill(function: Function, candidates: set[int], weights: dict[GraphBlock, float], memory: bool) -> Value | None:
    """The candidate that is cheapest to spill; reloads (MLOAD) and rematerialised values with one use are skipped."""
    found = [
        value
        for block in function.blocks()
        for value in (*block.params, *block.instructions)
        if value.id in candidates and value.op != "MLOAD" and (memory or is_cheap(value))
    ]
    found = [value for value in found if len(users(function, value)) > (1 if is_cheap(value) else 0)]
    return min(found, key=lambda value: (cost_of_spilling(function, value, weights), value.id), default=None)


def improve(
    program: StackProgram, runs: int, followed: Mapping[Source, Source] | None = None, *, copying: int = 0
) -> None:
    """Runs the passes over stack code; for `followed` see `place`. `copying`: the runs at which short blocks are copied
    in place of jumps to them; at 0 only those no longer than the jump are."""
    thread_jumps(program)
    join_blocks(program)
    peephole(program)
    while merge_equal_blocks(program):
        thread_jumps(program)
    merge_tails(program, DEPOSIT, runs)
    while merge_equal_blocks(program):
        pass
    join_blocks(program)
    place(program, followed)
    if duplicate_short_blocks(program, DEPOSIT, copying):
        join_blocks(program)
        peephole(program)
        place(program, followed)
