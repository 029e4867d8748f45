"""Frames for recordings: how a call from outside begins, and how frames end, noted. In the subset of `lang`.

What frames do is noted by the functions of `noted_calls` and `noted_storage`: a note is written once the thing has
happened, and before what follows from it.
"""

from __future__ import annotations

from fusevm.evm.gas import deposit_cost
from fusevm.native.lang import call_pointer, exported, load, native, ptr, specialised, u8, u64, u256
from fusevm.native.layout import Engine, NativeFrame, Status
from fusevm.native.runtime.calls import CALL, call, call_with, end_call
from fusevm.native.runtime.creations import end_creation
from fusevm.native.runtime.notes import (
    FEW_LOGS,
    HALTED,
    NO_REASON,
    NOWHERE,
    REASON_EF,
    REASON_OUT_OF_GAS,
    REASON_TOO_LARGE,
    REVERTED,
    SUCCEEDED,
    Begun,
    begin_meter,
    end_meter,
    note_begun,
    note_ended,
    note_logs,
    note_undone,
)
from fusevm.native.runtime.plain import land, write_on

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
