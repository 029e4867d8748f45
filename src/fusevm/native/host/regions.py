"""Compiles regions of a code and puts them into its schedule."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from math import log
from typing import NamedTuple

from fusevm.evm.bytecode import BasicBlock, jumpdests
from fusevm.evm.forks import Fork
from fusevm.ir.regions.build import RegionBlock, build_regions, finder_of, pieces_of
from fusevm.ir.regions.fold import fold_regions
from fusevm.native.emit.build import Library
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.emit.region_ops import DONE_IN_REGIONS
from fusevm.native.emit.regions import Layout, handler_name, region_module
from fusevm.schedule.build import PLACE, Handlers, Schedule, build_schedule


class Compiled(NamedTuple):
    code: bytes  # object code
    entries: tuple[int, ...]


def layout_of(schedule: Schedule) -> Layout:
    places: dict[int, int] = {}
    for unit in schedule.units:
        if unit.section is not None:
            places.setdefault(unit.section.pc, unit.at)
    for pc in jumpdests(schedule.code):
        places[pc] = schedule.jumps[pc]
    return Layout(places, len(schedule.words))


def coldness(layout: Layout, hot: Callable[[int], bool]) -> Callable[[BasicBlock], bool]:
    """Tells blocks that a region leaves to the schedule."""

    def is_cold(block: BasicBlock) -> bool:
        if block.start not in layout.places or not hot(block.start):
            return True
        for instruction in block.instructions:
            op = instruction.op
            if op is None or (op.ends and op.name != "JUMP") or (op.immediate and not op.is_push):
                return True
            if not (op.is_stack or op.name in DONE_IN_REGIONS or op.name in ("JUMP", "JUMPI", "JUMPDEST", "PC", "POP")):
                return True
        return False

    return is_cold


def base_schedule(code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
    return build_schedule(code, fork, handlers, keep_units=True, loops=False)


def compile_regions(schedule: Schedule, fork: Fork, entries: Iterable[int], hot: Callable[[int], bool]) -> Compiled | None:
    layout = layout_of(schedule)
    region = build_regions(schedule.code, fork, layout.places.keys(), entries, coldness(layout, hot))
    if not region.entries:
        return None
    ranges = fold_regions(region)
    return Compiled(object_code(region_module(region, ranges, layout), speed=1, scattered=True), tuple(region.entries))


def patched(schedule: Schedule, compiled: Compiled) -> Schedule:
    """The schedule with regions in it, and itself as it was behind that."""
    loaded = Loaded(compiled.code)
    count = len(schedule.words)
    words = array("Q", schedule.words)
    words.extend(schedule.words)
    base, kinds = words.buffer_info()[0], bytes(schedule.kinds)
    for index, kind in enumerate(kinds):
        if kind == PLACE:
            words[index] = words[index + count] = schedule.words[index] - schedule.base + base
    layout = layout_of(schedule)
    for pc in compiled.entries:
        words[layout.places[pc]] = loaded.address(handler_name(pc))
    made = Schedule(words, schedule.jumps, schedule.code, schedule.units, kinds + kinds)
    made.twin, made.held = count, loaded
    return made


Entries = Callable[[Schedule, Fork], Iterable[int]]


def every_jumpdest(schedule: Schedule, fork: Fork) -> list[int]:
    return [0, *sorted(jumpdests(schedule.code))]


def functions_and_loops(schedule: Schedule, fork: Fork) -> list[int]:
    """The beginning of the code, and of the functions and loops that are found from there."""
    layout = layout_of(schedule)
    region = build_regions(schedule.code, fork, layout.places.keys(), [0], coldness(layout, lambda pc: True))
    found = {0}
    for name, function in region.unit.functions.items():
        found.add(region.shapes[name].entry)
        seen: set[int] = set()
        for block in function.blocks():
            seen.add(block.start)
            found |= {to.pc for to in block.targets if to.start in seen and isinstance(to, RegionBlock) and to.pc >= 0}
    return sorted(found)


def counting_schedule(code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
    return build_schedule(code, fork, handlers, keep_units=True, counts=True)


def counted(schedule: Schedule) -> Counter[int]:
    """How often control came to each section, by its place."""
    return Counter(
        {unit.tokens[0].pc: schedule.words[unit.at + 1] for unit in schedule.units if unit.sequence == ("COUNT",)}
    )


HOT = 0.01  # of how often the hottest block is run
MOST = 12_000  # instructions of code in one set of regions
STEP = 1.3  # counts that differ by less are alike


def hot_entries(schedule: Schedule, fork: Fork, counts: Counter[int]) -> tuple[list[int], Callable[[int], bool]]:
    """Where to enter regions so that all hot blocks are in one, and which blocks are hot.

    What is run seldom leads to what is run often, so entries are taken in that order, unless they are in a region.
    """
    layout = layout_of(schedule)
    pieces = pieces_of(schedule.code, fork, layout.places.keys())
    least = max(counts.values(), default=0) * HOT
    while True:
        hot = {pc for pc, count in counts.items() if count and count >= least and pc in pieces}
        is_cold = coldness(layout, hot.__contains__)
        hot = {pc for pc in hot if not is_cold(pieces[pc])}
        if sum(len(pieces[pc].instructions) for pc in hot) <= MOST:
            break
        least *= 2
    finder = finder_of(pieces, jumpdests(schedule.code), fork, is_cold)
    entries: list[int] = []
    covered: set[int] = set()
    for pc in sorted(hot, key=lambda pc: (int(log(counts[pc]) / log(STEP)), pc)):
        if pc not in covered:
            entries.append(pc)
            finder.function(pc)
            for entry, found in finder.functions.items():
                covered |= {key.pc for key in found.states.keys() - finder.cold[entry]}
    return entries, hot.__contains__


class Regions:
    """Makes schedules with all regions that can be made."""

    def __init__(self, native: Library, entries: Entries = functions_and_loops) -> None:
        self.entries = entries
        native.links  # noqa: B018

    def schedule(self, code: bytes, fork: Fork, handlers: Handlers) -> Schedule:
        schedule = base_schedule(code, fork, handlers)
        compiled = compile_regions(schedule, fork, self.entries(schedule, fork), lambda pc: True)
        return schedule if compiled is None else patched(schedule, compiled)
