"""Many message calls in one native loop, on the tables that calls are made on one by one (`direct.py`).

Python is asked for what native code does not know yet, as in any call. What a call needs beyond that (an instruction
that Python executes, the reason of a halt, accounts that moved) is done as in `direct.py`, and the loop continues after
it. Nothing is kept from Python for longer than some milliseconds: signals, regions that were compiled, the clock.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterator
from functools import partial

from fusevm.chain.column import Column
from fusevm.chain.environment import Context
from fusevm.chain.outcome import Executor
from fusevm.chain.outcomes import Outcomes
from fusevm.chain.packed import NOTHING_SPECIAL, Data, PackedCalls, Special
from fusevm.chain.state import State
from fusevm.native.host import engine as machinery
from fusevm.native.host.arena import Arena
from fusevm.native.host.direct import _go_on, _prepared
from fusevm.native.host.engine import ENDED, GIVEN, NativeEngine
from fusevm.native.host.logs import NativeLogs
from fusevm.native.host.tables import CHANGE_SIZE, CHANGES, NativeLimit, Tables
from fusevm.native.host.tiers import OfThreads
from fusevm.native.host.views import view_at
from fusevm.native.host.warm_tables import Target
from fusevm.native.host.writeback import CHANGE, leave_pending
from fusevm.native.layout import WORD, Call, Engine, Many
from fusevm.native.layout import Status as Native
from fusevm.native.runtime.many import BETWEEN, REFUSED
from fusevm.schedule.build import address_of

FEWEST_CALLS, FIRST_CALLS, MAX_CALLS = 1 << 4, 1 << 8, 1 << 14  # in one crossing
COUNTED_CALLS = 1 << 6  # while blocks are counted
GAS, MAX_GAS = 10_000_000, 160_000_000  # in one crossing: gas says little about time, SSTORE costs much and is fast
LONG_ENOUGH = 0.004  # seconds of a crossing: threads that cross more often wait for each other
OUTPUT_ROOM, LOG_ROOM, CHANGE_ROOM = 1 << 22, 1 << 22, 2 * CHANGES
LEAST_ROOM = 1 << 18  # bytes: a column that has less is written to by Python alone
MAX_SPARE = 16  # arenas kept for reuse
LARGE = 1 << 20  # bytes: so many are handed over with their memory, which native code fills without Python's lock

_REVERT = Native.REVERT
_ZERO = bytes(WORD)
_CALLER, _ADDRESS = Engine.offset("first_caller"), Engine.offset("first_address")


class ResultBuffers:
    """Where native code leaves outputs, logs and changed slots, until Python takes them after each crossing."""

    def __init__(self) -> None:
        self.outputs = Arena(OUTPUT_ROOM)
        self.logs = Arena(LOG_ROOM)
        self.changes = Arena(CHANGE_ROOM * CHANGE_SIZE)
        self.buffer = ctypes.create_string_buffer(Many.byte_size())
        self.many = many = view_at(Many, ctypes.addressof(self.buffer))
        self._own_outputs: object = None
        self._own_logs: object = None
        many.changes, many.change_limit = self.changes.address, CHANGE_ROOM

    def lay_out(self, outputs: Column, logs: Column) -> None:
        """Has native code write to the columns themselves where they have room, else here."""
        many = self.many
        self._own_outputs, many.outputs, many.output_limit = _place(outputs, self.outputs)
        self._own_logs, many.logs, many.log_limit = _place(logs, self.logs)

    def hand_over(self, outputs: Column, logs: Column) -> None:
        """Adds what calls have left to what came before."""
        many = self.many
        if many.output_size:
            if self._own_outputs is None:
                self.outputs = _handed_over(self.outputs, many.output_size, outputs)
            else:
                outputs.grow(many.output_size)
        if many.log_size:
            if self._own_logs is None:
                self.logs = _handed_over(self.logs, many.log_size, logs)
            else:
                logs.grow(many.log_size)
        self._own_outputs = self._own_logs = None


def _place(column: Column, arena: Arena) -> tuple[object, int, int]:
    """Who holds the memory that is written to, if it is the column's; where it begins; how large it is."""
    free = column.free
    if free is None or len(free) < LEAST_ROOM:
        return None, arena.address, arena.size
    held = ctypes.c_char.from_buffer(free)
    return held, ctypes.addressof(held), len(free)


def _handed_over(arena: Arena, size: int, column: Column) -> Arena:
    """The arena for the next results: the same, or another one while the column has this one."""
    if size < LARGE:
        column.add(arena.view(arena.address, size))
        return arena
    lent = (ctypes.c_char * size).from_buffer(arena.map, arena.skip)
    weakref.finalize(lent, _spare.append, arena).atexit = False
    column.adopt(memoryview(lent).cast("B"))
    try:
        return _spare.pop()
    except IndexError:
        return Arena(arena.size)


_spare: deque[Arena] = deque(maxlen=MAX_SPARE)  # of results that were dropped: their pages are mapped already


class RunningCall(Collection[bytes]):
    """What is warm from the start in the call that is running: native code knows which that is."""

    def __init__(self, tables: Tables, coinbase: bytes) -> None:
        self._engine = memoryview(tables.engine).cast("B")
        self._coinbase = coinbase

    def _warm(self) -> tuple[bytes, bytes, bytes]:
        caller, address = self._engine[_CALLER : _CALLER + 20], self._engine[_ADDRESS : _ADDRESS + 20]
        return bytes(caller[::-1]), bytes(address[::-1]), self._coinbase

    def __contains__(self, address: object) -> bool:
        return address in self._warm()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._warm())

    def __len__(self) -> int:
        return len(self._warm())


class ManyCalls:
    """Some calls on one state, kept or not, on this thread's engine of a setting."""

    def __init__(
        self, own: OfThreads, state: State, context: Context, calls: PackedCalls, found: Outcomes, keep: bool
    ) -> None:
        self._own = own
        self._state = state
        self._context = context
        self._calls = calls
        self._found = found
        self._keep = keep
        self._specials = sorted(calls.special)
        self._pace, self._gas = FIRST_CALLS, GAS  # of the next crossing
        self._overrides: object = None
        self._is_refused = False  # whether the next call is for Python, though it does not look so
        self._given: dict[int, Target] = {}  # by kind: the target that native code calls, while that is valid
        self._calls_raw = ctypes.create_string_buffer(max(1, len(calls.kinds)) * Call.byte_size())
        self._data_at = _address(calls.data)
        self._records = (ctypes.c_char * max(1, len(found.records))).from_buffer(found.records or bytearray(1))

    def run(self) -> Executor | None:
        """Runs calls from the first that is not done. Returns what continues one that has begun; or None: the next
        one is not for this path and has not begun, or there is none."""
        self._given.clear()  # calls by themselves may have emptied the tables
        while self._found.done < self._calls.count:
            end = self._end_of_plain()
            if end == self._found.done:
                return None
            engine = self._own.engine
            if engine is None or not engine.warm.on:
                return None
            fresh = self._prepare(engine)
            if fresh is None:
                return None
            end = self._with_targets(engine, min(end, self._found.done + self._most(engine)))
            if end == self._found.done:
                return None
            resume = self._cross(engine, end, fresh)
            if resume is not None or self._is_refused:
                self._is_refused = False
                return resume
        return None

    def _end_of_plain(self) -> int:
        """The number of the next call that native code cannot make, or the number of calls."""
        specials, calls = self._specials, self._calls
        for place in range(bisect_left(specials, self._found.done), len(specials)):
            number = specials[place]
            if number >= self._found.done + self._pace or not self._is_for_native(calls.special[number]):
                return number
        return calls.count

    def _is_for_native(self, special: Special) -> bool:
        """Whether it has other slots and nothing else, and those of contracts: what has no code might be created."""
        if special.value or special.block or self._keep:
            return False
        return all(self._state.account(address).code for address, _, _ in special.slots)

    def _most(self, engine: NativeEngine) -> int:
        return min(self._pace, COUNTED_CALLS) if engine.codes.hot_code.is_counting else self._pace

    def _prepare(self, engine: NativeEngine) -> bool | None:
        """Whether native tables must be emptied; None where the next call cannot run on this engine now."""
        warm, state, context = engine.warm, self._state, self._context
        if (
            state is warm.state and state.version == warm.version and not engine.codes.needs_sweep
            and context is engine.context and context.block.version == engine.block_version
            and not engine.world.hashes_asked and self._given
        ):  # fmt: skip
            return False
        self._given.clear()
        fresh, target, _ = _prepared(engine, state, context, self._calls.kind(self._found.done).to, None)
        return None if target is None else fresh

    def _with_targets(self, engine: NativeEngine, end: int) -> int:
        """Describes those who are called before `end`; the number of the first call that is not for this path."""
        first, kind_of = self._found.done, self._calls.kind_of
        kinds = [0] if kind_of is None else dict.fromkeys(kind_of[first:end])
        for kind in kinds:
            if kind not in self._given and not self._describe(engine, kind):
                return first if kind_of is None else kind_of.index(kind, first)
        return end

    def _describe(self, engine: NativeEngine, number: int) -> bool:
        """Writes what native code is given of calls of a kind; False where they are not for this path."""
        kind = self._calls.kinds[number]
        try:
            target = engine.warm.targets.get(kind.to) or engine.warm.target(kind.to, self._state)
        except NativeLimit:
            return False
        if target is None:
            return False
        self._given[number] = target
        now = min(kind.gas, machinery.SLICE)
        GIVEN.pack_into(
            self._calls_raw, number * Call.byte_size(), engine.tables.address, target.rest_place, now, kind.gas - now,
            0, target.number, False, target.blank, False, self._keep, kind.to, kind.caller, kind.caller, _ZERO,
        )  # fmt: skip
        return True

    def _cross(self, engine: NativeEngine, end: int, fresh: bool) -> Executor | None:
        """One crossing, up to that call; returns what continues a call that is not over."""
        state, world, codes = self._state, engine.world, engine.codes
        for target in self._given.values():
            if target.plain:
                codes.run_plainly(target.code)
        if state.leftovers:
            state.forget_transaction()
        buffers = self._own.buffers = self._own.buffers or ResultBuffers()
        first = self._found.done
        self._fill(buffers.many, engine, end, fresh)
        buffers.lay_out(self._found.outputs, self._found.logs)
        engine.warm.state = None  # until the crossing has ended well
        world.initially_warm = RunningCall(engine.tables, world.coinbase)
        state.ledger = world  # if this is interrupted, the next reader of the state undoes it
        world.busy = True
        started = time.perf_counter()
        status = engine.native.call_many(ctypes.addressof(buffers.buffer))
        seconds = time.perf_counter() - started
        self._take(engine, buffers)
        self._adapt(end - first, self._found.done - first, seconds, used_up=status == BETWEEN)
        resume, good = None, not state.handed_out
        if status == REFUSED:
            good = self._refuse(engine)
        elif status != BETWEEN:
            resume, good = self._end_one(engine, status)
            if resume is not None:
                return resume
        if self._keep:
            self._leave_behind(engine)
        if good:
            engine.warm.state = state
        world.busy = False
        state.ledger = None
        self._note_time(engine, seconds)
        return None

    def _adapt(self, wanted: int, done: int, seconds: float, *, used_up: bool) -> None:
        """Calls and gas of the next crossing, which shall take about as long as it should, and be short after one
        that ended before its last call; `used_up` says that no call of this one needed Python."""
        quick, slow = seconds < LONG_ENOUGH, seconds > 4 * LONG_ENOUGH
        if done < wanted:
            self._pace = max(FEWEST_CALLS, 2 * done)
        elif quick:
            self._pace = min(MAX_CALLS, 2 * self._pace)
        if slow:
            self._pace, self._gas = max(FEWEST_CALLS, self._pace // 2), max(GAS, self._gas // 2)
        elif quick and used_up and done < wanted:
            self._gas = min(MAX_GAS, 2 * self._gas)

    def _fill(self, many: Many, engine: NativeEngine, end: int, fresh: bool) -> None:
        calls, found = self._calls, self._found
        many.engine = engine.tables.address
        many.calls = ctypes.addressof(self._calls_raw)
        many.kinds = 0 if calls.kind_of is None else calls.kind_of.buffer_info()[0]
        if isinstance(calls.sizes, int):
            many.sizes, many.size = 0, calls.sizes
        else:
            many.sizes = calls.sizes.buffer_info()[0]
        many.data = self._data_at + calls.starts[found.done]
        many.place, many.end, many.fresh, many.gas = found.done, end, fresh, self._gas
        many.outcomes = ctypes.addressof(self._records)
        many.output_size = many.log_size = many.change_count = many.refunds = 0
        many.output_base, many.log_base = len(found.outputs), len(found.logs)
        many.override_ends = 0
        if self._specials:
            self._override(many, engine, end)

    def _override(self, many: Many, engine: NativeEngine, end: int) -> None:
        """Describes the slots that have other values for some of the calls before `end`."""
        first, special = self._found.done, self._calls.special
        rows, ends = [], array("Q")
        for number in range(first, end):
            for address, key, value in special.get(number, NOTHING_SPECIAL).slots:
                account = engine.world.number(address)
                rows.append(CHANGE.pack(account, key.to_bytes(WORD, "little"), value.to_bytes(WORD, "little")))
            ends.append(len(rows))
        raw = b"".join(rows)
        if raw:
            buffer = ctypes.create_string_buffer(raw, len(raw))  # native code writes to it
            self._overrides = buffer, ends  # held while native code has them
            many.overrides, many.override = ctypes.addressof(buffer), 0
            many.override_ends = ends.buffer_info()[0] - first * ends.itemsize

    def _take(self, engine: NativeEngine, buffers: ResultBuffers) -> None:
        """What native code has left of calls that are over."""
        many, found = buffers.many, self._found
        first, last = found.done, many.place
        buffers.hand_over(found.outputs, found.logs)
        if many.refunds:
            found.cap_refunds(first, last, self._context.rules, self._calls.data_of)
        if many.change_count:
            leave_pending(self._state, buffers.changes.read(0, many.change_count * CHANGE_SIZE), engine.warm)
        found.done = last

    def _end_one(self, engine: NativeEngine, status: int) -> tuple[Executor | None, bool]:
        """A call that needs Python: what continues it, if it is not over; and whether the tables are valid."""
        state, world, found, tables = self._state, engine.world, self._found, engine.tables
        kind = self._calls.kind(found.done)
        world.initially_warm = (kind.caller, kind.to, world.coinbase)
        left, offset, size, changes, logs, refund, accounts, heavy = ENDED.unpack_from(tables.engine)
        if status > _REVERT or accounts or heavy or changes >= CHANGES or world.changed:
            if self._keep or status > _REVERT or heavy:
                return partial(_go_on, engine, None, status), False
            world.end(state)  # accounts were moved and moved back, and Python may have learned of it
        output = tables.memory.read(offset, size) if size else b""
        raw_logs = tables.logs.read(0, logs) if logs else b""
        number = found.done
        found.add_ended(int(status == _REVERT), kind.gas - left, refund, output, raw_logs)
        if refund:
            found.cap_refunds(number, number + 1, self._context.rules, self._calls.data_of)
        if self._keep and changes:
            leave_pending(state, tables.changes.read(0, changes * CHANGE_SIZE), engine.warm)
        return None, not (accounts or state.handed_out)

    def _refuse(self, engine: NativeEngine) -> bool:
        """The next call, whose slots were overridden, needs Python: undoes it. Returns whether the tables are valid."""
        self._is_refused = True
        moved = bool(engine.tables.shared.dirty_count)
        if engine.tables.shared.heavy:
            engine.native.forget_all(engine.tables.address)
            engine.tables.give_back()
            moved = True
        engine.world.end(self._state)
        return not (moved or self._state.handed_out)

    def _note_time(self, engine: NativeEngine, seconds: float) -> None:
        """What ran so long may be worth preparing, or compiling."""
        codes = engine.codes
        codes.hot_code.worked(None, seconds)
        if codes.in_use and codes.tiered:
            codes.tally()

    def _leave_behind(self, engine: NativeEngine) -> None:
        """What the last call left beside the accounts is the state's, as after a call by itself."""
        shared, state = engine.tables.shared, self._state
        refund, logs = shared.refund, shared.log_size
        if refund:
            state.add_refund(refund)
        if logs:
            state.add_logs(NativeLogs(engine.tables.logs.read(0, logs)))


def _address(data: Data) -> int:
    """Where the data of calls is; valid as long as it is referenced."""
    if isinstance(data, bytes):
        return address_of(data)
    return ctypes.addressof(ctypes.c_char.from_buffer(data)) if data else 0


def many_calls(
    own: OfThreads, state: State, context: Context, calls: PackedCalls, found: Outcomes, keep: bool
) -> Callable[[], Executor | None]:
    """See `ManyCalls` in `tiers.py`."""
    return ManyCalls(own, state, context, calls, found, keep).run
