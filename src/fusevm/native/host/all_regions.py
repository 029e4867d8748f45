"""Schedules with all regions that can be made, before anything is run: for tests and measurements."""

from __future__ import annotations

from fusevm.evm.forks import Fork
from fusevm.native.host.regions import patched
from fusevm.native.region.build import Choose, compile_regions
from fusevm.native.region.choice import functions_and_loops
from fusevm.schedule.build import Handlers, Schedule, build_schedule


class Regions:
    def __init__(self, choose: Choose = functions_and_loops, speed: int = 1) -> None:
        self.choose, self.speed = choose, speed

    def schedule(self, code: bytes, fork: Fork, handlers: Handlers, *, probes: bool) -> Schedule:
        schedule = build_schedule(code, fork, handlers, probes=probes)
        compiled = compile_regions(code, fork, self.choose, self.speed, probes=probes)
        return schedule if compiled is None else patched(schedule, compiled) or schedule
