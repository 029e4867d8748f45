"""The memory native code works in: arenas for frames, stacks, EVM memory and tables, and the struct that names them."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from typing import Any

from fusevm.native.arena import Arena
from fusevm.native.layout import FRAME_MEMORY, STACK_ALIGN, Account, BlockHash, Engine, Frame, InitCode, Slot, Undo
from fusevm.native.views import view_of

DEPTH = 1026  # frames: 1,024 below the first, and one to spare
FRAME_SIZE = Frame.byte_size()
SLOT_SIZE = Slot.byte_size()
INIT_CODES = 1 << 10  # that are kept at hand


@dataclass(frozen=True, slots=True)
class Caps:
    """What one call from outside may take of the machine. Going beyond is the engine's limit, not out of gas."""

    memory: int = 1 << 30  # bytes of EVM memory over all frames
    slots: int = 1 << 19  # storage slots touched
    accounts: int = 1 << 16  # accounts looked at
    journal: int = 1 << 22  # changes of storage that can be undone
    logs: int = 1 << 28  # bytes of logs
    codes: int = 1 << 28  # bytes of new contracts' code

    def __str__(self) -> str:
        return (
            f"{FRAME_MEMORY >> 20} MiB of memory in a frame, {self.memory >> 20} MiB in all, {self.slots:,} slots, "
            f"{self.accounts:,} accounts, {self.journal:,} storage changes, {self.logs >> 20} MiB of logs "
            f"or {self.codes >> 20} MiB of new code in one call"
        )


class Tables:
    """Address space for one engine, taken from the machine only where it is touched."""

    def __init__(self, caps: Caps, enter: int) -> None:
        self.caps = caps
        self.stacks = Arena(DEPTH * STACK_ALIGN, STACK_ALIGN)
        self.memory = Arena(caps.memory)
        self.output = Arena(caps.memory)
        self.frames = Arena(DEPTH * FRAME_SIZE)
        frame_view = view_of(Frame)
        self.views: list[Any] = [frame_view.from_address(self.frames.address + d * FRAME_SIZE) for d in range(DEPTH)]
        self.slots = Arena(caps.slots * SLOT_SIZE)
        self.slot_index = Arena(caps.slots * 2 * 4)
        self.accounts = Arena(caps.accounts * Account.byte_size())
        self.account_index = Arena(caps.accounts * 2 * 4)
        self.journal = Arena(caps.journal * Undo.byte_size())
        self.logs = Arena(caps.logs)
        self.dirty = Arena(caps.accounts * 8)
        self.kept_codes = Arena(caps.codes)
        self.init_codes = Arena(INIT_CODES * InitCode.byte_size())
        self.block_hashes = Arena(256 * BlockHash.byte_size())
        self.shared: Any = view_of(Engine)()
        self.address = ctypes.addressof(self.shared)
        self._set_up(enter)

    def _set_up(self, enter: int) -> None:
        shared, caps = self.shared, self.caps
        shared.enter = enter
        shared.frames = self.frames.address
        shared.slots, shared.slot_limit = self.slots.address, caps.slots
        shared.index, shared.index_mask = self.slot_index.address, caps.slots * 2 - 1
        shared.accounts, shared.account_limit = self.accounts.address, caps.accounts
        shared.account_index, shared.account_mask = self.account_index.address, caps.accounts * 2 - 1
        shared.journal, shared.journal_limit = self.journal.address, caps.journal
        shared.logs, shared.log_limit = self.logs.address, caps.logs
        shared.output = self.output.address
        shared.dirty = self.dirty.address
        shared.kept_codes, shared.kept_limit = self.kept_codes.address, caps.codes
        shared.init_codes, shared.init_mask = self.init_codes.address, INIT_CODES - 1
        shared.block_hashes = self.block_hashes.address
        shared.memory_end = self.memory.address + caps.memory
        shared.epoch = 1
        shared.secret_0, shared.secret_1, shared.secret_2, shared.secret_3 = struct.unpack("<4Q", os.urandom(32))

    def depth(self) -> int:
        """Of the running frame."""
        depth: int = (self.shared.frame - self.frames.address) // FRAME_SIZE
        return depth

    def touched_slots(self) -> bytes:
        return self.slots.read(0, self.shared.slot_count * SLOT_SIZE)
