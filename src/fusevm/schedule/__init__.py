"""Bytes to sections to schedules: what native code runs. `fusions_in` tells which fusions some code holds."""

from fusevm.schedule.detect import FusionInfo, fusions_in
from fusevm.schedule.fusions import FusionType

__all__ = ["FusionInfo", "FusionType", "fusions_in"]
