"""What is kept although its value is unused, and what must stay before what."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.evm.opcodes import Effect
from fusevm.ir.values import Value, traits_of


def is_root(value: Value, unseen: Effect | None) -> bool:
    """Whether it is kept even if its value is unused. In optimisation mode, not if all its effects are unseen."""
    traits = traits_of(value)
    if unseen is None or not traits.priced:
        return traits.is_root
    return bool(traits.leaves & ~unseen.value)


def reads_before_writes(instructions: Iterable[Value], unseen: Effect | None) -> dict[int, list[Value]]:
    """For each write, the earlier reads that must stay before it."""
    before: dict[int, list[Value]] = {}
    readers: dict[int, list[Value]] = {}
    for value in instructions:
        traits = traits_of(value)
        if not is_root(value, unseen):
            bits = traits.reads
            while bits:
                bit = bits & -bits
                bits ^= bit
                readers.setdefault(bit, []).append(value)
        elif readers:
            seen = [reader for bit in list(readers) if bit & traits.writes for reader in readers.pop(bit)]
            if seen:
                before[value.id] = seen
    return before
