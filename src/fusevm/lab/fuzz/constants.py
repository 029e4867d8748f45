"""Edge-heavy words: the constants, offsets and sizes random programs are made of."""

from __future__ import annotations

from random import Random

WORD = (1 << 256) - 1
SIGN = 1 << 255

EDGES = (
    0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 256, 257, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, (1 << 64) + 1,
    1 << 127, (1 << 128) - 1, 1 << 128, (1 << 160) - 1, 1 << 160, (1 << 192) - 1,
    SIGN - 1, SIGN, SIGN + 1, WORD - 1, WORD, WORD - 31, WORD - 255,
    0xFF << 248, int.from_bytes(b"\x5b" * 32, "big"), int.from_bytes(b"\xff\x00" * 16, "big"),
)  # fmt: skip
SMALL = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32)
HUGE_OFFSETS = (0x1000, 0x10000, 0xFFFFFF, 1 << 32, (1 << 64) - 1, 1 << 64, SIGN, WORD - 31, WORD)
SIZES = (0, 0, 1, 2, 4, 20, 31, 32, 32, 33, 64, 65, 96, 135, 136, 137, 200)


def word(rng: Random) -> int:
    """Any word: half of them small, the others at an edge or anything at all."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(SMALL)
    if kind < 0.8:
        return rng.choice(EDGES)
    if kind < 0.9:
        return rng.getrandbits(rng.choice((8, 16, 64, 65, 128, 160, 255)))
    if kind < 0.95:
        return 1 << rng.randrange(256)
    return rng.getrandbits(256)


def offset(rng: Random) -> int:
    """Near the start, so that accesses overlap; seldom far away."""
    kind = rng.random()
    if kind < 0.6:
        return 32 * rng.randrange(8)
    if kind < 0.997:
        return rng.randrange(0x120)
    return rng.choice(HUGE_OFFSETS)


def size(rng: Random) -> int:
    kind = rng.random()
    if kind < 0.9:
        return rng.choice(SIZES)
    if kind < 0.998:
        return rng.randrange(300)
    return rng.choice(HUGE_OFFSETS)


def key(rng: Random) -> int:
    """A storage key: few of them, so that they meet again."""
    return rng.randrange(6) if rng.random() < 0.9 else rng.choice(EDGES)


def slot_value(rng: Random) -> int:
    """What goes into storage: small, so that it is often what is or was there."""
    return rng.randrange(3) if rng.random() < 0.8 else word(rng)


def octets(rng: Random, longest: int = 130) -> bytes:
    """Bytes that look like arguments: words one after another, cut off anywhere."""
    length = rng.choice((0, 4, 32, 36, 64, 68, rng.randrange(longest)))
    joined = b"".join(word(rng).to_bytes(32, "big") for _ in range(length // 32 + 1))
    return joined[:length]
