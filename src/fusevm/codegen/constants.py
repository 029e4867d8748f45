"""The cheapest code for a constant, by bytes and gas: a PUSH, NOT of a shorter one, or a shift of a shorter one."""

from __future__ import annotations

from functools import lru_cache

from fusevm.evm.assembler import push
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.ir.functions import Unit

TOP = (1 << 256) - 1
DEPOSIT = 216  # gas per byte of deployed code: 200 for the deposit, 16 for calldata
_NOT, _SHL, _SHR = (BY_NAME[name].byte for name in ("NOT", "SHL", "SHR"))
MAX_WEIGHT = 4.0  # of a block: a constant in a loop, again in each copy, takes up to 28 bytes more to save 6 gas
_SHORT = 3  # a PUSH of up to this many bytes cannot be improved
_DEPTH = 3


def constant(word: int, fork: Fork, runs: float) -> bytes:
    """The code that pushes the word at the lowest cost over this many runs, deployment included."""
    return min(_codes(word, fork, _DEPTH), key=lambda code: (cost(code, runs), len(code), code))


def pushed(word: int, unit: Unit, runs: float) -> bytes:
    """Code that pushes the word in this unit."""
    plainly = unit.plain is None or word in unit.plain
    return push(word, unit.fork) if plainly else constant(word, unit.fork, runs)


def cost(code: bytes, runs: float) -> float:
    return DEPOSIT * len(code) + gas_of(code) * runs


def gas_of(code: bytes) -> int:
    gas, at = 0, 0
    while at < len(code):
        gas += 2 if code[at] == 0x5F else 3
        at += code[at] - 0x5F + 1 if 0x5F <= code[at] <= 0x7F else 1
    return gas


@lru_cache(maxsize=1 << 14)
def _codes(word: int, fork: Fork, depth: int) -> tuple[bytes, ...]:
    """The plain PUSH and shorter alternatives, the cheapest of each length."""
    plain = push(word, fork)
    if len(plain) <= _SHORT or not depth:
        return (plain,)
    found = {len(plain): plain}

    def add(code: bytes) -> None:
        if len(code) < len(plain) and (len(code) not in found or gas_of(code) < gas_of(found[len(code)])):
            found[len(code)] = code

    for inner in _codes(word ^ TOP, fork, depth - 1):
        add(inner + bytes([_NOT]))
    if fork >= Fork.CONSTANTINOPLE:
        zeros = (word & -word).bit_length() - 1
        for shift in {zeros, zeros - zeros % 8}:
            if shift > 7:
                for inner in _codes(word >> shift, fork, depth - 1):
                    add(inner + push(shift, fork) + bytes([_SHL]))
        ones = 256 - word.bit_length()
        if ones > 7:  # leading zeros: a word with ones below, shifted right
            for inner in _codes((word << ones & TOP) | (1 << ones) - 1, fork, depth - 1):
                add(inner + push(ones, fork) + bytes([_SHR]))
    return tuple(found.values())
