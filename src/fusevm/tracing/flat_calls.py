"""Flat traces, as Parity had them and geth's `flatCallTracer` gives them: callTracer's tree, a frame after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fusevm.chain.state import State
from fusevm.evm.precompiles import precompiles_of
from fusevm.tracing.call_tracer import CallTracer
from fusevm.tracing.requests import Json, Run, TracedMachine, TraceRequest, flag

OPTIONS = ("convertParityErrors", "includePrecompiles")
CREATIONS = ("CREATE", "CREATE2")
# geth's errors, as they begin, and Parity's
_ERRORS = (
    ("execution reverted", "Reverted"),
    ("out of gas", "Out of gas"),
    ("invalid opcode", "Bad instruction"),
    ("invalid jump destination", "Bad jump destination"),
    ("stack underflow", "Stack underflow"),
    ("stack limit reached", "Out of stack"),
    ("write protection", "Mutable Call In Static Context"),
)


class FlatCallTracer(NamedTuple):
    converts_errors: bool = False
    precompiles: bool = False

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> FlatCallTracer:
        return cls(*(flag(config, name) for name in OPTIONS))

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Any:
        """A list; which block and transaction it is of is added by whoever knows it."""
        tree = CallTracer().run(machine, state, request, run)
        hidden = () if self.precompiles else {"0x" + address.hex() for address in precompiles_of(request.fork)}
        return flat(tree, {}, parity_errors=self.converts_errors, hidden=hidden)


def flat(
    tree: Json, place: Json, *, parity_errors: bool = True, hidden: frozenset[str] | set[str] | tuple[()] = ()
) -> list[Json]:
    """A call and those below it, each where it stands; without recursion, since calls may be 1,024 deep.

    Calls of `hidden` addresses are left out, unless it is the outermost one.
    """
    found: list[Json] = []
    waiting: list[tuple[Json, list[int]]] = [(tree, [])]
    while waiting:
        frame, address = waiting.pop()
        below = [each for each in frame.get("calls", []) if each["type"] in CREATIONS or each.get("to") not in hidden]
        found.append({**_entry(frame, parity_errors), "subtraces": len(below), "traceAddress": address, **place})
        waiting += [(each, [*address, at]) for at, each in reversed(list(enumerate(below)))]
    return found


def _entry(frame: Json, parity_errors: bool) -> Json:
    kind, error = frame["type"], frame.get("error")
    if kind == "SELFDESTRUCT":
        action = {"address": frame["from"], "refundAddress": frame["to"], "balance": frame.get("value", "0x0")}
        return {"type": "suicide", "action": action, "result": None}
    common = {"from": frame["from"], "gas": frame["gas"], "value": frame.get("value", "0x0")}
    entry: Json
    if kind in CREATIONS:
        entry = {"type": "create", "action": {**common, "init": frame["input"], "creationMethod": kind.lower()}}
        result = {"gasUsed": frame["gasUsed"], "code": frame.get("output", "0x"), "address": frame.get("to")}
    else:
        action = {**common, "callType": kind.lower(), "to": frame.get("to"), "input": frame["input"]}
        entry = {"type": "call", "action": action}
        result = {"gasUsed": frame["gasUsed"], "output": frame.get("output", "0x")}
    unmade = kind in CREATIONS and frame.get("to") is None  # clients read the address of a result as there
    entry["result"] = result if error in (None, "execution reverted") and not unmade else None
    if error is not None:
        known = (name for begins, name in _ERRORS if parity_errors and error.startswith(begins))
        entry["error"] = next(known, error)
    return entry
