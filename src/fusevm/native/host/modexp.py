"""Modular exponentiation (EIP-198) on native arithmetic: what is done where, and pauses in between."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import Pause, no_pause, padded
from fusevm.evm.precompiles.modexp import HEADER, SMALL, lengths, small_power
from fusevm.native.emit.crypto import functions
from fusevm.native.host.views import packed_whole
from fusevm.native.runtime.crypto.modexp import LIMB, WINDOW, Power
from fusevm.native.runtime.crypto.modexp_brief import LONG_EXPONENT, MAX_LIMBS

_LIMB_BITS = 8 * LIMB
_PART = 10_000_000  # products of limbs between two pauses, each a nanosecond
_WINDOW_PART = 100_000  # bytes of an exponent, where the modulus is one limb or two
_SMALL_SIZE = 2  # bytes of a modulus below SMALL
_SMALL_EXPONENT = 64
_LARGE = 768  # limbs from which a byte of the exponent would take longer than that
_POWER = packed_whole(Power, "limbs reciprocal modulus table product result exponent size done window started")


def modexp(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    base_size, exponent_size, modulus_size = sizes = lengths(data, fork)
    if modulus_size == 0:
        return b""
    given = padded(data, HEADER, sum(sizes))
    longest = max(base_size, modulus_size)
    if longest <= _SMALL_SIZE and exponent_size > _SMALL_EXPONENT:
        pass
    elif longest <= LIMB * MAX_LIMBS and exponent_size * (longest * longest // 2 + 64) <= _PART:
        out = ctypes.create_string_buffer(modulus_size)
        functions("modexp")["modexp_brief"](given, *sizes, out)
        return out.raw
    base, exponent = given[:base_size], given[base_size : base_size + exponent_size]
    modulus = int.from_bytes(given[base_size + exponent_size :], "big")
    return power(base, exponent, modulus, pause).to_bytes(modulus_size, "big")


def power(base: bytes, exponent: bytes, modulus: int, pause: Pause = no_pause) -> int:
    """base^exponent mod modulus, of any size; zero where the modulus is."""
    if modulus < SMALL:
        return small_power(int.from_bytes(base, "big"), exponent, modulus, pause) if modulus else 0
    exponent = exponent.lstrip(b"\0")
    if not exponent:
        return 1
    if modulus.bit_length() <= 2 * _LIMB_BITS:
        return _window_power(int.from_bytes(base, "big"), exponent, modulus, pause)
    return Exponentiation(base, exponent, modulus, pause).run() % modulus


def _window_power(base: int, exponent: bytes, modulus: int, pause: Pause) -> int:
    """Where the modulus has one limb or two."""
    one = modulus.bit_length() <= _LIMB_BITS
    name, size = ("modexp_limb", LIMB) if one else ("modexp_pair", 2 * LIMB)
    normal = modulus << 8 * size - modulus.bit_length()
    result = ctypes.create_string_buffer((1).to_bytes(size, "little"), size)
    base_limbs, modulus_limbs = (number.to_bytes(size, "little") for number in (base % normal, normal))
    for start in range(0, len(exponent), _WINDOW_PART):
        pause()
        part = exponent[start : start + _WINDOW_PART]
        functions("modexp")[name](base_limbs, part, len(part), modulus_limbs, result)
    return int.from_bytes(result.raw, "little") % modulus


class Exponentiation:
    """One power modulo a multiple m·2^s of the modulus whose top bit is set, with the memory it works in."""

    def __init__(self, base: bytes, exponent: bytes, modulus: int, pause: Pause) -> None:
        self.native = functions("modexp")
        self.pause = pause
        self.exponent = exponent
        self.limbs = limbs = -(-modulus.bit_length() // _LIMB_BITS)
        self.size = size = LIMB * limbs
        normal = modulus << _LIMB_BITS * limbs - modulus.bit_length()
        self.base_limbs = max(-(-len(base) // LIMB), limbs)
        self.window = WINDOW if len(exponent) >= LONG_EXPONENT and limbs < _LARGE else 1
        # One after another: the struct, the modulus, the result, the base's powers, the product, the exponent.
        room = max(2 * limbs, self.base_limbs) + 1
        before = _POWER.size + 2 * size + (size << self.window) + LIMB * room
        self.memory = ctypes.create_string_buffer(before + len(exponent))
        self.power = ctypes.addressof(self.memory)
        self.modulus = self.power + _POWER.size
        self.result = self.modulus + size
        self.table = self.result + size
        self.product = self.table + (size << self.window)
        self.room = LIMB * room
        ctypes.memmove(self.modulus, normal.to_bytes(size, "little"), size)
        ctypes.memmove(self.product, base[::-1], len(base))
        ctypes.memmove(self.product + self.room, exponent, len(exponent))
        self.reciprocal = self.native["modexp_reciprocal"](self.modulus, limbs)

    def run(self) -> int:
        """The power, below the multiple of the modulus."""
        self._reduce(self.base_limbs - self.limbs + 1)
        ctypes.memmove(self.table + self.size, self.product, self.size)
        if self.limbs < _LARGE:
            self._run_by_bytes()
        else:
            self._run_by_rows()
        return int.from_bytes(ctypes.string_at(self.result, self.size), "little")

    def _run_by_bytes(self) -> None:
        places = self.modulus, self.table, self.product, self.result, self.product + self.room
        state = self.limbs, self.reciprocal, *places, len(self.exponent), 0, self.window, 0
        ctypes.memmove(self.power, _POWER.pack(*state), _POWER.size)
        self.native["modexp_prepare"](self.power)
        products = 2 * self.limbs**2 * (8 + 8 // self.window)
        while self.native["modexp_advance"](self.power, _PART // products + 1):
            self.pause()

    def _run_by_rows(self) -> None:
        base, result = self.table + self.size, self.result
        bits = bin(int.from_bytes(self.exponent, "big"))[3:]  # after the leading one
        ctypes.memmove(result, base, self.size)
        for bit in bits:
            self._multiply(result, result)
            if bit == "1":
                self._multiply(result, base)

    def _multiply(self, left: int, right: int) -> None:
        """The result becomes the product, modulo."""
        ctypes.memset(self.product, 0, self.room)
        for start, stop in self._rows(self.limbs):
            self.native["modexp_multiply"](self.product, left, right, self.limbs, start, stop)
        self._reduce(self.limbs)
        ctypes.memmove(self.result, self.product, self.size)

    def _reduce(self, rows: int) -> None:
        for start, stop in self._rows(rows):
            self.native["modexp_reduce"](
                self.product, self.modulus, self.limbs, self.reciprocal, rows - start, rows - stop
            )

    def _rows(self, count: int) -> Iterator[tuple[int, int]]:
        """A few at a time, with pauses."""
        step = _PART // self.limbs + 1
        for start in range(0, count, step):
            self.pause()
            yield start, min(start + step, count)
