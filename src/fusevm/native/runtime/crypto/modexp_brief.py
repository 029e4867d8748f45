"""A modular exponentiation that takes less than some milliseconds, from bytes to bytes in one native call."""

from __future__ import annotations

from fusevm.native.lang import (
    bswap,
    clz,
    copy,
    exported,
    fill,
    load,
    local,
    native,
    ptr,
    specialised,
    store,
    u8,
    u64,
    u128,
    u192,
)
from fusevm.native.runtime.crypto.modexp import (
    LIMB,
    WINDOW,
    Power,
    modexp_advance,
    modexp_limb,
    modexp_pair,
    modexp_prepare,
    modexp_reciprocal,
    modexp_reduce,
)
from fusevm.native.runtime.division import limb_reciprocal, limb_step, pair_reciprocal, pair_step

MAX_LIMBS = 32  # of base and modulus
LONG_EXPONENT = 6  # bytes from which a table of powers pays
POWER_LIMBS = Power.byte_size() // LIMB


@native
def read_limbs(out: ptr, data: ptr, size: u64) -> u64:
    """From bytes, the highest first; how many limbs without zeros at the top."""
    count: u64 = 0
    limbs: u64 = 0
    while size >= LIMB:
        size -= LIMB
        limb = bswap(load(u64, data, size))
        store(out, LIMB * count, limb)
        count += 1
        if limb != 0:
            limbs = count
    rest: u64 = 0
    at: u64 = 0
    while at < size:
        rest = rest << 8 | u64(load(u8, data, at))
        at += 1
    if size != 0:
        store(out, LIMB * count, rest)
    if rest != 0:
        limbs = count + 1
    return limbs


@native
def write_limbs(out: ptr, size: u64, limbs: ptr) -> None:
    """As many bytes, the highest first; all limbs they cover must be there."""
    while size >= LIMB:
        size -= LIMB
        store(out, size, bswap(load(u64, limbs)))
        limbs += LIMB
    rest = load(u64, limbs)
    while size != 0:
        size -= 1
        store(out, size, u8(rest))
        rest = rest >> 8


@native
def shift_left(x: ptr, limbs: u64, count: u64) -> u64:
    """By less than a limb; what is shifted out at the top."""
    carry: u64 = 0
    at: u64 = 0
    while at < limbs:
        limb = load(u64, x, LIMB * at)
        store(x, LIMB * at, limb << count | carry)
        carry = limb >> 1 >> 63 - count
        at += 1
    return carry


@native
def shift_right(x: ptr, limbs: u64, count: u64) -> None:
    carry: u64 = 0
    while limbs != 0:
        limbs -= 1
        limb = load(u64, x, LIMB * limbs)
        store(x, LIMB * limbs, limb >> count | carry)
        carry = limb << 1 << 63 - count


Number = u64  # what `brief_limb` works on, and below `brief_pair`
Wider = u128
reciprocal_of, step, power_of = limb_reciprocal, limb_step, modexp_limb


@native
def brief_limb(base: ptr, base_limbs: u64, exponent: ptr, size: u64, modulus: ptr, shift: u64) -> None:
    """For a modulus of one limb; the result is written over the base."""
    d = load(Number, modulus)
    v = reciprocal_of(d)
    rest: Number = 0
    while base_limbs != 0:
        base_limbs -= 1
        rest = Number(step(rest, load(u64, base, LIMB * base_limbs), d, v) >> 64)
    reduced = local(Number, 1)
    result = local(Number, 1)
    reduced[0] = rest
    result[0] = 1
    power_of(reduced, exponent, size, modulus, result)
    wide = Wider(result[0]) << Wider(shift)
    store(base, 0, Number(step(Number(wide >> 64), u64(wide), d, v) >> 64) >> Number(shift))


brief_pair = specialised(
    brief_limb,
    "brief_pair",
    Number=u128,
    Wider=u192,
    reciprocal_of=pair_reciprocal,
    step=pair_step,
    power_of=modexp_pair,
)


@native
def brief_long(product: ptr, base_limbs: u64, exponent: ptr, size: u64, modulus: ptr, limbs: u64, shift: u64) -> None:
    """For three limbs and more. The base is where products are made, with zeros above it."""
    table = local(u64, MAX_LIMBS << WINDOW)
    result = local(u64, MAX_LIMBS)
    room = local(u64, POWER_LIMBS)
    power = Power(room)
    power.limbs = limbs
    power.reciprocal = modexp_reciprocal(modulus, limbs)
    power.modulus = modulus
    power.table = table
    power.product = product
    power.result = result
    power.exponent = exponent
    power.size = size
    power.done = 0
    power.window = WINDOW
    if size < LONG_EXPONENT:
        power.window = 1
    power.started = 0
    if base_limbs >= limbs:
        modexp_reduce(product, modulus, limbs, power.reciprocal, base_limbs - limbs + 1, 0)
    copy(power.table + LIMB * limbs, product, LIMB * limbs)
    modexp_prepare(power)
    modexp_advance(power, size)
    copy(product, result, LIMB * limbs)
    store(product, LIMB * limbs, shift_left(product, limbs, shift))
    modexp_reduce(product, modulus, limbs, power.reciprocal, 1, 0)
    shift_right(product, limbs, shift)


@exported
def modexp_brief(data: ptr, base_size: u64, exponent_size: u64, modulus_size: u64, out: ptr) -> None:
    """base^exponent mod modulus of the bytes there, one after another; as many bytes as the modulus has.

    With 2^s the power of two that normalises the modulus m: r mod m = ((r·2^s) mod (m·2^s)) / 2^s.
    """
    modulus = local(u64, MAX_LIMBS)
    product = local(u64, 2 * MAX_LIMBS + 1)
    fill(product, 0, LIMB * (2 * MAX_LIMBS + 1))
    exponent: ptr = data + base_size
    limbs = read_limbs(modulus, exponent + exponent_size, modulus_size)
    while exponent_size != 0 and load(u8, exponent) == 0:
        exponent += 1
        exponent_size -= 1
    if exponent_size == 0 and limbs != 0:
        product[0] = u64(limbs > 1 or modulus[0] > 1)
    elif limbs != 0:
        base_limbs = read_limbs(product, data, base_size)
        shift = clz(load(u64, modulus, LIMB * (limbs - 1)))
        shift_left(modulus, limbs, shift)
        if limbs == 1:
            brief_limb(product, base_limbs, exponent, exponent_size, modulus, shift)
        elif limbs == 2:
            brief_pair(product, base_limbs, exponent, exponent_size, modulus, shift)
        else:
            brief_long(product, base_limbs, exponent, exponent_size, modulus, limbs, shift)
        fill(product + LIMB * limbs, 0, LIMB * (2 * MAX_LIMBS + 1 - limbs))
    write_limbs(out, modulus_size, product)
