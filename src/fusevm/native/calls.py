"""Native code for calls: child frames made, ended and run one after another. In the subset of `lang`.

What native code does not do itself (delegations, calls that bring an account into being) goes to Python, which does the
instruction as the reference tier does.
"""

from __future__ import annotations

from fusevm.native.creations import end_creation
from fusevm.native.frames import ASK_PYTHON, CALL_VALUE, DEPTH_LIMIT, DONE, FRAME_REST, FRAME_SIZE, answer, child_of
from fusevm.native.lang import (
    bswap,
    call_pointer,
    copy,
    exported,
    load,
    native,
    ptr,
    slt,
    store,
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_ALIVE,
    ACCOUNT_BLANK,
    ACCOUNT_PLAIN,
    ACCOUNT_PRECOMPILE,
    ACCOUNT_VOID,
    Account,
    Call,
    Engine,
    Frame,
    Status,
)
from fusevm.native.outside import ADDRESS_MASK, find_account, forget_all, set_balance, visit
from fusevm.native.runtime import (
    BROKEN,
    CAPPED,
    FAILED,
    STATIC,
    STIPEND,
    charge,
    clamp,
    forget,
    grow,
    revert_to,
    word_count,
)

IDENTITY = 4
STOP, RETURN, REVERT, SYNC, REFILL, RETURNDATA, CALLING = (
    Status.STOP,
    Status.RETURN,
    Status.REVERT,
    Status.SYNC,
    Status.REFILL,
    Status.RETURNDATA,
    Status.CALLING,
)
CALL, DELEGATECALL, STATICCALL, CALLCODE = 0, 1, 2, 3


@native
def begin_call(frame: Frame, gas: u64, top: ptr, kind: u64, ip: ptr) -> u64:
    """CALL and its kin: a child frame, the answer where no code runs, or ASK_PYTHON before anything is changed."""
    engine = Engine(frame.engine)
    if frame.depth >= DEPTH_LIMIT or engine.all_but_64th == 0:
        return ASK_PYTHON
    args: ptr = top - 64
    value = u256(0)
    if kind == CALL or kind == CALLCODE:  # noqa: SIM109
        args = top - 96
        value = load(u256, args)
    if value != 0 and kind == CALL and frame.static != 0:
        return STATIC
    account = Account(find_account(engine, load(u256, top - 64) & ADDRESS_MASK))
    if account == 0:
        return BROKEN
    if (account.flags & (ACCOUNT_PLAIN | ACCOUNT_VOID | ACCOUNT_PRECOMPILE)) == 0:
        return ASK_PYTHON
    own = account
    if value != 0:
        own = Account(find_account(engine, frame.address))
        if own == 0:
            return BROKEN
        if (account.flags & ACCOUNT_PRECOMPILE) != 0:
            return ASK_PYTHON
        if gas < CALL_VALUE and frame.reserve != 0:  # stipends must not keep a slice alive: it is time for the clock
            return ASK_PYTHON
        if kind == CALL and ((account.flags & ACCOUNT_ALIVE) == 0 or account.balance + value < value):
            return ASK_PYTHON
    is_new = (account.flags & ACCOUNT_PLAIN) != 0 and u64(account.schedule) == 0  # called for the first time
    if is_new and call_pointer(u64, engine.load_code, account) != 0:
        return BROKEN
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
    mark = engine.journal_count
    gas = visit(frame, gas, account.address)
    if slt(gas, 0):
        return gas
    stipend: u64 = 0
    if value != 0:
        stipend = STIPEND
        gas = charge(frame, gas, CALL_VALUE)
        if slt(gas, 0):
            revert_to(engine, mark)  # whoever looks for the reason must find the account as it was
            return gas
    if in_size == 0:
        in_offset = 0
    if out_size == 0:
        out_offset = 0
    available = gas + frame.reserve
    given = available - (available >> 6)
    requested = load(u256, top - 32)
    if requested < u256(given):
        given = u64(requested)
    frame.ip = ip
    frame.sp = args - 128
    frame.returned_size = 0
    frame.call_offset = out_offset
    frame.call_size = out_size
    if value != 0 and own.balance < value:
        return answer(frame, gas + stipend, 0)
    if (account.flags & ACCOUNT_PRECOMPILE) != 0:
        return call_precompile(frame, gas, given, account, in_offset, in_size)
    mark = engine.journal_count
    if value != 0 and kind == CALL and own != account:
        paid = set_balance(engine, own, own.balance - value)
        if paid == 0 or set_balance(engine, account, account.balance + value) == 0:
            return CAPPED
    if (account.flags & ACCOUNT_VOID) != 0:
        return answer(frame, gas + stipend, 1)
    child = Frame(child_of(frame, gas, given, mark))
    child.gas += stipend
    child.schedule = account.schedule
    child.ip = account.schedule + 16
    child.jumps = account.jumps
    child.code = account.code
    child.code_size = account.code_size
    child.data = frame.memory + in_offset
    child.data_size = in_size
    child.static = frame.static
    child.creates = 0
    child.value = value
    child.caller = frame.address
    if kind == DELEGATECALL or kind == CALLCODE:  # noqa: SIM109
        child.address = frame.address
        child.account = frame.account
        child.blank = frame.blank
        if kind == DELEGATECALL:
            child.caller = frame.caller
            child.value = frame.value
    else:
        child.address = account.address
        child.account = account.number
        child.blank = account.flags & ACCOUNT_BLANK
        if kind == STATICCALL:
            child.static = 1
    child.code_account = account.number
    engine.frame = child
    return DONE


@native
def call_precompile(frame: Frame, gas: u64, given: u64, account: Account, in_offset: u64, in_size: u64) -> u64:
    """Runs a precompiled contract: the identity here, the others in Python."""
    engine = Engine(frame.engine)
    data: ptr = frame.memory + in_offset
    if account.address == IDENTITY:
        price = word_count(in_size) * 3 + 15
        engine.answer_size = in_size
        engine.answer_gas = given - price
        if price > given:
            engine.answer_size = FAILED
        else:
            copy(engine.output, data, in_size)
    else:
        engine.asked_data = data
        engine.asked_size = in_size
        engine.asked_gas = given
        if call_pointer(u64, engine.run_precompile, account) != 0:
            return BROKEN
    size = engine.answer_size
    if size == FAILED:
        return answer(frame, charge(frame, gas, given), 0)
    gas = charge(frame, gas, given - engine.answer_gas)
    frame.returned = engine.output
    frame.returned_size = size
    if size > frame.call_size:
        size = frame.call_size
    copy(frame.memory + frame.call_offset, engine.output, size)
    return answer(frame, gas, 1)


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
        if frame.creates == 0:
            end_call(engine, frame, status)
        else:
            status = end_creation(engine, frame, status)
            if status > RETURNDATA:
                return status


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
    frame.value = given.value
    copy(frame + FRAME_REST, rest, FRAME_SIZE - FRAME_REST)
    engine.frame = frame
    status = run(engine)
    engine.gas_left = frame.gas + frame.reserve
    engine.output_offset = frame.output_offset
    engine.output_size = frame.output_size
    if status == STOP:
        engine.output_size = 0
    if status == REVERT:
        revert_to(engine, 0)  # Python must be told of balances, as they were
        forget(engine)
    return status
