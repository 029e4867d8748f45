"""The report of `fusevm optimize`, for people and for machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.codegen.weights import all_weights
from fusevm.evm.opcodes import Opcode
from fusevm.ir.recovery.unit import Recovered


class BlockCost(NamedTuple):
    """A basic block: its pc, its size in bytes, its estimated frequency, and the static gas of one execution."""

    pc: int
    bytes: int
    weight: float
    gas: int


@dataclass(slots=True)
class Cost:
    """The cost of code: its bytes, and the static gas of a run, with blocks weighted by estimated frequency."""

    bytes: int
    gas: float = 0.0
    by_kind: dict[str, tuple[int, float]] = field(default_factory=dict)  # bytes and gas by kind of instruction
    blocks: list[BlockCost] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        return {
            "bytes": self.bytes,
            "static_gas": round(self.gas, 1),
            "kinds": {kind: {"bytes": size, "static_gas": round(gas, 1)} for kind, (size, gas) in self.by_kind.items()},
            "blocks": [
                {"pc": pc, "bytes": size, "weight": round(weight, 4), "static_gas": gas}
                for pc, size, weight, gas in self.blocks
            ],
        }


KINDS = ("PUSH", "DUP and SWAP", "POP", "jumps", "arithmetic", "memory", "the rest")


def kind_of(op: Opcode) -> str:
    if op.is_push:
        return "PUSH"
    if op.is_dup or op.is_swap:
        return "DUP and SWAP"
    if op.name == "POP":
        return "POP"
    if op.name in ("JUMP", "JUMPI", "JUMPDEST"):
        return "jumps"
    if op.byte < 0x20:
        return "arithmetic"
    return "memory" if op.name in ("MLOAD", "MSTORE", "MSTORE8", "MCOPY") else "the rest"


def cost_of(code: bytes, recovered: Recovered) -> Cost:
    weights = {block: weight for each in all_weights(recovered.unit).values() for block, weight in each.items()}
    turns = dict.fromkeys((source.start for source in recovered.reached), 0.0)
    for block, source in recovered.sources.items():
        turns[source.start] += weights.get(block, 0.0)
    kinds = dict.fromkeys(KINDS, (0, 0.0))
    cost = Cost(len(code))
    for source in recovered.reached:
        weight, total = turns[source.start], 0
        for each in source.instructions:
            if each.op is None:
                continue
            gas = each.op.gas_at(recovered.unit.fork)
            kind = kind_of(each.op)
            size, before = kinds[kind]
            kinds[kind] = size + each.size, before + weight * gas
            total += gas
        cost.gas += weight * total
        cost.blocks.append(BlockCost(source.start, source.end - source.start, weight, total))
    cost.by_kind = kinds
    return cost


@dataclass(slots=True)
class OptimizeReport:
    kind: str  # runtime, creation, or code that was not understood
    before: Cost
    after: Cost
    left_alone: list[str] = field(default_factory=list)  # why nothing, or a part, was changed
    rules: Counter[str] = field(default_factory=Counter)
    steps: dict[str, int] = field(default_factory=dict)
    runtime: OptimizeReport | None = None  # of the code that is deployed
    immutables: dict[str, list[int]] = field(default_factory=dict)  # new offsets of immutables, by the old offset

    @property
    def changed(self) -> bool:
        return self.after is not self.before

    def as_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "changed": self.changed,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "left_alone": self.left_alone,
            "steps": self.steps,
            "rules": dict(self.rules.most_common()),
            "immutables": self.immutables,
            "runtime": None if self.runtime is None else self.runtime.as_dict(),
        }
