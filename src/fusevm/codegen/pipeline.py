"""The compiler's passes in their order, as data. Yul and bytecode run the same list; `fusevm passes` prints it.

A pass is left out by its name; a few names are parts of a pass. `Repeat` runs its passes until the first of them
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from fusevm.analysis.graphs import postorder
from fusevm.codegen.blocks import StackProgram
from fusevm.codegen.constants import DEPOSIT, pushed
from fusevm.codegen.dispatch import LINEAR, lower_switches, split_critical_edges
from fusevm.codegen.duplication import duplicate_short_blocks
from fusevm.codegen.inlining import inline_what_pays, largest_size
from fusevm.codegen.passes import join_blocks, merge_equal_blocks, merge_tails, peephole, thread_jumps
from fusevm.codegen.placement import place
from fusevm.codegen.shift_reuse import reuse_shifts
from fusevm.codegen.spilling import recompute_elsewhere
from fusevm.codegen.weights import Weights, all_weights
from fusevm.codegen.writing import BEAM, Spills, write
from fusevm.evm.assembler import Source
from fusevm.evm.opcodes import MSIZE, Effect
from fusevm.ir import analyses
from fusevm.ir.analyses import Keeps
from fusevm.ir.dead_slots import drop_unread_slots
from fusevm.ir.dead_stores import drop_unread_stores
from fusevm.ir.fold.functions import fold_unit
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.fold.summaries import EffectSummary, summaries, unseen_in
from fusevm.ir.functions import DependencyBlock, Function, Unit
from fusevm.ir.graphs import drop_choices, prune, straighten
from fusevm.ir.jump_threading import hoist_value_check, thread_branches
from fusevm.ir.share_constants import Reach, share_constants
from fusevm.ir.sink_values import sink_values

Changed = TypeVar("Changed")

ROUNDS = 3  # of inlining and folding
SHARED = ((21, Reach(4, joins=True)), (6, Reach(2)))  # how far constants of at least this many bytes are kept


class PassRunner(Protocol):
    """Runs a named pass over a unit. A checker of passes replaces `just_run`."""

    def __call__(self, name: str, unit: Unit, change: Callable[[], Changed]) -> Changed: ...


def just_run(name: str, unit: Unit, change: Callable[[], Changed]) -> Changed:
    return change()


@dataclass(slots=True)
class Work:
    """One unit on its way through the passes, and what they are told."""

    unit: Unit
    runs: int = 200
    without: frozenset[str] = frozenset()  # passes left out, by name
    run: PassRunner = just_run
    recorder: FoldRecorder | None = None
    spills: Spills = field(default_factory=Spills)
    apart: Set[str] = frozenset()  # functions that do not fit otherwise: nothing is inlined into them, or shared there
    unshared: Set[str] = frozenset()  # of these, those in which equal values are computed again
    low: bool = False  # recursive functions raise the stack as little as possible
    followed: Mapping[Source, Source] | None = None  # the next block of each block in the code that this was made from
    copying: int = 0  # runs at which short blocks are copied in place of jumps to them
    merging: int | None = None  # runs at which tails are merged; None: `runs`
    stats: Stats = field(default_factory=Stats)
    largest: float | None = None  # the size that inlining may reach
    program: StackProgram = field(default_factory=StackProgram)
    _effects: tuple[dict[str, EffectSummary], Effect] | None = None

    def does(self, name: str) -> bool:
        return name not in self.without

    def effects(self) -> tuple[dict[str, EffectSummary], Effect]:
        """What each function reads and writes, and what nothing in the unit can observe; kept until it is folded."""
        if self._effects is None:
            self._effects = summaries(self.unit), unseen_in(self.unit)
        return self._effects

    def forget(self) -> None:
        self._effects = None


# -- passes over functions --------------------------------------------------------------------------------------------


def _each(change: Callable[[Function], object], work: Work) -> None:
    for function in work.unit.functions.values():
        change(function)


def _drop_uncalled(work: Work) -> None:
    unit = work.unit
    needed = set(postorder("", analyses.call_graph(unit).__getitem__))
    unit.functions = {name: function for name, function in unit.functions.items() if name in needed}


def _fold(work: Work) -> None:
    stages = EVERYTHING
    for name, stage in (("ranges", Stage.RANGES), ("branch facts", Stage.FACTS)):
        if not work.does(name):
            stages &= ~stage
    work.forget()
    work.stats.add(fold_unit(work.unit, work.recorder, stages, work.unshared))


def _drop_choices(work: Work) -> None:
    work.effects()  # of what was folded: a choice dropped here does not change what is unseen
    _each(drop_choices, work)


def _dead_stores(work: Work) -> None:
    effects, unseen = work.effects()
    _each(lambda function: drop_unread_slots(work.unit, function, effects), work)
    if unseen & MSIZE:
        _each(lambda function: drop_unread_stores(work.unit, function, effects, unseen), work)


def _prune(work: Work) -> None:
    effects, unseen = work.effects()
    _each(lambda function: prune(work.unit, function, effects, unseen), work)


def _straighten(work: Work) -> None:
    _each(straighten, work)


def _thread_branches(work: Work) -> None:
    for function in work.unit.functions.values():
        if thread_branches(function):
            analyses.forget(function)
            straighten(function)


def _inline(work: Work) -> bool:
    if work.largest is None:
        work.largest = largest_size(work.unit, work.runs)
    work.forget()
    return inline_what_pays(work.unit, all_weights(work.unit), work.runs, work.largest, work.apart)


def _reuse_shifts(work: Work) -> bool:
    work.forget()
    return sum(map(reuse_shifts, work.unit.functions.values())) > 0


def _recompute(work: Work) -> None:
    _each(recompute_elsewhere, work)


# -- lowering, and stack code -----------------------------------------------------------------------------------------


def _hoist_value_check(work: Work) -> None:
    _each(hoist_value_check, work)


def _lower_switches(work: Work) -> None:
    linear = LINEAR if work.does("binary dispatch") else 1 << 20
    _each(lambda function: lower_switches(function, linear), work)


def _split_critical_edges(work: Work) -> None:
    _each(split_critical_edges, work)


def _sink(work: Work) -> None:
    _each(sink_values, work)


def _share(work: Work) -> None:
    weights = all_weights(work.unit)
    for name, function in work.unit.functions.items():
        if name in work.apart:
            continue
        share_constants(function, partial(_reach, work.unit, work.runs, weights[name]))


def _reach(unit: Unit, runs: int, weights: Weights, word: int, block: DependencyBlock) -> Reach | None:
    """How far the word is worth keeping on the stack, with a DUP instead of a PUSH."""
    length = len(pushed(word, unit, runs * weights.get(block, 1.0)))
    return next((reach for least, reach in SHARED if length >= least), None)


def _write(work: Work) -> None:
    beam = BEAM if work.does("beam") else 1
    work.program = write(work.unit, work.runs, work.spills, beam, work.low)


# -- passes over stack code -------------------------------------------------------------------------------------------


def _merge_equal(work: Work) -> bool:
    return merge_equal_blocks(work.program)


def _merge_tails(work: Work) -> None:
    merge_tails(work.program, DEPOSIT, work.runs if work.merging is None else work.merging)


def _place(work: Work) -> None:
    place(work.program, work.followed)


def _short_ends(work: Work) -> bool:
    return duplicate_short_blocks(work.program, DEPOSIT, work.copying)


def _thread_jumps(work: Work) -> None:
    thread_jumps(work.program)


def _join_blocks(work: Work) -> None:
    join_blocks(work.program)


def _peephole(work: Work) -> None:
    peephole(work.program)


# -- the list ---------------------------------------------------------------------------------------------------------


class PassLevel(StrEnum):
    """What a pass works on."""

    YUL = "Yul"
    FUNCTIONS = "functions"
    LOWERED = "lowered functions"
    STACK = "stack code"
    BYTES = "bytes"


class Pass(NamedTuple):
    name: str
    level: PassLevel
    what: str
    run: Callable[[Work], object]
    rewrites: bool = False  # it changes the computation: left out by --exact
    keeps: Keeps = Keeps.NOTHING  # which analyses of functions hold after it


class Part(NamedTuple):
    """What can be left out of a pass by a name of its own."""

    name: str
    of: str
    what: str


class Repeat(NamedTuple):
    most: int
    passes: tuple[Step, ...]


Step: TypeAlias = Pass | Repeat

_F, _L, _S = PassLevel.FUNCTIONS, PassLevel.LOWERED, PassLevel.STACK
DROP_UNCALLED = Pass(
    "drop uncalled", _F, "functions that the main code never reaches", _drop_uncalled, keeps=Keeps.EVERYTHING
)
FOLD = Pass("fold", _F, "rules, CSE, forwarding, dead stores: every instruction, across joins", _fold, True)
STRAIGHTEN = Pass("straighten", _F, "a block is merged with its only successor", _straighten)
CLEAN = (
    Pass("drop choices", _F, "branches and cases whose edges do the same", _drop_choices, True),
    Pass(
        "dead stores",
        _F,
        "stores that every path overwrites, ends the frame or reverts before they are read",
        _dead_stores,
        True,
        Keeps.GRAPH,
    ),
    Pass("prune", _F, "values that nothing uses, if nothing can observe their effects", _prune, True, Keeps.GRAPH),
    STRAIGHTEN,
    Pass("thread branches", _F, "a jump that passes the condition to a branch branches itself", _thread_branches, True),
)
FOLDED = (FOLD, *CLEAN, DROP_UNCALLED)
INLINE = Pass("inline", _F, "calls that cost more than a copy of the callee", _inline, True)
EQUAL = Pass("merge equal blocks", _S, "equal code is written once", _merge_equal)
THREAD_JUMPS = Pass("thread jumps", _S, "a jump to a jump goes to its target", _thread_jumps)
JOIN = Pass("join blocks", _S, "a block is written after its only predecessor", _join_blocks)
PEEPHOLE = Pass("peephole", _S, "moves that cancel each other, or that the next instruction does not need", _peephole)
PLACE = Pass("placement", _S, "hot edges fall through, loops are rotated, branches inverted", _place)
SHORT_ENDS = Pass("short ends", _S, "code no longer than the jump to it is copied", _short_ends)

OPTIMISE: tuple[Step, ...] = (DROP_UNCALLED, *FOLDED, Repeat(ROUNDS, (INLINE, DROP_UNCALLED, *FOLDED)), *FOLDED)
REUSE_SHIFTS = Pass("reuse shifts", _F, "a shift of a word that was shifted before", _reuse_shifts, True, Keeps.GRAPH)
# Only for code that was recovered from bytecode: there a value that is made again costs gas that was not spent before.
FROM_BYTECODE: tuple[Step, ...] = (
    Repeat(1, (REUSE_SHIFTS, *CLEAN)),
    Pass(
        "recompute",
        _F,
        "values made of literals are made again in each block that uses them",
        _recompute,
        True,
        Keeps.GRAPH,
    ),
)
LOWER: tuple[Step, ...] = (
    Pass("lower switches", _L, "switches become branches", _lower_switches),
    Pass("split edges", _L, "critical edges get blocks of their own", _split_critical_edges),
)
SCHEDULE: tuple[Step, ...] = (
    Pass("hoist value check", _F, "the callvalue check of all cases, before the dispatch", _hoist_value_check, True),
    *LOWER,
    Pass("sink", _L, "a pure value is computed in the block that needs it, not in a loop", _sink, keeps=Keeps.GRAPH),
    Pass("share constants", _L, "a long constant is pushed once for uses nearby", _share, keeps=Keeps.GRAPH),
    Pass("schedule", _L, "dependency blocks become stack code; what does not fit is spilled", _write),
)
IMPROVE: tuple[Step, ...] = (
    THREAD_JUMPS,
    JOIN,
    PEEPHOLE,
    Repeat(1_000, (EQUAL, THREAD_JUMPS)),
    Pass("merge tails", _S, "equal ends of blocks are written once, where the bytes are worth the jump", _merge_tails),
    Repeat(1_000, (EQUAL,)),
    JOIN,
    PLACE,
    Repeat(1, (SHORT_ENDS, JOIN, PEEPHOLE, PLACE)),
)
PIPELINE: tuple[Step, ...] = (*OPTIMISE, *FROM_BYTECODE, *SCHEDULE, *IMPROVE)

YUL_STEPS = Part("Yul steps", "Yul", "the optimiser's sequence over the text; code is made with and without it")
PARTS = (
    Part("ranges", "fold", "the least and greatest word of each value, and the bits that may be set"),
    Part("branch facts", "fold", "what branches, switches and inequalities imply in the blocks they dominate"),
    Part("binary dispatch", "lower switches", "binary search, linear for the last four cases"),
    Part("beam", "schedule", "a search over arrangements of the stack; without it the nearest one"),
    Part("constants", "bytes", "NOT, SHL and SHR of shorter words"),
)


def flat(steps: tuple[Step, ...] = PIPELINE) -> Iterator[Pass]:
    for step in steps:
        if isinstance(step, Pass):
            yield step
        else:
            yield from flat(step.passes)


BY_NAME: dict[str, Pass] = {each.name: each for each in flat()}
NAMES: tuple[str, ...] = (YUL_STEPS.name, *BY_NAME, *(part.name for part in PARTS))
# Code cannot be written without these. All others are checked by `--validate`.
NEEDED = frozenset(("drop uncalled", "lower switches", "split edges", "schedule"))
REWRITES = frozenset(each.name for each in BY_NAME.values() if each.rewrites)


def run_passes(work: Work, steps: tuple[Step, ...]) -> None:
    """Runs the steps over the work. Passes over functions go through its runner."""
    for step in steps:
        if isinstance(step, Pass):
            _run(work, step)
            continue
        for _ in range(step.most):
            first, *rest = step.passes
            assert isinstance(first, Pass)
            if not _run(work, first):
                break
            run_passes(work, tuple(rest))


def _run(work: Work, each: Pass) -> object:
    if each.name in work.without:
        return each is PLACE and _in_order(work.program)
    if each.level is PassLevel.STACK:
        return each.run(work)

    def change() -> object:
        result = each.run(work)
        for function in work.unit.functions.values():
            analyses.forget(function, each.keeps)
        return result

    return change() if each.name in NEEDED else work.run(each.name, work.unit, change)


def _in_order(program: StackProgram) -> bool:
    program.order = list(program.blocks)
    return False
