"""Bytes to sections to schedules: what native code runs. `fusions_in` lists the fusions in some code."""

from fusevm.schedule.detect import FusionInfo, fusions_in
from fusevm.schedule.fusions import FusionType

__all__ = ["FusionInfo", "FusionType", "fusions_in"]
