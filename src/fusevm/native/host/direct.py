"""One straight path for the common call: a message without value, hooks or time limit to an account with code.

The accounts do not change before native code has come back with a plain end. If it comes back with anything else, the
general path (`NativeEngine.execute`) continues from there. If the call is not a common one, nothing has begun.
"""

from __future__ import annotations

import time
from functools import partial

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome, Status
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import intrinsic_gas
from fusevm.native.host import engine as machinery
from fusevm.native.host.choice import CallStats
from fusevm.native.host.engine import ENDED, GIVEN, NativeEngine
from fusevm.native.host.logs import NativeLogs
from fusevm.native.host.recorder import MUCH_GAS
from fusevm.native.host.tables import CHANGE_SIZE, CHANGES, NativeLimit
from fusevm.native.host.tiers import OfThreads
from fusevm.native.host.warm_tables import Shape, Target
from fusevm.native.host.writeback import PendingStorage, leave_pending
from fusevm.native.layout import WORD, Call
from fusevm.native.layout import Status as Native
from fusevm.native.runtime.notes import FEW_LOGS
from fusevm.tracing.session import RecordingSession

_REVERT = Native.REVERT
_SUCCESS, _REVERTED = Status.SUCCESS, Status.REVERT
_ZERO = bytes(WORD)
_NO, _FRESH_AT = bytes(8), Call.offset("fresh")
_new, _unpack_ended = object.__new__, ENDED.unpack_from


def call_directly(
    own: OfThreads,
    chooses: bool,
    state: State,
    context: Context,
    caller: bytes,
    address: bytes,
    data: bytes,
    gas: int,
    static: bool,
    keep: bool,
) -> Result | Executor | None:
    """On this thread's engine, if it is free; `chooses` says whether some calls are the reference tier's.

    See `DirectCall` in `tiers.py`. The first half is for a call like the last one, on an unchanged state.
    """
    engine = own.engine
    if engine is None:
        return None
    warm, codes, world, tables, ended, call = engine.parts
    shape = address, caller, data[:4] if chooses else None, len(data), gas, static, keep, machinery.SLICE
    target, stats, given = warm.ready.get(shape) or (warm.targets.get(address), None, b"")
    fresh = False
    if (
        target is None or state is not warm.state or state.version != warm.version or codes.needs_sweep
        or context is not engine.context or context.block.version != engine.block_version or world.hashes_asked
    ):  # fmt: skip
        fresh, target, stats = _prepared(engine, state, context, address, shape[2])
        if target is None:
            return None
        given = b""
    if chooses:
        if stats is None:
            stats = engine.choice.stats_of(target.code, data[:4])
        if not given:
            given = _packed(engine, target, stats, shape, fresh=fresh)
        if stats.free:
            stats.free -= 1
            stats = None
        elif not engine.choice.begins_natively(stats):
            return None
    if target.plain and not codes.in_use:  # or that has just been done
        codes.run_plainly(target.code)
    if state.leftovers:
        state.forget_transaction()
    if not given:
        given = _packed(engine, target, None, shape, fresh=fresh)
    warm.state = None  # until the call has ended well
    world.initially_warm = (caller, address, world.coinbase)
    state.ledger = world  # if the call is interrupted, the next reader of the state undoes it
    world.busy = True
    status = call(given, data)

    left, offset, size, changes, logs, refund, accounts, heavy = _unpack_ended(ended)
    if status > _REVERT or accounts or heavy or changes >= CHANGES or world.changed:
        if keep or status > _REVERT or heavy:
            if chooses and stats is None:
                engine.choice.stats_of(target.code, data[:4]).tell_alone()
            return partial(_go_on, engine, stats, status)
        world.end(state)  # accounts were moved and moved back, and Python may have learned of it
    output = tables.memory.read(offset, size) if size else b""
    result = _new(Result)  # without its __init__, which takes a tenth of a microsecond longer
    result.status, result.output = _SUCCESS if status < _REVERT else _REVERTED, output
    result.gas_used, result.gas_refunded = gas - left, refund
    result.logs, result.address, result.failure = [], None, None
    if logs or refund or changes:
        _take(engine, state, context, result, data, changes, logs, keep=keep)
    if warm.on and not (accounts or state.handed_out):
        warm.state = state
    world.busy = False
    state.ledger = None
    if stats is not None:
        seconds = time.perf_counter() - stats.started
        runs = stats.ended_natively(seconds, each=codes.hot_code.is_watched)
        engine.report(target.code, data, seconds, gas - left, earlier=(runs - 1) * seconds)
    if codes.in_use and codes.tiered:
        codes.tally()
    return result


def _packed(engine: NativeEngine, target: Target, stats: CallStats | None, shape: Shape, *, fresh: bool) -> bytes:
    """What native code is given of a call; kept for calls of the same shape, which find the tables filled."""
    address, caller, _, size, gas, static, keep, most = shape
    if engine.codes.hot_code.is_counting:
        most = min(most, machinery.SHORT_SLICE)
    now = gas if gas < most else most
    given = GIVEN.pack(
        engine.tables.address, target.rest_place, now, gas - now, size, target.number, static, target.blank, fresh,
        keep, address, caller, caller, _ZERO,
    )  # fmt: skip
    again = given if not fresh else given[:_FRESH_AT] + _NO + given[_FRESH_AT + len(_NO) :]
    engine.warm.make_ready(shape, target, stats, again)
    return given


def record_directly(
    own: OfThreads,
    session: RecordingSession,
    state: State,
    context: Context,
    caller: bytes,
    address: bytes,
    data: bytes,
    gas: int,
    static: bool,
    keep: bool,
) -> Result | Executor | None:
    """As `call_directly`, recorded: on an engine that records."""
    engine = own.engine
    if engine is None or gas > MUCH_GAS or (recorder := engine.recorder) is None:
        return None
    if recorder.recording is not session.recording:
        if engine.world.busy:
            return None
        recorder.start(session.recording)
    started = 0.0 if engine.codes.hot_code.policy is None else time.perf_counter()
    try:
        found = call_directly(own, False, state, context, caller, address, data, gas, static, keep)
    except BaseException:
        recorder.drop()
        raise
    if type(found) is not Result:
        return None if found is None else partial(recorder.around, found)  # type: ignore[arg-type]
    if recorder.buffer.has_more:
        recorder.finish()
    if started:
        target = engine.warm.targets.get(address)
        calls = None if target is None else (target.code, data[:4])
        engine.codes.hot_code.worked(calls, time.perf_counter() - started, found.gas_used)
    return found


def _prepared(
    engine: NativeEngine, state: State, context: Context, address: bytes, selector: bytes | None
) -> tuple[bool, Target | None, CallStats | None]:
    """Whether native tables must be emptied, and the target: None if the call is not for this path.

    With a selector, that is so unless it is the call's turn to run natively; what is known of such calls comes last.
    """
    world, stats = engine.world, None
    if world.busy or state.ledger is not None:
        return False, None, None
    if context is not engine.context or context.block.version != engine.block_version:
        engine.bind(context)
    fresh = engine.warm.begin(state)
    code = state.unsettled_account(address).code
    if not code:
        return False, None, None
    if selector is not None:
        stats = engine.choice.stats_of(code, selector)
        if engine.codes.hot_code.is_watched:
            stats.time_each()
        if stats.steps and not stats.is_natives_turn:
            return False, None, None
    try:
        target = engine.warm.targets.get(address) or engine.warm.target(address, state)
    except NativeLimit:
        return False, None, None  # the general path knows what to do
    state.forget_transaction()
    world.prepare(state)
    world.tell_coinbase(context)
    state.always_warm = world.always_warm
    if isinstance(state.pending, PendingStorage):
        state.pending.ends_transaction = True
    elif state.pending is not None:
        state.settle()
    return fresh, target, stats


def _take(
    engine: NativeEngine,
    state: State,
    context: Context,
    result: Result,
    data: bytes,
    changes: int,
    logs: int,
    *,
    keep: bool,
) -> None:
    """What a call has left beside its output: logs, refund and storage."""
    tables, refund = engine.tables, result.gas_refunded
    if refund:
        rules = context.rules
        most = (result.gas_used + intrinsic_gas(rules, data, creates=False)) // rules.refund_quotient
        result.gas_refunded = min(refund, most)
    if logs:
        raw = tables.logs.read(0, logs)
        result.logs = NativeLogs(raw)
        if engine.recorder is not None and logs > FEW_LOGS:
            engine.recorder.buffer.keep_logs(raw)
    if not keep:
        return
    if refund:
        state.add_refund(refund)
    if logs:
        state.add_logs(result.logs)
    if changes:
        leave_pending(state, tables.changes.read(0, changes * CHANGE_SIZE), engine.warm)


def _go_on(
    engine: NativeEngine, stats: CallStats | None, status: int, message: Message, state: State, context: Context
) -> Outcome:
    """Ends what native code came back from with a status."""
    outcome = engine.execute(message, state, context, status, stats.started if stats is not None else 0.0)
    if stats is not None and stats.decides:
        stats.ran_natively(time.perf_counter() - stats.started)
    return outcome
