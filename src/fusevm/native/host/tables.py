"""The memory native code works in: arenas for frames, stacks, EVM memory and tables, and the struct that names them."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import astuple, dataclass

from fusevm.chain.outcome import EngineLimit
from fusevm.native.host.arena import Arena
from fusevm.native.host.views import packed_whole, view_at
from fusevm.native.layout import (
    FRAME_MEMORY,
    STACK_ALIGN,
    Account,
    BlockHash,
    Engine,
    InitCode,
    NativeFrame,
    SlotChange,
    StorageSlot,
    Undo,
)
from fusevm.native.runtime import moduli
from fusevm.native.runtime.hashes import CREDIT, ENTRIES, ENTRY_SIZE
from fusevm.native.runtime.index import BUCKETS, Index
from fusevm.native.runtime.plain import FIRST, ORIGIN_SIZE
from fusevm.native.runtime.storage import HINTS
from fusevm.native.switches import is_on

_INDEX = packed_whole(Index, "heads buckets half entries size")
DEPTH = 1026  # frames: 1,024 below the first, and one to spare
FRAME_SIZE = NativeFrame.byte_size()
SLOT_SIZE = StorageSlot.byte_size()
CHANGE_SIZE = SlotChange.byte_size()
INIT_CODES = 1 << 10  # that are kept at hand
CHANGES = 1 << 13  # changed slots that are handed over at once
PLAIN_TABLES, PLAIN_ALIGN = 1 << 25, 1 << 21  # bytes: a huge page
EXACT = 1 << 26  # bytes of code of blocks that failed
LIGHT = 1 << 24  # bytes of EVM memory that stay touched after a call, for the next: to fault them in takes long


class NativeLimit(EngineLimit):
    """The native engine cannot hold what a call needs. The reference tier runs it instead."""


@dataclass(frozen=True, slots=True)
class Caps:
    """What one call from outside may take natively: more than 1,000,000,000 gas can buy, on forks with EIP-2929."""

    memory: int = 1 << 30  # bytes of EVM memory over all frames
    slots: int = 1 << 24  # storage slots touched, at 100 gas (TSTORE) or more
    accounts: int = 1 << 19  # accounts accessed, at 2,600 gas
    journal: int = 1 << 24  # changes that can be undone, at 100 gas
    logs: int = 1 << 28  # bytes of logs, at 8 gas
    codes: int = 1 << 26  # bytes of new contracts' code, at 200 gas
    plain: int = 1 << 25  # words of plain schedules, of all code that ran

    def halved(self) -> Caps:
        """For a machine with less address space."""
        return Caps(*(size // 2 for size in astuple(self)))


SMALLEST = 1 << 22  # bytes of EVM memory: with less, native code is not worth while
SPARE = 1 << 27  # bytes of address space to leave


def tables_that_fit(caps: Caps, enter: int) -> Tables:
    """Tables of these caps, or of as much as the machine gives."""
    while True:
        try:
            return Tables(caps, enter)
        except OSError as error:
            if caps.memory <= SMALLEST:
                raise NativeUnavailable(f"no address space for native tables ({error})") from None
            caps = caps.halved()


class NativeUnavailable(EngineLimit):
    """There is too little address space to run anything natively."""


class Tables:
    """Address space for one engine, taken from the machine only where it is touched."""

    def __init__(self, caps: Caps, enter: int) -> None:
        self.caps = caps
        self.stacks = Arena(DEPTH * STACK_ALIGN, STACK_ALIGN)
        self.memory = Arena(caps.memory)
        self.output = Arena(min(FRAME_MEMORY, caps.memory))
        self.frames = Arena(DEPTH * FRAME_SIZE)
        self.views = [view_at(NativeFrame, self.frames.address + depth * FRAME_SIZE) for depth in range(DEPTH)]
        self.slots = Arena(caps.slots * SLOT_SIZE)
        self.slot_heads = Arena(max(caps.slots, BUCKETS) * 4)
        self.accounts = Arena((caps.accounts + 1) * Account.byte_size())
        self.account_heads = Arena(max(caps.accounts, BUCKETS) * 4)
        self.journal = Arena(caps.journal * Undo.byte_size())
        self.logs = Arena(caps.logs)
        self.changes = Arena(CHANGES * CHANGE_SIZE)
        self.dirty = Arena(caps.accounts * 8)
        self.kept_codes = Arena(caps.codes)
        self.plain_words = Arena(caps.plain * 8)
        self.plain_tables = Arena(min(PLAIN_TABLES, caps.plain), PLAIN_ALIGN, huge=True)
        self.exact = Arena(min(EXACT, caps.memory))
        self.plain_origins = Arena(caps.plain // 2 * ORIGIN_SIZE)
        self.init_codes = Arena(INIT_CODES * InitCode.byte_size())
        self.block_hashes = Arena(256 * BlockHash.byte_size())
        self.hashes = Arena(ENTRIES * ENTRY_SIZE)
        self.moduli = Arena(moduli.ENTRIES * moduli.ENTRY_SIZE)
        self.slot_hints = Arena(HINTS * 4)
        self.slot_index = self._index(self.slot_heads, self.slots, SLOT_SIZE)
        self.account_index = self._index(self.account_heads, self.accounts, Account.byte_size())
        self.engine = ctypes.create_string_buffer(Engine.byte_size())
        self.address = ctypes.addressof(self.engine)
        self.shared = view_at(Engine, self.address)
        self._set_up(enter)
        Arena(SPARE)  # others need some too

    def _index(self, heads: Arena, entries: Arena, size: int) -> ctypes.Array[ctypes.c_char]:
        fields = _INDEX.pack(heads.address, BUCKETS, BUCKETS, entries.address, size)
        return ctypes.create_string_buffer(fields, len(fields))

    def _set_up(self, enter: int) -> None:
        shared, caps = self.shared, self.caps
        shared.enter = enter
        shared.frames = self.frames.address
        shared.slots, shared.slot_limit = self.slots.address, caps.slots
        shared.slot_index = ctypes.addressof(self.slot_index)
        shared.slot_hints = self.slot_hints.address
        shared.accounts, shared.account_limit = self.accounts.address, caps.accounts
        shared.account_index = ctypes.addressof(self.account_index)
        shared.journal, shared.journal_limit = self.journal.address, caps.journal
        shared.logs, shared.log_limit = self.logs.address, caps.logs
        shared.changes, shared.change_limit = self.changes.address, CHANGES
        shared.output = self.output.address
        shared.dirty = self.dirty.address
        shared.kept_codes, shared.kept_limit = self.kept_codes.address, caps.codes
        shared.init_codes, shared.init_mask = self.init_codes.address, INIT_CODES - 1
        shared.block_hashes = self.block_hashes.address
        shared.moduli = self.moduli.address
        shared.hashes, shared.hash_credit = (self.hashes.address, CREDIT) if is_on("keccak") else (0, 1)
        shared.plain_words, shared.plain_limit = self.plain_words.address, caps.plain
        shared.plain_origins = self.plain_origins.address
        shared.plain_count = FIRST
        shared.plain_tables = self.plain_tables.address
        shared.epoch = shared.call_epoch = shared.kept_epoch = 1
        shared.secret_0, shared.secret_1, shared.secret_2, shared.secret_3 = struct.unpack("<4Q", os.urandom(32))

    def limit_memory(self, limit: int) -> None:
        """Limits the memory of all frames together to this many bytes, or to the room there is."""
        size = min(limit, self.caps.memory)
        self.shared.memory_end = self.memory.address + size
        self.shared.memory_light = self.memory.address + min(LIGHT, size)

    def give_back(self) -> None:
        """Returns to the machine what a call with much memory, storage or logs touched. Only between calls."""
        self.memory.give_back(LIGHT)
        for arena in (self.stacks, self.output, self.slots, self.accounts, self.journal, self.logs):
            arena.give_back(0)
        for arena in (self.dirty, self.kept_codes):
            arena.give_back(0)
        for heads in (self.slot_heads, self.account_heads):
            heads.give_back(BUCKETS * 4)
        self.shared.heavy = 0

    def depth(self) -> int:
        """Of the running frame."""
        return (self.shared.frame - self.frames.address) // FRAME_SIZE
