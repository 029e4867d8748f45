"""Gas by stack of functions, in the order in which it was spent, and as text that flame graph tools read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fusevm.tracing.sources.running import ActiveFunction

Stack = tuple[ActiveFunction, ...]


@dataclass(slots=True)
class Samples:
    """Stacks, outermost function first, with the gas spent there; equal ones that follow each other are one."""

    stacks: list[Stack] = field(default_factory=list)
    gas: list[int] = field(default_factory=list)

    def add(self, stack: Stack, gas: int) -> None:
        if not gas:
            return
        if self.stacks and self.stacks[-1] == stack:
            self.gas[-1] += gas
        else:
            self.stacks.append(stack)
            self.gas.append(gas)

    @property
    def total(self) -> int:
        return sum(self.gas)

    def merged(self) -> dict[Stack, int]:
        """Equal stacks together, in the order in which they first occur."""
        found: dict[Stack, int] = {}
        for stack, gas in zip(self.stacks, self.gas, strict=True):
            found[stack] = found.get(stack, 0) + gas
        return found


def folded(samples: Samples) -> str:
    """One line per stack: the functions with `;` between them, a blank, the gas."""
    lines = (f"{';'.join(_plain(call.name) for call in stack)} {gas}" for stack, gas in samples.merged().items())
    return "".join(line + "\n" for line in sorted(lines))


def _plain(name: str) -> str:
    return name.replace(";", ",").replace("\n", " ")


def speedscope(samples: Samples, name: str) -> dict[str, Any]:
    """The file format of speedscope; its time axis is gas."""
    numbers: dict[ActiveFunction, int] = {}
    stacks = [[numbers.setdefault(call, len(numbers)) for call in stack] for stack in samples.stacks]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": "fusevm",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(call) for call in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{name} (gas)",
                "unit": "none",
                "startValue": 0,
                "endValue": samples.total,
                "samples": stacks,
                "weights": samples.gas,
            }
        ],
    }


def _frame(call: ActiveFunction) -> dict[str, Any]:
    return {"name": call.name} | ({"file": call.path, "line": call.line} if call.path else {})


class SampleTree(NamedTuple):
    """Stacks by their common beginnings: gas spent in a function itself and in everything it called."""

    call: ActiveFunction
    own: int
    total: int
    below: list[SampleTree]


def tree_of(samples: Samples, name: str) -> SampleTree:
    return _tree(ActiveFunction(name), [(stack, gas) for stack, gas in samples.merged().items()])


def _tree(call: ActiveFunction, stacks: Iterable[tuple[Stack, int]]) -> SampleTree:
    """As deep as the stacks are, which `stacks.py` bounds."""
    own, groups = 0, dict[ActiveFunction, list[tuple[Stack, int]]]()
    for stack, gas in stacks:
        if stack:
            groups.setdefault(stack[0], []).append((stack[1:], gas))
        else:
            own += gas
    below = [_tree(first, rest) for first, rest in groups.items()]
    return SampleTree(call, own, own + sum(each.total for each in below), below)
