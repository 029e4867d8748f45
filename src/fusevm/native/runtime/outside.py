"""Native code for everything outside a frame: logs, block and blob hashes, other accounts. In the subset of `lang`.

Python's accounts are the ones that count. Those here are copies, good for one epoch, except for their warmth and their
balance, which are kept and undone here.
"""

from __future__ import annotations

from fusevm.evm.gas import cold_account_cost, log_cost
from fusevm.native.lang import (
    call_pointer,
    copy,
    exported,
    inlined,
    load,
    local,
    native,
    ptr,
    slt,
    store,
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_ALIVE,
    ACCOUNT_ENSURED,
    ACCOUNT_ENTRY,
    ACCOUNT_HASHED,
    ACCOUNT_PRECOMPILE,
    ACCOUNT_TRACELESS,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    BALANCE_ENTRY,
    NONCE_ENTRY,
    Account,
    BlockHash,
    Engine,
    LogHeader,
    NativeFrame,
    Undo,
)
from fusevm.native.runtime.frames import DONE
from fusevm.native.runtime.index import Index, clear, first_in, link
from fusevm.native.runtime.memory import BROKEN, CAPPED, FAILED, STATIC, charge, clamp, copy_padded, pay_and_grow
from fusevm.native.runtime.storage import MANY, account_entry, forget, hash_key, journal_full, mark_dirty, revert_to

ACCOUNT_SIZE = Account.byte_size()
BLOCK_HASH_SIZE = BlockHash.byte_size()
LOG_HEADER_SIZE = LogHeader.byte_size()
ADDRESS_MASK = (1 << 160) - 1
EMPTY_CODE_HASH = 0xC5D2460186F7233C927E7DB2DCC703C0E500B653CA82273B7BFAD8045D85A470
MUCH = 1 << 20  # bytes of logs
ACCOUNTS_AT_HAND = 1 << 14  # kept of those that were only read, before EIP-2929 charged for that


@native
def pay_log(frame: NativeFrame, gas: u64, offset: u256, size: u256) -> u64:
    """What LOG0 to LOG4 cost beside their static gas."""
    if frame.static != 0:
        return STATIC
    return pay_and_grow(frame, gas, log_cost(Engine(frame.engine), clamp(size)), clamp(offset), clamp(size))


@native
def write_log(frame: NativeFrame, gas: u64, top: ptr, topics: u64) -> u64:
    """LOG0 to LOG4, paid for: the operands are at the stack's top."""
    engine = Engine(frame.engine)
    start = clamp(load(u256, top - 32))
    size = clamp(load(u256, top - 64))
    room = LOG_HEADER_SIZE + topics * 32 + ((size + 7) & ~7)
    if engine.log_size + room > engine.log_limit:
        return CAPPED
    if engine.log_size + room > MUCH:
        engine.heavy = 1
    header = LogHeader(engine.logs + engine.log_size)
    header.address = frame.address
    header.topics = topics
    header.size = size
    place = engine.logs + engine.log_size + LOG_HEADER_SIZE
    number: u64 = 0
    while number < topics:
        store(place, number * 32, load(u256, top - (96 + number * 32)))
        number += 1
    if size != 0:
        copy(place + topics * 32, frame.memory + start, size)
    engine.log_size += room
    return gas


@native
def block_hash(frame: NativeFrame, number: u256, out: ptr) -> u64:
    """BLOCKHASH: zero outside of the last 256 blocks; asked of Python once a block."""
    engine = Engine(frame.engine)
    store(out, 0, u256(0))
    if number >= engine.number or engine.number - number > 256 or (number >> 63) != 0:
        return DONE
    low = u64(number)
    entry = BlockHash(engine.block_hashes + (low & 255) * BLOCK_HASH_SIZE)
    if entry.number != low + 1:
        entry.number = low + 1
        if call_pointer(u64, engine.load_block_hash, entry) != 0:
            entry.number = 0
            return BROKEN
    store(out, 0, entry.hash)
    return DONE


@inlined
def is_alive(account: Account) -> u64:
    """Whether value can be sent to it and nothing else changes: it may have been created by a payment just now."""
    return u64((account.flags & ACCOUNT_ALIVE) != 0 or account.balance != 0)


@inlined
def is_creatable(engine: Engine, account: Account) -> u64:
    """Whether it is not there, so that a payment creates it (EIP-161)."""
    void: u64 = ACCOUNT_VOID | ACCOUNT_TRACELESS
    return u64(engine.create_nonce != 0 and (account.flags & void) == void)


@inlined
def is_absent(engine: Engine, account: Account) -> u64:
    """Whether it is not there, before EIP-161, where any payment creates it, be it of nothing."""
    return u64(engine.create_nonce == 0 and (account.flags & (ACCOUNT_VOID | ACCOUNT_ALIVE)) == ACCOUNT_VOID)


@native
def ensure(engine: Engine, account: Account) -> u64:
    """An absent account is there from now on; whether there was room to remember how to undo it."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(account_entry(engine, account, ACCOUNT_ENTRY))
    entry.flags = account.flags
    account.flags = account.flags | (ACCOUNT_ENSURED | ACCOUNT_ALIVE | ACCOUNT_TRACELESS)
    mark_dirty(engine, account)
    return 1


@native
def known_account(engine: Engine, address: u256, hashed: u64) -> ptr:
    """The account as native code has it, or nothing."""
    number = first_in(Index(engine.account_index), hashed)
    while number != 0:
        account = Account(engine.accounts + (number - 1) * ACCOUNT_SIZE)
        if account.address == address:
            return account
        number = account.next
    return 0


@native
def find_account(engine: Engine, address: u256) -> ptr:
    """The account as it is at this epoch; nothing where Python cannot say, or the table is full."""
    hashed = hash_key(engine, 0, address)
    account = Account(known_account(engine, address, hashed))
    if account == 0:
        if engine.account_count >= engine.account_limit:
            return 0
        account = Account(engine.accounts + engine.account_count * ACCOUNT_SIZE)
        account.address = address
        account.epoch = 0
        link(Index(engine.account_index), engine.account_count, hashed)
        engine.account_count += 1
        if engine.account_count >= MANY:
            engine.heavy = 1
    if account.epoch != engine.epoch:
        if is_kept(engine, account) != 0:
            account.flags = (account.flags & ~ACCOUNT_WARM) | (is_warm_from_the_start(engine, account) * ACCOUNT_WARM)
        elif call_pointer(u64, engine.load_account, account) != 0:
            return 0
        account.epoch = engine.epoch
    return account


@inlined
def is_kept(engine: Engine, account: Account) -> u64:
    """Whether an account is known from an earlier call, unchanged since, and not yet touched by this call."""
    earlier = account.epoch >= engine.kept_epoch and account.epoch < engine.call_epoch
    return u64(earlier and engine.epoch == engine.call_epoch + 1)


@native
def is_warm_from_the_start(engine: Engine, account: Account) -> u64:
    """As `warm_up` in `chain/processing.py` has it; where more is warm, Python keeps no accounts."""
    if engine.access_sets == 0 or (account.flags & ACCOUNT_PRECOMPILE) != 0:
        return 1
    if account.address == engine.first_caller or account.address == engine.first_address:
        return 1
    return u64(engine.warm_coinbase != 0 and account.address == engine.coinbase)


@native
def passing_account(engine: Engine, address: u256) -> ptr:
    """The account for one read, not kept. Null if Python cannot answer."""
    account = Account(engine.accounts + engine.account_limit * ACCOUNT_SIZE)
    account.address = address
    if call_pointer(u64, engine.load_account, account) != 0:
        return 0
    return account


@native
def may_visit(frame: NativeFrame, gas: u64, address: u256) -> u64:
    """Whether there is gas for a cold access to an account, if it is cold: DONE, FAILED or BROKEN.

    An account is entered in the table only if so. A frame that fails for lack of gas costs its caller next to nothing,
    so whatever it left there would be free.
    """
    engine = Engine(frame.engine)
    if engine.access_sets == 0 or gas + frame.reserve >= cold_account_cost(engine):
        return DONE
    account = Account(known_account(engine, address, hash_key(engine, 0, address)))
    if account != 0:
        return DONE
    account = Account(passing_account(engine, address))
    if account == 0:
        return BROKEN
    if (account.flags & ACCOUNT_WARM) != 0:
        return DONE
    return FAILED


@exported
def forget_all(engine: Engine) -> None:
    """Empties all tables, as a call from outside finds them."""
    forget(engine)
    clear(Index(engine.account_index), engine.account_count)
    engine.account_count = 0
    begin_anew(engine)


@native
def begin_anew(engine: Engine) -> None:
    """What a call from outside has for itself is empty. The tables may keep slots and accounts, as they are now."""
    engine.refund = 0
    engine.log_size = 0
    engine.change_count = 0
    engine.committed = 0
    engine.dirty_count = 0
    engine.wanted = 0
    engine.kept_size = 0
    engine.call_epoch = engine.epoch + 1
    engine.epoch += 2


@exported
def forget_account(engine: Engine, address: ptr) -> None:
    """Python has changed an account between two calls."""
    wanted = load(u256, address)
    account = Account(known_account(engine, wanted, hash_key(engine, 0, wanted)))
    if account != 0:
        account.epoch = 0


@exported
def is_warm(engine: Engine, address: ptr) -> u64:
    """1 if this call has warmed an address, 0 if not, 2 if it has not met it."""
    wanted = load(u256, address)
    account = Account(known_account(engine, wanted, hash_key(engine, 0, wanted)))
    if account == 0 or account.epoch < engine.call_epoch:
        return 2
    return u64((account.flags & ACCOUNT_WARM) != 0)


@exported
def forget_schedules(engine: Engine) -> None:
    """Schedules were dropped: the next call of each account must ask for its schedule again."""
    number: u64 = 0
    while number < engine.account_count:
        Account(engine.accounts + number * ACCOUNT_SIZE).schedule = 0
        number += 1


@native
def warm(engine: Engine, account: Account) -> u64:
    """Warms an account; whether there was room to remember how to undo it."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(account_entry(engine, account, ACCOUNT_ENTRY))
    entry.flags = account.flags
    account.flags = account.flags | ACCOUNT_WARM
    return 1


@native
def set_balance(engine: Engine, account: Account, balance: u256) -> u64:
    """Sets a balance; whether there was room to remember how to undo it."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(account_entry(engine, account, BALANCE_ENTRY))
    entry.value = account.balance
    account.balance = balance
    mark_dirty(engine, account)
    return 1


@native
def set_nonce(engine: Engine, account: Account, nonce: u64) -> u64:
    """As a balance."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(account_entry(engine, account, NONCE_ENTRY))
    entry.flags = account.nonce
    account.nonce = nonce
    mark_dirty(engine, account)
    return 1


@exported
def put_nonce(engine: Engine, address: ptr, nonce: u64) -> u64:
    """Python sets a nonce: whether that can be done."""
    account = Account(find_account(engine, load(u256, address)))
    if account == 0:
        return 0
    return set_nonce(engine, account, nonce)


@exported
def put_balance(engine: Engine, address: ptr, balance: ptr) -> u64:
    """Python sets a balance: whether that can be done."""
    account = Account(find_account(engine, load(u256, address)))
    if account == 0:
        return 0
    return set_balance(engine, account, load(u256, balance))


@exported
def warm_address(engine: Engine, address: ptr) -> u64:
    """Python warms an address: 1 if it was warm, 0 if it was not, 2 if that cannot be done."""
    account = Account(find_account(engine, load(u256, address)))
    if account == 0:
        return 2
    if (account.flags & ACCOUNT_WARM) != 0:
        return 1
    if warm(engine, account) == 0:
        return 2
    return 0


@native
def visit(frame: NativeFrame, gas: u64, address: u256) -> u64:
    """Pays for an access to an account: more for the first one (EIP-2929)."""
    engine = Engine(frame.engine)
    allowed = may_visit(frame, gas, address)
    if allowed != DONE:
        return allowed
    account = Account(find_account(engine, address))
    if account == 0:
        return BROKEN
    if (account.flags & ACCOUNT_WARM) != 0:
        return gas
    gas = charge(frame, gas, cold_account_cost(engine))
    if not slt(gas, 0) and warm(engine, account) == 0:
        return CAPPED
    return gas


@native
def seen_account(frame: NativeFrame, gas: u64, address: u256, paid: ptr) -> ptr:
    """An account to read from, its access paid for; `paid` takes the gas left, or why there is no account."""
    engine = Engine(frame.engine)
    if engine.access_sets == 0 and engine.account_count >= ACCOUNTS_AT_HAND:  # the table is but a cache here
        account = Account(known_account(engine, address, hash_key(engine, 0, address)))
        if account == 0:
            store(paid, 0, gas)
            account = Account(passing_account(engine, address))
            if account == 0:
                store(paid, 0, u64(BROKEN))
            return account
    gas = visit(frame, gas, address)
    store(paid, 0, gas)
    if slt(gas, 0):
        return 0
    return find_account(engine, address)


@native
def read_balance(frame: NativeFrame, gas: u64, address: u256, out: ptr) -> u64:
    paid = local(u64, 1)
    account = Account(seen_account(frame, gas, address & ADDRESS_MASK, paid))
    if account != 0:
        store(out, 0, account.balance)
    return load(u64, paid)


@native
def read_own_balance(frame: NativeFrame, gas: u64, out: ptr) -> u64:
    account = Account(find_account(Engine(frame.engine), frame.address))
    if account == 0:
        return BROKEN
    store(out, 0, account.balance)
    return gas


@native
def read_code_size(frame: NativeFrame, gas: u64, address: u256, out: ptr) -> u64:
    paid = local(u64, 1)
    account = Account(seen_account(frame, gas, address & ADDRESS_MASK, paid))
    if account != 0:
        store(out, 0, u256(account.code_size))
    return load(u64, paid)


@native
def read_code_hash(frame: NativeFrame, gas: u64, address: u256, out: ptr) -> u64:
    paid = local(u64, 1)
    account = Account(seen_account(frame, gas, address & ADDRESS_MASK, paid))
    if account != 0:
        is_new = account.code_size != 0 and (account.flags & ACCOUNT_HASHED) == 0
        if is_new and call_pointer(u64, Engine(frame.engine).hash_code, account) != 0:
            return BROKEN
        code_hash = account.code_hash
        if code_hash == 0 and account.balance != 0:  # created by a payment
            code_hash = u256(EMPTY_CODE_HASH)
        store(out, 0, code_hash)
    return load(u64, paid)


@native
def copy_code(frame: NativeFrame, gas: u64, address: u256, to: u256, start: u256, size: u256) -> u64:
    """EXTCODECOPY."""
    engine = Engine(frame.engine)
    mark = engine.journal_count
    reserve = frame.reserve
    paid = local(u64, 1)
    account = Account(seen_account(frame, gas, address & ADDRESS_MASK, paid))
    gas = load(u64, paid)
    if slt(gas, 0):
        return gas
    gas = copy_padded(frame, gas, to, start, size, account.code, account.code_size)
    if slt(gas, 0):
        revert_to(engine, mark)  # finding the reason needs the account and the gas as they were
        frame.reserve = reserve
    return gas


@native
def blob_hash(frame: NativeFrame, number: u256) -> u256:
    """BLOBHASH: zero past the last."""
    engine = Engine(frame.engine)
    if number >= u256(engine.blob_count):
        return u256(0)
    return load(u256, engine.blob_hashes, u64(number) << 5)
