"""The native runtime: memory growth, copies, storage with its journal. Written in the subset of `lang`.

Functions that can run out of gas take the gas and return what is left; OUT_OF_GAS, as a negative number, says there
was not enough. Gas is handed out in slices, so what is short may still be in the frame's reserve.
"""

from __future__ import annotations

from fusevm.native.index import Index, clear, first_in, link
from fusevm.native.keccak import keccak256_word
from fusevm.native.lang import (
    bswap,
    call_pointer,
    clz,
    copy,
    exported,
    fill,
    inlined,
    load,
    native,
    ptr,
    slt,
    store,
    u8,
    u64,
    u128,
    u256,
    unlikely,
)
from fusevm.native.layout import (
    ACCOUNT_CODED,
    ACCOUNT_CREATED,
    ACCOUNT_DESTROYED,
    ACCOUNT_DIRTY,
    ACCOUNT_ENTRY,
    ACCOUNT_WARM,
    BALANCE_ENTRY,
    CREATION_ENTRY,
    FRAME_MEMORY,
    NONCE_ENTRY,
    SLOT_DIRTY,
    SLOT_WARM,
    TRANSIENT,
    Account,
    Engine,
    Frame,
    Slot,
    Undo,
)

FAILED = (1 << 64) - 1  # less than zero as a signed number: out of gas
CAPPED = (1 << 64) - 2  # one of the engine's own limits
BROKEN = (1 << 64) - 3  # a callback failed
STATIC = (1 << 64) - 4  # a write in a static call
BOUNDS = (1 << 64) - 5  # past the end of return data

HUGE = 1 << 42  # no offset or size from here on can be paid for, not even with all of 64 bits of gas
SLOT_SIZE = Slot.byte_size()
UNDO_SIZE = Undo.byte_size()
SSTORE_SET = 20_000
SLOTS_AT_HAND = 1 << 14
HASHED_IN_SLICE = 1 << 19  # words: 0.04 s
MANY = 1 << 15  # entries of a table from which on it is heavy
STIPEND = 2_300


@inlined
def charge(frame: Frame, gas: u64, amount: u64) -> u64:
    """The gas left, from the reserve if need be."""
    if unlikely(gas < amount):
        missing = amount - gas
        if missing > frame.reserve:
            return FAILED
        frame.reserve -= missing
        return 0
    return gas - amount


@inlined
def hasten(frame: Frame, gas: u64, words: u64) -> u64:
    """Ends the slice, its gas going back to the reserve, once much was hashed: that takes longer than its gas."""
    engine = Engine(frame.engine)
    engine.hashed += words
    if unlikely(engine.hashed > HASHED_IN_SLICE):
        engine.hashed = 0
        frame.reserve += gas
        return 0
    return gas


@inlined
def clamp(word: u256) -> u64:
    """An offset or size as 64 bits; what does not fit is huge in any case."""
    if unlikely((word >> 64) != 0):
        return HUGE
    low = u64(word)
    if unlikely(low > HUGE):
        return HUGE
    return low


@inlined
def memory_cost(words: u64) -> u128:
    return u128(words) * 3 + ((u128(words) * u128(words)) >> 9)


@native
def grow(frame: Frame, gas: u64, offset: u64, size: u64) -> u64:
    """Pays for memory up to offset + size and clears what is new."""
    if size == 0:
        return gas
    end = offset + size
    if end <= frame.memory_size:
        return gas
    if end >= HUGE:
        return FAILED
    words = (end + 31) >> 5
    cost = memory_cost(words) - memory_cost(frame.memory_size >> 5)
    if (cost >> 64) != 0:
        return FAILED
    gas = charge(frame, gas, u64(cost))
    if slt(gas, 0):
        return gas
    engine = Engine(frame.engine)
    new_size = words << 5
    if u64(frame.memory) + new_size > u64(engine.memory_light):
        if new_size > FRAME_MEMORY or u64(frame.memory) + new_size > u64(engine.memory_end):
            return CAPPED
        engine.heavy = 1
    fill(frame.memory + frame.memory_size, 0, new_size - frame.memory_size)
    frame.memory_size = new_size
    frame.load_limit = new_size - 31
    return gas


@inlined
def word_count(size: u64) -> u64:
    return (size + 31) >> 5


@native
def hash_memory(frame: Frame, gas: u64, offset: u256, size: u256, out: ptr) -> u64:
    """KECCAK256, its dynamic gas included."""
    length = clamp(size)
    start = clamp(offset)
    gas = charge(frame, gas, word_count(length) * 6)
    if slt(gas, 0):
        return gas
    gas = grow(frame, gas, start, length)
    if slt(gas, 0):
        return gas
    if length == 0:
        start = 0
    store(out, 0, keccak256_word(frame.memory + start, length))
    return hasten(frame, gas, word_count(length))


@native
def copy_padded(frame: Frame, gas: u64, to: u256, start: u256, size: u256, source: ptr, available: u64) -> u64:
    """CALLDATACOPY and CODECOPY: zeros past the source's end."""
    length = clamp(size)
    target = clamp(to)
    gas = charge(frame, gas, word_count(length) * 3)
    if slt(gas, 0):
        return gas
    gas = grow(frame, gas, target, length)
    if slt(gas, 0):
        return gas
    if length == 0:
        return gas
    begin = clamp(start)
    if begin > available:
        begin = available
    there = available - begin
    if there > length:
        there = length
    copy(frame.memory + target, source + begin, there)
    fill(frame.memory + target + there, 0, length - there)
    return gas


@native
def copy_returned(frame: Frame, gas: u64, to: u256, start: u256, size: u256) -> u64:
    """RETURNDATACOPY: reading past the end halts."""
    if clamp(start) + clamp(size) > frame.returned_size:
        return BOUNDS
    return copy_padded(frame, gas, to, start, size, frame.returned, frame.returned_size)


@native
def copy_memory(frame: Frame, gas: u64, to: u256, start: u256, size: u256) -> u64:
    """MCOPY."""
    length = clamp(size)
    target = clamp(to)
    begin = clamp(start)
    gas = charge(frame, gas, word_count(length) * 3)
    if slt(gas, 0):
        return gas
    furthest = target
    if begin > target:
        furthest = begin
    gas = grow(frame, gas, furthest, length)
    if slt(gas, 0):
        return gas
    if length != 0:
        copy(frame.memory + target, frame.memory + begin, length)
    return gas


@native
def read_data(source: ptr, available: u64, offset: u256) -> u256:
    """CALLDATALOAD: 32 bytes, zeros past the end."""
    start = clamp(offset)
    if start + 32 <= available:
        return bswap(load(u256, source, start))
    if start >= available:
        return u256(0)
    result: u256 = 0
    position: u64 = 0
    while position < 32:
        byte: u64 = 0
        if start + position < available:
            byte = u64(load(u8, source, start + position))
        result = (result << 8) | u256(byte)
        position += 1
    return result


@inlined
def set_output(frame: Frame, gas: u64, offset: u256, size: u256) -> u64:
    """RETURN and REVERT: what part of memory is handed back."""
    length = clamp(size)
    start = clamp(offset)
    if length == 0:
        start = 0
    gas = grow(frame, gas, start, length)
    frame.output_offset = start
    frame.output_size = length
    return gas


@inlined
def exponent_gas(frame: Frame, gas: u64, exponent: u256) -> u64:
    engine = Engine(frame.engine)
    size = (u64(263) - u64(clz(exponent))) >> 3
    return charge(frame, gas, engine.exp_byte * size)


# -- storage --------------------------------------------------------------------------------------------------------


@inlined
def folded(x: u64, y: u64) -> u64:
    product = u128(x) * u128(y)
    return u64(product) ^ u64(product >> 64)


@inlined
def hash_key(engine: Engine, account: u64, key: u256) -> u64:
    """Products of secrets and halves of the key: nobody can look for keys that fall into one bucket."""
    low = folded(u64(key) ^ engine.secret_0, u64(key >> 64) ^ engine.secret_1)
    high = folded(u64(key >> 128) ^ engine.secret_2, u64(key >> 192) ^ engine.secret_3)
    return folded(low ^ engine.secret_1, high ^ account ^ engine.secret_2)


@native
def find_slot(frame: Frame, account: u64, key: u256) -> ptr:
    """The slot. One that is not known yet is loaded after the last, for `keep_slot` to keep once it is paid for.

    Nothing where Python cannot load it, or the table is full.
    """
    engine = Engine(frame.engine)
    hashed = hash_key(engine, account, key)
    number = first_in(Index(engine.slot_index), hashed)
    while number != 0:
        slot = Slot(engine.slots + (number - 1) * SLOT_SIZE)
        if slot.key == key and slot.account == account:
            return slot
        number = slot.next
    if engine.slot_count >= engine.slot_limit:
        return 0
    fresh = Slot(engine.slots + engine.slot_count * SLOT_SIZE)
    fresh.hash = hashed
    fresh.account = account
    fresh.key = key
    fresh.flags = 0
    fresh.value = u256(0)
    fresh.original = u256(0)
    if (account & TRANSIENT) == 0 and frame.blank == 0 and call_pointer(u64, engine.load_slot, fresh) != 0:
        return 0
    return fresh


@exported
def known_slot(engine: Engine, account: u64, key: ptr) -> ptr:
    """A slot that is kept, or nothing."""
    wanted = load(u256, key)
    number = first_in(Index(engine.slot_index), hash_key(engine, account, wanted))
    while number != 0:
        slot = Slot(engine.slots + (number - 1) * SLOT_SIZE)
        if slot.key == wanted and slot.account == account:
            return slot
        number = slot.next
    return 0


@inlined
def keep_slot(engine: Engine, slot: Slot) -> None:
    if u64(slot) - u64(engine.slots) == engine.slot_count * SLOT_SIZE:
        link(Index(engine.slot_index), engine.slot_count, slot.hash)
        engine.slot_count += 1
        if unlikely(engine.slot_count >= MANY):
            engine.heavy = 1


@inlined
def record(engine: Engine, slot: Slot) -> None:
    """Keeps a slot as it is, to be undone."""
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
    """Python will be told of the account as it is."""
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
            slot = Slot(engine.slots + entry.slot)
            slot.flags = entry.flags
            slot.value = entry.value
        else:
            undo_account(engine, entry)


@native
def undo_account(engine: Engine, entry: Undo) -> None:
    account = Account(engine.accounts + (entry.slot & (ACCOUNT_ENTRY - 1)))
    if entry.slot < BALANCE_ENTRY:
        undone = (account.flags ^ entry.flags) & (ACCOUNT_WARM | ACCOUNT_DESTROYED)
        account.flags = account.flags ^ undone
        if (undone & ACCOUNT_DESTROYED) != 0:
            mark_dirty(engine, account)
        return
    if entry.slot < NONCE_ENTRY:
        account.balance = entry.value
        if entry.value == 0:
            # A payment may have created it. If it was described since, as after a creation there that was undone, it
            # reads as alive: Python must say what it is without the payment.
            account.epoch = 0
    else:
        account.nonce = entry.flags
    if entry.slot >= CREATION_ENTRY:
        account.flags = account.flags & ~(ACCOUNT_CREATED | ACCOUNT_CODED)
        account.epoch = 0  # Python will say what it is without
    mark_dirty(engine, account)


@native
def forget(engine: Engine) -> None:
    """Empties the slot table, the journal and the logs."""
    clear(Index(engine.slot_index), engine.slot_count)
    engine.slot_count = 0
    engine.journal_count = 0
    engine.refund = 0
    engine.log_size = 0


@native
def storage_load(frame: Frame, gas: u64, key: u256, out: ptr) -> u64:
    engine = Engine(frame.engine)
    slot = Slot(find_slot(frame, frame.account, key))
    if slot == 0:
        return BROKEN
    if engine.access_sets != 0 and (slot.flags & SLOT_WARM) == 0:
        gas = charge(frame, gas, engine.cold_sload - engine.warm_access)
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
def storage_store(frame: Frame, gas: u64, key: u256, value: u256) -> u64:
    """SSTORE: EIP-2200 and its successors, or the plain rule before (reference: sstore_cost)."""
    engine = Engine(frame.engine)
    if frame.static != 0:
        return STATIC
    if engine.sstore_sentry != 0 and gas + frame.reserve <= STIPEND:
        return FAILED
    slot = Slot(find_slot(frame, frame.account, key))
    if slot == 0:
        return BROKEN
    cost: u64 = engine.sstore_noop
    refund: u64 = 0
    current = slot.value
    original = slot.original
    clear = engine.sstore_clear_refund
    if engine.net_sstore == 0:
        cost = engine.sstore_reset
        if value != 0 and current == 0:
            cost = SSTORE_SET
        if value == 0 and current != 0:
            refund = clear
    elif current != value:
        if original == current:
            if original == 0:
                cost = SSTORE_SET
            else:
                cost = engine.sstore_reset
                if value == 0:
                    refund = clear
        else:
            if original != 0:
                if current == 0:
                    refund -= clear
                elif value == 0:
                    refund = clear
            if original == value:
                if original == 0:
                    refund += SSTORE_SET - engine.sstore_noop
                else:
                    refund += engine.sstore_reset - engine.sstore_noop
    cold = u64(engine.access_sets != 0 and (slot.flags & SLOT_WARM) == 0)
    gas = charge(frame, gas, cost + cold * engine.cold_sload)
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
def transient_load(frame: Frame, gas: u64, key: u256, out: ptr) -> u64:
    slot = Slot(find_slot(frame, frame.account | TRANSIENT, key))
    if slot == 0:
        return CAPPED
    store(out, 0, slot.value)
    return gas


@native
def transient_store(frame: Frame, gas: u64, key: u256, value: u256) -> u64:
    engine = Engine(frame.engine)
    if frame.static != 0:
        return STATIC
    slot = Slot(find_slot(frame, frame.account | TRANSIENT, key))
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
