"""Compiles the regions of some code to object code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from fusevm.evm.forks import Fork
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.regions.build import RegionUnit, build_regions
from fusevm.ir.regions.fold import fold_regions
from fusevm.native.emit.build import all_sequences, noted_handlers
from fusevm.native.emit.jit import object_code
from fusevm.native.region.choice import ChosenRegions, hot_parts, layout_of
from fusevm.native.region.compiled import HOT, Compiled
from fusevm.native.region.emit import region_module
from fusevm.schedule.build import Handlers, Schedule, build_schedule
from fusevm.schedule.sections import TELLING

Choose = Callable[[Schedule, Fork], ChosenRegions]


@cache
def _numbered(noted: frozenset[str] = frozenset()) -> Handlers:
    handlers = Handlers({sequence: number for number, sequence in enumerate(all_sequences(), 1)})
    return noted_handlers(handlers, TELLING | noted) if noted else handlers


def placed_schedule(code: bytes, fork: Fork, noted: frozenset[str] = frozenset(), *, probes: bool = False) -> Schedule:
    """A schedule that has all places, without real handlers; with those for a recording that notes some opcodes."""
    return build_schedule(code, fork, _numbered(noted), keep_units=True, probes=probes)


def regions_of(schedule: Schedule, fork: Fork, choose: Choose, stages: Stage | None = EVERYTHING) -> RegionUnit:
    """The functions of the regions, folded by these stages; None: as they were found."""
    chosen, layout = choose(schedule, fork), layout_of(schedule)
    region = build_regions(schedule.code, fork, layout.places.keys(), chosen.entries, chosen.is_cold)
    if stages is not None:
        region.ranges = fold_regions(region, stages)
    region.refused = chosen.refused
    return region


def compile_regions(
    code: bytes,
    fork: Fork,
    choose: Choose,
    speed: int = 1,
    noted: frozenset[str] = frozenset(),
    *,
    probes: bool = False,
) -> Compiled | None:
    """None if there are no regions. `noted`: for a recording of these opcodes; `probes`: for a schedule with probes."""
    schedule = placed_schedule(code, fork, noted, probes=probes)
    region = regions_of(schedule, fork, choose)
    if not region.entries:
        return None
    layout = layout_of(schedule)
    made = object_code(region_module(region, layout), speed=speed, scattered=True)
    return Compiled(layout.words, tuple([(pc, layout.places[pc]) for pc in region.entries]), made)


def why_refused(error: Exception) -> str:
    """The reason to show where the compiler cannot do with some code: an error in it, most likely, and its place."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = "" if at is None else f" ({Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno})"
    return f"the compiler failed: {type(error).__name__}{': ' if str(error) else ''}{error}{place}"


def compile_hot(
    code: bytes, fork: Fork, counts: Mapping[int, int], noted: frozenset[str] = frozenset()
) -> Compiled | None:
    """The regions of what ran most. Opcodes that are noted are left to the schedule."""
    most = max(counts.values(), default=0)
    made = compile_regions(code, fork, partial(hot_parts, counts=counts, noted=noted), noted=noted) if most else None
    if made is None:
        return None
    return made._replace(profile=tuple(pc for pc, count in counts.items() if count >= HOT * most))
