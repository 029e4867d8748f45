"""Calls, creations and SELFDESTRUCT for recordings: done as ever, and noted. In the subset of `lang`."""

from __future__ import annotations

from fusevm.evm.gas import most_given
from fusevm.evm.limits import CALL_DEPTH_LIMIT
from fusevm.native.lang import load, native, ptr, specialised, u64, u256
from fusevm.native.layout import ACCOUNT_PRECOMPILE, Account, Engine, NativeFrame
from fusevm.native.runtime.calls import (
    CALL,
    CALLCODE,
    begin_call,
    enter,
    set_up,
    start_of,
)
from fusevm.native.runtime.creations import begin_creation, counted_address, salted_address
from fusevm.native.runtime.destruction import self_destruct
from fusevm.native.runtime.frames import DONE, FRAME_SIZE
from fusevm.native.runtime.memory import BROKEN, FAILED, clamp
from fusevm.native.runtime.notes import (
    DESTROYED,
    DESTROYED_SIZE,
    HALTED,
    NO_REASON,
    NOWHERE,
    REASON_BALANCE,
    REASON_COLLISION,
    REASON_DEPTH,
    REASON_NONCE,
    REASON_OUT_OF_GAS,
    REASON_PRECOMPILE,
    SUCCEEDED,
    Begun,
    Destroyed,
    begin_meter,
    note_begun,
    note_called,
    note_ended,
    note_logs,
    room_for,
)
from fusevm.native.runtime.outside import ADDRESS_MASK, find_account
from fusevm.native.runtime.precompiles import call_precompile

CREATE = 4  # after the kinds of calls; CREATE2 is 5


@native
def call_precompile_noted(
    frame: NativeFrame, gas: u64, given: u64, account: Account, in_offset: u64, in_size: u64
) -> u64:
    """The input is noted before, since the output may be written over it."""
    engine = Engine(frame.engine)
    kind = engine.calling
    input_place: ptr = frame.memory + in_offset
    if note_called(frame, account, kind, u256(0), given, input_place, in_size) == 0:
        return BROKEN
    status = call_precompile(frame, gas, given, account, in_offset, in_size)
    if status != DONE:
        return status
    if engine.answer_size != FAILED:
        noted = note_ended(
            engine, SUCCEEDED, engine.answer_gas, NO_REASON, u64(NOWHERE), engine.output, engine.answer_size
        )  # fmt: skip
    else:
        reason: u64 = REASON_OUT_OF_GAS
        if engine.answer_gas != 0:
            reason = REASON_PRECOMPILE
        noted = note_ended(engine, HALTED, 0, reason, u64(NOWHERE), engine.output, 0)
    if noted == 0:
        return BROKEN
    return status


@native
def set_up_noted(
    frame: NativeFrame, child: NativeFrame, account: Account, runner: Account, value: u256, kind: u64
) -> None:
    """As `set_up`; that there was no room is seen afterwards."""
    set_up(frame, child, account, runner, value, kind)
    engine = Engine(frame.engine)
    given = child.gas + child.reserve
    if note_called(frame, account, kind, value, given, child.data, child.data_size) == 0:
        engine.calling = FAILED
        return
    begin_meter(engine, child.depth, given)


enter_noted = specialised(
    enter, "enter_noted", call_precompile=call_precompile_noted, set_up=set_up_noted
)  # fmt: skip
begin_call_here = specialised(begin_call, "begin_call_here", enter=enter_noted)


@native
def begin_call_noted(frame: NativeFrame, gas: u64, top: ptr, kind: u64, ip: ptr) -> u64:
    """CALL and the like; `frame.pc` is theirs."""
    engine = Engine(frame.engine)
    engine.calling = kind
    status = begin_call_here(frame, gas, top, kind, ip)
    if status != DONE:
        return status
    if engine.calling == FAILED:
        return BROKEN
    if engine.frame != frame:
        return DONE
    account = Account(find_account(engine, load(u256, top - 64) & ADDRESS_MASK))
    if account == 0:
        return BROKEN
    args: ptr = top - 64
    value = u256(0)
    if kind == CALL or kind == CALLCODE:  # noqa: SIM109
        args = top - 96
        value = load(u256, args)
    if (account.flags & ACCOUNT_PRECOMPILE) != 0 and frame.depth < CALL_DEPTH_LIMIT:
        return DONE  # is noted
    if note_answered(engine, frame, top, args, account, kind, value) == 0:
        return BROKEN
    return DONE


@native
def note_answered(
    engine: Engine, frame: NativeFrame, top: ptr, args: ptr, account: Account, kind: u64, value: u256
) -> u64:
    """A call that ran no code: all its gas came back. Whether there was room."""
    stipend: u64 = 0
    if value != 0:
        stipend = engine.call_stipend
    given = most_given(engine, frame.gas + frame.reserve - stipend)
    requested = load(u256, top - 32)
    if requested < u256(given):
        given = u64(requested)
    given += stipend
    data: ptr = frame.memory + start_of(args - 32)
    size = clamp(load(u256, args - 64))
    if note_called(frame, account, kind, value, given, data, size) == 0:
        return 0
    if load(u256, frame.sp - 32) != 0:
        return note_ended(engine, SUCCEEDED, given, NO_REASON, u64(NOWHERE), data, 0)
    reason: u64 = REASON_BALANCE
    if frame.depth >= CALL_DEPTH_LIMIT:
        reason = REASON_DEPTH
    return note_ended(engine, HALTED, given, reason, u64(NOWHERE), data, 0)


@native
def begin_creation_noted(frame: NativeFrame, gas: u64, top: ptr, salted: u64, ip: ptr) -> u64:
    """CREATE and CREATE2; `frame.pc` is theirs. The answer is written over one of the operands."""
    engine = Engine(frame.engine)
    maker = Account(find_account(engine, frame.address))
    if maker == 0:
        return BROKEN
    nonce = maker.nonce
    value = load(u256, top - 32)
    size = clamp(load(u256, top - 96))
    salt = u256(0)
    if salted != 0:
        salt = load(u256, top - 128)
    status = begin_creation(frame, gas, top, salted, ip)
    if status != DONE:
        return status
    offset = clamp(load(u256, top - 64))
    if size == 0:
        offset = 0
    start: ptr = frame.memory + offset
    child = NativeFrame(engine.frame)
    began = u64(child != frame)
    given = most_given(engine, frame.gas + frame.reserve)
    address = u256(0)
    reason: u64 = NO_REASON
    if began != 0:
        given = child.gas + child.reserve
        address = child.address
    elif maker.nonce != nonce:
        child = NativeFrame(frame + FRAME_SIZE)
        given = child.gas + child.reserve
        reason = REASON_COLLISION
        address = counted_address(frame.address, nonce)
        if salted != 0:
            address = salted_address(frame.address, salt, start, size)
    elif frame.depth >= CALL_DEPTH_LIMIT:
        reason = REASON_DEPTH
    elif maker.balance < value:
        reason = REASON_BALANCE
    else:
        reason = REASON_NONCE
    note = Begun(note_begun(engine, salted + CREATE, frame.depth + 1, frame.pc, given, start, size))
    if note == 0:
        return BROKEN
    note.static = 0
    note.caller = frame.address
    note.address = address
    note.code_address = address
    note.delegate = u256(0)
    note.value = value
    if began != 0:
        begin_meter(engine, child.depth, given)
        return DONE
    left = given
    if reason == REASON_COLLISION:
        left = 0
    if note_ended(engine, HALTED, left, reason, u64(NOWHERE), start, 0) == 0:
        return BROKEN
    return DONE


@native
def self_destruct_noted(frame: NativeFrame, gas: u64, top: ptr, kind: u64, ip: ptr) -> u64:
    engine = Engine(frame.engine)
    own = Account(find_account(engine, frame.address))
    if own == 0:
        return BROKEN
    balance = own.balance
    status = self_destruct(frame, gas, top, kind, ip)
    if status != DONE:
        return status
    if note_logs(engine) == 0:
        return BROKEN
    note = Destroyed(room_for(engine, DESTROYED_SIZE))
    if note == 0:
        return BROKEN
    note.tag = DESTROYED
    note.depth = frame.depth + 1
    note.pc = frame.pc
    note.address = frame.address
    note.heir = load(u256, top - 32) & ADDRESS_MASK
    note.value = balance
    return DONE
