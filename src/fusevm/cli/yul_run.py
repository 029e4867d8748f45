"""Running Yul for the command line: the worlds it can run in, and what is shown of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fusevm.functions.yul import YulRun, run
from fusevm.yul.execution.host import LimitReached, RunEnd
from fusevm.yul.execution.imagined import LIMITS, FakeWorld
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import Dialect


@dataclass(frozen=True, slots=True)
class Shown:
    succeeded: bool
    text: str
    data: dict[str, Any]


def run_imagined(obj: Object, dialect: Dialect, calldata: bytes, steps: int) -> Shown:
    world = FakeWorld(dialect.fork)
    world.calldata = calldata
    outcome = interpret(obj, world, dialect, replace(LIMITS, steps=steps))
    if outcome.end is RunEnd.LIMIT:
        world.lines.append(outcome.reason)
    data = {"end": outcome.end.value, "trace": world.lines, **_storage(world.storage, world.transient)}
    return Shown(outcome.succeeded, world.dump(), data)


def run_on_evm(obj: Object, dialect: Dialect, calldata: bytes, steps: int) -> Shown:
    """A call to a contract with this code, in an empty state."""
    try:
        return _shown(run(obj, calldata, dialect.fork, steps=steps))
    except LimitReached as limit:
        return Shown(False, f"stopped: {limit.reason}", {"end": "limit", "reason": limit.reason})
    except KeyError as missing:
        return Shown(False, f"yul: {missing} has no place: the code does not compile", {"end": "limit"})


def _shown(done: YulRun) -> Shown:
    logs = [{"topics": [hex(topic) for topic in log.topics], "data": "0x" + log.data.hex()} for log in done.logs]
    ended = done.status.value + (f": {done.failure}" if done.failure is not None else "")
    lines = [ended, f"output: 0x{done.output.hex()}"]
    lines += [f"log: {' '.join(log['topics'])} {log['data']}" for log in logs]
    lines += [f"storage: {key:#x} = {value:#x}" for key, value in done.storage.items()]
    data = {"end": ended, "output": "0x" + done.output.hex(), "logs": logs, **_storage(done.storage, {})}
    return Shown(done.ok, "\n".join(lines), data)


def _storage(storage: dict[int, int], transient: dict[int, int]) -> dict[str, dict[str, str]]:
    return {
        "storage": {hex(key): hex(value) for key, value in sorted(storage.items()) if value},
        "transient": {hex(key): hex(value) for key, value in sorted(transient.items()) if value},
    }
