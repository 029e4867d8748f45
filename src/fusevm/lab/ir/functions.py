"""The functions of code that becomes native code, as the region compiler has them; also before they are folded."""

from __future__ import annotations

from fusevm.evm.forks import Fork
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.regions.build import RegionUnit
from fusevm.native.region.build import Choose, placed_schedule, regions_of
from fusevm.native.region.choice import every_block


def functions_of(
    code: bytes, fork: Fork, choose: Choose = every_block, stages: Stage | None = EVERYTHING
) -> RegionUnit:
    """`choose` says where functions begin, `stages` what folding does; None: nothing is folded."""
    return regions_of(placed_schedule(code, fork), fork, choose, stages)
