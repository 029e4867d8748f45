"""Notes of what happens, written one after another for Python to decode: frames, storage, hashes, logs.

In the subset of `lang`. Only the functions of `noted` write notes, and only schedules made for a recording lead there.

Logs are not noted as they are written. Whatever is noted next says how many there are by then, and they are copied when
a frame fails, since they would be lost. So LOG costs nothing more, and the order is the true one.
"""

from __future__ import annotations

from fusevm.native.lang import (
    Struct,
    call_pointer,
    copy,
    inlined,
    load,
    native,
    outlined,
    ptr,
    store,
    u64,
    u128,
    u256,
    unlikely,
)
from fusevm.native.layout import ACCOUNT_DELEGATED, Account, Engine, NativeFrame, Status

BEGUN, ENDED, READ, WRITTEN, READ_TRANSIENT, WRITTEN_TRANSIENT, HASHED, LOGGED, UNDONE, DESTROYED, CALLED = range(1, 12)
# Storage is noted as a tag, the key, the value, and where it was written, the value before.
WIDE = 16  # is added to the tag where values do not fit 128 bits
SAME = 32  # and this where the key is that of the storage noted last, and is left out
OLDER = 64  # or the one before that; the two change places
FEW_LOGS = 1 << 14  # bytes: so many are copied when a call from outside has ended
LOG_SHIFT = 8  # above the tag, LOGGED has how many bytes of logs there are
NOWHERE = (1 << 32) - 1  # a pc that there is not
KIND_SHIFT, VALUED, DELEGATED, PC_SHIFT = 8, 1 << 16, 1 << 17, 32  # above the tag CALLED: a value follows, a delegate
HOW_SHIFT, REASON_SHIFT = 8, 16  # above the tag ENDED, and the pc
STOP, RETURN, REVERT = Status.STOP, Status.RETURN, Status.REVERT
SUCCEEDED, REVERTED, HALTED = range(3)
METER_SIZE = 16
(
    NO_REASON,
    REASON_OUT_OF_GAS,
    REASON_PRECOMPILE,
    REASON_EF,
    REASON_TOO_LARGE,
    REASON_COLLISION,
    REASON_DEPTH,
    REASON_BALANCE,
    REASON_NONCE,
) = range(9)  # Python's list continues with others


class Begun(Struct):
    """A frame begins, from outside or by a creation: this, then its input, padded to eight bytes as all data here."""

    tag: u64
    kind: u64
    depth: u64
    pc: u64
    gas: u64
    static: u64
    size: u64
    caller: u256
    address: u256
    code_address: u256
    delegate: u256
    value: u256


class CalledNote(Struct):
    """A frame calls another: this, the value and the delegate if the tag says so, then the input.

    Who calls, where it acts and whether it may change state follow from the caller, the frame that is open then. Notes
    are short because all of them have to be written, copied and kept: memory is what a recording costs.
    """

    tag: u64  # with the kind of call and its pc
    gas: u64
    size: u64
    code_address: u256


class EndedNote(Struct):
    """A frame ends: this, then its output."""

    tag: u64  # with how, the pc, and the number of a reason in Python's list of them; zero for none
    gas_left: u64
    size: u64


class Preimage(Struct):
    """A hash: this, then what was hashed."""

    tag: u64
    size: u64
    hash: u256


class LostLogs(Struct):
    """Logs that are undone: this, then those logs as the engine kept them."""

    tag: u64
    start: u64
    end: u64


class Destroyed(Struct):
    tag: u64
    depth: u64
    pc: u64
    address: u256
    heir: u256
    value: u256


class Meter(Struct):
    """Of a frame, where gas is measured."""

    place: ptr  # what the running instruction adds up in; zero where it costs no more than its static gas
    given: u64  # to the frame


BEGUN_SIZE = Begun.byte_size()
CALLED_SIZE = CalledNote.byte_size()
ENDED_SIZE = EndedNote.byte_size()
PREIMAGE_SIZE = Preimage.byte_size()
LOST_SIZE = LostLogs.byte_size()
DESTROYED_SIZE = Destroyed.byte_size()


@inlined
def room_for(engine: Engine, size: u64) -> ptr:
    """The address for a note; null if Python does not take the earlier ones."""
    if unlikely(engine.note_size + size > engine.note_limit) and make_room(engine) == 0:
        return 0
    place: ptr = engine.notes + engine.note_size
    engine.note_size += size
    return place


@outlined
def make_room(engine: Engine) -> u64:
    return u64(call_pointer(u64, engine.take_notes, engine) == 0)


@inlined
def padded(size: u64) -> u64:
    return (size + 7) & ~7


@inlined
def note_logs(engine: Engine) -> u64:
    """Those written since the last note; whether there was room."""
    if unlikely(engine.noted_logs != engine.log_size):
        return note_new_logs(engine)
    return 1


@outlined
def note_new_logs(engine: Engine) -> u64:
    engine.noted_logs = engine.log_size
    if engine.wants_logs == 0:
        return 1
    note: ptr = room_for(engine, 8)
    if u64(note) == 0:
        return 0
    store(note, 0, engine.log_size << LOG_SHIFT | LOGGED)
    return 1


@native
def note_undone(engine: Engine, mark: u64) -> u64:
    """Logs from there on are about to be lost; whether there was room."""
    if note_logs(engine) == 0:
        return 0
    engine.noted_logs = mark
    size = engine.log_size - mark
    if size == 0 or engine.wants_logs == 0:
        return 1
    note = LostLogs(room_for(engine, LOST_SIZE + size))
    if note == 0:
        return 0
    note.tag = UNDONE
    note.start = mark
    note.end = engine.log_size
    copy(note + LOST_SIZE, engine.logs + mark, size)
    return 1


@native
def note_begun(engine: Engine, kind: u64, depth: u64, pc: u64, gas: u64, data: ptr, size: u64) -> ptr:
    """A frame; its address and caller are set later. Null if there is no room."""
    if note_logs(engine) == 0:
        return 0
    note = Begun(room_for(engine, BEGUN_SIZE + padded(size)))
    if note == 0:
        return 0
    note.tag = BEGUN
    note.kind = kind
    note.depth = depth
    note.pc = pc
    note.gas = gas
    note.size = size
    if size != 0:
        copy(note + BEGUN_SIZE, data, size)
    return note


@native
def note_called(frame: NativeFrame, account: Account, kind: u64, value: u256, gas: u64, data: ptr, size: u64) -> u64:
    """A frame calls an account's code with some gas; whether there was room."""
    engine = Engine(frame.engine)
    if note_logs(engine) == 0:
        return 0
    delegated = account.flags & ACCOUNT_DELEGATED
    head: u64 = CALLED_SIZE
    if value != 0:
        head += 32
    if delegated != 0:
        head += 32
    note = CalledNote(room_for(engine, head + padded(size)))
    if note == 0:
        return 0
    note.tag = frame.pc << PC_SHIFT | kind << KIND_SHIFT | CALLED
    note.gas = gas
    note.size = size
    note.code_address = account.address
    rest: ptr = note + CALLED_SIZE
    if value != 0:
        note.tag |= VALUED
        store(rest, 0, value)
        rest = rest + 32
    if delegated != 0:
        note.tag |= DELEGATED
        store(rest, 0, account.delegate)
        rest = rest + 32
    if size != 0:
        copy(rest, data, size)
    return 1


@native
def note_ended(engine: Engine, how: u64, gas_left: u64, reason: u64, pc: u64, output: ptr, size: u64) -> u64:
    """The frame that began last and has not ended; whether there was room."""
    if note_logs(engine) == 0:
        return 0
    note = EndedNote(room_for(engine, ENDED_SIZE + padded(size)))
    if note == 0:
        return 0
    note.tag = pc << PC_SHIFT | reason << REASON_SHIFT | how << HOW_SHIFT | ENDED
    note.gas_left = gas_left
    note.size = size
    if size != 0:
        copy(note + ENDED_SIZE, output, size)
    return 1


@inlined
def note_key(engine: Engine, tag: u64, key: u256, values: u64) -> ptr:
    """Of storage: the tag, and the key if it is another than last time. Where the values go, or nothing."""
    if note_logs(engine) == 0:
        return 0
    last = engine.noted_key
    older = engine.older_key
    if key == last or key == older:  # noqa: SIM109
        known: ptr = room_for(engine, values + 8)
        if u64(known) == 0:
            return 0
        if key == last:
            store(known, 0, tag + SAME)
        else:
            store(known, 0, tag + OLDER)
            engine.older_key = last
            engine.noted_key = key
        return known + 8
    note: ptr = room_for(engine, values + 40)
    if u64(note) != 0:
        engine.older_key = last
        engine.noted_key = key
        store(note, 0, tag)
        store(note, 8, key)
        note = note + 40
    return note


@inlined
def note_read(engine: Engine, tag: u64, key: u256, value: u256) -> u64:
    """Whether there was room."""
    if (value >> 128) == 0:
        short: ptr = note_key(engine, tag, key, 16)
        if u64(short) == 0:
            return 0
        store(short, 0, u128(value))
        return 1
    note: ptr = note_key(engine, tag + WIDE, key, 32)
    if u64(note) == 0:
        return 0
    store(note, 0, value)
    return 1


@inlined
def note_written(engine: Engine, tag: u64, key: u256, value: u256, previous: u256) -> u64:
    """Whether there was room."""
    if ((value | previous) >> 128) == 0:
        short: ptr = note_key(engine, tag, key, 32)
        if u64(short) == 0:
            return 0
        store(short, 0, u128(value))
        store(short, 16, u128(previous))
        return 1
    note: ptr = note_key(engine, tag + WIDE, key, 64)
    if u64(note) == 0:
        return 0
    store(note, 0, value)
    store(note, 32, previous)
    return 1


@native
def note_hash(frame: NativeFrame, start: u64, size: u64, hashed: u256) -> u64:
    """Of some memory; whether there was room."""
    engine = Engine(frame.engine)
    if note_logs(engine) == 0:
        return 0
    note = Preimage(room_for(engine, PREIMAGE_SIZE + padded(size)))
    if note == 0:
        return 0
    note.tag = HASHED
    note.size = size
    note.hash = hashed
    if size != 0:
        copy(note + PREIMAGE_SIZE, frame.memory + start, size)
    return 1


# -- gas by instruction: of those that may cost more than their static gas ---------------------------------------------


@native
def meter(frame: NativeFrame, gas: u64, place: ptr) -> None:
    """An instruction begins: what it takes is added there."""
    Meter(Engine(frame.engine).meters + frame.depth * METER_SIZE).place = place
    store(place, 0, load(u64, place) + gas + frame.reserve)


@native
def unmeter(frame: NativeFrame, gas: u64) -> None:
    own = Meter(Engine(frame.engine).meters + frame.depth * METER_SIZE)
    store(own.place, 0, load(u64, own.place) - gas - frame.reserve)
    own.place = 0


@native
def begin_meter(engine: Engine, depth: u64, gas: u64) -> None:
    if u64(engine.meters) != 0:
        own = Meter(engine.meters + depth * METER_SIZE)
        own.place = 0
        own.given = gas


@native
def end_meter(engine: Engine, depth: u64, left: u64) -> None:
    """A frame has ended: its last instruction took what is gone since, and the call what its code did not use."""
    if u64(engine.meters) == 0:
        return
    own = Meter(engine.meters + depth * METER_SIZE)
    if u64(own.place) != 0:
        store(own.place, 0, load(u64, own.place) - left)
        own.place = 0
    if depth != 0:
        caller = Meter(engine.meters + (depth - 1) * METER_SIZE)
        if u64(caller.place) != 0:
            store(caller.place, 0, load(u64, caller.place) - (own.given - left))
