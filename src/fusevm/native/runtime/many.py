"""Native code for many calls from outside: one after another, until one needs Python. In the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import copy, exported, inlined, load, native, u32, u64
from fusevm.native.layout import (
    ACCOUNT_DIRTY,
    Account,
    Call,
    CallOutcome,
    Engine,
    Many,
    NativeFrame,
    SlotChange,
    Status,
    StorageSlot,
)
from fusevm.native.runtime.calls import call_with, empty_tables
from fusevm.native.runtime.storage import CHANGE_SIZE, find_slot, keep_slot, revert_to

REVERT = Status.REVERT
CALL_SIZE = Call.byte_size()
OUTCOME_SIZE = CallOutcome.byte_size()
BETWEEN = 1 << 8  # no call is running: all before `place` have ended, and their outcomes are written
REFUSED = BETWEEN + 1  # the call at `place` never was: Python must do it


@exported
def call_many(many: Many) -> u64:
    """Runs calls until the last, or until Python must check signals or handle a call: then returns its status.

    What such a call changed is still in the tables, as after `call`; its outcome is not written.
    """
    engine = Engine(many.engine)
    spent: u64 = 0
    while many.place < many.end and spent < many.gas:
        given = Call(many.calls)
        if u64(many.kinds) != 0:
            given = Call(many.calls + u64(load(u32, many.kinds, many.place << 2)) * CALL_SIZE)
        size = many.size
        if u64(many.sizes) != 0:
            size = load(u64, many.sizes, many.place << 3)
        empty_tables(engine, many.fresh)
        many.fresh = 0
        overridden: u64 = 0
        if u64(many.override_ends) != 0:
            overridden = load(u64, many.override_ends, many.place << 3)
            if override(engine, many, overridden) == 0:
                return REFUSED
        status = call_with(given, many.data, size)
        kept = u64(status < REVERT and given.keep != 0)
        simple = u64(status <= REVERT and is_simple(engine, many, kept) != 0)
        if overridden > many.override:
            if simple == 0:
                revert_to(engine, 0)
            take_back(engine, many, overridden)
            if simple == 0:
                return REFUSED
            many.override = overridden
        if simple == 0:
            return status
        spent += write_outcome(engine, many, given, status)
        if kept != 0:
            copy(many.changes + many.change_count * CHANGE_SIZE, engine.changes, engine.change_count * CHANGE_SIZE)
            many.change_count += engine.change_count
        many.data = many.data + size
        many.place += 1
    return BETWEEN


@native
def is_simple(engine: Engine, many: Many, kept: u64) -> u64:
    """Whether everything that a call left is in its outcome and among the changes, and there is room for it.

    Accounts that an undone call moved are as they were, and Python was never told.
    """
    if engine.heavy != 0 or engine.wanted != 0 or engine.change_count >= engine.change_limit:
        return 0
    if engine.dirty_count != 0:
        if kept != 0:
            return 0
        forget_moved(engine)
    if many.output_size + engine.output_size > many.output_limit:
        return 0
    if many.log_size + engine.log_size > many.log_limit:
        return 0
    return u64(kept == 0 or many.change_count + engine.change_count < many.change_limit)


@native
def forget_moved(engine: Engine) -> None:
    """Of accounts that moved and moved back: the next call asks Python what they are."""
    number: u64 = 0
    while number < engine.dirty_count:
        account = Account(engine.accounts + load(u64, engine.dirty, number << 3))
        account.flags = account.flags & ~ACCOUNT_DIRTY
        account.epoch = 0
        number += 1
    engine.dirty_count = 0


@inlined
def write_outcome(engine: Engine, many: Many, given: Call, status: u64) -> u64:
    """Writes output, logs and outcome of the call that just ended; the gas it has used."""
    frame = NativeFrame(engine.frames)
    size = engine.output_size
    if size != 0:
        copy(many.outputs + many.output_size, frame.memory + engine.output_offset, size)
        many.output_size += size
    size = engine.log_size
    if size != 0:
        copy(many.logs + many.log_size, engine.logs, size)
        many.log_size += size
    outcome = CallOutcome(many.outcomes + many.place * OUTCOME_SIZE)
    used = given.gas + given.reserve - engine.gas_left
    outcome.reverted = u64(status == REVERT)
    outcome.gas_used = used
    outcome.refund = engine.refund
    if engine.refund != 0:
        many.refunds += 1
    outcome.output_end = many.output_base + many.output_size
    outcome.log_end = many.log_base + many.log_size
    return used


@native
def override(engine: Engine, many: Many, end: u64) -> u64:
    """Gives slots the values they have for the next call, and keeps their own; whether all of them could be had."""
    frame = NativeFrame(engine.frames)
    frame.engine = many.engine
    frame.blank = 0
    number = many.override
    while number < end:
        change = SlotChange(many.overrides + number * CHANGE_SIZE)
        slot = StorageSlot(find_slot(frame, change.account, change.key))
        if slot == 0:
            take_back(engine, many, number)
            return 0
        keep_slot(engine, slot)
        exchange(slot, change)
        number += 1
    return 1


@native
def take_back(engine: Engine, many: Many, end: u64) -> None:
    """The slots that were overridden have their own values again."""
    frame = NativeFrame(engine.frames)
    number = end
    while number > many.override:
        number -= 1
        change = SlotChange(many.overrides + number * CHANGE_SIZE)
        exchange(StorageSlot(find_slot(frame, change.account, change.key)), change)


@inlined
def exchange(slot: StorageSlot, change: SlotChange) -> None:
    value = slot.value
    slot.value = change.value
    slot.original = change.value
    change.value = value
