"""Native code for calls: child frames made, ended and run one after another. In the subset of `lang`.

What native code does not implement (calls that create an account before EIP-161, or touch an empty one) goes to Python,
which executes the instruction like the reference tier.
"""

from __future__ import annotations

from fusevm.evm.gas import call_cost, cold_account_cost, delegation_cost, most_given
from fusevm.evm.limits import CALL_DEPTH_LIMIT
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
    u64,
    u256,
)
from fusevm.native.layout import (
    ACCOUNT_BLANK,
    ACCOUNT_DELEGATED,
    ACCOUNT_PLAIN,
    ACCOUNT_PRECOMPILE,
    ACCOUNT_TRACELESS,
    ACCOUNT_WARM,
    HELD,
    Account,
    Call,
    Engine,
    NativeFrame,
    Status,
)
from fusevm.native.runtime.creations import end_creation
from fusevm.native.runtime.frames import (
    ASK_PYTHON,
    DONE,
    FRAME_REST,
    FRAME_SIZE,
    answer,
    child_of,
)
from fusevm.native.runtime.memory import BROKEN, CAPPED, FAILED, STATIC, charge, clamp, grow
from fusevm.native.runtime.outside import (
    ADDRESS_MASK,
    begin_anew,
    find_account,
    forget_all,
    is_alive,
    is_creatable,
    may_visit,
    set_balance,
    warm,
)
from fusevm.native.runtime.plain import land, write_on
from fusevm.native.runtime.precompiles import call_precompile
from fusevm.native.runtime.storage import commit, revert_to

STOP, RETURN, REVERT, SYNC, REFILL, OUT_OF_GAS, INVALID_JUMP, RETURNDATA, CALLING, MORE = (
    Status.STOP,
    Status.RETURN,
    Status.REVERT,
    Status.SYNC,
    Status.REFILL,
    Status.OUT_OF_GAS,
    Status.INVALID_JUMP,
    Status.RETURNDATA,
    Status.CALLING,
    Status.MORE,
)
CALL, DELEGATECALL, STATICCALL, CALLCODE = 0, 1, 2, 3


@native
def begin_call(frame: NativeFrame, gas: u64, top: ptr, kind: u64, ip: ptr) -> u64:
    """CALL and the like: a child frame, the answer where no code runs, or ASK_PYTHON before anything is changed."""
    engine = Engine(frame.engine)
    args: ptr = top - 64
    value = u256(0)
    if kind == CALL or kind == CALLCODE:  # noqa: SIM109
        args = top - 96
        value = load(u256, args)
    if value != 0 and kind == CALL and frame.static != 0:
        return STATIC
    address = load(u256, top - 64) & ADDRESS_MASK
    allowed = may_visit(frame, gas, address)
    if allowed != DONE:
        return allowed
    account = Account(find_account(engine, address))
    if account == 0:
        return BROKEN
    runner = account  # whose code runs
    if (account.flags & ACCOUNT_DELEGATED) != 0:
        allowed = may_visit(frame, gas, account.delegate)
        if allowed != DONE:
            return allowed
        runner = Account(find_account(engine, account.delegate))
        if runner == 0:
            return BROKEN
    if must_ask(frame, gas, account, runner, value, kind) != 0:
        return ASK_PYTHON
    mark = engine.journal_count
    gas = pay_call(frame, gas, args, account, runner, value, kind)
    if slt(gas, 0):
        revert_to(engine, mark)  # finding the reason needs the accounts as they were
        return gas
    available = gas + frame.reserve
    given = most_given(engine, available)
    requested = load(u256, top - 32)
    if requested < u256(given):
        given = u64(requested)
    elif requested != u256(given) and engine.all_but_64th == 0:
        revert_to(engine, mark)
        return FAILED
    frame.ip = ip
    frame.sp = args - 128
    frame.returned_size = 0
    frame.call_offset = start_of(args - 96)
    frame.call_size = clamp(load(u256, args - 128))
    return enter(engine, frame, gas, given, args, account, runner, value, kind)


@inlined
def enter(
    engine: Engine,
    frame: NativeFrame,
    gas: u64,
    given: u64,
    args: ptr,
    account: Account,
    runner: Account,
    value: u256,
    kind: u64,
) -> u64:
    """A call that is paid for: the child frame, or the answer where no code runs."""
    stipend: u64 = 0
    if value != 0:
        stipend = engine.call_stipend
        own = Account(find_account(engine, frame.address))
        if own == 0:
            return BROKEN
        if own.balance < value:
            return answer(frame, gas + stipend, 0)
    if frame.depth >= CALL_DEPTH_LIMIT:
        return answer(frame, gas + stipend, 0)
    if (account.flags & ACCOUNT_PRECOMPILE) != 0:
        return call_precompile(frame, gas, given, account, start_of(args - 32), clamp(load(u256, args - 64)))
    mark = engine.journal_count
    if value != 0 and kind == CALL and move(engine, frame.address, account, value) == 0:
        return CAPPED
    if (runner.flags & ACCOUNT_PLAIN) == 0:
        return answer(frame, gas + stipend, 1)
    if u64(runner.schedule) == 0 and call_pointer(u64, engine.load_code, runner) != 0:
        return BROKEN
    child = NativeFrame(child_of(frame, gas, given, mark))
    child.gas += stipend
    child.data = frame.memory + start_of(args - 32)
    child.data_size = clamp(load(u256, args - 64))
    set_up(frame, child, account, runner, value, kind)
    engine.frame = child
    return DONE


@inlined
def start_of(operands: ptr) -> u64:
    """The offset of a range of memory whose offset and size are at `operands`; zero if the range is empty."""
    if load(u256, operands - 32) == 0:
        return 0
    return clamp(load(u256, operands))


@inlined
def must_ask(frame: NativeFrame, gas: u64, account: Account, runner: Account, value: u256, kind: u64) -> u64:
    """Whether Python must do the call: it creates or touches an account, or runs what native code cannot."""
    if (kind == CALL or kind == STATICCALL) and (account.flags & ACCOUNT_TRACELESS) == 0:  # noqa: SIM109
        return 1
    if (account.flags & ACCOUNT_DELEGATED) != 0 and (runner.flags & ACCOUNT_PLAIN) == 0 and runner.code_size != 0:
        return 1  # a delegation, run as code
    if (account.flags & ACCOUNT_PRECOMPILE) != 0 and account.code_size != 0:
        return 1
    if value == 0:
        return 0
    if (account.flags & ACCOUNT_PRECOMPILE) != 0:
        return 1
    # Stipends must not keep a slice alive: it is time for the clock.
    if gas < Engine(frame.engine).call_value and frame.reserve != 0:
        return 1
    if kind != CALL:
        return 0
    if is_alive(account) == 0 and is_creatable(Engine(frame.engine), account) == 0:
        return 1
    return u64(account.balance + value < value)


@inlined
def pay_call(frame: NativeFrame, gas: u64, args: ptr, account: Account, runner: Account, value: u256, kind: u64) -> u64:
    """The dynamic gas of a call, without the gas it passes on."""
    engine = Engine(frame.engine)
    gas = grow(frame, gas, clamp(load(u256, args - 32)), clamp(load(u256, args - 64)))
    if slt(gas, 0):
        return gas
    gas = grow(frame, gas, clamp(load(u256, args - 96)), clamp(load(u256, args - 128)))
    if slt(gas, 0):
        return gas
    if (account.flags & ACCOUNT_WARM) == 0:
        gas = charge(frame, gas, cold_account_cost(engine))
        if slt(gas, 0):
            return gas
        if warm(engine, account) == 0:
            return CAPPED
    if value != 0:
        creates = u64(kind == CALL and is_alive(account) == 0)
        gas = charge(frame, gas, call_cost(engine, 1, creates))
        if slt(gas, 0):
            return gas
    if (account.flags & ACCOUNT_DELEGATED) == 0:
        return gas
    cold = u64((runner.flags & ACCOUNT_WARM) == 0)
    gas = charge(frame, gas, delegation_cost(engine, cold))
    if not slt(gas, 0) and cold != 0 and warm(engine, runner) == 0:
        return CAPPED
    return gas


@native
def move(engine: Engine, sender: u256, account: Account, value: u256) -> u64:
    """Moves value to an account; whether there was room to remember how to undo it."""
    own = Account(find_account(engine, sender))
    if own == account:
        return 1
    if set_balance(engine, own, own.balance - value) == 0:
        return 0
    return set_balance(engine, account, account.balance + value)


@inlined
def set_up(frame: NativeFrame, child: NativeFrame, account: Account, runner: Account, value: u256, kind: u64) -> None:
    """Who a child frame is, and what it runs."""
    child.schedule = runner.schedule
    child.ip = runner.entry
    child.jumps = runner.jumps
    child.code = runner.code
    child.code_size = runner.code_size
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


@native
def end_call(engine: Engine, child: NativeFrame, status: u64) -> None:
    """Hands gas, output and success of a finished child to its parent."""
    parent = NativeFrame(child - FRAME_SIZE)
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
        if status == REFILL and frame.reserve == 0 and frame.depth != 0:
            status = OUT_OF_GAS
        if frame.in_python != 0 or frame.depth == 0 or status == SYNC or status == REFILL or status > RETURNDATA:  # noqa: SIM109
            return status
        if frame.creates == 0:
            end_call(engine, frame, status)
        else:
            status = end_creation(engine, frame, status)
            if status > RETURNDATA:
                return status


@exported
def call(given: Call, data: ptr) -> u64:
    """A call from outside: makes the first frame from Python's arguments and the code's constant part, and runs it."""
    empty_tables(Engine(given.engine), given.fresh)
    return call_with(given, data, given.data_size)


@inlined
def empty_tables(engine: Engine, fresh: u64) -> None:
    """Before a call from outside: all of them, or what a call has for itself."""
    if fresh != 0:
        forget_all(engine)
        engine.kept_epoch = engine.epoch
    else:
        begin_anew(engine)


@inlined
def call_with(given: Call, data: ptr, size: u64) -> u64:
    """A call from outside, with that data."""
    engine = Engine(given.engine)
    frame = NativeFrame(engine.frames)
    frame.gas = given.gas
    frame.reserve = given.reserve
    frame.data = data
    frame.data_size = size
    frame.account = given.account
    frame.static = given.static
    frame.blank = given.blank
    frame.address = bswap(given.address) >> 96
    frame.caller = bswap(given.caller) >> 96
    frame.value = given.value
    engine.first_address = frame.address
    engine.first_caller = frame.caller
    engine.origin = bswap(given.origin) >> 96
    copy(frame + FRAME_REST, given.rest, FRAME_SIZE - FRAME_REST)
    engine.frame = frame
    status = run(engine)
    engine.gas_left = frame.gas + frame.reserve
    engine.output_offset = frame.output_offset
    engine.output_size = frame.output_size
    if status == STOP:
        engine.output_size = 0
    if status == REVERT:
        engine.log_size = 0
        engine.refund = 0
    if status == REVERT or (status < REVERT and given.keep == 0):
        revert_to(engine, 0)  # Python must learn the restored balances
    elif status < REVERT and given.keep != HELD:
        commit(engine)
    return status
