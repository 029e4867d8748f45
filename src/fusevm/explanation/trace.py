"""The trace of a run: every step with its stack, and memory and storage where they changed, up to stated limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fusevm.reference.hooks import Hooks, Step

MAX_STEPS = 5_000
MAX_STACK = 64  # words of a stack that are kept, from the top
MAX_MEMORY = 1 << 13  # bytes of memory that are shown
MAX_MEMORY_ALL = 1 << 22  # bytes of memory that a trace keeps altogether
MAX_MEMORY_SEEN = 1 << 29  # bytes of memory of all steps together: each is a copy


class Enough(Exception):
    """The trace is as long as it may be."""


@dataclass(slots=True)
class StepTracer:
    """Fills `steps` while a call runs, and raises Enough when the limit is reached."""

    most: int = MAX_STEPS
    steps: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _memory: dict[int, bytes] = field(default_factory=dict)  # by depth, as it was shown last
    _kept: int = 0
    _seen: int = 0

    def hooks(self) -> Hooks:
        return Hooks(on_opcode=self.step, memory=True)

    def step(self, step: Step) -> None:
        if len(self.steps) >= self.most:
            self.notes.append(f"trace: the first {self.most:,} steps; heat and gas count all")
            raise Enough
        self._seen += step.memory_size
        if self._seen > MAX_MEMORY_SEEN:
            self.notes.append(f"trace: the first {len(self.steps):,} steps: memory is large; heat and gas count all")
            raise Enough
        found: dict[str, Any] = {
            "i": len(self.steps),
            "pc": step.pc,
            "op": step.name,
            "gas": step.gas,
            "cost": step.gas_cost,
            "depth": step.depth,
            "stack": [hex(word) for word in step.stack[-MAX_STACK:]],
            "address": "0x" + step.address.hex(),
        }
        if step.error is not None:
            found["error"] = step.error
        if step.name in ("SSTORE", "TSTORE") and step.error is None:
            found["storage" if step.name == "SSTORE" else "transient"] = {hex(step.stack[-1]): hex(step.stack[-2])}
        self._note_memory(step, found)
        self.steps.append(found)

    def _note_memory(self, step: Step, found: dict[str, Any]) -> None:
        """Memory as the step finds it, where it is not what was shown last at this depth."""
        memory = (step.memory or b"")[:MAX_MEMORY]
        for deeper in [depth for depth in self._memory if depth > step.depth]:
            del self._memory[deeper]
        if self._memory.get(step.depth, b"") == memory:
            return
        self._memory[step.depth] = memory
        self._kept += len(memory)
        if self._kept > MAX_MEMORY_ALL:
            if not any(note.startswith("memory: ") for note in self.notes):
                self.notes.append(f"memory: not shown after step {len(self.steps):,}: it is too much")
            return
        found["memory"] = memory.hex()
