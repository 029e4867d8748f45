"""What a recording runs in the place of the same functions without `noted`: they do the same, and note it.

In the subset of `lang`. A note is written once the thing has happened, and before what follows from it.
"""

from __future__ import annotations

from fusevm.evm.gas import deposit_cost, most_given
from fusevm.evm.limits import CALL_DEPTH_LIMIT
from fusevm.native.lang import (
    call_pointer,
    exported,
    inlined,
    load,
    native,
    ptr,
    slt,
    specialised,
    u8,
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_DELEGATED,
    ACCOUNT_PRECOMPILE,
    Account,
    Engine,
    NativeFrame,
    Status,
    Undo,
)
from fusevm.native.runtime.calls import (
    CALL,
    CALLCODE,
    DELEGATECALL,
    IDENTITY,
    STATICCALL,
    begin_call,
    call,
    call_precompile,
    call_with,
    end_call,
    enter,
    set_up,
    start_of,
)
from fusevm.native.runtime.creations import begin_creation, counted_address, end_creation, salted_address
from fusevm.native.runtime.destruction import self_destruct
from fusevm.native.runtime.frames import DONE, FRAME_SIZE
from fusevm.native.runtime.memory import BROKEN, FAILED, clamp, hash_memory
from fusevm.native.runtime.notes import (
    DESTROYED,
    DESTROYED_SIZE,
    FEW_LOGS,
    HALTED,
    NOWHERE,
    READ,
    READ_TRANSIENT,
    REVERTED,
    SUCCEEDED,
    WRITTEN,
    WRITTEN_TRANSIENT,
    Begun,
    Destroyed,
    begin_meter,
    end_meter,
    note_begun,
    note_ended,
    note_hash,
    note_logs,
    note_read,
    note_undone,
    note_written,
    room_for,
)
from fusevm.native.runtime.outside import ADDRESS_MASK, find_account
from fusevm.native.runtime.plain import land, write_on
from fusevm.native.runtime.storage import UNDO_SIZE, storage_load, storage_store, transient_load, transient_store

CREATE, CREATE2 = 4, 5  # after the kinds of calls
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
) = range(9)  # Python's list goes on with others
STOP, RETURN, REVERT, OUT_OF_GAS, INVALID_JUMP, CALLING, MORE, CAP, ERROR = (
    Status.STOP,
    Status.RETURN,
    Status.REVERT,
    Status.OUT_OF_GAS,
    Status.INVALID_JUMP,
    Status.CALLING,
    Status.MORE,
    Status.CAP,
    Status.ERROR,
)


# -- storage and hashes -----------------------------------------------------------------------------------------------


@native
def storage_load_noted(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    gas = storage_load(frame, gas, key, out)
    if not slt(gas, 0) and note_read(Engine(frame.engine), READ, key, load(u256, out)) == 0:
        return BROKEN
    return gas


@native
def transient_load_noted(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    gas = transient_load(frame, gas, key, out)
    if not slt(gas, 0) and note_read(Engine(frame.engine), READ_TRANSIENT, key, load(u256, out)) == 0:
        return BROKEN
    return gas


@inlined
def overwritten(engine: Engine, mark: u64, value: u256) -> u256:
    """What a write has replaced: the journal knows, unless nothing changed."""
    if engine.journal_count == mark:
        return value
    return Undo(engine.journal + (engine.journal_count - 1) * UNDO_SIZE).value


@native
def storage_store_noted(frame: NativeFrame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    mark = engine.journal_count
    gas = storage_store(frame, gas, key, value)
    if not slt(gas, 0) and note_written(engine, WRITTEN, key, value, overwritten(engine, mark, value)) == 0:
        return BROKEN
    return gas


@native
def transient_store_noted(frame: NativeFrame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    mark = engine.journal_count
    gas = transient_store(frame, gas, key, value)
    if not slt(gas, 0) and note_written(engine, WRITTEN_TRANSIENT, key, value, overwritten(engine, mark, value)) == 0:
        return BROKEN
    return gas


@native
def hash_memory_noted(frame: NativeFrame, gas: u64, offset: u256, size: u256, out: ptr) -> u64:
    gas = hash_memory(frame, gas, offset, size, out)
    if not slt(gas, 0) and note_hash(frame, clamp(offset), clamp(size), load(u256, out)) == 0:
        return BROKEN
    return gas


# -- calls ------------------------------------------------------------------------------------------------------------


@native
def describe(note: Begun, frame: NativeFrame, account: Account, kind: u64, value: u256) -> None:
    """Who is called from a frame, and how: as `set_up` has it."""
    note.static = frame.static
    note.caller = frame.address
    note.address = account.address
    note.code_address = account.address
    note.delegate = u256(0)
    note.value = value
    if (account.flags & ACCOUNT_DELEGATED) != 0:
        note.delegate = account.delegate
    if kind == STATICCALL:
        note.static = 1
    if kind == DELEGATECALL or kind == CALLCODE:  # noqa: SIM109
        note.address = frame.address
    if kind == DELEGATECALL:
        note.caller = frame.caller
        note.value = frame.value


@native
def call_precompile_noted(
    frame: NativeFrame, gas: u64, given: u64, account: Account, in_offset: u64, in_size: u64
) -> u64:
    """The input is noted before, since the output may be written over it."""
    engine = Engine(frame.engine)
    kind = engine.calling
    input_place: ptr = frame.memory + in_offset
    note = Begun(note_begun(engine, kind, frame.depth + 1, frame.pc, given, input_place, in_size))
    if note == 0:
        return BROKEN
    describe(note, frame, account, kind, u256(0))
    status = call_precompile(frame, gas, given, account, in_offset, in_size)
    if status != DONE:
        return status
    if engine.answer_size != FAILED:
        noted = note_ended(
            engine, SUCCEEDED, engine.answer_gas, NO_REASON, u64(NOWHERE), engine.output, engine.answer_size
        )  # fmt: skip
    else:
        reason: u64 = REASON_OUT_OF_GAS
        if account.address != IDENTITY and engine.answer_gas != 0:
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
    note = Begun(note_begun(engine, kind, child.depth, frame.pc, given, child.data, child.data_size))
    if note == 0:
        engine.calling = FAILED
        return
    describe(note, frame, account, kind, value)
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
    note = Begun(note_begun(engine, kind, frame.depth + 1, frame.pc, given, data, size))
    if note == 0:
        return 0
    describe(note, frame, account, kind, value)
    if load(u256, frame.sp - 32) != 0:
        return note_ended(engine, SUCCEEDED, given, NO_REASON, u64(NOWHERE), data, 0)
    reason: u64 = REASON_BALANCE
    if frame.depth >= CALL_DEPTH_LIMIT:
        reason = REASON_DEPTH
    return note_ended(engine, HALTED, given, reason, u64(NOWHERE), data, 0)


# -- creations --------------------------------------------------------------------------------------------------------


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


# -- frames that end --------------------------------------------------------------------------------------------------


@native
def note_end(engine: Engine, frame: NativeFrame, status: u64) -> u64:
    """A frame that stopped, returned or reverted; whether there was room."""
    size = frame.output_size
    how: u64 = SUCCEEDED
    pc: u64 = NOWHERE
    if status == STOP:
        size = 0
    if status == REVERT:
        how = REVERTED
        pc = frame.pc
    left = frame.gas + frame.reserve
    return note_ended(engine, how, left, NO_REASON, pc, frame.memory + frame.output_offset, size)


@native
def end_creation_noted(engine: Engine, child: NativeFrame, status: u64) -> u64:
    """As `end_creation`."""
    if note_logs(engine) == 0:
        return ERROR
    logs = engine.log_size
    size = child.output_size
    if status == STOP:
        size = 0
    before = child.gas + child.reserve
    source: ptr = child.memory + child.output_offset
    ended = end_creation(engine, child, status)
    if ended == CAP or ended == ERROR:  # noqa: SIM109
        return ended
    if ended >= REVERT:  # the logs are undone, but still there
        engine.log_size = logs
        noted = note_undone(engine, child.log_mark)
        engine.log_size = child.log_mark
        if noted == 0:
            return ERROR
    left = child.gas + child.reserve
    how: u64 = SUCCEEDED
    reason: u64 = NO_REASON
    pc: u64 = NOWHERE
    if status == REVERT:
        how = REVERTED
        pc = child.pc
    elif ended > REVERT:
        how = HALTED
        pc = child.pc
        reason = REASON_TOO_LARGE
        if engine.rejects_ef_code != 0 and u64(load(u8, source)) == 0xEF:
            reason = REASON_EF
        elif deposit_cost(engine, size) > before:
            reason = REASON_OUT_OF_GAS
        size = 0
    end_meter(engine, child.depth, left)
    if note_ended(engine, how, left, reason, pc, source, size) == 0:
        return ERROR
    return STOP


@exported
def run_noted(engine: Engine) -> u64:
    """As `run`, except that Python sees every frame that halts."""
    while True:
        frame = NativeFrame(engine.frame)
        status = call_pointer(u64, engine.enter, frame)
        if status == CALLING:
            continue
        if status == INVALID_JUMP and frame.schedule == engine.plain_words:
            status = land(engine, frame)
        elif status == MORE:
            status = write_on(engine, frame)
        if status == CALLING:
            continue
        if status > REVERT or frame.in_python != 0 or frame.depth == 0:
            return status
        if frame.creates == 0:
            if status == REVERT and note_undone(engine, frame.log_mark) == 0:
                return ERROR
            left = frame.gas + frame.reserve
            end_call(engine, frame, status)
            if note_end(engine, frame, status) == 0:
                return ERROR
            end_meter(engine, frame.depth, left)
        else:
            status = end_creation_noted(engine, frame, status)
            if status != STOP:
                return status


@exported
def halt_noted(engine: Engine) -> u64:
    """Ends the running frame, which halted and is not Python's; Python has noted it. Not STOP: it cannot be done."""
    frame = NativeFrame(engine.frame)
    if note_undone(engine, frame.log_mark) == 0:
        return ERROR
    status: u64 = STOP
    if frame.creates == 0:
        end_call(engine, frame, OUT_OF_GAS)
    else:
        ended = end_creation(engine, frame, OUT_OF_GAS)
        if ended == CAP or ended == ERROR:  # noqa: SIM109
            status = ended
    end_meter(engine, frame.depth, 0)
    return status


@native
def run_first_noted(engine: Engine) -> u64:
    """The first frame of a call from outside, from its beginning on."""
    engine.note_start = engine.note_size
    engine.noted_logs = 0
    engine.noted_key = u256(0)
    engine.older_key = u256(0)
    frame = NativeFrame(engine.frame)
    gas = frame.gas + frame.reserve
    note = Begun(note_begun(engine, CALL, 0, u64(NOWHERE), gas, frame.data, frame.data_size))
    if note == 0:
        return ERROR
    note.static = frame.static
    note.caller = frame.caller
    note.address = frame.address
    note.code_address = frame.address
    note.delegate = engine.first_delegate
    note.value = frame.value
    begin_meter(engine, 0, gas)
    status = run_noted(engine)
    if status <= REVERT:
        if (status == REVERT or engine.log_size <= FEW_LOGS) and note_undone(engine, 0) == 0:
            return ERROR
        engine.noted_logs = engine.log_size
        if note_end(engine, frame, status) == 0:
            return ERROR
        end_meter(engine, 0, frame.gas + frame.reserve)
    return status


call_with_noted = specialised(call_with, "call_with_noted", run=run_first_noted)
call_noted = specialised(call, "call_noted", call_with=call_with_noted)
