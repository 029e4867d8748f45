"""Native code for what reaches outside a frame: logs, block hashes, other accounts, calls. In the subset of `lang`.

Python's accounts are the ones that count. Those here are copies, good for one epoch, except for their warmth, which is
kept and undone here. Calls that move value, and those of anything but plain code, go to Python, which does the
instruction as the reference tier does.
"""

from __future__ import annotations

from fusevm.native.lang import (
    bswap,
    call_pointer,
    copy,
    exported,
    inlined,
    load,
    native,
    ptr,
    slt,
    store,
    u32,
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_BLANK,
    ACCOUNT_ENTRY,
    ACCOUNT_PLAIN,
    ACCOUNT_VOID,
    ACCOUNT_WARM,
    STACK_ALIGN,
    Account,
    BlockHash,
    Call,
    Engine,
    Frame,
    LogHeader,
    Status,
    Undo,
)
from fusevm.native.runtime import (
    BROKEN,
    CAPPED,
    STATIC,
    UNDO_SIZE,
    charge,
    clamp,
    forget,
    grow,
    hash_key,
    journal_full,
    revert_to,
)

ASK_PYTHON = 0
DONE = 1
ACCOUNT_SIZE = Account.byte_size()
BLOCK_HASH_SIZE = BlockHash.byte_size()
LOG_HEADER_SIZE = LogHeader.byte_size()
FRAME_SIZE = Frame.byte_size()
FRAME_REST = Frame.offset("ip")  # from here on it goes with the code
ADDRESS_MASK = (1 << 160) - 1
DEPTH_LIMIT = 1024
STOP, RETURN, REVERT, SYNC, REFILL, OUT_OF_GAS, RETURNDATA, CALLING = (
    Status.STOP,
    Status.RETURN,
    Status.REVERT,
    Status.SYNC,
    Status.REFILL,
    Status.OUT_OF_GAS,
    Status.RETURNDATA,
    Status.CALLING,
)


@native
def pay_log(frame: Frame, gas: u64, offset: u256, size: u256) -> u64:
    """What LOG0 to LOG4 cost beside their static gas."""
    if frame.static != 0:
        return STATIC
    gas = charge(frame, gas, clamp(size) * 8)
    if slt(gas, 0):
        return gas
    return grow(frame, gas, clamp(offset), clamp(size))


@native
def write_log(frame: Frame, gas: u64, top: ptr, topics: u64) -> u64:
    """LOG0 to LOG4, paid for: the operands stand at the stack's top."""
    engine = Engine(frame.engine)
    start = clamp(load(u256, top - 32))
    size = clamp(load(u256, top - 64))
    room = LOG_HEADER_SIZE + topics * 32 + ((size + 7) & ~7)
    if engine.log_size + room > engine.log_limit:
        return CAPPED
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
def block_hash(frame: Frame, number: u256, out: ptr) -> u64:
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


@native
def find_account(engine: Engine, address: u256) -> ptr:
    """The account as it is at this epoch; nothing where Python cannot say."""
    bucket = hash_key(0, address) & engine.account_mask
    account = Account(engine.accounts)
    while True:
        number = u64(load(u32, engine.account_index, bucket << 2))
        if number == 0:
            if engine.account_count >= engine.account_limit:
                return 0
            account = Account(engine.accounts + engine.account_count * ACCOUNT_SIZE)
            account.address = address
            account.bucket = bucket
            account.epoch = 0
            engine.account_count += 1
            store(engine.account_index, bucket << 2, u32(engine.account_count))
            break
        account = Account(engine.accounts + (number - 1) * ACCOUNT_SIZE)
        if account.address == address:
            break
        bucket = (bucket + 1) & engine.account_mask
    if account.epoch != engine.epoch:
        if call_pointer(u64, engine.load_account, account) != 0:
            return 0
        account.epoch = engine.epoch
    return account


@exported
def forget_all(engine: Engine) -> None:
    """Empties all tables, as a call from outside finds them."""
    forget(engine)
    number: u64 = 0
    while number < engine.account_count:
        account = Account(engine.accounts + number * ACCOUNT_SIZE)
        store(engine.account_index, account.bucket << 2, u32(0))
        number += 1
    engine.account_count = 0


@native
def warm(engine: Engine, account: Account) -> u64:
    """Warms an account; whether there was room to remember how to undo it."""
    if journal_full(engine) != 0:
        return 0
    entry = Undo(engine.journal + engine.journal_count * UNDO_SIZE)
    entry.slot = u64(account) - u64(engine.accounts) + ACCOUNT_ENTRY
    entry.flags = account.flags
    engine.journal_count += 1
    account.flags = account.flags | ACCOUNT_WARM
    return 1


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
def visit(frame: Frame, gas: u64, address: u256) -> u64:
    """Pays for looking at an account: more for the first look (EIP-2929)."""
    engine = Engine(frame.engine)
    account = Account(find_account(engine, address))
    if account == 0:
        return BROKEN
    if (account.flags & ACCOUNT_WARM) != 0:
        return gas
    gas = charge(frame, gas, engine.cold_account - engine.warm_access)
    if not slt(gas, 0) and warm(engine, account) == 0:
        return CAPPED
    return gas


@native
def read_balance(frame: Frame, gas: u64, address: u256, out: ptr) -> u64:
    gas = visit(frame, gas, address & ADDRESS_MASK)
    if not slt(gas, 0):
        account = Account(find_account(Engine(frame.engine), address & ADDRESS_MASK))
        store(out, 0, account.balance)
    return gas


@native
def read_own_balance(frame: Frame, gas: u64, out: ptr) -> u64:
    account = Account(find_account(Engine(frame.engine), frame.address))
    if account == 0:
        return BROKEN
    store(out, 0, account.balance)
    return gas


@native
def read_code_size(frame: Frame, gas: u64, address: u256, out: ptr) -> u64:
    gas = visit(frame, gas, address & ADDRESS_MASK)
    if not slt(gas, 0):
        account = Account(find_account(Engine(frame.engine), address & ADDRESS_MASK))
        store(out, 0, u256(account.code_size))
    return gas


@native
def read_code_hash(frame: Frame, gas: u64, address: u256, out: ptr) -> u64:
    gas = visit(frame, gas, address & ADDRESS_MASK)
    if not slt(gas, 0):
        account = Account(find_account(Engine(frame.engine), address & ADDRESS_MASK))
        store(out, 0, account.code_hash)
    return gas


# -- calls ----------------------------------------------------------------------------------------------------------

CALL, DELEGATECALL, STATICCALL = 0, 1, 2


@native
def begin_call(frame: Frame, gas: u64, top: ptr, kind: u64, ip: ptr) -> u64:
    """Sets up a child frame for a call of plain code that moves no value; anything else is Python's."""
    engine = Engine(frame.engine)
    if frame.depth >= DEPTH_LIMIT or engine.all_but_64th == 0:
        return ASK_PYTHON
    args: ptr = top - 64
    if kind == CALL:
        if load(u256, top - 96) != 0:
            return ASK_PYTHON
        args = top - 96
    account = Account(find_account(engine, load(u256, top - 64) & ADDRESS_MASK))
    if account == 0:
        return BROKEN
    if (account.flags & (ACCOUNT_PLAIN | ACCOUNT_VOID)) == 0:
        return ASK_PYTHON
    in_offset = clamp(load(u256, args - 32))
    in_size = clamp(load(u256, args - 64))
    out_offset = clamp(load(u256, args - 96))
    out_size = clamp(load(u256, args - 128))
    gas = grow(frame, gas, in_offset, in_size)
    if slt(gas, 0):
        return gas
    gas = grow(frame, gas, out_offset, out_size)
    if slt(gas, 0):
        return gas
    gas = visit(frame, gas, account.address)
    if slt(gas, 0):
        return gas
    if (account.flags & ACCOUNT_VOID) != 0:
        frame.gas = gas
        frame.ip = ip
        frame.returned_size = 0
        store(args - 128, 0, u256(1))
        frame.sp = args - 96
        return DONE
    available = gas + frame.reserve
    given = available - (available >> 6)
    requested = load(u256, top - 32)
    if requested < u256(given):
        given = u64(requested)
    slice_part = gas
    if given < slice_part:
        slice_part = given
    frame.gas = gas - slice_part
    frame.reserve -= given - slice_part
    frame.ip = ip
    frame.sp = args - 128
    frame.returned_size = 0
    frame.call_offset = out_offset
    frame.call_size = out_size
    if out_size == 0:
        frame.call_offset = 0
    if in_size == 0:
        in_offset = 0

    child = Frame(ptr_after(frame))
    child.ip = account.schedule + 16
    child.sp = stack_after(frame, top)
    child.gas = slice_part
    child.reserve = given - slice_part
    child.memory = frame.memory + frame.memory_size
    child.memory_size = 0
    child.load_limit = 0
    child.schedule = account.schedule
    child.jumps = account.jumps
    child.code = account.code
    child.code_size = account.code_size
    child.data = frame.memory + in_offset
    child.data_size = in_size
    child.returned = engine.output
    child.returned_size = 0
    child.engine = frame.engine
    child.depth = frame.depth + 1
    child.static = frame.static
    child.in_python = 0
    engine.serial += 1
    child.serial = engine.serial
    child.journal_mark = engine.journal_count
    child.log_mark = engine.log_size
    child.refund_mark = engine.refund
    if kind == DELEGATECALL:
        child.address = frame.address
        child.account = frame.account
        child.blank = frame.blank
        child.caller = frame.caller
        child.value = frame.value
    else:
        child.address = account.address
        child.account = account.number
        child.blank = account.flags & ACCOUNT_BLANK
        child.caller = frame.address
        child.value = u256(0)
        if kind == STATICCALL:
            child.static = 1
    child.code_account = account.number
    engine.frame = child
    return DONE


@inlined
def ptr_after(frame: Frame) -> ptr:
    return frame + FRAME_SIZE


@inlined
def stack_after(frame: Frame, top: ptr) -> ptr:
    """Where the next frame's stack begins: at the next multiple of the alignment."""
    return top + (STACK_ALIGN - (u64(top) & (STACK_ALIGN - 1)))


@native
def end_call(engine: Engine, child: Frame, status: u64) -> None:
    """Hands gas, output and success of a finished child to its parent."""
    parent = Frame(child - FRAME_SIZE)
    if status == STOP:
        child.output_size = 0
    if status > REVERT:
        child.gas = 0
        child.reserve = 0
        child.output_size = 0
    if status >= REVERT:
        revert_to(engine, child.journal_mark)
        engine.log_size = child.log_mark
        engine.refund = child.refund_mark
    parent.gas += child.gas
    parent.reserve += child.reserve
    size = child.output_size
    parent.returned = engine.output
    parent.returned_size = size
    if size != 0:
        source = child.memory + child.output_offset
        copy(engine.output, source, size)
        if size > parent.call_size:
            size = parent.call_size
        copy(parent.memory + parent.call_offset, source, size)
    store(parent.sp, 0, u256(u64(status <= RETURN)))
    parent.sp = parent.sp + 32
    engine.frame = parent


@exported
def run(engine: Engine) -> u64:
    """Runs frames until one that Python knows ends, or Python is needed."""
    while True:
        frame = Frame(engine.frame)
        status = call_pointer(u64, engine.enter, frame)
        if status == CALLING:
            continue
        if frame.in_python != 0 or frame.depth == 0 or status == SYNC or status == REFILL or status > RETURNDATA:  # noqa: SIM109
            return status
        end_call(engine, frame, status)


@exported
def call(engine: Engine, given: Call, data: ptr, rest: ptr) -> u64:
    """A call from outside: makes the first frame, from what Python gives and from what goes with the code; runs it."""
    forget_all(engine)
    frame = Frame(engine.frames)
    frame.gas = given.gas
    frame.reserve = given.reserve
    frame.data = data
    frame.data_size = given.data_size
    frame.account = 0
    frame.static = given.static
    frame.blank = given.blank
    frame.address = bswap(given.address) >> 96
    frame.caller = bswap(given.caller) >> 96
    frame.value = u256(0)
    copy(frame + FRAME_REST, rest, FRAME_SIZE - FRAME_REST)
    engine.frame = frame
    status = run(engine)
    engine.gas_left = frame.gas + frame.reserve
    engine.output_offset = frame.output_offset
    engine.output_size = frame.output_size
    if status == STOP:
        engine.output_size = 0
    if status == REVERT:
        forget(engine)
    return status
