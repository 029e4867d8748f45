"""Storage, transient storage and the journal that undoes what a frame changed. In the subset of `lang`."""

from __future__ import annotations

from fusevm.evm.gas import cold_slot_cost, sstore_cost, sstore_is_starved, sstore_refund
from fusevm.native.lang import (
    call_pointer,
    exported,
    inlined,
    load,
    native,
    outlined,
    ptr,
    slt,
    store,
    u32,
    u64,
    u256,
    unlikely,
)
from fusevm.native.layout import (
    ACCOUNT_CODED,
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DIRTY,
    ACCOUNT_ENSURED,
    ACCOUNT_ENTRY,
    ACCOUNT_WARM,
    BALANCE_ENTRY,
    CREATION_ENTRY,
    NONCE_ENTRY,
    SLOT_DIRTY,
    SLOT_WARM,
    TRANSIENT,
    Account,
    Engine,
    NativeFrame,
    SlotChange,
    StorageSlot,
    Undo,
)
from fusevm.native.runtime.index import Index, clear, first_in, folded, link
from fusevm.native.runtime.memory import BROKEN, CAPPED, FAILED, STATIC, charge

SLOT_SIZE = StorageSlot.byte_size()
UNDO_SIZE = Undo.byte_size()
CHANGE_SIZE = SlotChange.byte_size()
SLOTS_AT_HAND = 1 << 14
HINTS = 1 << 12  # a power of two
MANY = 1 << 15  # entries of a table from which on it is heavy


@inlined
def hash_key(engine: Engine, account: u64, key: u256) -> u64:
    """Products of secrets and halves of the key: keys that collide cannot be searched for."""
    low = folded(u64(key) ^ engine.secret_0, u64(key >> 64) ^ engine.secret_1)
    high = folded(u64(key >> 128) ^ engine.secret_2, u64(key >> 192) ^ engine.secret_3)
    return folded(low ^ engine.secret_1, high ^ account ^ engine.secret_2)


@inlined
def hint_for(engine: Engine, account: u64, key: u256) -> ptr:
    """Where the number of the slot is noted that such a key was found in last."""
    return engine.slot_hints + (((u64(key) ^ (account << 5)) & (HINTS - 1)) << 2)


@inlined
def hinted_slot(engine: Engine, account: u64, key: u256) -> ptr:
    """The slot, if it was found lately; else nothing. A hint may be wrong: what it leads to is compared whole."""
    number = u64(load(u32, hint_for(engine, account, key)))
    if number < engine.slot_count:
        slot = StorageSlot(engine.slots + number * SLOT_SIZE)
        if slot.key == key and slot.account == account:
            return slot
    return 0


@native
def find_slot(frame: NativeFrame, account: u64, key: u256) -> ptr:
    """The slot. One that is not known yet is loaded after the last, for `keep_slot` to keep once it is paid for.

    Nothing where Python cannot load it, or the table is full.
    """
    engine = Engine(frame.engine)
    hinted: ptr = hinted_slot(engine, account, key)
    if hinted != 0:
        return hinted
    hashed = hash_key(engine, account, key)
    number = first_in(Index(engine.slot_index), hashed)
    while number != 0:
        slot = StorageSlot(engine.slots + (number - 1) * SLOT_SIZE)
        if slot.key == key and slot.account == account:
            store(hint_for(engine, account, key), 0, u32(number - 1))
            return slot
        number = slot.next
    if engine.slot_count >= engine.slot_limit:
        return 0
    fresh = StorageSlot(engine.slots + engine.slot_count * SLOT_SIZE)
    fresh.hash = hashed
    fresh.account = account
    fresh.key = key
    fresh.flags = 0
    fresh.value = u256(0)
    fresh.original = u256(0)
    known = frame.blank
    if (account & TRANSIENT) != 0:
        known = u64(engine.carries == 0)
    if known == 0 and call_pointer(u64, engine.load_slot, fresh) != 0:
        return 0
    return fresh


@exported
def known_slot(engine: Engine, account: u64, key: ptr) -> ptr:
    """A slot that is kept, or nothing."""
    wanted = load(u256, key)
    number = first_in(Index(engine.slot_index), hash_key(engine, account, wanted))
    while number != 0:
        slot = StorageSlot(engine.slots + (number - 1) * SLOT_SIZE)
        if slot.key == wanted and slot.account == account:
            return slot
        number = slot.next
    return 0


@inlined
def keep_slot(engine: Engine, slot: StorageSlot) -> None:
    if u64(slot) - u64(engine.slots) == engine.slot_count * SLOT_SIZE:
        link(Index(engine.slot_index), engine.slot_count, slot.hash)
        engine.slot_count += 1
        if unlikely(engine.slot_count >= MANY):
            engine.heavy = 1


@inlined
def record(engine: Engine, slot: StorageSlot) -> None:
    """Writes an undo entry with the slot's current state."""
    entry = Undo(engine.journal + engine.journal_count * UNDO_SIZE)
    entry.slot = u64(slot) - u64(engine.slots)
    entry.flags = slot.flags
    entry.value = slot.value
    engine.journal_count += 1


@inlined
def account_entry(engine: Engine, account: Account, kind: u64) -> ptr:
    """A journal entry about an account, its old value still to be written."""
    entry = Undo(engine.journal + engine.journal_count * UNDO_SIZE)
    entry.slot = u64(account) - u64(engine.accounts) + kind
    engine.journal_count += 1
    return entry


@inlined
def journal_full(engine: Engine) -> u64:
    if unlikely(engine.journal_count >= MANY):
        engine.heavy = 1
    return u64(engine.journal_count >= engine.journal_limit)


@native
def mark_dirty(engine: Engine, account: Account) -> None:
    """Adds the account to the dirty list, for Python to learn."""
    if (account.flags & ACCOUNT_DIRTY) == 0:
        account.flags = account.flags | ACCOUNT_DIRTY
        store(engine.dirty, engine.dirty_count << 3, u64(account) - u64(engine.accounts))
        engine.dirty_count += 1


@exported
def revert_to(engine: Engine, mark: u64) -> None:
    """Undoes the journal down to a mark."""
    while engine.journal_count > mark:
        engine.journal_count -= 1
        entry = Undo(engine.journal + engine.journal_count * UNDO_SIZE)
        if entry.slot < ACCOUNT_ENTRY:
            slot = StorageSlot(engine.slots + entry.slot)
            slot.flags = entry.flags
            slot.value = entry.value
        else:
            undo_account(engine, entry)


@native
def undo_account(engine: Engine, entry: Undo) -> None:
    account = Account(engine.accounts + (entry.slot & (ACCOUNT_ENTRY - 1)))
    if entry.slot < BALANCE_ENTRY:
        undone = (account.flags ^ entry.flags) & (ACCOUNT_WARM | ACCOUNT_DESTROYED | ACCOUNT_ENSURED)
        account.flags = account.flags ^ undone
        if (undone & ACCOUNT_ENSURED) != 0:
            account.epoch = engine.call_epoch  # Python will say what it is without
        if (undone & (ACCOUNT_DESTROYED | ACCOUNT_ENSURED)) != 0:
            mark_dirty(engine, account)
        return
    if entry.slot < NONCE_ENTRY:
        account.balance = entry.value
        if entry.value == 0:
            # A payment may have created it. If it was described since, as after a creation there that was undone, it
            # reads as alive: Python must say what it is without the payment.
            account.epoch = engine.call_epoch
    else:
        account.nonce = entry.flags
    if entry.slot >= CREATION_ENTRY:
        account.flags = account.flags & ~(ACCOUNT_CREATED | ACCOUNT_CODED)
        account.epoch = engine.call_epoch  # Python will say what it is without
    mark_dirty(engine, account)


@exported
def commit(engine: Engine) -> None:
    """The call has succeeded: changed slots are copied for Python, and all are as the next call must find them.

    Every slot that is warm or changed has a journal entry. Where `changes` is full, Python takes them and comes back.
    """
    engine.change_count = 0
    while engine.committed < engine.journal_count:
        entry = Undo(engine.journal + engine.committed * UNDO_SIZE)
        if entry.slot < ACCOUNT_ENTRY:
            slot = StorageSlot(engine.slots + entry.slot)
            if (slot.account & TRANSIENT) != 0:
                slot.value = u256(0)
            elif (slot.flags & SLOT_DIRTY) != 0:
                if engine.change_count >= engine.change_limit:
                    return
                change = SlotChange(engine.changes + engine.change_count * CHANGE_SIZE)
                change.account = slot.account
                change.key = slot.key
                change.value = slot.value
                engine.change_count += 1
                slot.original = slot.value
            slot.flags = 0
        engine.committed += 1
    engine.journal_count = 0


@native
def forget(engine: Engine) -> None:
    """Empties the slot table and the journal."""
    clear(Index(engine.slot_index), engine.slot_count)
    engine.slot_count = 0
    engine.journal_count = 0


@native
def storage_load(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    """What was found lately and is warm costs no more than its static gas."""
    engine = Engine(frame.engine)
    slot = StorageSlot(hinted_slot(engine, frame.account, key))
    if slot != 0 and ((slot.flags & SLOT_WARM) != 0 or engine.access_sets == 0):
        store(out, 0, slot.value)
        return gas
    return load_from_table(frame, gas, key, out)


@outlined
def load_from_table(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    engine = Engine(frame.engine)
    slot = StorageSlot(find_slot(frame, frame.account, key))
    if slot == 0:
        return BROKEN
    if engine.access_sets != 0 and (slot.flags & SLOT_WARM) == 0:
        gas = charge(frame, gas, cold_slot_cost(engine))
        if slt(gas, 0):
            return gas
        if journal_full(engine) != 0:
            return CAPPED
        keep_slot(engine, slot)
        record(engine, slot)
        slot.flags = slot.flags | SLOT_WARM
    elif engine.slot_count < SLOTS_AT_HAND:  # without access sets, slots that were only read are a cache
        keep_slot(engine, slot)
    store(out, 0, slot.value)
    return gas


@native
def storage_store(frame: NativeFrame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    if frame.static != 0:
        return STATIC
    if sstore_is_starved(engine, gas + frame.reserve):
        return FAILED
    slot = StorageSlot(find_slot(frame, frame.account, key))
    if slot == 0:
        return BROKEN
    current = slot.value
    original = slot.original
    cold = u64(engine.access_sets != 0 and (slot.flags & SLOT_WARM) == 0)
    refund = sstore_refund(engine, original, current, value)
    gas = charge(frame, gas, sstore_cost(engine, original, current, value, cold))
    if slt(gas, 0):
        return gas
    engine.refund += refund
    if cold == 0 and current == value:
        return gas
    if journal_full(engine) != 0:
        return CAPPED
    keep_slot(engine, slot)
    record(engine, slot)
    slot.flags = slot.flags | (SLOT_WARM | SLOT_DIRTY)
    slot.value = value
    return gas


@native
def transient_load(frame: NativeFrame, gas: u64, key: u256, out: ptr) -> u64:
    slot = StorageSlot(find_slot(frame, frame.account | TRANSIENT, key))
    if slot == 0:
        return CAPPED
    store(out, 0, slot.value)
    return gas


@native
def transient_store(frame: NativeFrame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    if frame.static != 0:
        return STATIC
    slot = StorageSlot(find_slot(frame, frame.account | TRANSIENT, key))
    if slot == 0:
        return CAPPED
    if slot.value == value:
        return gas
    if journal_full(engine) != 0:
        return CAPPED
    keep_slot(engine, slot)
    record(engine, slot)
    slot.value = value
    return gas
