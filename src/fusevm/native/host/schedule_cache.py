"""Schedules kept on disk: those of large contracts, so that the next process need not build them again.

On disk a handler is a number and a jump's target an entry; loading puts addresses in their places, natively.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import struct
import time
import zlib
from array import array
from functools import lru_cache
from pathlib import Path

from fusevm.evm.forks import Fork
from fusevm.native.cache.folder import keep_newest, read, usable_folder, write
from fusevm.native.emit.build import Library
from fusevm.schedule.build import HANDLER, PLACE, Handlers, Schedule, build_schedule

LARGE = 2048  # bytes of code; smaller ones are built faster than read
MAX_BYTES = 1 << 28
CHECKSUM, DIGEST = 8, 40  # letters of a name
SAMPLE = 64  # bytes
LISTED = 5.0  # seconds that the list of files is good for
_HEADER = struct.Struct("<QQ")  # words, jumps
_NAME = re.compile(rf"[0-9a-f]{{{CHECKSUM}}}")


@lru_cache(maxsize=1)
def checksum(code: bytes) -> int:
    """Of its ends, where compilers leave a dispatcher and a hash of the source: contracts seldom share both."""
    return zlib.crc32(code[-SAMPLE:], zlib.crc32(code[:SAMPLE], len(code)))


def file_name(code: bytes, digest: str, kind: str) -> str:
    """Of what is kept for a code; it begins with the checksum, so that a list of names tells what may be there."""
    return f"{checksum(code):08x}{digest[:DIGEST]}.{kind}"


def checksums_in(folder: Path | None) -> set[int]:
    """Of the codes that something may be kept for."""
    names = os.listdir(folder) if folder is not None else []
    return {int(name[:CHECKSUM], 16) for name in names if _NAME.match(name)}


class ScheduleStore:
    """Builds schedules, or takes them from disk."""

    def __init__(self, library: Library, handlers: Handlers) -> None:
        self._library = library
        self._handlers = handlers
        self._sequences = list(handlers.addresses)
        self._table = array("Q", handlers.addresses.values())
        self._numbers = {address: number for number, address in enumerate(self._table)}
        self._fingerprint = f"{library.fingerprint} {self._sequences}"
        self._names: set[int] = set()  # how the names of files begin
        self._listed = -LISTED  # when that was
        self._written = MAX_BYTES  # bytes since the oldest files were last removed: it is time for that

    def get(self, code: bytes, fork: Fork) -> Schedule:
        return self.kept(code, fork) or self._built(code, fork)

    @property
    def _folder(self) -> Path | None:
        return usable_folder("schedules")

    def may_keep(self, code: bytes) -> bool:
        """A quick look: the digest of unseen code takes longer than running it may pay for."""
        if len(code) < LARGE:
            return False
        now = time.monotonic()
        if now > self._listed + LISTED:
            self._listed, self._names = now, checksums_in(self._folder)
        return checksum(code) in self._names

    def kept(self, code: bytes, fork: Fork) -> Schedule | None:
        """The schedule if it is on disk."""
        if not self.may_keep(code):
            return None
        path = self._path(code, fork)
        content = None if path is None else read(path)
        return None if content is None else self._unpacked(content, code)

    def _built(self, code: bytes, fork: Fork) -> Schedule:
        schedule = build_schedule(code, fork, self._handlers)
        path = self._path(code, fork)
        if path is not None:
            packed = self._packed(schedule)
            write(path, packed)
            self._names.add(checksum(code))
            self._written += len(packed)
            if self._written > MAX_BYTES >> 6:  # looking at all files takes longer than writing one
                self._written = 0
                keep_newest(path.parent, MAX_BYTES)
        return schedule

    def _path(self, code: bytes, fork: Fork) -> Path | None:
        folder = self._folder if len(code) >= LARGE else None
        if folder is None:
            return None
        digest = hashlib.sha256(f"{self._fingerprint} {fork.name} ".encode() + code).hexdigest()
        return folder / file_name(code, digest, "schedule")

    def _packed(self, schedule: Schedule) -> bytes:
        words, kinds = array("Q", schedule.words), schedule.kinds
        for index, kind in enumerate(kinds):
            if kind == HANDLER:
                words[index] = self._numbers[words[index]]
            elif kind == PLACE:
                words[index] = (words[index] - schedule.base) // 8
        header = _HEADER.pack(len(words), len(schedule.jumps))
        return header + words.tobytes() + schedule.jumps.tobytes() + bytes(kinds)

    def _unpacked(self, content: bytes, code: bytes) -> Schedule:
        count, jump_count = _HEADER.unpack_from(content)
        words, jumps = array("Q"), array("I")
        at = _HEADER.size
        words.frombytes(content[at : at + 8 * count])
        at += 8 * count
        jumps.frombytes(content[at : at + 4 * jump_count])
        kinds = content[at + 4 * jump_count :]
        base = words.buffer_info()[0]
        self._library.relocate(base, ctypes.c_char_p(kinds), count, self._table.buffer_info()[0], base)
        return Schedule(words, jumps, code, [], kinds)
