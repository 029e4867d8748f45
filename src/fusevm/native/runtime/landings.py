"""Where jumps of code that runs plainly may land: at JUMPDESTs that are not inside push data. In the subset of `lang`.

One jump does not need a scan of all code: the code is read backwards from its target. For each of the 33 bytes that
follow a place it is known whether instructions starting at that byte lead to the target. At most 32 bytes follow a
PUSH, so an instruction does start at one of them; if all 33 give the same answer, it is the answer. In most code they
do a few bytes before the target.

Long rows of PUSHes, each of which could be another's data, never agree. There the code is also decoded forwards from
its start, and the two scans meet in the middle. A processor does both in the time of one: neither depends on the other.
"""

from __future__ import annotations

from fusevm.evm.bytecode import JUMPDEST, PUSH0
from fusevm.native.lang import Struct, inlined, load, native, ptr, store, u8, u64

PUSH1 = PUSH0 + 1
MAX_PUSHED = 32  # bytes
ALL = (1 << MAX_PUSHED + 1) - 1  # the places after one that an instruction there may lead to
EACH = 0x0101_0101_0101_0101  # one in every byte
NEAR = 128  # bytes before a target that are looked at before the walk begins
STRIDE = 8 + 3 * (MAX_PUSHED + 1)  # bytes that the two come nearer at once, at most


class PlainCode(Struct):
    """The header of a code's table of jump targets: for each byte the index of its schedule word, or 0."""

    code: ptr
    size: u64
    ops: ptr  # of PlainOp: what the fork makes of each byte
    room: u64  # bytes from here to the end of what is kept of the code
    starts: ptr  # for each byte whether an instruction starts there, after the table, as far as it was walked
    walked: u64  # the instruction that the walk has come to; 0 where it has not begun
    last: u64  # the number of the origin of the section written last, and one; 0: none
    sections: u64  # how many are written


@native
def is_landing(plain: PlainCode, pc: u64) -> u64:
    """Whether a JUMPDEST stands at a pc of the code."""
    if u64(load(u8, plain.code, pc)) != JUMPDEST:
        return 0
    low = plain.walked
    if pc < low:
        return u64(load(u8, plain.starts, pc))
    high = pc
    lead: u64 = 1  # bit n: whether an instruction at high + n leads to the target
    near = low
    if pc - low > NEAR:
        near = pc - NEAR
    while near + 8 <= high:
        high -= 8
        lead = before(plain.code, high, lead)
        if (lead & ALL) == 0 or (lead & ALL) == ALL:
            return lead & 1
    return meet(plain, high, lead)


@native
def meet(plain: PlainCode, high: u64, lead: u64) -> u64:
    """The same by a walk that goes on from where it has come to, toward `high`."""
    low = plain.walked
    while low + STRIDE <= high:
        high -= 8
        lead = before(plain.code, high, lead)
        low = next_start(plain, next_start(plain, next_start(plain, low)))
        if (lead & ALL) == 0 or (lead & ALL) == ALL:
            plain.walked = low
            return lead & 1
    while low < high:
        low = next_start(plain, low)
    plain.walked = low
    return lead >> (low - high) & 1


@inlined
def before(code: ptr, at: u64, lead: u64) -> u64:
    """What leads to the target from eight bytes earlier.

    Of the PUSHes, which are 011xxxxx in bits, xxxxx + 1 bytes are skipped, of others none.
    """
    bytes_ = load(u64, code, at)
    other = bytes_ ^ (EACH * 0x60)
    other = (other | other << 1 | other << 2) & (EACH * 0x80)  # the top bit of those that are not PUSHes
    pushes = (other ^ (EACH * 0x80)) >> 7
    skipped = pushes + (bytes_ & (pushes * 31))
    lead = lead << 1 | lead >> (skipped >> 56) & 1
    lead = lead << 1 | lead >> (skipped >> 48 & 63) & 1
    lead = lead << 1 | lead >> (skipped >> 40 & 63) & 1
    lead = lead << 1 | lead >> (skipped >> 32 & 63) & 1
    lead = lead << 1 | lead >> (skipped >> 24 & 63) & 1
    lead = lead << 1 | lead >> (skipped >> 16 & 63) & 1
    lead = lead << 1 | lead >> (skipped >> 8 & 63) & 1
    return lead << 1 | lead >> (skipped & 63) & 1


@inlined
def next_start(plain: PlainCode, at: u64) -> u64:
    """The instruction after one, which is noted."""
    store(plain.starts, at, u8(1))
    byte = u64(load(u8, plain.code, at))
    if byte - PUSH1 < MAX_PUSHED:
        return at + (byte - (PUSH1 - 2))
    return at + 1
