"""Plain schedules, made natively: one handler an opcode, nothing folded or fused, dynamic jumps only.

Most code is run a few times, and init code but once: preparing it may not take longer than running it. A plain schedule
takes some nanoseconds a byte, a fused one a microsecond.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator

from fusevm.evm.bytecode import JUMPDEST, PUSH0
from fusevm.evm.forks import Fork
from fusevm.fuse.schedule import STACK_LIMIT, Handlers, Schedule, Unit, address_of
from fusevm.fuse.sections import (
    ENDS_BLOCK,
    ENDS_SECTION,
    GOES_ON,
    OUTWARD,
    ROLE_ASK,
    ROLE_DEST,
    ROLE_PC,
    ROLE_PLAIN,
    ROLE_PUSH,
    Kind,
    Section,
    Token,
    kinds_of,
)
from fusevm.native.arena import Arena
from fusevm.native.lang import Struct, bswap, exported, fill, inlined, load, native, ptr, slt, store, u8, u32, u64, u256
from fusevm.native.layout import PlainOp
from fusevm.native.views import view_of

AT_HAND = 1 << 18  # bytes of code for which there is always room to write a schedule
WORDS = 6  # for a byte of code at most: two sections' two, a handler and its operand
SPLIT = 1 << 31  # gas: a longer section is split, since 32 bits must do
EVERYWHERE = (1 << 64) - 1
END, SECTION, GAS_SECTION = 256, 257, 258  # behind the opcodes
OP_SIZE = PlainOp.byte_size()
JUMPS = ENDS_BLOCK + 1  # ends a block, and nothing but a jump can reach what follows
SHORT = 8  # bytes that are pushed as one word
PUSH1 = PUSH0 + 1


class SectionPlace(Struct):
    """A section of a plain schedule."""

    pc: u64
    at: u64  # its first word in the schedule
    opens: u64  # whether it opens a block


@exported
def plain_schedule(code: ptr, size: u64, ops: ptr, words: ptr, jumps: ptr, until: u64, found: SectionPlace) -> u64:
    """Writes the schedule and where its jumps may land; how many words it has.

    Ends at the section that the word `until` is in, and says which that is.
    """
    fill(jumps, 0, (size + 1) << 2)
    count: u64 = 2
    pc: u64 = 0
    reached: u64 = 1
    opened: u64 = 0  # whether a block is being written
    head: u64 = 0  # where its bounds go, and the gas of its first section
    place: u64 = 0  # where the gas of the running section goes
    first_gas: u64 = 0
    gas: u64 = 0
    height: u64 = 0
    needs: u64 = 0
    grows: u64 = 0
    while True:
        op = PlainOp(ops + END * OP_SIZE)
        if pc < size:
            op = PlainOp(ops + u64(load(u8, code, pc)) * OP_SIZE)
        if op.role == ROLE_DEST:
            if opened != 0:
                end_block(words, head, place, first_gas, gas, needs, grows)
            opened = 0
            reached = 1
            store(jumps, pc << 2, u32(count))
        if reached == 0:
            if count > until:
                return count
            pc = next_dest(code, size, pc)
            if pc >= size:
                return count
            continue
        if opened == 0:
            if count > until:
                return count
            found.pc = pc
            found.at = count
            found.opens = 1
            store(words, count << 3, PlainOp(ops + SECTION * OP_SIZE).handler)
            head = count + 1
            place = head
            count += 2
            gas = 0
            height = 0
            needs = 0
            grows = 0
            opened = 1
        gas += op.gas
        if slt(needs, op.pops - height):
            needs = op.pops - height
        height += op.delta
        if slt(grows, height):
            grows = height
        if op.role != ROLE_DEST:
            store(words, count << 3, op.handler)
            count += 1
        if op.role == ROLE_PUSH:
            if op.immediate <= SHORT:
                store(words, count << 3, u64(pushed(code, size, pc + 1, op.immediate)))
                count += 1
            else:
                store(words, count << 3, pushed(code, size, pc + 1, op.immediate))
                count += 4
        elif op.role == ROLE_ASK or op.role == ROLE_PC:
            store(words, count << 3, pc)
            count += 1
        pc += op.immediate + 1
        if op.ending == ENDS_SECTION or (op.ending == GOES_ON and gas >= SPLIT):
            if place == head:
                first_gas = gas
            else:
                store(words, place << 3, gas)
            if count > until:
                return count
            found.pc = pc
            found.at = count
            found.opens = 0
            store(words, count << 3, PlainOp(ops + GAS_SECTION * OP_SIZE).handler)
            place = count + 1
            count += 2
            gas = 0
        elif op.ending != GOES_ON:
            end_block(words, head, place, first_gas, gas, needs, grows)
            opened = 0
            if op.ending == JUMPS:
                reached = 0


@inlined
def next_dest(code: ptr, size: u64, pc: u64) -> u64:
    """Where the next JUMPDEST stands, from an instruction on; the size or more where there is none."""
    while pc < size:
        byte = u64(load(u8, code, pc))
        if byte == JUMPDEST:
            return pc
        pc += 1
        if byte - PUSH1 < 32:
            pc += byte - (PUSH1 - 1)
    return pc


@native
def end_block(words: ptr, head: u64, place: u64, first_gas: u64, gas: u64, needs: u64, grows: u64) -> None:
    """As `fuse.schedule.with_header` has it."""
    if place == head:
        first_gas = gas
    else:
        store(words, place << 3, gas)
    room = u64(STACK_LIMIT) - grows - needs
    bounds: u64 = (STACK_LIMIT + 1) << 32
    if not slt(room, 0):
        bounds = needs << 32 | room << 48
    store(words, head << 3, first_gas | bounds)


@inlined
def pushed(code: ptr, size: u64, start: u64, length: u64) -> u256:
    """Bytes of code as a number; zeros past its end."""
    if start + 32 <= size and length != 0:
        return bswap(load(u256, code, start)) >> u256((u64(32) - length) << 3)
    value = u256(0)
    stop = start + length
    while start < stop:
        value = value << 8
        if start < size:
            value = value | u256(load(u8, code, start))
        start += 1
    return value


class PlainScheduler:
    """Makes plain schedules of code on one fork."""

    def __init__(self, write: Callable[..., int], handlers: Handlers) -> None:
        self._write = write
        self._handlers = handlers
        self._tables: dict[Fork, array[int]] = {}
        self._room = self._room_for(AT_HAND)
        self._found = view_of(SectionPlace)()

    @staticmethod
    def _room_for(size: int) -> tuple[Arena, Arena]:
        """To write schedule and jumps of so much code."""
        return Arena(8 * (WORDS * (size + 2) + 2)), Arena(4 * (size + 1))

    def schedule(self, code: bytes, fork: Fork) -> Schedule:
        room = self._room if len(code) <= AT_HAND else self._room_for(len(code))
        count = self._written(code, fork, room, EVERYWHERE)
        words, jumps = array("Q"), array("I")
        words.frombytes(room[0].view(room[0].address, 8 * count))
        jumps.frombytes(room[1].view(room[1].address, 4 * (len(code) + 1)))
        schedule = Schedule(words, jumps, code, [], b"")
        schedule.plain = True
        return schedule

    def _written(self, code: bytes, fork: Fork, room: tuple[Arena, Arena], until: int) -> int:
        table = self._tables.get(fork)
        if table is None:
            table = self._tables[fork] = plain_ops(fork, self._handlers)
        places = address_of(code), len(code), table.buffer_info()[0], room[0].address, room[1].address
        return self._write(*places, until, ctypes.addressof(self._found))

    def section(self, code: bytes, fork: Fork, at: int) -> list[Unit]:
        """What stands in the section that the schedule's word `at` is in, to tell where a frame failed."""
        room = self._room if len(code) <= AT_HAND else self._room_for(len(code))
        self._written(code, fork, room, at)
        found = self._found
        return next(plain_sections(code, fork, self._handlers.native, found.pc, found.at, opens=bool(found.opens)))


def plain_form(kind: Kind) -> tuple[str, int]:
    """The handler's name, if there is one, and how many words stand behind its address."""
    if kind.role == ROLE_PUSH:
        return ("PUSH", 1) if kind.immediate <= SHORT else ("PUSHW", 4)
    if kind.role == ROLE_DEST:
        return "", 0
    if kind.role == ROLE_PC:
        return "PUSH", 1
    if kind.role == ROLE_ASK:
        return "SYNC", 1
    return kind.name, int(kind.name in OUTWARD)


def plain_ops(fork: Fork, handlers: Handlers) -> array[int]:
    """What native code must know of each byte."""
    at = handlers.addresses
    table: list[int] = []
    for kind in kinds_of(fork, handlers.native):
        if kind is None:
            table += (at["INVALID",], 0, 0, 0, 0, ROLE_PLAIN, JUMPS)
            continue
        name, _ = plain_form(kind)
        role = ROLE_ASK if kind.name in OUTWARD else kind.role  # they may ask Python
        ending = JUMPS if kind.ending == ENDS_BLOCK and kind.name != "JUMPI" else kind.ending
        handler = at[name,] if name else 0
        table += (handler, kind.gas, kind.pops, kind.delta & (1 << 64) - 1, kind.immediate, role, ending)
    table += (at["STOP",], 0, 0, 0, 0, ROLE_PLAIN, JUMPS)
    for name in ("SECTION", "GASSECTION"):
        table += (at[name,], 0, 0, 0, 0, ROLE_PLAIN, GOES_ON)
    return array("Q", table)


def plain_units(code: bytes, fork: Fork, native: frozenset[str]) -> list[Unit]:
    """What stands in a plain schedule."""
    return [unit for section in plain_sections(code, fork, native) for unit in section]


def plain_sections(
    code: bytes, fork: Fork, native: frozenset[str], pc: int = 0, at: int = 2, *, opens: bool = True
) -> Iterator[list[Unit]]:
    """The sections of a plain schedule one after another, from the one of that pc and place on."""
    kinds, end = kinds_of(fork, native), len(code)
    while True:
        start, first = pc, "SECTION" if opens else "GASSECTION"
        tokens = [(first, at, pc)]  # names, places and pcs
        at += 2
        gas = 0
        ending = GOES_ON
        while ending == GOES_ON:
            kind = kinds[code[pc]] if pc < end else None
            if kind is None:
                tokens.append(("STOP" if pc >= end else "INVALID", at, pc))
                at, pc, ending = at + 1, pc + 1, JUMPS
                break
            if kind.role == ROLE_DEST and not (opens and pc == start):
                ending = ENDS_BLOCK
                break
            gas += kind.gas
            name, operands = plain_form(kind)
            if name:
                tokens.append((name, at, pc))
                at += 1 + operands
            pc += 1 + kind.immediate
            ending = JUMPS if kind.ending == ENDS_BLOCK and kind.name != "JUMPI" else kind.ending
            if ending == GOES_ON and gas >= SPLIT:
                ending = ENDS_SECTION
        section = Section(start, gas, 0 if opens else -1, 0, [])
        yield [
            Unit(place, (name,), (Token(name, 0, where, int(n > 0)),), None if n else section)
            for n, (name, place, where) in enumerate(tokens)
        ]
        opens = ending != ENDS_SECTION
        while ending == JUMPS and (pc >= end or code[pc] != JUMPDEST):
            if pc >= end:
                return
            skipped = kinds[code[pc]]
            pc += 1 + (skipped.immediate if skipped else 0)
