"""The z3 domain of the word meanings: the same definitions as bit-vectors, for proofs (needs `z3-solver`)."""

from __future__ import annotations

from typing import Any

import z3

from fusevm.evm.words import Algebra


class BitVectors(Algebra):
    """Words as z3 bit-vectors of any width, truths as z3 Booleans."""

    def __init__(self, bits: int = 256) -> None:
        self.bits = bits
        self.bytes = bits // 8
        self.max = self.const((1 << bits) - 1)
        self.sign = self.const(1 << (bits - 1))

    def const(self, value: int) -> Any:
        return z3.BitVecVal(value, self.bits)

    def ite(self, condition: Any, then: Any, other: Any) -> Any:
        return z3.If(condition, then, other)

    def eq(self, x: Any, y: Any) -> Any:
        return x == y

    def ult(self, x: Any, y: Any) -> Any:
        return z3.ULT(x, y)

    def udiv(self, x: Any, y: Any) -> Any:
        return z3.UDiv(x, y)

    def urem(self, x: Any, y: Any) -> Any:
        return z3.URem(x, y)

    def addmod(self, x: Any, y: Any, m: Any) -> Any:
        wide_x, wide_y, wide_m = (z3.ZeroExt(1, each) for each in (x, y, m))
        return z3.Extract(self.bits - 1, 0, z3.URem(wide_x + wide_y, wide_m))

    def mulmod(self, x: Any, y: Any, m: Any) -> Any:
        wide_x, wide_y, wide_m = (z3.ZeroExt(self.bits, each) for each in (x, y, m))
        return z3.Extract(self.bits - 1, 0, z3.URem(wide_x * wide_y, wide_m))

    def shl(self, x: Any, n: Any) -> Any:
        return x << n

    def shr(self, x: Any, n: Any) -> Any:
        return z3.LShR(x, n)
