"""Native code for CREATE and CREATE2: the address, the new account, its init code, its code. In the subset of `lang`.

Python is asked twice at most: what is at the address, and for the schedule of init code that is new. It learns of
new contracts when it must act itself, or when all is over; until then the journal here can undo them.
"""

from __future__ import annotations

from fusevm.evm.gas import creation_cost, deposit_cost, most_given
from fusevm.evm.limits import CALL_DEPTH_LIMIT, MAX_NONCE
from fusevm.native.lang import (
    bswap,
    call_pointer,
    clz,
    copy,
    inlined,
    load,
    local,
    native,
    ptr,
    slt,
    store,
    u8,
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_ALIVE,
    ACCOUNT_BLANK,
    ACCOUNT_CODED,
    ACCOUNT_CREATED,
    ACCOUNT_DIRTY,
    ACCOUNT_HASHED,
    ACCOUNT_PLAIN,
    ACCOUNT_STORED,
    ACCOUNT_TRACELESS,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    CREATION_ENTRY,
    Account,
    Engine,
    InitCode,
    NativeFrame,
    Status,
    Undo,
)
from fusevm.native.runtime.frames import ASK_PYTHON, DONE, FRAME_SIZE, answer, child_of
from fusevm.native.runtime.index import folded
from fusevm.native.runtime.keccak import keccak256_word
from fusevm.native.runtime.memory import BROKEN, CAPPED, FAILED, STATIC, charge, clamp, grow
from fusevm.native.runtime.outside import ADDRESS_MASK, EMPTY_CODE_HASH, find_account, set_balance, set_nonce, warm
from fusevm.native.runtime.storage import account_entry, journal_full, mark_dirty, revert_to

INIT_CODE_SIZE = InitCode.byte_size()
RETURN, REVERT, OUT_OF_GAS, CAP, ERROR = Status.RETURN, Status.REVERT, Status.OUT_OF_GAS, Status.CAP, Status.ERROR
STOP = Status.STOP


@native
def begin_creation(frame: NativeFrame, gas: u64, top: ptr, salted: u64, ip: ptr) -> u64:
    """CREATE and CREATE2: a child frame, or the answer where there is none, or ASK_PYTHON before EIP-161."""
    engine = Engine(frame.engine)
    if engine.create_nonce == 0:
        return ASK_PYTHON
    if frame.static != 0:
        return STATIC
    value = load(u256, top - 32)
    offset = clamp(load(u256, top - 64))
    size = clamp(load(u256, top - 96))
    gas = grow(frame, gas, offset, size)
    if slt(gas, 0):
        return gas
    if size > engine.max_initcode_size:
        return FAILED
    gas = charge(frame, gas, creation_cost(engine, salted, size))
    if slt(gas, 0):
        return gas
    maker = Account(find_account(engine, frame.address))
    if maker == 0:
        return BROKEN
    frame.ip = ip
    frame.sp = top - (96 + salted * 32)
    frame.returned_size = 0
    frame.call_offset = 0
    frame.call_size = 0
    if maker.balance < value or maker.nonce == MAX_NONCE or frame.depth >= CALL_DEPTH_LIMIT:
        return answer(frame, gas, u256(0))
    if size == 0:
        offset = 0
    start: ptr = frame.memory + offset
    address = u256(0)
    if salted != 0:
        address = salted_address(frame.address, load(u256, top - 128), start, size)
    else:
        address = counted_address(frame.address, maker.nonce)
    account = Account(find_account(engine, address))
    init = InitCode(find_init_code(engine, start, size))
    if account == 0 or init == 0:
        return BROKEN
    if (account.flags & ACCOUNT_WARM) == 0 and warm(engine, account) == 0:
        return CAPPED
    if set_nonce(engine, maker, maker.nonce + 1) == 0:
        return CAPPED
    available = gas + frame.reserve
    mark = engine.journal_count
    child = NativeFrame(child_of(frame, gas, most_given(engine, available), mark))
    if account.nonce != 0 or account.code_size != 0 or (account.flags & ACCOUNT_STORED) != 0:
        return answer(frame, frame.gas, u256(0))  # a collision takes the gas it was given
    if make_account(engine, account) == 0 or account.balance + value < value:
        return CAPPED
    if value != 0:
        paid = set_balance(engine, maker, maker.balance - value)
        if paid == 0 or set_balance(engine, account, account.balance + value) == 0:
            return CAPPED
    child.schedule = init.schedule
    child.ip = init.entry
    child.jumps = init.jumps
    child.code = init.code
    child.code_size = size
    child.data = start
    child.data_size = 0
    child.static = 0
    child.creates = 1
    child.value = value
    child.caller = frame.address
    child.address = address
    child.account = account.number
    child.code_account = account.number
    child.blank = account.flags & ACCOUNT_BLANK
    engine.frame = child
    return DONE


@native
def counted_address(maker: u256, nonce: u64) -> u256:
    """The hash of the list of maker and nonce, in RLP."""
    buffer = local(u64, 8)
    space: ptr = buffer
    store(space, 1, u8(0x80 + 20))
    store(space, 2, bswap(maker << 96))
    size: u64 = 23
    if nonce == 0:
        store(space, 22, u8(0x80))
    elif nonce < 0x80:
        store(space, 22, u8(nonce))
    else:
        length = (u64(263) - u64(clz(u256(nonce)))) >> 3  # bytes of the nonce
        store(space, 22, u8(length + 0x80))
        store(space, 23, bswap(u256(nonce) << ((u256(32) - u256(length)) << 3)))
        size += length
    store(space, 0, u8(size + (0xC0 - 1)))
    return keccak256_word(space, size) & ADDRESS_MASK


@native
def salted_address(maker: u256, salt: u256, code: ptr, size: u64) -> u256:
    """EIP-1014."""
    buffer = local(u64, 11)
    space: ptr = buffer
    store(space, 0, u8(0xFF))
    store(space, 1, bswap(maker << 96))
    store(space, 21, bswap(salt))
    store(space, 53, bswap(keccak256_word(code, size)))
    return keccak256_word(space, 85) & ADDRESS_MASK


@native
def make_account(engine: Engine, account: Account) -> u64:
    """A contract without code as yet; whether there was room to remember how to undo it."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(account_entry(engine, account, CREATION_ENTRY))
    entry.flags = 0
    kept = account.flags & (ACCOUNT_WARM | ACCOUNT_BLANK | ACCOUNT_DIRTY)
    made: u64 = ACCOUNT_CREATED | ACCOUNT_CODED | ACCOUNT_VOID | ACCOUNT_ALIVE | ACCOUNT_TRACELESS
    account.flags = kept | made
    account.nonce = 1
    account.code_hash = u256(EMPTY_CODE_HASH)
    account.code_size = 0
    account.schedule = 0
    account.jumps = 0
    mark_dirty(engine, account)
    return 1


@native
def hash_bytes(engine: Engine, data: ptr, size: u64) -> u64:
    """Collisions cannot be searched for, as with the tables' other keys."""
    hashed = folded(size ^ engine.secret_0, engine.secret_1)
    while size >= 16:
        hashed = folded(load(u64, data) ^ hashed, load(u64, data, 8) ^ engine.secret_2)
        data += 16
        size -= 16
    if size >= 8:
        hashed = folded(load(u64, data) ^ hashed, engine.secret_3)
        data += 8
        size -= 8
    last: u64 = 0
    while size != 0:
        size -= 1
        last = last << 8 | u64(load(u8, data, size))
    return folded(last ^ hashed, engine.secret_3)


@native
def same_bytes(one: ptr, other: ptr, size: u64) -> u64:
    while size >= 8:
        if load(u64, one) != load(u64, other):
            return 0
        one += 8
        other += 8
        size -= 8
    while size != 0:
        size -= 1
        if load(u8, one, size) != load(u8, other, size):
            return 0
    return 1


@native
def find_init_code(engine: Engine, code: ptr, size: u64) -> ptr:
    """The init code with its schedule; nothing where Python cannot make one."""
    hashed = hash_bytes(engine, code, size)
    init = InitCode(engine.init_codes + (hashed & engine.init_mask) * INIT_CODE_SIZE)
    if u64(init.schedule) != 0 and init.hash == hashed and init.size == size and same_bytes(init.code, code, size) != 0:
        return init
    init.hash = hashed
    init.size = size
    init.code = code
    init.schedule = 0
    if call_pointer(u64, engine.load_init_code, init) != 0:
        return 0
    return init


@inlined
def end_creation(engine: Engine, child: NativeFrame, status: u64) -> u64:
    """Keeps a new contract's code, or undoes everything; the parent continues. Above RETURNDATA: it cannot be done."""
    parent = NativeFrame(child - FRAME_SIZE)
    size = child.output_size
    if status == STOP:
        size = 0
    if status <= RETURN:
        status = deposit(engine, child, child.memory + child.output_offset, size)
        if status == CAP or status == ERROR:  # noqa: SIM109
            return status
    if status > REVERT:
        child.gas = 0
        child.reserve = 0
    parent.returned_size = 0
    created = child.address
    if status >= REVERT:
        created = u256(0)
        revert_to(engine, child.journal_mark)
        engine.log_size = child.log_mark
        engine.refund = child.refund_mark
    if status == REVERT:
        copy(engine.output, child.memory + child.output_offset, size)
        parent.returned = engine.output
        parent.returned_size = size
    parent.gas += child.gas
    parent.reserve += child.reserve
    store(parent.sp, 0, created)
    parent.sp = parent.sp + 32
    engine.frame = parent
    return status


@inlined
def deposit(engine: Engine, child: NativeFrame, code: ptr, size: u64) -> u64:
    """The code is paid for and kept: STOP where that is done, else why not."""
    if size == 0:
        return STOP
    if engine.rejects_ef_code != 0 and u64(load(u8, code)) == 0xEF:
        return OUT_OF_GAS
    gas = charge(child, child.gas, deposit_cost(engine, size))
    if slt(gas, 0) or size > engine.max_code_size:
        return OUT_OF_GAS
    account = Account(find_account(engine, child.address))
    if account == 0:
        return ERROR
    if engine.kept_size + size > engine.kept_limit:
        return CAP
    child.gas = gas
    place: ptr = engine.kept_codes + engine.kept_size
    copy(place, code, size)
    engine.kept_size += size
    account.code = place
    account.code_size = size
    account.code_hash = keccak256_word(code, size)
    account.flags = (account.flags & ~ACCOUNT_VOID) | (ACCOUNT_PLAIN | ACCOUNT_CODED | ACCOUNT_HASHED)
    mark_dirty(engine, account)
    return STOP
