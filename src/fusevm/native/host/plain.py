"""Plain schedules as Python keeps them: their arena, what native code must know of each byte, and their sections."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

from fusevm.evm.forks import Fork
from fusevm.native.host.poison import Poison
from fusevm.native.host.tables import NativeLimit, Tables
from fusevm.native.host.views import packed_whole, view_at
from fusevm.native.layout import PlainOp
from fusevm.native.runtime.landings import PlainCode
from fusevm.native.runtime.plain import FIRST, HEADER, JUMPS, ORIGIN_SIZE, SHORT, SectionOrigin
from fusevm.schedule.build import Handlers, Schedule, ScheduleUnit, address_of
from fusevm.schedule.sections import (
    ENDS_BLOCK,
    GOES_ON,
    ROLE_ASK,
    ROLE_DEEP,
    ROLE_DEST,
    ROLE_PC,
    ROLE_PLAIN,
    ROLE_PUSH,
    TELLING,
    HandlerToken,
    Section,
    SectionOpcode,
    kinds_of,
    variant_at,
    variants_of,
)

if TYPE_CHECKING:
    from fusevm.native.emit.build import Library

_ORIGIN = packed_whole(SectionOrigin, "at pc opens plain steps before")
_COUNTED = struct.Struct("<3Q")
_OP = packed_whole(PlainOp, "handler gas pops delta immediate role ending operand variants")
NO_ROOM = "plain schedules of more code than there is room for"
COUNTER = 2  # words before a section that is counted
MUCH_WORDS = 1 << 20
MAX_WORDS = 1 << 23


class PlainSchedule(Schedule):
    """The schedule of one code, as far as it is written. One that counts its sections is not for want of a better."""

    __slots__ = ("_own", "counts")

    def __init__(self, code: bytes, words: int, entry: int, table: int, own: bytearray | None, *, counts: bool) -> None:
        """`table` is the address of its header, which the places of its jumps follow; `own` holds it, if it must."""
        self._own, self.counts = own, counts
        self.code, self.code_base = code, address_of(code)
        self.base, self.entry, self.jumps_base = words, entry, table + HEADER
        self.units, self.kinds, self.plain = [], b"", not counts
        self.twin, self.held = 0, None

    @property
    def header(self) -> int:
        return self.jumps_base - HEADER

    @property
    def size(self) -> int:
        """Bytes that it takes beside what is written of it."""
        return table_size(len(self.code)) + len(self.code)


def table_size(code_size: int) -> int:
    """Of all that native code keeps of a code beside its schedule (`PlainCode`): four bytes for each of its own, and
    one for where instructions start."""
    return HEADER + 5 * code_size + 15 & ~7


class PlainScheduler:
    """Makes plain schedules, in the arenas of one engine."""

    def __init__(self, native: Library, handlers: Handlers, tables: Tables) -> None:
        self._begin, self._write, self._forget = native.begin_plain, native.write_block, native.forget_plain
        self._take_counts = native.take_counts
        self._handlers = handlers
        self._tables = tables
        self._most_words = min(tables.caps.plain // 4, MAX_WORDS)
        self._most_tables = tables.plain_tables.size // 2
        self._ops: dict[tuple[Fork, bool], bytes] = {}
        self.poison: Poison | None = None

    def schedule(self, code: bytes, fork: Fork, *, counts: bool = False) -> PlainSchedule:
        """Begins a schedule; with `counts` its sections are counted as they run."""
        ops = self._ops.get((fork, counts))
        if ops is None:
            ops = self._ops[fork, counts] = plain_ops(fork, self._handlers, counts=counts)
        tables, own = self._tables, None
        arena, at, room = tables.plain_tables, tables.shared.plain_used, table_size(len(code))
        if at + room <= arena.size:
            table = arena.address + at
        else:
            own = bytearray(room)
            table = ctypes.addressof(ctypes.c_char.from_buffer(own))
        number = self._begin(tables.address, table, code, len(code), ops, room)
        if not number:
            raise NativeLimit(NO_ROOM)
        words = tables.plain_words.address
        return PlainSchedule(code, words, words + 8 * number, table, own, counts=counts)

    def block(self, schedule: PlainSchedule, pc: int) -> int:
        """Writes a block; the number of its first word."""
        number = self._write(self._tables.address, schedule.header, pc)
        if not number:
            raise NativeLimit(NO_ROOM)
        return number

    def counted(self, schedule: PlainSchedule) -> dict[int, tuple[int, int]]:
        """By the pc of each section that ran since this was asked last: how often it did, and its instructions."""
        header = view_at(PlainCode, schedule.header)
        room = ctypes.create_string_buffer(_COUNTED.size * header.sections)
        number = self._take_counts(self._tables.address, schedule.header, ctypes.addressof(room))
        found: dict[int, tuple[int, int]] = {}
        for pc, times, steps in _COUNTED.iter_unpack(room.raw[: number * _COUNTED.size]):
            found[pc] = found.get(pc, (0, 0))[0] + times, steps
        return found

    @property
    def is_crowded(self) -> bool:
        """Whether the arena is so full that it should be cleared before the next call."""
        shared = self._tables.shared
        return bool(shared.plain_count > self._most_words or shared.plain_used > self._most_tables)

    def forget(self) -> None:
        """No plain schedule is used any more."""
        count = self._tables.shared.plain_count
        much = count > MUCH_WORDS
        if self.poison is not None:
            self.poison.overwrite_arena(self._tables.plain_words, FIRST, count)
        self._forget(self._tables.address)
        if much:
            self._tables.plain_words.give_back(0)
            self._tables.plain_origins.give_back(0)

    def origin(self, at: int) -> tuple[int, int, bool]:
        """Of the section that a word is in: its first word, its pc, whether it opens a block."""
        arena = self._tables.plain_origins

        def read(number: int) -> tuple[int, int, int]:
            at, pc, opens, *_ = _ORIGIN.unpack_from(arena.map, arena.skip + number * ORIGIN_SIZE)
            return at, pc, opens

        low, high = 0, self._tables.shared.origin_count
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if read(middle)[0] <= at else (low, middle)
        first, pc, opens = read(low)
        return first, pc, bool(opens)

    def section(self, schedule: PlainSchedule, fork: Fork, at: int) -> list[ScheduleUnit]:
        """The units of the section that contains a word, to locate a failure."""
        first, pc, opens = self.origin(at)
        code, first = schedule.code, first + COUNTER * schedule.counts
        head, *others = plain_section(code, fork, self._handlers.native, pc, first, opens=opens)
        (packed,) = struct.unpack("<Q", self._tables.plain_words.read(8 * (first + 1), 8))
        assert head.section is not None
        gas = packed & 0xFFFFFFFF if opens else packed  # of as much as is written
        return [head._replace(section=head.section._replace(gas=gas)), *others]


def plain_form(kind: SectionOpcode) -> tuple[str, int]:
    """The handler's name, if there is one, and how many words follow its address."""
    if kind.role == ROLE_PUSH:
        return ("PUSH", 1) if kind.immediate <= SHORT else ("PUSHW", 4)
    if kind.role == ROLE_DEST:
        return "", 0
    if kind.role == ROLE_PC:
        return "PUSH", 1
    if kind.role == ROLE_ASK:
        return "SYNC", 1
    return kind.name, int(kind.role == ROLE_DEEP or kind.name in TELLING)


def plain_ops(fork: Fork, handlers: Handlers, *, counts: bool = False) -> bytes:
    """What native code must know of each byte, then of the variants of those that have any."""
    at, variants = handlers.addresses, variants_of(fork)
    ends = _OP.pack(at["INVALID",], 0, 0, 0, 0, ROLE_PLAIN, JUMPS, 0, 0)
    others = [_OP.pack(at["STOP",], 0, 0, 0, 0, ROLE_PLAIN, JUMPS, 0, 0)]
    for name in ("SECTION", "GASSECTION", "JUMP@", "MORE"):
        others.append(_OP.pack(at[name,], 0, 0, 0, 0, ROLE_PLAIN, GOES_ON, 0, 0))
    others.append(_OP.pack(at["COUNT",] if counts else 0, 0, 0, 0, 0, ROLE_PLAIN, GOES_ON, 0, 0))
    first = 256 + len(others)
    rows_of = {byte: first + 256 * number for number, byte in enumerate(variants)}

    def row(byte: int, kind: SectionOpcode | None) -> bytes:
        if kind is None:
            found = rows_of.get(byte)
            return _OP.pack(0, 0, 0, 0, 0, ROLE_PLAIN, JUMPS, 0, found) if found else ends
        name, _ = plain_form(kind)
        role = ROLE_ASK if kind.name in TELLING else kind.role
        ending = JUMPS if kind.ending == ENDS_BLOCK and kind.name != "JUMPI" else kind.ending
        handler = at[name,] if name else 0
        delta = kind.delta & (1 << 64) - 1
        return _OP.pack(handler, kind.gas, kind.pops, delta, kind.immediate, role, ending, kind.operand, 0)

    table = [row(byte, kind) for byte, kind in enumerate(kinds_of(fork, handlers.native))] + others
    table += [ends if kind is None else row(0, kind) for kinds in variants.values() for kind in kinds]
    return b"".join(table)


def plain_section(
    code: bytes, fork: Fork, native: frozenset[str], pc: int, at: int, *, opens: bool
) -> list[ScheduleUnit]:
    """The units of a section of a plain schedule, by its pc and place."""
    kinds, variants, end = kinds_of(fork, native), variants_of(fork), len(code)
    start, gas = pc, 0
    tokens = [("SECTION" if opens else "GASSECTION", at, pc)]  # names, places and pcs
    at += 2
    while True:
        kind = kinds[code[pc]] or variant_at(variants, code, pc) if pc < end else None
        if kind is None:
            tokens.append(("STOP" if pc >= end else "INVALID", at, pc))
            break
        if kind.role == ROLE_DEST and not (opens and pc == start):
            break
        gas += kind.gas
        name, operands = plain_form(kind)
        if name:
            tokens.append((name, at, pc))
            at += 1 + operands
        pc += 1 + kind.immediate
        if kind.ending != GOES_ON:
            break
    section = Section(start, gas, 0 if opens else -1, 0, [])
    return [
        ScheduleUnit(place, (name,), (HandlerToken(name, 0, where, int(n > 0)),), None if n else section)
        for n, (name, place, where) in enumerate(tokens)
    ]
