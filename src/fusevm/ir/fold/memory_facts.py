"""What the fold engine knows about memory, storage and gas at one program point."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.evm.opcodes import Effect
from fusevm.ir.values import Value

REMEMBERED = 48  # how many accesses forwarding and dead store elimination look back
BITS = tuple(effect.value for effect in Effect)


@dataclass(slots=True)
class MemoryFacts:
    """`memory`, `storage` and `transient` are the last accesses, the newest last."""

    epochs: dict[int, int] = field(default_factory=dict)  # effect to the time of its last write
    memory: list[Value] = field(default_factory=list)
    storage: list[Value] = field(default_factory=list)
    transient: list[Value] = field(default_factory=list)
    zeroed: bool = False  # memory was empty before the first of `memory`
    reach: int = 0  # memory is known to be at least this many bytes long
    observer: int = -1  # the last instruction that read the gas counter or the size of memory
    ender: int = -1  # the last call of a function that may end the frame without an exceptional halt

    def copy(self) -> MemoryFacts:
        return MemoryFacts(
            dict(self.epochs),
            self.memory[:],
            self.storage[:],
            self.transient[:],
            self.zeroed,
            self.reach,
            self.observer,
            self.ender,
        )

    def remember_memory(self, value: Value) -> None:
        self.memory.append(value)
        if len(self.memory) > 2 * REMEMBERED:
            del self.memory[:REMEMBERED]
            self.zeroed = False

    def remember(self, log: list[Value], value: Value) -> None:
        log.append(value)
        if len(log) > 2 * REMEMBERED:
            del log[:REMEMBERED]

    def epoch(self, reads: int) -> int:
        """The time of the last write to any of these effects."""
        latest = 0
        epochs = self.epochs
        while reads:
            bit = reads & -reads
            reads ^= bit
            at = epochs.get(bit, 0)
            if at > latest:
                latest = at
        return latest

    def write(self, writes: int, clock: int) -> None:
        while writes:
            bit = writes & -writes
            writes ^= bit
            self.epochs[bit] = clock
