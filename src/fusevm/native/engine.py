"""Running messages on native code: frames on a trampoline, Python for whatever native code does not do itself.

Native code runs a frame until it ends, needs Python for an instruction (SYNC), or has used up its slice of gas. An
instruction done by Python is the reference tier's own, on a frame whose memory is the native one; so the two tiers
cannot differ in what they share.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from typing import Any

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.opcodes import BY_BYTE
from fusevm.fuse.schedule import Schedule, build_schedule
from fusevm.native.arena import Arena
from fusevm.native.build import Library, library
from fusevm.native.layout import SLOT_DIRTY, SLOT_WARM, STACK_ALIGN, TRANSIENT, WORD, Engine, Slot, Undo
from fusevm.native.layout import Frame as FrameLayout
from fusevm.native.layout import Status as Native
from fusevm.native.views import view_of, words
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions import INSTRUCTIONS
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.reference.trampoline import drive

DEPTH = 1026
MEMORY_CAP = 1 << 30  # bytes of EVM memory over all frames of a call
SLOT_CAP = 1 << 19  # storage slots one call may touch
JOURNAL_CAP = 1 << 22
INDEX_SIZE = 1 << 20
SLICE = 100_000_000  # gas between two looks at the clock and at signals
SCHEDULES = 4096  # kept per process

HALTS = {
    Native.OUT_OF_GAS: HaltReason.OUT_OF_GAS,
    Native.STACK: HaltReason.STACK_UNDERFLOW,
    Native.INVALID_JUMP: HaltReason.INVALID_JUMP,
    Native.INVALID_OPCODE: HaltReason.INVALID_OPCODE,
    Native.STATIC_WRITE: HaltReason.STATIC_WRITE,
    Native.RETURNDATA: HaltReason.RETURNDATA_OUT_OF_BOUNDS,
}


class EngineLimit(RuntimeError):
    """A limit of this engine, not of the EVM: memory, storage slots or time."""


class NativeMemory:
    """A frame's memory as the reference tier's instructions expect it: a growing array of bytes."""

    __slots__ = ("_arena", "_start", "_view")

    def __init__(self, arena: Arena, start: int, view: Any) -> None:
        self._arena = arena
        self._start = start
        self._view = view

    def __len__(self) -> int:
        return int(self._view.memory_size)

    def __getitem__(self, part: slice) -> bytes:
        return self._arena.read(self._start + part.start, min(part.stop, len(self)) - part.start)

    def __setitem__(self, part: slice, data: bytes) -> None:
        self._arena.write(self._start + part.start, data)

    def extend(self, zeros: bytes) -> None:
        size = len(self)
        grown = size + len(zeros)
        if self._start + grown > MEMORY_CAP:
            raise EngineLimit(f"memory over the engine's cap of {MEMORY_CAP >> 20} MiB")
        self._arena.write(self._start + size, zeros)
        self._view.memory_size = grown
        self._view.load_limit = grown - 31


_FRAME = struct.Struct(words(FrameLayout))
_LoadSlot = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)


class NativeEngine:
    """One thread's arenas, tables and schedules."""

    def __init__(self, native: Library) -> None:
        self.native = native
        self.stacks = Arena(DEPTH * STACK_ALIGN, STACK_ALIGN)
        self.memory = Arena(MEMORY_CAP)
        self.frames = Arena(DEPTH * FrameLayout.size())
        self.views = [
            view_of(FrameLayout).from_address(self.frames.address + depth * FrameLayout.size())
            for depth in range(DEPTH)
        ]
        self.slots = Arena(SLOT_CAP * Slot.size())
        self.journal = Arena(JOURNAL_CAP * Undo.size())
        self.index = Arena(INDEX_SIZE * 4)
        self.shared = view_of(Engine)()
        self.shared_address = ctypes.addressof(self.shared)
        self._load_slot = _LoadSlot(self._on_load_slot)
        self._set_up()
        self.schedules: dict[tuple[bytes, Fork], Schedule] = {}
        self.accounts: list[bytes] = []
        self.numbers: dict[bytes, int] = {}
        self.state: State = State()
        self.error: BaseException | None = None
        self.deadline: float | None = None
        self._context: Context | None = None

    def _set_up(self) -> None:
        shared = self.shared
        shared.slots = self.slots.address
        shared.slot_limit = SLOT_CAP
        shared.index = self.index.address
        shared.index_mask = INDEX_SIZE - 1
        shared.journal = self.journal.address
        shared.journal_limit = JOURNAL_CAP
        shared.load_slot = ctypes.cast(self._load_slot, ctypes.c_void_p).value
        shared.memory_end = self.memory.address + MEMORY_CAP

    # -- a call from outside

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        self._bind_context(context)
        self.state = state
        self.error = None
        try:
            outcome = drive(Frame(message, state, context), self._run)
            if self.shared.slot_count:
                self._flush()
            return outcome
        finally:
            if self.shared.slot_count:
                self.native.forget(self.shared_address)
            self.accounts.clear()
            self.numbers.clear()

    def _bind_context(self, context: Context) -> None:
        shared, rules, block = self.shared, context.rules, context.block
        for name in (
            "access_sets", "cold_sload", "warm_access", "net_sstore", "sstore_sentry",
            "sstore_reset", "sstore_noop", "sstore_clear_refund", "exp_byte",
        ):  # fmt: skip
            setattr(shared, name, int(getattr(rules, name)))
        randao = block.prev_randao if context.fork >= Fork.PARIS else block.difficulty
        for name, value in (
            ("origin", int.from_bytes(context.origin, "big")),
            ("gas_price", context.gas_price),
            ("coinbase", int.from_bytes(block.coinbase, "big")),
            ("timestamp", block.timestamp),
            ("number", block.number),
            ("prev_randao", randao),
            ("gas_limit", block.gas_limit),
            ("chain_id", block.chain_id),
            ("base_fee", block.base_fee),
            ("blob_base_fee", context.blob_base_fee),
        ):
            ctypes.memmove(getattr(shared, name), value.to_bytes(WORD, "little"), WORD)

    def _flush(self) -> None:
        """Writes the storage that changed into the state."""
        view, size = view_of(Slot), Slot.size()
        for number in range(self.shared.slot_count):
            slot = view.from_address(self.slots.address + number * size)
            if slot.flags & SLOT_DIRTY and not slot.account & TRANSIENT:
                key, value = int.from_bytes(slot.key, "little"), int.from_bytes(slot.value, "little")
                self.state.set_storage(self.accounts[slot.account], key, value)
        refund = self.shared.refund
        if refund:
            self.state.add_refund(refund - (1 << 64) if refund >> 63 else refund)

    def _on_load_slot(self, address: int) -> int:
        """Native code asks for a slot it has not seen. Nothing may be raised through native frames."""
        try:
            slot = view_of(Slot).from_address(address)
            account, key = self.accounts[slot.account], int.from_bytes(slot.key, "little")
            state = self.state
            value, original = state.storage(account, key), state.original_storage(account, key)
            if value:
                ctypes.memmove(slot.value, value.to_bytes(WORD, "little"), WORD)
            if original:
                ctypes.memmove(slot.original, original.to_bytes(WORD, "little"), WORD)
            if (account, key) in state.warm_slots:
                slot.flags = SLOT_WARM
        except BaseException as error:
            self.error = error
            return 1
        return 0

    # -- frames

    def _run(self, frame: Frame) -> Frame:
        view = self.views[frame.message.depth]
        if type(frame.memory) is bytearray:
            self._enter(frame, view)
        else:
            self._give_back(frame, view)
        at = ctypes.addressof(view)
        enter = self.native.enter
        while True:
            status = enter(at)
            if status == Native.SYNC:
                event = self._sync(frame, view)
                if event is not None:
                    return event
            elif status == Native.STOP:
                frame.gas = view.gas + view.reserve
                return frame
            elif status in (Native.RETURN, Native.REVERT):
                frame.gas = view.gas + view.reserve
                frame.reverted = status == Native.REVERT
                offset, size = view.output_offset, view.output_size
                frame.output = frame.memory[offset : offset + size] if size else b""
                return frame
            elif status == Native.REFILL:
                self._refill(view)
            else:
                self._halt(status)

    def _enter(self, frame: Frame, view: Any) -> None:
        message, depth = frame.message, frame.message.depth
        schedule = self._schedule(message.code, frame.context.fork)
        parent_end = 0
        if depth:
            parent = self.views[depth - 1]
            parent_end = parent.memory + parent.memory_size - self.memory.address
        frame.memory = NativeMemory(self.memory, parent_end, view)  # type: ignore[assignment]
        gas = frame.gas
        now = min(gas, SLICE)
        stack = self.stacks.address + depth * STACK_ALIGN
        _FRAME.pack_into(
            self.frames._map,
            depth * FrameLayout.size(),
            schedule.base + 16,
            stack,
            now,
            gas - now,
            self.memory.address + parent_end,
            0,
            0,
            schedule.base,
            schedule.jumps_base,
            schedule.code_base,
            len(message.code),
            _address_of(message.data),
            len(message.data),
            0,
            0,
            0,
            0,
            0,
            self._number(message.address),
            int(frame.static),
            self.shared_address,
            depth,
            message.address[::-1].ljust(WORD, b"\0"),
            message.caller[::-1].ljust(WORD, b"\0"),
            message.value.to_bytes(WORD, "little"),
        )
        frame.state.journal.append((self._revert, self.shared.journal_count, self.shared.refund))

    def _revert(self, mark: int, refund: int) -> None:
        self.native.revert_to(self.shared_address, mark)
        self.shared.refund = refund

    def _number(self, address: bytes) -> int:
        number = self.numbers.get(address)
        if number is None:
            number = self.numbers[address] = len(self.accounts)
            self.accounts.append(address)
        return number

    def _schedule(self, code: bytes, fork: Fork) -> Schedule:
        key = (code, fork)
        schedule = self.schedules.get(key)
        if schedule is None:
            if len(self.schedules) >= SCHEDULES:
                self.schedules.clear()
            schedule = self.schedules[key] = build_schedule(code, fork, self.native.handlers)
        return schedule

    def _sync(self, frame: Frame, view: Any) -> Frame | None:
        """Does one instruction in Python, on the native stack and memory."""
        pc = view.pc
        op = BY_BYTE[frame.code[pc]]
        frame.pc = pc + 1
        frame.gas = view.gas + view.reserve
        sp = view.sp
        raw = ctypes.string_at(sp - WORD * op.pops, WORD * op.pops)
        frame.stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
        view.sp = sp - WORD * op.pops
        event = INSTRUCTIONS[op.name](frame)
        if event is None:
            self._give_back(frame, view)
        return event

    def _give_back(self, frame: Frame, view: Any) -> None:
        """What Python left on its side goes to native code: results, gas, return data."""
        if frame.stack:
            raw = b"".join(word.to_bytes(WORD, "little") for word in frame.stack)
            ctypes.memmove(view.sp, raw, len(raw))
            view.sp += len(raw)
            frame.stack = []
        now = min(frame.gas, SLICE)
        view.gas, view.reserve = now, frame.gas - now
        view.returned, view.returned_size = _address_of(frame.returndata), len(frame.returndata)

    def _refill(self, view: Any) -> None:
        """Hands out the next slice of gas: the moment to look at the clock."""
        if not view.reserve:
            raise ExceptionalHalt(HaltReason.OUT_OF_GAS)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise EngineLimit("the time limit is reached")
        more = min(view.reserve, SLICE)
        view.gas += more
        view.reserve -= more

    def _halt(self, status: int) -> None:
        if status == Native.ERROR and self.error is not None:
            raise self.error
        if status == Native.MEMORY_CAP:
            raise EngineLimit(f"memory over the engine's cap of {MEMORY_CAP >> 20} MiB")
        if status in (Native.SLOT_CAP, Native.ERROR):
            raise EngineLimit(f"more than {SLOT_CAP:,} storage slots in one call")
        raise ExceptionalHalt(HALTS[status])


def _address_of(data: bytes) -> int:
    return ctypes.cast(data, ctypes.c_void_p).value or 0


_engines = threading.local()


def engine() -> NativeEngine:
    found: NativeEngine | None = getattr(_engines, "engine", None)
    if found is None:
        found = _engines.engine = NativeEngine(library())
    return found


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As the reference tier, natively. What is watched by hooks runs in the reference tier."""
    if hooks is not None:
        return execute_reference(message, state, context, hooks)
    return engine().execute(message, state, context)
