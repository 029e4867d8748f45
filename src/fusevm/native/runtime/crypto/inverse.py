"""Inverses modulo a number of up to 256 bits, but for a power of two; in the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import ctz, inlined, ptr, select, store, u64, u256


@inlined
def shifted_right(x: u256, count: u64) -> u256:
    """By less than 64 bits, which LLVM would not know to be less."""
    rest = 63 - count
    low = u64(x) >> count | u64(x >> 64) << 1 << rest
    next_low = u64(x >> 64) >> count | u64(x >> 128) << 1 << rest
    next_high = u64(x >> 128) >> count | u64(x >> 192) << 1 << rest
    high = u64(x >> 192) >> count
    return u256(low) | u256(next_low) << 64 | u256(next_high) << 128 | u256(high) << 192


@inlined
def shifted_left(x: u256, count: u64) -> u256:
    rest = 63 - count
    low = u64(x) << count
    next_low = u64(x >> 64) << count | u64(x) >> 1 >> rest
    next_high = u64(x >> 128) << count | u64(x >> 64) >> 1 >> rest
    high = u64(x >> 192) << count | u64(x >> 128) >> 1 >> rest
    return u256(low) | u256(next_low) << 64 | u256(next_high) << 128 | u256(high) << 192


@inlined
def almost_inverse(x: u256, modulus: u256, power: ptr) -> u256:
    """x^-1·2^k modulo an odd prime, x being below it and not zero; k, which `power` gets, is at least the number of the
    prime's bits less one, and at most twice that number less one (Kaliski).

    Invariants: modulus = u·s + v·r; x·r = -u·2^k and x·s = v·2^k, or both with the other sign after an odd number of
    swaps. In the end u = v = 1.
    """
    u = modulus
    v = x
    r: u256 = 0
    s: u256 = 1
    k: u64 = 0
    swaps: u64 = 0
    while True:
        zeros = ctz(u64(v) | 1 << 63)  # one turn may leave zeros to the next
        v = shifted_right(v, zeros)
        r = shifted_left(r, zeros)
        k += zeros
        if u64(v) & 1 == 0:
            continue
        if u == v:
            break
        swapped = u > v
        swaps += u64(swapped)
        larger = select(swapped, u, v)
        u = select(swapped, v, u)
        v = larger - u
        kept = select(swapped, s, r)
        s = r + s
        r = kept
    store(power, 0, k)
    return select(swaps & 1 != 0, modulus - s, s)
