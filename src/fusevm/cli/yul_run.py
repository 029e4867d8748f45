"""Running Yul for the command line: the worlds it can run in, and what is shown of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.codegen.yul import compile_object
from fusevm.yul.run.evm import run_message
from fusevm.yul.run.host import End, LimitReached, Limits
from fusevm.yul.run.imagined import LIMITS, FakeWorld
from fusevm.yul.run.interpreter import interpret
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.errors import YulError

GAS = 30_000_000
CALLER, ADDRESS = bytes(19) + b"\xca", bytes(19) + b"\xc0"


@dataclass(frozen=True, slots=True)
class Shown:
    succeeded: bool
    text: str
    data: dict[str, Any]


def run_imagined(obj: Object, dialect: Dialect, calldata: bytes, steps: int) -> Shown:
    world = FakeWorld(dialect.fork)
    world.calldata = calldata
    outcome = interpret(obj, world, dialect, replace(LIMITS, steps=steps))
    if outcome.end is End.LIMIT:
        world.lines.append(outcome.reason)
    data = {"end": outcome.end.value, "trace": world.lines, **_storage(world.storage, world.transient)}
    return Shown(outcome.succeeded, world.dump(), data)


def run_on_evm(obj: Object, dialect: Dialect, calldata: bytes, steps: int) -> Shown:
    """A call to a contract with this code, in an empty state. Names of data need the code's layout: it is compiled."""
    try:
        compiled = compile_object(obj, dialect)
        code, places = compiled.code, compiled.places
    except YulError:
        code, places = b"", {}
    state, context = State(), Context(dialect.fork, Block(), CALLER)
    state.set_code(ADDRESS, code)
    state.begin_transaction()
    message = Message(CALLER, ADDRESS, code, calldata, gas=GAS, code_address=ADDRESS)
    try:
        outcome = run_message(obj, message, state, context, places, Limits(steps=steps))
    except LimitReached as limit:
        return Shown(False, f"stopped: {limit.reason}", {"end": "limit", "reason": limit.reason})
    except KeyError as missing:
        return Shown(False, f"yul: {missing} has no place: the code does not compile", {"end": "limit"})
    return _shown(outcome, state)


def _shown(outcome: Outcome, state: State) -> Shown:
    storage = {key: value for key, value in state.account(ADDRESS).storage.items() if value}
    logs = [{"topics": [hex(topic) for topic in log.topics], "data": "0x" + log.data.hex()} for log in state.logs]
    ended = outcome.status.value + (f": {outcome.failure}" if outcome.failure is not None else "")
    lines = [ended, f"output: 0x{outcome.output.hex()}"]
    lines += [f"log: {' '.join(log['topics'])} {log['data']}" for log in logs]
    lines += [f"storage: {key:#x} = {storage[key]:#x}" for key in sorted(storage)]
    data = {"end": ended, "output": "0x" + outcome.output.hex(), "logs": logs, **_storage(storage, {})}
    return Shown(outcome.status is Status.SUCCESS, "\n".join(lines), data)


def _storage(storage: dict[int, int], transient: dict[int, int]) -> dict[str, dict[str, str]]:
    return {
        "storage": {hex(key): hex(value) for key, value in sorted(storage.items()) if value},
        "transient": {hex(key): hex(value) for key, value in sorted(transient.items()) if value},
    }
