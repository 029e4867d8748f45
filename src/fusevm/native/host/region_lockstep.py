"""Lockstep with regions: the reference tier runs beside them, compared at every side exit and every failure.

Both copies of a schedule have probes at every section, so that native code stops as soon as it leaves a region.
The instructions that ran there were not counted; but gas only falls, so the reference tier runs until it is at
the same place with the same gas. A region that fails leaves the frame as it was at an anchor, from which everything
can be repeated: the reference must have been there, with the same stack, and the same gas except for warm accesses.
"""

from __future__ import annotations

import ctypes
import threading

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.evm.forks import Rules
from fusevm.evm.gas import cold_account_cost, cold_slot_cost, memory_cost
from fusevm.native.emit.build import library
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.lockstep import Lockstep, Stepper
from fusevm.native.layout import WORD, NativeFrame
from fusevm.native.region.build import Choose
from fusevm.native.region.choice import functions_and_loops
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks
from fusevm.reference.interpreter import execute as execute_reference


class RegionLockstep(Lockstep):
    def __init__(self, choose: Choose = functions_and_loops, speed: int = 1) -> None:
        native = library()
        regions = Regions(choose, speed, probes=True)
        super().__init__(NativeEngine(native, native.handlers, probes=True, regions=regions))
        self.engine.probe = self.probe
        self.engine.halts.watch = self.failed
        self.failures = 0  # that were compared

    def catch_up(self, stepper: Stepper, place: tuple[int, int], view: NativeFrame) -> None:
        """Runs to native code's place; iterations of a loop differ in their gas."""
        self._caught_up(stepper, place, view, failed=False)

    def _caught_up(self, stepper: Stepper, place: tuple[int, int], view: NativeFrame, *, failed: bool) -> list[int]:
        """As `catch_up`; the reference's stack there. Where native code `failed` it has paid, since then, for what is
        cold: the reference may have more gas, and is taken to its own failure to know."""
        passed: list[tuple[int, list[int]]] = []
        gas = view.gas + view.reserve
        while stepper.outcome is None and not (failed and passed and len(stepper.frames) <= place[0]):
            if stepper.at() == place:
                frame = stepper.frames[-1]
                left = frame.gas - _growth(view, frame)
                if left == gas:
                    return frame.stack
                passed.append((left, list(frame.stack)))
                rules = frame.context.rules
            stepper.step()
        where = f"native code is at depth {place[0]}, pc {place[1]} with {gas} gas"
        if not passed:
            self.differ(f"{where}; the reference never is there")
        if not (failed and _is_for_cold(passed[-1][0] - gas, rules)):
            nearest = min((left for left, _ in passed), key=lambda left: abs(left - gas))
            self.differ(f"gas differs at depth {place[0]}, pc {place[1]}: {where}, the reference with {nearest}")
        return passed[-1][1]

    def failed(self, depth: int, view: NativeFrame) -> None:
        """A region failed: the reference tier finds the reason from the state it left."""
        stepper = self.stepper
        assert stepper is not None
        place = (depth, view.pc)
        stack = self._caught_up(stepper, place, view, failed=True)
        self.failures += 1
        self.compare_stacks(view, stack, place)
        stepper.recent.clear()

    def compare_memory(self, view: NativeFrame, frame: Frame, place: tuple[int, int]) -> None:
        memory = ctypes.string_at(view.memory, view.memory_size)
        self._equal("memory", memory.hex(), frame.memory.hex().ljust(2 * len(memory), "0"), place)


def _growth(view: NativeFrame, frame: Frame) -> int:
    """What memory cost that native code has already and the reference does not: a region may have let it grow, and
    have been left to the start of the block that will use it."""
    return max(memory_cost(view.memory_size // WORD) - memory_cost(len(frame.memory) // WORD), 0)


def _is_for_cold(gas: int, rules: Rules) -> bool:
    """Whether this amount is the extra cost of some number of cold accounts and slots."""
    account, slot = int(cold_account_cost(rules)), int(cold_slot_cost(rules))
    return rules.access_sets and gas >= 0 and any((gas - each) % slot == 0 for each in range(0, gas + 1, account))


_local = threading.local()


def region_lockstep() -> RegionLockstep:
    """This thread's pair of tiers."""
    found: RegionLockstep | None = getattr(_local, "lockstep", None)
    if found is None:
        found = _local.lockstep = RegionLockstep()
    return found


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As the tier `regions`, with the reference tier beside it; raises Disagreement at the first difference."""
    if hooks is not None:
        return execute_reference(message, state, context, hooks)
    return region_lockstep().execute(message, state, context)
