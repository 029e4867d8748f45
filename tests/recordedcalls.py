"""Calls that are recorded, for tests: on any tier, with small programs."""

from __future__ import annotations

from collections.abc import Mapping

from fusevm.tracing.recording import RecordedFrame, Recording
from programs import CALLER, HERE, machine

TIERS = ("reference", "native", "native-unfused", "auto", "regions", "lockstep")
IDENTITY = (4).to_bytes(20, "big")
BRANCHING = "PUSH0 CALLDATALOAD PUSH1 @yes JUMPI PUSH1 1 POP STOP yes: JUMPDEST PUSH1 2 POP"


def recorded(
    tier: str,
    program: str,
    others: Mapping[bytes, str | bytes] | None = None,
    *,
    gas: int = 1_000_000,
    value: int = 0,
    data: bytes = b"",
    fork: str = "osaka",
    spent: bool = False,
    **wanted: bool,
) -> Recording:
    evm = machine({HERE: program, **(others or {})}, fork)
    evm.tier = tier
    with evm.record(gas=spent, **wanted) as recording:
        evm.call(HERE, data, caller=CALLER, gas=gas, value=value)
    return recording


def only(recording: Recording) -> RecordedFrame:
    (frame,) = recording.frames
    return frame
