"""Notes of native code as Python reads and writes them: bytes to frames with events, and back for what Python does."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from fusevm.chain.outcome import Status
from fusevm.evm.halts import HaltReason
from fusevm.native.host.logs import NativeLogs
from fusevm.native.host.views import packed_whole
from fusevm.native.layout import WORD
from fusevm.native.runtime import notes
from fusevm.native.runtime.notes import NOWHERE
from fusevm.tracing.recording import FrameKind, Keccak, LogEvent, RecordedFrame, Refusal, StorageRead, StorageWrite
from fusevm.tracing.tree import TreeBuilder

_BEGUN = packed_whole(
    notes.Begun, "tag kind depth pc gas static size caller address code_address delegate value"
)  # fmt: skip
_CALLED = packed_whole(notes.CalledNote, "tag gas size code_address")
_ENDED = packed_whole(notes.EndedNote, "tag gas_left size")
_TAG = struct.Struct("<Q")
_PREIMAGE = packed_whole(notes.Preimage, "tag size hash")
_LOST = packed_whole(notes.LostLogs, "tag start end")
_DESTROYED = packed_whole(notes.Destroyed, "tag depth pc address heir value")

KINDS = [  # by number, as native code has them
    FrameKind.CALL,
    FrameKind.DELEGATECALL,
    FrameKind.STATICCALL,
    FrameKind.CALLCODE,
    FrameKind.CREATE,
    FrameKind.CREATE2,
]
_FIRST: list[HaltReason | Refusal | None] = [
    None,
    HaltReason.OUT_OF_GAS,
    HaltReason.PRECOMPILE_FAILED,
    HaltReason.CODE_STARTS_WITH_EF,
    HaltReason.CODE_TOO_LARGE,
    HaltReason.ADDRESS_COLLISION,
    Refusal.DEPTH,
    Refusal.BALANCE,
    Refusal.NONCE,
]
REASONS = _FIRST + [reason for reason in HaltReason if reason not in _FIRST]
_NUMBERS = {reason: number for number, reason in enumerate(REASONS)}
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_HOW = [Status.SUCCESS, Status.REVERT, Status.HALT]  # by number
_NOBODY = bytes(WORD)
_TAGS = notes.WIDE - 1
_BYTE = 0xFF
_ELSEWHERE = (FrameKind.CALL, FrameKind.STATICCALL)  # calls that act on the account whose code runs


def _padding(size: int) -> bytes:
    return bytes(-size % 8)


def _address(raw: bytes) -> bytes:
    return raw[19::-1]


def _raw(address: bytes) -> bytes:
    return address[::-1].ljust(WORD, b"\0")


def begun(frame: RecordedFrame) -> bytes:
    """The note that a frame begins."""
    data = frame.input
    head = _BEGUN.pack(
        notes.BEGUN,
        _KIND_NUMBERS[frame.kind],
        frame.depth,
        NOWHERE if frame.pc is None else frame.pc,
        frame.gas,
        frame.static,
        len(data),
        _raw(frame.caller),
        _raw(frame.address),
        _raw(frame.code_address),
        _NOBODY if frame.delegate is None else _raw(frame.delegate),
        frame.value.to_bytes(WORD, "little"),
    )
    return head + data + _padding(len(data))


def ended(
    how: Status, gas_left: int, reason: HaltReason | Refusal | None = None, pc: int | None = None, output: bytes = b""
) -> bytes:
    """The note that the innermost frame ends."""
    at = NOWHERE if pc is None else pc
    facts = at << notes.PC_SHIFT | _NUMBERS[reason] << notes.REASON_SHIFT | _HOW.index(how) << notes.HOW_SHIFT
    head = _ENDED.pack(facts | notes.ENDED, gas_left, len(output))
    return head + output + _padding(len(output))


def logged(end: int) -> bytes:
    """The note that logs end at this byte offset."""
    return _TAG.pack(end << notes.LOG_SHIFT | notes.LOGGED)


def undone(start: int, raw: bytes) -> bytes:
    """The note that logs from there on are lost, with those logs."""
    return _LOST.pack(notes.UNDONE, start, start + len(raw)) + raw


def destroyed(depth: int, pc: int, address: bytes, heir: bytes, value: int) -> bytes:
    return _DESTROYED.pack(notes.DESTROYED, depth, pc, _raw(address), _raw(heir), value.to_bytes(WORD, "little"))


class NoteBatch(NamedTuple):
    """Notes of calls from outside: chunks of one text, and logs that are not in it, with where those calls end."""

    chunks: list[bytes]
    kept: list[tuple[int, bytes]]


def decoded(batch: NoteBatch) -> list[RecordedFrame]:
    """The calls from outside, with everything that happened in them."""
    decoder = _Decoder(b"".join(batch.chunks), dict(batch.kept))
    decoder.decode()
    return decoder.frames


class _Logs(NamedTuple):
    """Logs of a frame, at a place among its events, known by where the engine kept them."""

    frame: RecordedFrame
    place: int
    start: int
    end: int


class _Decoder:
    def __init__(self, raw: bytes, kept: dict[int, bytes]) -> None:
        self._raw = raw
        self._kept = kept  # logs of calls by where their notes end
        self._logs: list[_Logs] = []  # that are not undone as yet
        self._found: list[tuple[_Logs, bytes]] = []
        self._at = 0
        self._key = self._older = 0  # of the storage noted last, and before
        self._logged_to = 0  # bytes of logs that have a place
        self._tree = TreeBuilder()
        self.frames: list[RecordedFrame] = []

    def decode(self) -> None:
        raw = self._raw
        read: dict[int, Callable[[], None]] = {
            notes.BEGUN: self._begun,
            notes.CALLED: self._called,
            notes.ENDED: self._ended,
            notes.HASHED: self._hashed,
            notes.LOGGED: self._logged,
            notes.UNDONE: self._undone,
            notes.DESTROYED: self._destroyed,
        }
        for flags in (wide | same for wide in (0, notes.WIDE) for same in (0, notes.SAME, notes.OLDER)):
            read |= {tag | flags: self._read for tag in (notes.READ, notes.READ_TRANSIENT)}
            read |= {tag | flags: self._written for tag in (notes.WRITTEN, notes.WRITTEN_TRANSIENT)}
        while self._at < len(raw):
            read[raw[self._at]]()

    def _data(self, size: int) -> bytes:
        start = self._at
        self._at += (size + 7) & ~7
        return self._raw[start : start + size]

    def _begun(self) -> None:
        raw = _BEGUN.unpack_from(self._raw, self._at)
        _, kind, depth, pc, gas, static, size, caller, address, code_address, delegate, value = raw
        self._at += _BEGUN.size
        if not depth:
            self._key = self._older = self._logged_to = 0
        self._tree.enter(
            RecordedFrame(
                KINDS[kind],
                _address(caller),
                _address(address),
                _address(code_address),
                int.from_bytes(value, "little"),
                gas,
                self._data(size),
                depth,
                None if pc == NOWHERE else pc,
                bool(static),
                None if delegate == _NOBODY else _address(delegate),
            )
        )

    def _called(self) -> None:
        facts, gas, size, raw_address = _CALLED.unpack_from(self._raw, self._at)
        self._at += _CALLED.size
        value = int.from_bytes(self._data(WORD), "little") if facts & notes.VALUED else 0
        delegate = _address(self._data(WORD)) if facts & notes.DELEGATED else None
        kind, caller = KINDS[facts >> notes.KIND_SHIFT & _BYTE], self._tree.open[-1]
        by, to = caller.address, _address(raw_address)
        acting = to if kind in _ELSEWHERE else caller.address
        if kind is FrameKind.DELEGATECALL:
            by, value = caller.caller, caller.value
        static = caller.static or kind is FrameKind.STATICCALL
        data, depth, pc = self._data(size), caller.depth + 1, facts >> notes.PC_SHIFT
        self._tree.enter(RecordedFrame(kind, by, acting, to, value, gas, data, depth, pc, static, delegate))

    def _ended(self) -> None:
        facts, left, size = _ENDED.unpack_from(self._raw, self._at)
        self._at += _ENDED.size
        frame = self._tree.open[-1]
        frame.status = _HOW[facts >> notes.HOW_SHIFT & _BYTE]
        frame.gas_used = frame.gas - left
        frame.failure = REASONS[facts >> notes.REASON_SHIFT & _BYTE]
        pc = facts >> notes.PC_SHIFT
        frame.failed_at = None if pc == NOWHERE else pc
        frame.output = self._data(size)
        if frame.kind.creates and frame.ok:
            frame.created = frame.address
        top = self._tree.leave()
        if top is not None:
            self.frames.append(top)
            self._place_logs(self._kept.get(self._at, b""))

    def _read(self) -> None:
        tag = self._raw[self._at]
        key, value = self._words(tag, 1)
        frame = self._tree.open[-1]
        frame.events.append(StorageRead(frame.address, key, value, tag & _TAGS == notes.READ_TRANSIENT))

    def _written(self) -> None:
        tag = self._raw[self._at]
        key, value, previous = self._words(tag, 2)
        frame = self._tree.open[-1]
        transient = tag & _TAGS == notes.WRITTEN_TRANSIENT
        frame.events.append(StorageWrite(frame.address, key, value, previous, transient))

    def _words(self, tag: int, count: int) -> list[int]:
        """A storage note: the key, and this many values."""
        raw, start = self._raw, self._at + _TAG.size
        if tag & notes.OLDER:
            self._key, self._older = self._older, self._key
        elif not tag & notes.SAME:
            self._key, self._older = int.from_bytes(raw[start : start + WORD], "little"), self._key
            start += WORD
        size = WORD if tag & notes.WIDE else WORD // 2
        self._at = end = start + count * size
        return [self._key, *(int.from_bytes(raw[at : at + size], "little") for at in range(start, end, size))]

    def _hashed(self) -> None:
        _, size, hashed = _PREIMAGE.unpack_from(self._raw, self._at)
        self._at += _PREIMAGE.size
        self._tree.add(Keccak(self._data(size), hashed[::-1]))

    def _logged(self) -> None:
        end = _TAG.unpack_from(self._raw, self._at)[0] >> notes.LOG_SHIFT
        self._at += _TAG.size
        frame = self._tree.open[-1]
        self._logs.append(_Logs(frame, len(frame.events), self._logged_to, end))
        self._logged_to = end

    def _undone(self) -> None:
        _, start, end = _LOST.unpack_from(self._raw, self._at)
        self._at += _LOST.size
        raw = self._data(end - start)
        self._logged_to = start
        while self._logs and self._logs[-1].start >= start:
            each = self._logs.pop()
            self._found.append((each, raw[each.start - start : each.end - start]))

    def _place_logs(self, kept: bytes) -> None:
        """Puts logs among the events of their frames, given those that were not undone; the last of a frame first."""
        self._found += [(each, kept[each.start : each.end]) for each in self._logs]
        for each, raw in sorted(self._found, key=lambda found: (-found[0].place, -found[0].start)):
            each.frame.events[each.place : each.place] = [LogEvent(*log) for log in NativeLogs(raw)]
        self._logs, self._found = [], []

    def _destroyed(self) -> None:
        _, depth, pc, address, heir, value = _DESTROYED.unpack_from(self._raw, self._at)
        self._at += _DESTROYED.size
        to = _address(heir)
        balance = int.from_bytes(value, "little")
        self._tree.add(RecordedFrame(FrameKind.SELFDESTRUCT, _address(address), to, to, balance, 0, b"", depth, pc))
