"""Compiles the regions of some code to object code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from fusevm.evm.forks import Fork
from fusevm.ir.regions.build import RegionUnit, build_regions
from fusevm.ir.regions.fold import fold_regions
from fusevm.native.emit.build import all_sequences
from fusevm.native.emit.jit import object_code
from fusevm.native.region.choice import Chosen, hot_parts, layout_of
from fusevm.native.region.compiled import Compiled
from fusevm.native.region.emit import region_module
from fusevm.schedule.build import Handlers, Schedule, build_schedule

Choose = Callable[[Schedule, Fork], Chosen]


@cache
def _numbered() -> Handlers:
    return Handlers({sequence: number for number, sequence in enumerate(all_sequences(), 1)})


def placed_schedule(code: bytes, fork: Fork, *, probes: bool = False) -> Schedule:
    """A schedule that has all places, without real handlers."""
    return build_schedule(code, fork, _numbered(), keep_units=True, loops=False, probes=probes)


def regions_of(schedule: Schedule, fork: Fork, choose: Choose) -> RegionUnit:
    """The functions of the regions, folded."""
    chosen, layout = choose(schedule, fork), layout_of(schedule)
    region = build_regions(schedule.code, fork, layout.places.keys(), chosen.entries, chosen.is_cold)
    region.ranges = fold_regions(region)
    region.refused = chosen.refused
    return region


def compile_regions(
    code: bytes, fork: Fork, choose: Choose, speed: int = 1, *, probes: bool = False
) -> Compiled | None:
    """None if there are no regions. `probes`: for a schedule with probes."""
    schedule = placed_schedule(code, fork, probes=probes)
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


def compile_hot(code: bytes, fork: Fork, counts: Mapping[int, int]) -> Compiled | None:
    return compile_regions(code, fork, partial(hot_parts, counts=counts)) if any(counts.values()) else None
