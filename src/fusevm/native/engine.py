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
from collections.abc import Callable, Container, Generator, MutableSet
from typing import Any

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import EngineLimit, Outcome, Status, TimeLimit
from fusevm.chain.state import Account as StateAccount
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.opcodes import BY_BYTE
from fusevm.evm.precompiles import precompiles_of
from fusevm.fuse.loop_schedule import PAID
from fusevm.fuse.schedule import Handlers, Schedule, Unit, address_of, build_schedule
from fusevm.native.arena import Arena
from fusevm.native.build import Library, library
from fusevm.native.diagnosis import diagnose, section_of
from fusevm.native.layout import (
    ACCOUNT_BLANK,
    ACCOUNT_PLAIN,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    SLOT_WARM,
    STACK_ALIGN,
    WORD,
    Account,
    BlockHash,
    Engine,
    Slot,
    Undo,
)
from fusevm.native.layout import Frame as FrameLayout
from fusevm.native.layout import Status as Native
from fusevm.native.logs import NativeLogs
from fusevm.native.schedules import ScheduleStore
from fusevm.native.views import view_of, words
from fusevm.native.warmth import NativeWarmth
from fusevm.native.writeback import PendingStorage
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks
from fusevm.reference.instructions import INSTRUCTIONS
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.reference.trampoline import begin, end, outcome_of, resume

DEPTH = 1026
MEMORY_CAP = 1 << 30  # bytes of EVM memory over all frames of a call
SLOT_CAP = 1 << 19  # storage slots one call may touch
ACCOUNT_CAP = 1 << 16  # accounts one call may look at
JOURNAL_CAP = 1 << 22  # changes of storage that can be undone
LOG_CAP = 1 << 28  # bytes of logs
SLICE = 20_000_000  # gas between two looks at the clock and at signals: hashing takes longest, 15 ns a unit of gas
SCHEDULED = 1 << 25  # bytes of code whose schedules are kept, each counted a little longer than it is

CALLS = frozenset(("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2"))

Probe = Callable[[int, Any], None]  # depth and native frame

HALTS = {
    Native.OUT_OF_GAS: HaltReason.OUT_OF_GAS,
    Native.STACK: HaltReason.STACK_UNDERFLOW,
    Native.INVALID_JUMP: HaltReason.INVALID_JUMP,
    Native.INVALID_OPCODE: HaltReason.INVALID_OPCODE,
    Native.STATIC_WRITE: HaltReason.STATIC_WRITE,
    Native.RETURNDATA: HaltReason.RETURNDATA_OUT_OF_BOUNDS,
}


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


_FRAME_HEAD = struct.Struct(words(FrameLayout, "gas", "value"))
_FRAME_REST = struct.Struct(words(FrameLayout, "ip", "depth"))
_FRAME_SIZE = FrameLayout.byte_size()
_Callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_SLOT_SIZE = Slot.byte_size()
_ACCOUNT = struct.Struct(words(Account, "number", "jumps"))
_ACCOUNT_BODY = Account.offset("number")
_COUNTS = struct.Struct("<4Q")  # the first fields of Engine
_SLOT_HEAD = struct.Struct("<QQQ32s")
_SLOT_VALUE, _SLOT_ORIGINAL = Slot.offset("value"), Slot.offset("original")
_RULES = (
    "access_sets", "cold_sload", "cold_account", "warm_access", "net_sstore", "sstore_sentry",
    "sstore_reset", "sstore_noop", "sstore_clear_refund", "exp_byte", "all_but_64th",
)  # fmt: skip


class NativeEngine:
    """One thread's arenas, tables and schedules."""

    def __init__(self, native: Library, handlers: Handlers, probe: Probe | None = None) -> None:
        self.native = native
        self.handlers = handlers
        self.store = ScheduleStore(native, handlers)
        self.probe = probe  # looks at every section's start
        self.stacks = Arena(DEPTH * STACK_ALIGN, STACK_ALIGN)
        self.memory = Arena(MEMORY_CAP)
        self.output = Arena(MEMORY_CAP)
        self.frame_arena = Arena(DEPTH * _FRAME_SIZE)
        frame_view = view_of(FrameLayout)
        self.views = [frame_view.from_address(self.frame_arena.address + d * _FRAME_SIZE) for d in range(DEPTH)]
        self.slots = Arena(SLOT_CAP * Slot.byte_size())
        self.slot_index = Arena(SLOT_CAP * 2 * 4)
        self.account_arena = Arena(ACCOUNT_CAP * Account.byte_size())
        self.account_index = Arena(ACCOUNT_CAP * 2 * 4)
        self.journal = Arena(JOURNAL_CAP * Undo.byte_size())
        self.logs = Arena(LOG_CAP)
        self.block_hashes = Arena(256 * BlockHash.byte_size())
        self.callbacks = {
            name: _Callback(self._guarded(function))
            for name, function in (
                ("load_slot", self._load_slot),
                ("load_account", self._load_account),
                ("load_block_hash", self._load_block_hash),
            )
        }
        self.shared = view_of(Engine)()
        self.shared_address = ctypes.addressof(self.shared)
        self._set_up()
        self.schedules: dict[tuple[bytes, Fork], Schedule] = {}
        self.scheduled = 0  # bytes
        self.first_frames: dict[bytes, bytes] = {}  # by code: what goes with it in a call's first frame
        self.addresses: list[bytes] = []  # of accounts by number
        self.numbers: dict[bytes, int] = {}
        self.frames: list[Frame] = []  # those Python knows, by depth
        self.serials: list[int] = []
        self.error: BaseException | None = None
        self.unsure = False  # whether a failure's place could not be told
        self.state: State
        self.context: Context
        self.message: Message
        self.precompiles: Container[bytes] = ()
        self._bound: object = None
        self.entries: dict[bytes, int] = {}  # accounts native code knows, by address: where they are
        self.initially_warm: MutableSet[bytes] = set()
        self.warmth = NativeWarmth(self._is_warm, self._warm)
        self.hashes_asked = False
        self.busy = False
        self.calls = 0  # tells whether the call a journal entry belongs to is still running
        self.spare: NativeEngine | None = None  # for calls made while this one runs, as a provider of block hashes may

    def _set_up(self) -> None:
        shared = self.shared
        shared.enter = self.native.enter
        shared.slots, shared.slot_limit = self.slots.address, SLOT_CAP
        shared.index, shared.index_mask = self.slot_index.address, SLOT_CAP * 2 - 1
        shared.accounts, shared.account_limit = self.account_arena.address, ACCOUNT_CAP
        shared.account_index, shared.account_mask = self.account_index.address, ACCOUNT_CAP * 2 - 1
        shared.journal, shared.journal_limit = self.journal.address, JOURNAL_CAP
        shared.logs, shared.log_limit = self.logs.address, LOG_CAP
        shared.output = self.output.address
        shared.block_hashes = self.block_hashes.address
        shared.memory_end = self.memory.address + MEMORY_CAP
        shared.epoch = 1
        for name, callback in self.callbacks.items():
            setattr(shared, name, ctypes.cast(callback, ctypes.c_void_p).value)

    # -- a call from outside

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        state.settle()
        self.busy = True
        self.state = state
        self.message = message
        self.initially_warm = state.warm_addresses
        try:
            if self.scheduled > SCHEDULED:
                self._forget_schedules()
            self._bind(context)
            state.warm_addresses = self.warmth
            if not message.code or message.value or message.creates or message.code_address in self.precompiles:
                outcome = self._drive(Frame(message, state, context), None)
            else:
                outcome = self._execute_plain(message)
            self._write_back()
            return outcome
        finally:
            state.warm_addresses = self.initially_warm
            self._forget()
            self.busy = False

    def _execute_plain(self, message: Message) -> Outcome:
        """A call of plain code, which most are: Python makes a frame of its own only if it is needed."""
        self._write_frame(message, 0, 0, in_python=0)
        status = self.native.run(self.shared_address)
        view = self.views[0]
        if status <= Native.REVERT and not self.frames:
            output = b""
            if status != Native.STOP and view.output_size:
                output = self.memory.read(view.output_offset, view.output_size)
            if status == Native.REVERT:
                self._revert(self.calls, 0, 0, 0)
                return Outcome(Status.REVERT, view.gas + view.reserve, output)
            return Outcome(Status.SUCCESS, view.gas + view.reserve, output)
        return self._drive(None, status)

    def _bind(self, context: Context) -> None:
        """Tells native code about the block and the transaction, unless it knows already."""
        self.context = context
        block = context.block
        described = (block.version, context.fork, context.origin, context.gas_price)
        if described == self._bound:
            return
        self.first_frames.clear()  # of another fork, perhaps
        self._bound = None
        shared, rules = self.shared, context.rules
        self.precompiles = precompiles_of(context.fork)
        for name in _RULES:
            setattr(shared, name, int(getattr(rules, name)))
        for name, value in (
            ("origin", int.from_bytes(context.origin, "big")),
            ("gas_price", context.gas_price),
            ("coinbase", int.from_bytes(block.coinbase, "big")),
            ("timestamp", block.timestamp),
            ("number", block.number),
            ("prev_randao", block.prev_randao if context.fork >= Fork.PARIS else block.difficulty),
            ("gas_limit", block.gas_limit),
            ("chain_id", block.chain_id),
            ("base_fee", block.base_fee),
            ("blob_base_fee", context.blob_base_fee),
        ):
            _put(getattr(shared, name), value)
        self._bound = described

    def _write_back(self) -> None:
        """Leaves what changed natively to the state: storage, refund, logs."""
        slots, _, _, logs = self._used()
        state = self.state
        if slots:
            state.pending = PendingStorage(self.slots.read(0, slots * _SLOT_SIZE), self.addresses)
            self.addresses = []
            refund = self.shared.refund
            if refund:
                state.add_refund(refund - (1 << 64) if refund >> 63 else refund)
        if logs:
            state.add_logs(NativeLogs(self.logs.read(0, logs)))

    def _used(self) -> tuple[int, int, int, int]:
        """How many slots and accounts were touched, changes journalled, bytes logged."""
        return _COUNTS.unpack_from(self.shared)

    def _forget(self) -> None:
        slots, accounts, journal, logs = self._used()
        if slots:
            self.native.forget(self.shared_address)
        if accounts:
            self.native.forget_accounts(self.shared_address)
            self.entries.clear()
        if journal or logs or slots:
            shared = self.shared
            shared.log_size = shared.refund = shared.journal_count = 0
        if self.hashes_asked:
            self.block_hashes.write(0, bytes(self.block_hashes.size))
            self.hashes_asked = False
        if self.frames:
            self.frames.clear()
            self.serials.clear()
        self.addresses.clear()
        self.numbers.clear()
        self.error = None
        self.calls += 1

    def _forget_schedules(self) -> None:
        """Only between calls: native frames and accounts hold addresses of schedules."""
        self.schedules.clear()
        self.first_frames.clear()
        self.scheduled = 0

    # -- what native code asks for

    def _guarded(self, function: Callable[[int], None]) -> Callable[[int], int]:
        """Nothing may be raised through native frames: the error is kept, and raised again outside.

        A function would not do: Ctrl-C is noticed as it is entered, before its `try`. A generator resumes inside.
        """

        def callback() -> Generator[int, int, None]:
            answer = 0
            while True:
                try:
                    while True:
                        address = yield answer
                        function(address)
                        answer = 0
                except GeneratorExit:
                    return
                except BaseException as error:
                    self.error, answer = error, 1

        running = callback()
        next(running)
        return running.send

    def _load_slot(self, address: int) -> None:
        table, at = self.slots, address - self.slots.address
        number, _, _, raw_key = _SLOT_HEAD.unpack_from(table.map, table.skip + at)
        account, key, state = self.addresses[number], int.from_bytes(raw_key, "little"), self.state
        value = state.account(account).storage.get(key, 0)
        if value:
            raw = value.to_bytes(WORD, "little")
            table.write(at + _SLOT_VALUE, raw)
            table.write(at + _SLOT_ORIGINAL, raw)
        original = state.original.get((account, key))  # written before this message began, as by an enclosing one
        if original is not None:
            table.write(at + _SLOT_ORIGINAL, original.to_bytes(WORD, "little"))
        if state.warm_slots and (account, key) in state.warm_slots:
            view_of(Slot).from_address(address).flags = SLOT_WARM

    def _load_account(self, address: int) -> None:
        table, at = self.account_arena, address - self.account_arena.address
        where = table.read(at, 20)[::-1]
        state, fork = self.state, self.context.fork
        account = state.account(where)
        code = account.code
        if where in self.entries:
            flags = view_of(Account).from_address(address).flags & (ACCOUNT_WARM | ACCOUNT_BLANK)
        else:
            self.entries[where] = address
            is_warm = where in self.initially_warm or where in state.always_warm
            flags = ACCOUNT_WARM if is_warm or fork < Fork.BERLIN else 0
            if self._is_blank(account):
                flags |= ACCOUNT_BLANK
        places = (0, 0, 0, 0)
        if where in self.precompiles:
            places = (0, len(code), 0, 0)
        elif not code:
            if fork >= Fork.SPURIOUS_DRAGON and not (account.empty and state.exists(where)):
                flags |= ACCOUNT_VOID
        elif state.delegate_of(where) is not None:
            places = (0, len(code), 0, 0)
        else:
            flags |= ACCOUNT_PLAIN
            schedule = self.schedule(code)
            places = (schedule.code_base, len(code), schedule.base, schedule.jumps_base)
        code_hash = bytes(WORD) if account.empty else account.code_hash()[::-1]
        balance = account.balance.to_bytes(WORD, "little")
        start = table.skip + at + _ACCOUNT_BODY
        _ACCOUNT.pack_into(table.map, start, self._number(where), flags, balance, code_hash, *places)

    def _is_blank(self, account: StateAccount) -> bool:
        """Whether every slot of it is known to be zero and cold."""
        return not (account.storage or self.state.original or self.state.warm_slots)

    def _load_block_hash(self, address: int) -> None:
        self.hashes_asked = True
        entry = view_of(BlockHash).from_address(address)
        _put(entry.hash, int.from_bytes(self.context.block.hash_of(entry.number - 1), "big"))

    def _is_warm(self, address: bytes) -> bool:
        entry = self.entries.get(address)
        if entry is None:
            return address in self.initially_warm
        return bool(view_of(Account).from_address(entry).flags & ACCOUNT_WARM)

    def _warm(self, address: bytes) -> None:
        answer = self.native.warm_address(self.shared_address, address[::-1].ljust(WORD, b"\0"))
        if self.error is not None:
            raise self.error
        if answer == 2:
            raise EngineLimit(f"more than {ACCOUNT_CAP:,} accounts in one call")

    # -- frames

    def _drive(self, entering: Frame | None, status: int | None) -> Outcome:
        """The reference tier's trampoline, with native code running the frames, and making some itself.

        Starts with a frame to enter, or with the status native code has just come back with.
        """
        frames = self.frames
        while True:
            if entering is not None:
                frame, entering = entering, None
                frames.append(frame)
                self.serials.append(0)
                if not begin(frame):
                    self._enter(frame)
                    continue
            else:
                try:
                    event = self._run(status)
                except ExceptionalHalt as halt:
                    event = frames[-1]
                    event.error = halt
                status = None
                if event is not frames[-1]:
                    entering = event
                    continue
                frame = event
            frames.pop()
            self.serials.pop()
            failed = frame.error is not None
            end(frame)
            if frame.error is not None and not failed and not frames:  # its code cannot be kept
                unit = self._place(frame, self.views[0], 1)
                frame.pc = unit.tokens[-1].pc + 1 if unit else 0
            self.shared.epoch += 1
            if not frames:
                return outcome_of(frame)
            resume(frames[-1], frame)
            self._give_back(frames[-1], returned=True)

    def _run(self, status: int | None) -> Frame:
        """Runs until a frame Python knows ends (it is returned) or calls (the callee's frame is)."""
        run, shared_address, shared = self.native.run, self.shared_address, self.shared
        while True:
            if status is None:
                status = run(shared_address)
            depth: int = (shared.frame - self.frame_arena.address) // _FRAME_SIZE
            view = self.views[depth]
            if depth + 1 != len(self.frames) or view.serial != self.serials[depth]:
                self._materialise(depth)
            frame = self.frames[depth]
            if status == Native.SYNC:
                event = self._sync(frame, view)
                if event is not None:
                    return event
            elif status == Native.REFILL:
                self._refill(frame, view)
            elif status == Native.PROBE and self.probe is not None:
                self.probe(depth, view)
            elif status <= Native.REVERT:
                frame.gas = view.gas + view.reserve
                frame.reverted = status == Native.REVERT
                if status != Native.STOP and view.output_size:
                    offset = view.output_offset
                    frame.output = frame.read(offset, view.output_size)
                return frame
            else:
                raise self._halt(frame, view, status)
            status = None

    def _enter(self, frame: Frame) -> None:
        """Makes the native frame of one that Python began."""
        depth, shared = frame.message.depth, self.shared
        start = 0
        if depth:
            parent = self.views[depth - 1]
            start = parent.memory + parent.memory_size - self.memory.address
        frame.memory = NativeMemory(self.memory, start, self.views[depth])  # type: ignore[assignment]
        self._write_frame(frame.message, depth, start, in_python=1)
        self.serials[depth] = shared.serial
        marks = shared.journal_count, shared.log_size, shared.refund
        self.state.journal.append((self._revert, self.calls, *marks))
        shared.epoch += 1

    def _write_frame(self, message: Message, depth: int, start: int, *, in_python: int) -> None:
        """Writes a native frame: first what differs from call to call, then what goes with the code and the depth."""
        gas, data, frames = message.gas, message.data, self.frame_arena
        at = frames.skip + depth * _FRAME_SIZE
        now = gas if gas < SLICE else SLICE
        blank = self._is_blank(self.state.account(message.address))
        _FRAME_HEAD.pack_into(
            frames.map, at, now, gas - now, address_of(data) if data else 0, len(data), self._number(message.address),
            message.static, blank, message.address[::-1], message.caller[::-1], message.value.to_bytes(WORD, "little"),
        )  # fmt: skip
        rest = None if in_python else self.first_frames.get(message.code)
        if rest is None:
            rest = self._frame_rest(message.code, depth, start, in_python)
            if not in_python:
                self.first_frames[message.code] = rest
        frames.map[at + _FRAME_HEAD.size : at + _FRAME_SIZE] = rest
        self.shared.frame = frames.address + depth * _FRAME_SIZE

    def _frame_rest(self, code: bytes, depth: int, start: int, in_python: int) -> bytes:
        shared, schedule = self.shared, self.schedule(code)
        serial, marks = 0, (0, 0, 0)
        if in_python:  # else it is the first frame of a call, and everything is empty
            shared.serial = serial = shared.serial + 1
            marks = shared.journal_count, shared.log_size, shared.refund
        return _FRAME_REST.pack(
            schedule.base + 16, self.stacks.address + depth * STACK_ALIGN,
            self.memory.address + start, 0, 0,  # memory
            schedule.base, schedule.jumps_base, schedule.code_base, len(code),
            0, 0, 0, 0, 0, 0, 0,  # return data, output, pc, the running call
            *marks, in_python, serial, 0, self.shared_address, depth,
        )  # fmt: skip

    def _materialise(self, depth: int) -> None:
        """Brings the frames Python knows up to date with those native code began and ended."""
        frames, serials, views = self.frames, self.serials, self.views
        known = 0
        while known < min(len(frames), depth + 1) and serials[known] == views[known].serial:
            known += 1
        del frames[known:], serials[known:]
        for at in range(known, depth + 1):
            view = views[at]
            message = (
                self.message
                if at == 0
                else Message(
                    caller=bytes(view.caller)[19::-1],
                    address=bytes(view.address)[19::-1],
                    code=self.state.account(self.addresses[view.code_account]).code,
                    data=ctypes.string_at(view.data, view.data_size),
                    value=int.from_bytes(view.value, "little"),
                    depth=at,
                    static=bool(view.static),
                    code_address=self.addresses[view.code_account],
                )
            )
            frame = Frame(message, self.state, self.context)
            frame.memory = NativeMemory(self.memory, view.memory - self.memory.address, view)  # type: ignore[assignment]
            frame.mark = self.state.mark()
            marks = view.journal_mark, view.log_mark, view.refund_mark
            self.state.journal.append((self._revert, self.calls, *marks))
            view.in_python = 1
            frames.append(frame)
            serials.append(view.serial)
        for at in range(max(known - 1, 0), depth):  # these are in calls that native code began
            frame, view = frames[at], views[at]
            frame.gas = view.gas + view.reserve
            frame.stack = []
            frame.return_range = (view.call_offset, view.call_size)

    def _revert(self, call: int, journal: int, logs: int, refund: int) -> None:
        """Undoes what native code did since, in the call that is running; of an earlier one nothing is left here."""
        if call == self.calls:
            self.native.revert_to(self.shared_address, journal)
            self.shared.log_size = logs
            self.shared.refund = refund

    def _number(self, address: bytes) -> int:
        number = self.numbers.get(address)
        if number is None:
            number = self.numbers[address] = len(self.addresses)
            self.addresses.append(address)
        return number

    def schedule(self, code: bytes) -> Schedule:
        key = (code, self.context.fork)
        schedule = self.schedules.get(key)
        if schedule is None:
            if self.probe is None:
                schedule = self.store.get(code, self.context.fork)
            else:
                schedule = build_schedule(code, self.context.fork, self.handlers, probes=True)
            self.schedules[key] = schedule
            self.scheduled += len(code) + 1024
        return schedule

    def _sync(self, frame: Frame, view: Any) -> Frame | None:
        """Does one instruction in Python, on the native stack and memory."""
        op = BY_BYTE[frame.code[view.pc]]
        frame.pc = view.pc + 1
        frame.gas = view.gas + view.reserve
        view.sp -= WORD * op.pops
        raw = ctypes.string_at(view.sp, WORD * op.pops)
        frame.stack = [int.from_bytes(raw[at : at + WORD], "little") for at in range(0, len(raw), WORD)]
        self._look_at_clock()
        try:
            event = INSTRUCTIONS[op.name](frame)
        except MemoryError:
            raise EngineLimit(f"memory over the engine's cap of {MEMORY_CAP >> 20} MiB") from None
        self.shared.epoch += 1
        if event is None:
            self._give_back(frame, returned=op.name in CALLS)
        return event

    def _give_back(self, frame: Frame, *, returned: bool) -> None:
        """What Python left on its side goes to native code: results, gas, return data."""
        depth = frame.message.depth
        view = self.views[depth]
        if frame.stack:
            raw = b"".join([word.to_bytes(WORD, "little") for word in frame.stack])
            ctypes.memmove(view.sp, raw, len(raw))
            view.sp += len(raw)
            frame.stack = []
        now = min(frame.gas, SLICE)
        view.gas, view.reserve = now, frame.gas - now
        if returned:
            view.returned, view.returned_size = address_of(frame.returndata), len(frame.returndata)
        self.shared.frame = self.frame_arena.address + depth * _FRAME_SIZE

    def _refill(self, frame: Frame, view: Any) -> None:
        """Hands out the next slice of gas: the moment to look at the clock."""
        if not view.reserve:
            raise self._explained(frame, view, 0, ExceptionalHalt(HaltReason.OUT_OF_GAS))
        self._look_at_clock()
        more = min(view.reserve, SLICE)
        view.gas += more
        view.reserve -= more

    def _look_at_clock(self) -> None:
        deadline = self.context.deadline
        if deadline is not None and time.monotonic() > deadline:
            raise TimeLimit("the time limit is reached")

    def _halt(self, frame: Frame, view: Any, status: int) -> BaseException:
        if self.error is not None:
            return self.error
        if status in HALTS:
            return self._explained(frame, view, 1, ExceptionalHalt(HALTS[status]))
        return EngineLimit(
            f"over a limit of the native engine: {MEMORY_CAP >> 20} MiB of memory, {SLOT_CAP:,} storage slots, "
            f"{ACCOUNT_CAP:,} accounts, {JOURNAL_CAP:,} storage changes or {LOG_CAP >> 20} MiB of logs in one call"
        )

    def _explained(self, frame: Frame, view: Any, behind: int, halt: ExceptionalHalt) -> ExceptionalHalt:
        """The halt of a call's first frame, with reason and place; of others nobody can see them."""
        if frame.message.depth:
            return halt
        state, unit = self.state, self._place(frame, view, behind)
        if unit is not None and section_of(unit, self.schedule(frame.message.code)).needs == PAID:
            self.unsure = True  # a loop's gas was taken in bulk: only a run without that can tell where it ended
            return halt
        mark = state.mark()
        PendingStorage(self.slots.read(0, self.shared.slot_count * _SLOT_SIZE), self.addresses).apply(state, warm=True)
        try:
            return diagnose(frame, view, unit, self.schedule(frame.message.code), halt) if unit else halt
        finally:
            state.revert(mark)

    def _place(self, frame: Frame, view: Any, behind: int) -> Unit | None:
        """What stands in the schedule where a frame came back, or so many words before."""
        code = frame.message.code
        schedule = self.schedule(code)
        if not schedule.units:
            probes = self.probe is not None
            again = build_schedule(code, self.context.fork, self.handlers, keep_units=True, probes=probes)
            schedule.units = again.units
            self.scheduled += 20 * len(code)
        at = (view.ip - view.schedule) // 8 - behind
        return next((unit for unit in schedule.units if unit.at == at), None)


def _put(field: Any, value: int) -> None:
    """Writes a word, lowest byte first, as native code reads it."""
    field[:] = value.to_bytes(WORD, "little")


_engines = threading.local()


def engine(*, fuse: bool = True) -> NativeEngine:
    """This thread's engine, with fused sequences or without."""
    name = "fused" if fuse else "unfused"
    found: NativeEngine | None = getattr(_engines, name, None)
    if found is None:
        native = library()
        found = NativeEngine(native, native.handlers if fuse else native.handlers.only(frozenset()))
        setattr(_engines, name, found)
    while found.busy:
        found.spare = found.spare or NativeEngine(found.native, found.handlers)
        found = found.spare
    return found


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As the reference tier, natively. What is watched by hooks runs in the reference tier."""
    if hooks is not None:
        return execute_reference(message, state, context, hooks)
    fused = engine()
    outcome = fused.execute(message, state, context)
    if outcome.failure is not None and fused.unsure:
        fused.unsure = False
        return engine(fuse=False).execute(message, state, context)
    return outcome


def execute_unfused(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As `execute`, one handler an opcode: to measure what fusion brings, and to test it."""
    if hooks is not None:
        return execute_reference(message, state, context, hooks)
    return engine(fuse=False).execute(message, state, context)
