"""The buffer that native code notes in, and what was taken from it: notes of calls one after another, not decoded."""

from __future__ import annotations

from fusevm.native.host import note_codec
from fusevm.native.host.arena import Arena
from fusevm.native.host.note_codec import NoteBatch
from fusevm.native.host.tables import Tables
from fusevm.native.host.views import packed
from fusevm.native.layout import FRAME_MEMORY, WORD, Engine
from fusevm.tracing import recording as recordings

BUFFER = 1 << 22  # bytes of notes that are taken at once
_NOTED, _NOTED_AT = packed(Engine, "note_size note_start noted_logs noted_key older_key"), Engine.offset("note_size")


class NoteBuffer:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._arena = Arena(BUFFER + tables.caps.logs + FRAME_MEMORY + (1 << 16))  # and one note, however large
        tables.shared.notes, tables.shared.note_limit = self._arena.address, BUFFER
        self._chunks: list[bytes] = []
        self._moved = 0  # bytes of them
        self._kept: list[tuple[int, bytes]] = []  # logs of calls, and where the notes of each end
        self._logs = b""  # of the call that has ended
        self._began: int | None = None  # where the notes of the running call begin, if it has filled the buffer
        self.has_more = False  # whether `finish` has anything to do
        self.keeps = True  # whether notes are wanted

    def start(self) -> None:
        """A call begins; native code says so itself where it makes the first frame."""
        size = self._tables.shared.note_size
        _NOTED.pack_into(self._tables.engine, _NOTED_AT, size, size, 0, bytes(WORD), bytes(WORD))

    def keep_logs(self, raw: bytes) -> None:
        """Keeps the call's logs, if native code does not copy them."""
        self._logs, self.has_more = raw, True

    def finish(self) -> None:
        """A call has ended. Its notes stay where they are."""
        if self._logs:
            self._kept.append((self._moved + self._tables.shared.note_size, self._logs))
        self._logs, self._began, self.has_more = b"", None, False

    def drop(self) -> None:
        """A call never was."""
        shared = self._tables.shared
        shared.note_size = shared.note_start
        if self._began is not None:
            self._chunks, self._moved = [b"".join(self._chunks)[: self._began]], self._began
            shared.note_size = shared.note_start = 0
        self._logs, self._began, self.has_more = b"", None, False

    def taken(self) -> NoteBatch | None:
        """Between two calls: returns all notes and empties the buffer."""
        if self._tables.shared.note_size:
            self._move()
        if not self._chunks:
            return None
        batch = NoteBatch(self._chunks, self._kept)
        self._chunks, self._kept, self._moved = [], [], 0
        return batch

    def make_room(self) -> None:
        """The buffer is full."""
        if not self.keeps:
            self._tables.shared.note_size = self._tables.shared.note_start = 0
            return
        if self._began is None:
            self._began, self.has_more = self._moved + self._tables.shared.note_start, True
        self._move()
        if self._moved - self._began > recordings.MOST:
            raise recordings.RecordingLimit(recordings.MOST)

    def _move(self) -> None:
        shared = self._tables.shared
        self._chunks.append(self._arena.read(0, shared.note_size))
        self._moved += shared.note_size
        shared.note_size = shared.note_start = 0

    def note(self, raw: bytes) -> None:
        """Adds what Python has seen, after the logs that came before."""
        shared = self._tables.shared
        start, end = shared.noted_logs, shared.log_size
        shared.noted_logs = end
        if end != start and shared.wants_logs:
            raw = note_codec.logged(end) + raw
        if shared.note_size + len(raw) > BUFFER:
            self.make_room()
        self._arena.write(shared.note_size, raw)
        shared.note_size += len(raw)
