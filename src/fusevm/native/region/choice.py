"""Chooses which parts of a code become regions: their entries, and the blocks that are left to the schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import log

from fusevm.analysis.graphs import preorder
from fusevm.evm.bytecode import BasicBlock, jumpdests
from fusevm.evm.forks import Fork
from fusevm.ir.regions.build import build_regions, finder_of, pieces_of
from fusevm.ir.regions.find import RegionFinder
from fusevm.native.region.compiled import HOT
from fusevm.native.region.ops import DONE_IN_REGIONS
from fusevm.native.region.state import Places
from fusevm.schedule.build import Schedule

MOST = 6_000  # instructions of code in the regions of one code
STEP = 1.3  # counts that differ by less are alike
_GO_ON = frozenset(("JUMP", "JUMPI", "JUMPDEST", "PC"))

Coldness = Callable[[BasicBlock], bool]


@dataclass(slots=True)
class ExitPlaces:
    """The targets of side exits: the schedule's words, and how many there are before its second copy."""

    places: Places
    words: int


@dataclass(slots=True)
class ChosenRegions:
    """The entries of regions, the blocks left to the schedule, and why requested blocks are refused."""

    entries: list[int]
    is_cold: Coldness
    refused: dict[int, str] = field(default_factory=dict)


def layout_of(schedule: Schedule) -> ExitPlaces:
    """Requires a schedule with units."""
    places: dict[int, int] = {}
    for unit in schedule.units:
        if unit.section is not None:
            places.setdefault(unit.section.pc, unit.at)
    for pc in jumpdests(schedule.code):
        places[pc] = schedule.jumps[pc]
    return ExitPlaces(places, len(schedule.words))


def why_cold(block: BasicBlock, layout: ExitPlaces, noted: Collection[str] = ()) -> str | None:
    """Why no region can run the block; None if one can."""
    if block.start not in layout.places:
        return "the schedule has no place for it"
    for instruction in block.instructions:
        op = instruction.op
        if op is None or (op.ends and op.name != "JUMP"):
            return f"it ends the frame: {instruction.name}"
        if (op.immediate and not op.is_push) or not (op.is_stack or op.name in DONE_IN_REGIONS or op.name in _GO_ON):
            return f"no region does {op.name}"
        if op.name in noted:
            return f"the recording notes {op.name}"
    return None


def every_block(schedule: Schedule, fork: Fork) -> ChosenRegions:
    """An entry at every jump target: for tests."""
    layout = layout_of(schedule)
    return ChosenRegions([0, *sorted(jumpdests(schedule.code))], lambda block: why_cold(block, layout) is not None)


def functions_and_loops(schedule: Schedule, fork: Fork) -> ChosenRegions:
    """The start of the code, and of the functions and loops found from there, whether hot or not."""
    layout = layout_of(schedule)
    chosen = ChosenRegions([], lambda block: why_cold(block, layout) is not None)
    region = build_regions(schedule.code, fork, layout.places.keys(), [0], chosen.is_cold)
    found = {0}
    for name, function in region.unit.functions.items():
        found.add(region.shapes[name].entry)
        seen: set[int] = set()
        for block in function.blocks():
            seen.add(block.start)
            found |= {to.pc for to in block.targets if to.start in seen and to.pc >= 0}
    chosen.entries = sorted(found)
    return chosen


def hot_parts(schedule: Schedule, fork: Fork, counts: Mapping[int, int], noted: Collection[str] = ()) -> ChosenRegions:
    """Regions for all hot blocks, without those that do an opcode which is noted.

    Code that runs less often leads to hotter code, so entries are taken in that order, unless they are in a region.
    """
    layout = layout_of(schedule)
    pieces = pieces_of(schedule.code, fork, layout.places.keys())
    refused = {pc: why for pc, block in pieces.items() if counts.get(pc) and (why := why_cold(block, layout, noted))}
    least = max(counts.values(), default=0) * HOT
    while True:
        hot = {pc for pc, count in counts.items() if count and count >= least and pc in pieces and pc not in refused}
        if sum(len(pieces[pc].instructions) for pc in hot) <= MOST:
            break
        least *= 2
    chosen = ChosenRegions([], lambda block: block.start not in hot, refused)
    finder = finder_of(pieces, jumpdests(schedule.code), fork, chosen.is_cold)
    covered: set[int] = set()
    for pc in sorted(hot, key=lambda pc: (int(log(counts[pc]) / log(STEP)), pc)):
        if pc not in covered:
            chosen.entries.append(pc)
            finder.function(pc)
            for entry, found in finder.functions.items():
                covered |= {key.pc for key in found.states.keys() - finder.cold[entry]}
    if any(counts.get(key.pc) and _goes_on(pieces[key.pc]) for cold in finder.cold.values() for key in cold):
        chosen.entries += sorted(loop_headers(finder) & hot - set(chosen.entries))
    return chosen


def _goes_on(block: BasicBlock) -> bool:
    """Whether control goes on in this frame after the block."""
    op = block.last.op
    return op is not None and (not op.ends or op.name == "JUMP")


def loop_headers(finder: RegionFinder) -> set[int]:
    """Of all functions found. The schedule may come to a loop that a region has, if it went on after a side exit: it
    enters the region with the next iteration."""
    found: set[int] = set()
    for entry, function in finder.functions.items():
        graph: dict[int, list[int]] = {}
        for (key, _), to in function.edges.items():
            graph.setdefault(key.pc, []).append(to.pc)
        found |= {header for _, header in preorder(graph, entry).back}
    return found
