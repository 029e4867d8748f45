"""EIP-3155: every step of a run as one line of JSON, and a last line that sums it up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fusevm.chain.result import Result
from fusevm.reference.hooks import Hooks, Step


def eip3155_step(step: Step, *, returndata: bool = True) -> dict[str, Any]:
    """Fields in the order and the types of geth: `refund` is a number, memory that is empty is left out."""
    line: dict[str, Any] = {
        "pc": step.pc,
        "op": step.op,
        "gas": hex(step.gas),
        "gasCost": hex(step.gas_cost),
        "memSize": step.memory_size,
        "stack": [hex(word) for word in step.stack],
        "depth": step.depth,
        "returnData": "0x" + step.returndata.hex(),
        "refund": step.refund,
        "opName": step.name,
    }
    if not returndata:
        del line["returnData"]
    if step.memory:
        line["memory"] = "0x" + step.memory.hex()
    if step.error is not None:
        line["error"] = step.error
    return line


def eip3155_summary(result: Result, state_root: bytes) -> dict[str, Any]:
    line: dict[str, Any] = {
        "stateRoot": "0x" + state_root.hex(),
        "output": "0x" + result.output.hex(),
        "gasUsed": hex(result.gas_used),
        "pass": result.ok,
    }
    if result.error is not None:
        line["error"] = result.error
    return line


def tracing_hooks(write: Callable[[str], object], *, memory: bool = False, returndata: bool = True) -> Hooks:
    """Hooks that write one EIP-3155 line per step."""

    def on_opcode(step: Step) -> None:
        write(json.dumps(eip3155_step(step, returndata=returndata)) + "\n")

    return Hooks(on_opcode=on_opcode, memory=memory)
