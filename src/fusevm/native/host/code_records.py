"""What native frames and accounts say of code, as bytes: addresses of the code and its schedule, flags, the hash."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fusevm.chain.state import EMPTY_CODE_HASH, delegate_in
from fusevm.evm.forks import Fork, rules_of
from fusevm.native.host.schedule_cache import LARGE
from fusevm.native.host.tables import Tables
from fusevm.native.host.views import packed
from fusevm.native.layout import (
    ACCOUNT_DELEGATED,
    ACCOUNT_HASHED,
    ACCOUNT_PLAIN,
    STACK_ALIGN,
    WORD,
    Account,
    NativeFrame,
)
from fusevm.schedule.build import Schedule, address_of

_ACCOUNT_CODE = packed(Account, "code_hash code code_size schedule jumps entry delegate")
NO_ACCOUNT = bytes(_ACCOUNT_CODE.size)
NO_CODE = EMPTY_CODE_HASH[::-1].ljust(_ACCOUNT_CODE.size, b"\0")
_FRAME_REST = packed(
    NativeFrame,
    "ip sp memory memory_size load_limit zeroed schedule jumps code code_size returned returned_size "
    "output_offset output_size pc call_offset call_size journal_mark log_mark refund_mark "
    "in_python serial code_account creates engine depth",
)
_FIRST_FRAME = packed(NativeFrame, "ip sp memory memory_size load_limit zeroed schedule jumps code code_size")
_PLACES = packed(Account, "code code_size schedule jumps entry")
_ZERO = bytes(WORD)
ENTRY = 1024  # bytes that an entry of the cache takes beside its content


class CodeRecord(NamedTuple):
    """What an account's native copy says of its code."""

    flags: int
    fields: bytes  # from `code_hash` on
    code: bytes  # held, since the fields say where it is


Records = dict[bytes | int, CodeRecord]


class CodeRecords:
    """Records of all code that accounts or first frames have led to, for one fork."""

    def __init__(self, tables: Tables, grow: Callable[[int], None]) -> None:
        """`grow` is told of bytes that new records take."""
        self._tables = tables
        self._grow = grow
        self.first_frames: dict[bytes, bytes] = {}  # by code, of schedules that are not plain
        self._known: Records = {}  # by `code_key`
        self._scheduled: Records = {}  # likewise, with the addresses of the schedule
        blank = _FRAME_REST.pack(*[0] * 24, tables.address, 0)
        self._first_frame_end = blank[_FIRST_FRAME.size :]  # what first frames have in common

    def forget(self) -> tuple[Records, Records]:
        """Begins anew. Returns what holds the code: accounts that are described already lead to it."""
        left = self._known, self._scheduled
        self._known, self._scheduled = {}, {}
        self.first_frames.clear()
        return left

    def forget_schedules(self) -> None:
        """Other schedules are in use from now on."""
        self.first_frames.clear()
        self._scheduled = {}

    def record_of(self, code: bytes, fork: Fork) -> CodeRecord:
        """Without a schedule and without a hash, which take longer to make than looking at an account may cost."""
        key = code_key(code)
        record = self._scheduled.get(key) or self._known.get(key)
        if record is None:
            delegate = delegate_in(code) if rules_of(fork).delegation else None
            flags = ACCOUNT_PLAIN if delegate is None else ACCOUNT_DELEGATED
            record = self._known[key] = CodeRecord(flags, code_fields(code, delegate), code)
            self._grow(ENTRY + len(code))
        return record

    def note_hash(self, code: bytes, fork: Fork, code_hash: bytes) -> None:
        self.record_of(code, fork)
        key = code_key(code)
        for records in (self._known, self._scheduled):
            if key in records:
                flags, fields, held = records[key]
                records[key] = CodeRecord(flags | ACCOUNT_HASHED, code_hash[::-1] + fields[WORD:], held)

    def note_schedule(self, code: bytes, fork: Fork, places: bytes, schedule: Schedule) -> None:
        """Accounts with this code that are described from now on have the addresses of its schedule."""
        flags, fields, _ = self.record_of(code, fork)
        fields = fields[:WORD] + places + fields[WORD + len(places) :]
        self._scheduled[code_key(code)] = CodeRecord(flags, fields, schedule.code)

    def first_frame(self, code: bytes, schedule: Schedule) -> bytes:
        """The part of a call's first frame that depends on the code."""
        tables = self._tables
        rest = _FIRST_FRAME.pack(
            schedule.entry, tables.stacks.address, tables.memory.address, 0, 0, 0,
            schedule.base, schedule.jumps_base, schedule.code_base, len(code),
        ) + self._first_frame_end  # fmt: skip
        if not schedule.plain:
            self.first_frames[code] = rest
        return rest

    def frame_rest(
        self, schedule: Schedule, ip: int, depth: int, start: int, marks: tuple[int, int, int], serial: int
    ) -> bytes:
        """Of a frame that Python knows: its fields from `ip` on, its memory beginning where `start` says."""
        tables = self._tables
        return _FRAME_REST.pack(
            ip, tables.stacks.address + depth * STACK_ALIGN,
            tables.memory.address + start, 0, 0, 0,  # memory
            schedule.base, schedule.jumps_base, schedule.code_base, len(schedule.code),
            0, 0, 0, 0, 0, 0, 0,  # return data, output, pc, the running call
            *marks, 1, serial, 0, 0, tables.address, depth,
        )  # fmt: skip


def code_key(code: bytes) -> bytes | int:
    """To hash large code takes longer than a look at its account may cost; small code is often that of many."""
    return code if len(code) < LARGE else id(code)


def code_fields(code: bytes, delegate: bytes | None = None) -> bytes:
    """An account's fields for its code, without hash and schedule; with the account it delegates to (EIP-7702)."""
    target = _ZERO if delegate is None else delegate[::-1].ljust(WORD, b"\0")
    return _ACCOUNT_CODE.pack(_ZERO, address_of(code), len(code), 0, 0, 0, target)


def schedule_places(schedule: Schedule, code_size: int) -> bytes:
    """An account's fields that say where code and schedule are."""
    return _PLACES.pack(schedule.code_base, code_size, schedule.base, schedule.jumps_base, schedule.entry)
