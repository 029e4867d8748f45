"""geth's default tracer: every instruction with gas, stack, and on demand memory, storage and return data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from fusevm.chain.outcome import Status
from fusevm.chain.state import State
from fusevm.evm.halts import HaltReason
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.hooks import Hooks, Step
from fusevm.tracing.errors import error_text
from fusevm.tracing.requests import Json, Run, TracedMachine, TraceRequest, flag, hooked, undone
from fusevm.values import to_number

OPTIONS = ("enableMemory", "disableStack", "disableStorage", "enableReturnData", "limit")
_SLOAD, _SSTORE = BY_NAME["SLOAD"].byte, BY_NAME["SSTORE"].byte
# geth finds these while the instruction runs, after it has written the struct log.
_FOUND_LATER = (HaltReason.INVALID_JUMP, HaltReason.INVALID_OPCODE, HaltReason.RETURNDATA_OUT_OF_BOUNDS)


class StructLogTracer(NamedTuple):
    memory: bool = False
    stack: bool = True
    storage: bool = True
    returndata: bool = False
    limit: int = 0

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> StructLogTracer:
        memory, disable_stack, disable_storage, returndata = (flag(config, name) for name in OPTIONS[:4])
        limit = to_number(config.get("limit", 0), "limit", bits=63)
        return cls(memory, not disable_stack, not disable_storage, returndata, limit)

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json:
        logs = _Logs(self, state)
        with undone(state), hooked(machine, Hooks(on_opcode=logs.add, memory=self.memory)):
            result = run()
        output = b"" if result.status is Status.HALT else result.output
        return {
            "gas": result.gas_used,
            "failed": not result.ok,
            "returnValue": "0x" + output.hex(),
            "structLogs": logs.lines,
        }


class _Logs:
    """Lines, until their JSON is longer than the limit."""

    def __init__(self, wanted: StructLogTracer, state: State) -> None:
        self.lines: list[Json] = []
        self._wanted = wanted
        self._state = state
        self._size = 0
        self._slots: dict[bytes, dict[str, str]] = {}  # used so far, by account

    def add(self, step: Step) -> None:
        wanted = self._wanted
        if wanted.limit and self._size > wanted.limit:
            return
        line = self._line(step)
        if wanted.limit:
            self._size += len(json.dumps(line, separators=(",", ":")))
        self.lines.append(line)

    def _line(self, step: Step) -> Json:
        wanted = self._wanted
        line: Json = {
            "pc": step.pc,
            "op": _name(step),
            "gas": step.gas,
            "gasCost": step.gas_cost,
            "depth": step.depth,
        }
        error = None if step.error is None else _error(step.error)
        if error is not None:
            line["error"] = error
        if wanted.stack:
            line["stack"] = [hex(word) for word in step.stack]
        if wanted.returndata and step.returndata:
            line["returnData"] = "0x" + step.returndata.hex()
        if step.memory:
            line["memory"] = ["0x" + step.memory[at : at + 32].hex() for at in range(0, len(step.memory), 32)]
        if wanted.storage and step.op in (_SLOAD, _SSTORE):
            slots = self._storage(step)
            if slots:
                line["storage"] = slots
        if step.refund:
            line["refund"] = step.refund
        return line

    def _storage(self, step: Step) -> dict[str, str]:
        """What the contract has used so far, with the slot that is being read or written."""
        if len(step.stack) < (1 if step.op == _SLOAD else 2):
            return {}
        key = step.stack[-1]
        value = self._state.storage(step.address, key) if step.op == _SLOAD else step.stack[-2]
        slots = self._slots.setdefault(step.address, {})
        slots[f"0x{key:064x}"] = f"0x{value:064x}"
        return dict(sorted(slots.items()))


def _name(step: Step) -> str:
    """geth's, which has kept the name of before the merge."""
    if step.name.startswith("0x"):
        return f"opcode {step.op:#x} not defined"
    return "DIFFICULTY" if step.name == "PREVRANDAO" else step.name


def _error(text: str) -> str | None:
    """Of a step's error, which is a reason and perhaps a detail."""
    value, _, detail = text.partition(": ")
    reason = HaltReason(value)
    return None if reason in _FOUND_LATER else error_text(reason, detail=detail)
