"""Which loops of some code a region can hold, and where control leaves it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from fusevm.analysis.graphs import strong_components
from fusevm.analysis.loops.metadata import LoopMetadata, SideExit, loops_of
from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import Fork
from fusevm.ir.recovery.finder import FoundFunction, Key
from fusevm.ir.regions.build import bounds_by_block, finder_of, pieces_of
from fusevm.ir.regions.find import MAX_STATES
from fusevm.native.region.build import placed_schedule
from fusevm.native.region.choice import layout_of, why_cold
from fusevm.native.region.compiled import LARGEST


def loops_in(code: bytes, fork: Fork) -> list[LoopMetadata]:
    """The loops of some code, with what a region that begins at the header of each can hold."""
    found = loops_of(code, fork)
    if len(code) > LARGEST:
        return [replace(each, reason=f"code of more than {LARGEST:,} bytes has no regions") for each in found]
    if not found:
        return []
    regions = _Regions(code, fork)
    return [regions.judged(each) for each in found]


class _Regions:
    """A region from every loop's header, without compiling any."""

    def __init__(self, code: bytes, fork: Fork) -> None:
        self.layout = layout_of(placed_schedule(code, fork))
        self.pieces = pieces_of(code, fork, self.layout.places.keys())
        bounds = bounds_by_block(code, fork)
        self.blocks = sorted(bounds)
        self.finder = finder_of(self.pieces, jumpdests(code), fork, lambda block: bool(why_cold(block, self.layout)))
        self.finder.bounds = bounds

    def judged(self, loop: LoopMetadata) -> LoopMetadata:
        self.finder.budget = MAX_STATES
        region = self.finder.function(loop.header)
        if why := self.finder.cold[loop.header].get(Key(loop.header, 0, ())):
            return replace(loop, reason=self._why(loop.header, why))
        called = [each for entry, each in self.finder.functions.items() if entry in self.finder.known & {*loop.body}]
        functions = [region, *called]
        exits = self._exits(functions, loop)
        if any(self._goes_round(each, loop) for each in functions):
            return replace(loop, fused=True, side_exits=exits)
        inside = [each for each in exits if self._is_inside(each.pc, loop)]
        if not inside:
            return replace(loop, reason="no path in a region leads back to its header")
        reason = f"every iteration leaves the region, at 0x{inside[0].pc:x}: {inside[0].reason}"
        return replace(loop, reason=reason, side_exits=exits)

    def _goes_round(self, found: FoundFunction, loop: LoopMetadata) -> bool:
        """Whether an iteration can stay in the region."""
        cold = self.finder.cold[found.entry]
        graph: dict[Key, list[Key]] = {
            key: [] for key in found.states if key not in cold and self._is_inside(key.pc, loop)
        }
        for (key, _), to in found.edges.items():
            if key in graph and to in graph:
                graph[key].append(to)
        return any(
            (len(members) > 1 or members[0] in graph[members[0]]) and any(key.pc == loop.header for key in members)
            for members in strong_components(graph)
        )

    def _exits(self, functions: list[FoundFunction], loop: LoopMetadata) -> tuple[SideExit, ...]:
        """Where the region is left from the loop's body, and from what that calls."""
        places: dict[int, str] = {}
        for found in functions:
            cold = self.finder.cold[found.entry]
            for (key, _), to in found.edges.items():
                if to in cold and self._is_inside(key.pc, loop):
                    places.setdefault(to.pc, self._why(to.pc, cold[to]))
        return tuple(SideExit(pc, why) for pc, why in sorted(places.items()))

    def _why(self, pc: int, reason: str) -> str:
        return why_cold(self.pieces[pc], self.layout) or reason

    def _is_inside(self, pc: int, loop: LoopMetadata) -> bool:
        """Whether a place is in the loop's body, as far as that is known; of JUMPDESTs in a row the body has one."""
        block = self.blocks[bisect_right(self.blocks, pc) - 1]
        return block in loop.body or not loop.gas_per_iteration or len(self.pieces[pc].instructions) == 1
