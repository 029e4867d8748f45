"""Where jumps of code that runs plainly may land: at JUMPDESTs that are not inside push data. In the subset of `lang`.

One jump does not need a scan of all code. At most 32 bytes follow a PUSH, so a byte that no PUSH in the bytes before it
can reach starts an instruction, and the target is usually a few instructions after such a byte. Only if there is none
nearby (long rows of PUSHes, each of which could be another's data) the code is walked from its start, once.
"""

from __future__ import annotations

from fusevm.evm.bytecode import JUMPDEST, PUSH0
from fusevm.native.lang import Struct, load, native, ptr, store, u8, u64

PUSH1 = PUSH0 + 1
MOST_PUSHED = 32  # bytes
NEAR = 128  # bytes before a target that are looked at first
STARTS = 0x80  # marks a step that was taken: an instruction starts there
EACH = 0x0101_0101_0101_0101  # one in every byte


class PlainCode(Struct):
    """The header of a code's table of jump targets: for each byte the index of its schedule word, or 0."""

    code: ptr
    size: u64
    ops: ptr  # of PlainOp: what the fork makes of each byte
    room: u64  # bytes from here to the end of what is kept of the code
    steps: ptr  # for each byte how far the next instruction would be, after the table; made when first needed
    walked: u64  # the instruction that the walk over these has come to; 0 where there are none


@native
def is_landing(plain: PlainCode, pc: u64) -> u64:
    """Whether a JUMPDEST stands at a pc of the code."""
    if u64(load(u8, plain.code, pc)) != JUMPDEST:
        return 0
    at = plain.walked
    if pc < at:
        return u64(load(u8, plain.steps, pc)) & STARTS
    sure = at  # no PUSH before `at` reaches this
    if pc - at > NEAR:
        at = pc - NEAR
        sure = at + MOST_PUSHED
    while at != sure:
        end = at + step_of(u64(load(u8, plain.code, at)))
        if end > sure:
            sure = end
        if sure > pc:
            walk(plain, pc)
            return u64(load(u8, plain.steps, pc)) & STARTS
        at += 1
    while at < pc:
        at += step_of(u64(load(u8, plain.code, at)))
    return u64(at == pc)


@native
def step_of(byte: u64) -> u64:
    """How far it is from an instruction to the next."""
    if byte - PUSH1 < MOST_PUSHED:
        return byte - (PUSH1 - 2)
    return 1


@native
def walk(plain: PlainCode, pc: u64) -> None:
    """From instruction to instruction, past a pc. Each waits for the one before: little is left to do for it."""
    if plain.walked == 0:
        measure(plain)
    steps = plain.steps
    at = plain.walked
    while at <= pc:
        step = load(u8, steps, at)
        store(steps, at, step | STARTS)
        at += u64(step)
    plain.walked = at


@native
def measure(plain: PlainCode) -> None:
    """The steps from all bytes, eight at a time: 1, and xxxxx + 1 more from the PUSHes, which are 011xxxxx in bits."""
    at: u64 = 0
    while at + 8 <= plain.size:
        bytes_ = load(u64, plain.code, at)
        other = bytes_ ^ (EACH * 0x60)
        other = (other | other << 1 | other << 2) & (EACH * 0x80)  # the top bit of those that are not PUSHes
        pushes = (other ^ (EACH * 0x80)) >> 7
        store(plain.steps, at, EACH + pushes + (bytes_ & (pushes * 31)))
        at += 8
    while at < plain.size:
        store(plain.steps, at, u8(step_of(u64(load(u8, plain.code, at)))))
        at += 1
