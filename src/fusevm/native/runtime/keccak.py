"""Keccak-256 as native code, in the subset of `lang`. Lanes stay machine words: AVX-512 vectors measured no faster."""

from __future__ import annotations

from fusevm.native.lang import Table, bswap, exported, load, local, native, outlined, ptr, rotl, store, u8, u64, u256

RATE = 136  # bytes a block
LAST_LANE = RATE - 8
ROUNDS = 24


def _round_constants() -> list[int]:
    """A bit for each position 2^j - 1 of a lane, from a shift register with feedback x^8 + x^6 + x^5 + x^4 + 1."""
    constants, register = [], 1
    for _ in range(ROUNDS):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << ((1 << j) - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


def _rotations() -> tuple[int, ...]:
    """How far each lane is rotated: triangular numbers along the walk (x, y) → (y, 2x + 3y)."""
    turns = [0] * 25
    x, y = 1, 0
    for step in range(ROUNDS):
        turns[x + 5 * y] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return tuple(turns)


IOTA = Table(u64, _round_constants())
TURNS = _rotations()
SOURCE = tuple((x + 3 * y) % 5 + 5 * x for y in range(5) for x in range(5))  # which lane moves to lane x + 5y


@outlined
def keccak_permute(state: ptr) -> None:
    """The permutation of 25 lanes of 64 bits; lane (x, y) is the (x + 5y)-th."""
    a = local(u64, 25)
    b = local(u64, 25)
    c = local(u64, 5)
    d = local(u64, 5)
    for i in range(25):
        a[i] = load(u64, state, 8 * i)
    turn: u64 = 0  # one round per iteration: unrolled, it is not faster, and slower to compile
    while turn < ROUNDS:
        for x in range(5):  # θ: each lane takes in the parities of two columns
            c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]
        for x in range(5):
            d[x] = c[(x + 4) % 5] ^ rotl(c[(x + 1) % 5], 1)
        for i in range(25):  # ρ and π: lanes are rotated and permuted
            b[i] = rotl(a[SOURCE[i]] ^ d[SOURCE[i] % 5], TURNS[SOURCE[i]])
        for y in range(5):  # χ: the only step that is not linear
            for x in range(5):
                a[x + 5 * y] = b[x + 5 * y] ^ (~b[(x + 1) % 5 + 5 * y] & b[(x + 2) % 5 + 5 * y])
        a[0] ^= IOTA[turn]  # ι
        turn += 1
    for i in range(25):
        store(state, 8 * i, a[i])


@native
def absorb_lane(state: ptr, offset: u64, lane: u64) -> None:
    store(state, offset, load(u64, state, offset) ^ lane)


@native
def absorb_tail(state: ptr, data: ptr, size: u64) -> None:
    """The last bytes, less than a block, and the padding: a one after them, a one at the block's end."""
    offset: u64 = 0
    while offset + 8 <= size:
        absorb_lane(state, offset, load(u64, data, offset))
        offset += 8
    lane: u64 = 0
    end = size
    while end > offset:
        end -= 1
        lane = lane << 8 | u64(load(u8, data, end))
    absorb_lane(state, offset, lane | 1 << (size - offset) * 8)
    absorb_lane(state, LAST_LANE, 1 << 63)


@outlined
def keccak256_word(data: ptr, size: u64) -> u256:
    """The hash as the EVM's word: its first byte is the highest."""
    state = local(u64, 25)
    for i in range(25):
        state[i] = 0
    while size >= RATE:
        for i in range(RATE // 8):
            state[i] ^= load(u64, data, 8 * i)
        keccak_permute(state)
        data += RATE
        size -= RATE
    absorb_tail(state, data, size)
    keccak_permute(state)
    return bswap(load(u256, state))


@exported
def keccak256(data: ptr, size: u64, out: ptr) -> None:
    """The 32 bytes of the hash, in their order."""
    store(out, 0, bswap(keccak256_word(data, size)))
