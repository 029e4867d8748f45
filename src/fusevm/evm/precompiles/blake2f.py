"""The compression function of BLAKE2b (EIP-152, RFC 7693): rounds, state, block, offsets, final flag in 213 bytes."""

from __future__ import annotations

import struct

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, require_length

_LENGTH = 213
_FLAGS = (0, 1)
_PART = 1_000  # rounds without a pause
_MASK = (1 << 64) - 1

IV = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip
ROTATIONS = (32, 24, 16, 63)  # to the right
SIGMA = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
_LAYOUT = struct.Struct("<8Q16Q2Q")
_STATE = struct.Struct("<8Q")


def gas(data: bytes, fork: Fork) -> int:
    """One a round; nothing for an input of the wrong length, which fails in any case."""
    return int.from_bytes(data[:4], "big") if len(data) == _LENGTH else 0


def require_valid(data: bytes) -> None:
    require_length(data, _LENGTH)
    if data[-1] not in _FLAGS:
        raise PrecompileFailure(f"invalid final flag: {data[-1]}, neither 0 nor 1")


def run(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    require_valid(data)
    words = _LAYOUT.unpack_from(data, 4)
    chain, message, offsets = words[:8], words[8:24], words[24:]
    v = [*chain, *IV]
    v[12] ^= offsets[0]
    v[13] ^= offsets[1]
    if data[-1]:
        v[14] ^= _MASK
    rounds = int.from_bytes(data[:4], "big")
    for start in range(0, rounds, _PART):
        pause()
        for number in range(start, min(start + _PART, rounds)):
            _round(v, message, SIGMA[number % len(SIGMA)])
    return _STATE.pack(*(old ^ low ^ high for old, low, high in zip(chain, v[:8], v[8:], strict=True)))


def _round(v: list[int], message: tuple[int, ...], order: tuple[int, ...]) -> None:
    words = [message[k] for k in order]
    _mix(v, 0, 4, 8, 12, words[0], words[1])
    _mix(v, 1, 5, 9, 13, words[2], words[3])
    _mix(v, 2, 6, 10, 14, words[4], words[5])
    _mix(v, 3, 7, 11, 15, words[6], words[7])
    _mix(v, 0, 5, 10, 15, words[8], words[9])
    _mix(v, 1, 6, 11, 12, words[10], words[11])
    _mix(v, 2, 7, 8, 13, words[12], words[13])
    _mix(v, 3, 4, 9, 14, words[14], words[15])


def _mix(v: list[int], i: int, j: int, k: int, m: int, x: int, y: int) -> None:
    a, b, c, d = v[i], v[j], v[k], v[m]
    a = (a + b + x) & _MASK
    d ^= a
    d = (d >> 32 | d << 32) & _MASK
    c = (c + d) & _MASK
    b ^= c
    b = (b >> 24 | b << 40) & _MASK
    a = (a + b + y) & _MASK
    d ^= a
    d = (d >> 16 | d << 48) & _MASK
    c = (c + d) & _MASK
    b ^= c
    v[i], v[j], v[k], v[m] = a, (b >> 63 | b << 1) & _MASK, c, d
