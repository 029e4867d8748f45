"""Creates instructions: numbering, literals, same-opcode chains, and static gas per section.

A plain builder emits instructions unchanged (the seed's raw emission); the fold engine is a builder that simplifies.
"""

from __future__ import annotations

from fusevm.evm.assembler import Source
from fusevm.ir.functions import DependencyBlock
from fusevm.ir.values import CONST, PHI, TRAITS, UNSPILL, WORD, Value


class NeverReached(Exception):
    """The instruction being emitted always halts: the rest of the block is unreachable."""


class Builder:
    def __init__(self) -> None:
        self.next_id = 0
        self.constants: dict[int, Value] = {}
        self.chains: dict[str, Value] = {}  # the last instruction of each opcode; `prev` links to the one before
        self.block = DependencyBlock(0)
        self.meter: DependencyBlock | Value = self.block  # carries the static gas from here on
        self.where: Source | None = None  # the source location given to new values

    def begin(self, block: DependencyBlock) -> None:
        self.block = block
        self.meter = block

    def const(self, number: int) -> Value:
        number &= WORD
        value = self.constants.get(number)
        if value is None:
            value = self.constants[number] = Value(CONST, (), number)
        return value

    def charge(self, gas: int) -> None:
        self.meter.gas += gas

    def make(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        """Creates a numbered value that belongs to the block but is not one of its instructions."""
        value = Value(op, args, number, self.next_id, self.block.start)
        value.where = self.where
        self.next_id += 1
        for arg in args:
            arg.uses += 1
        return value

    def raw(self, op: str, args: tuple[Value, ...] = (), number: int = 0) -> Value:
        """Appends the instruction unchanged."""
        value = self.make(op, args, number)
        value.prev = self.chains.get(op)
        self.chains[op] = value
        self.block.instructions.append(value)
        if TRAITS[op].observes:
            self.meter = value
        return value

    def emit(self, op: str, args: tuple[Value, ...] = (), pc: int = 0) -> Value | None:
        """Emits an instruction and returns the value that represents it, if it has one."""
        return self.raw(op, args, pc)

    def param(self, block: DependencyBlock) -> Value:
        """Adds a PHI to the block's parameters."""
        value = self.make(PHI, (), len(block.params))
        value.block = block.start
        block.params.append(value)
        return value

    def enter(self, depth: int) -> None:
        """Names the top `depth` words of the run-time stack as the block's parameters."""
        self.block.params = [self.make(UNSPILL, (), -1 - index) for index in range(depth)]
