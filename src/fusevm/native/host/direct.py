"""One straight path for the common call: a message without value, hooks or time limit to an account with code.

The accounts do not change before native code has come back with a plain end. If it comes back with anything else, the
general path (`NativeEngine.execute`) goes on from there. If the call is not a common one, nothing has begun.
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
from fusevm.native.host.choice import Trial
from fusevm.native.host.engine import ENDED, GIVEN, NativeEngine, engines
from fusevm.native.host.kept import Target
from fusevm.native.host.logs import NativeLogs
from fusevm.native.host.tables import CHANGE_SIZE, CHANGES, NativeLimit
from fusevm.native.host.writeback import PendingStorage
from fusevm.native.layout import WORD
from fusevm.native.layout import Status as Native

LOOK_AT_HEAT = 0.01  # seconds of calls of one kind
PENDING_MOST = 1 << 8  # calls whose storage waits to be written

_REVERT = Native.REVERT
_SUCCESS, _REVERTED = Status.SUCCESS, Status.REVERT
_ZERO = bytes(WORD)


def call_directly(
    kind: str,
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
    """On this thread's engine of that kind, if it is free; `chooses` says whether some calls are the reference tier's.

    See `DirectCall` in `tiers.py`. The first half is for a call like the last one, on a state nobody has changed since.
    """
    engine: NativeEngine | None = getattr(engines, kind, None)
    if engine is None:
        return None
    kept, codes, world, tables, ended, place, call = engine.parts
    target: Target | None = kept.targets.get(address)
    fresh, trial = False, None
    if (
        target is None or state is not kept.state or state.version != kept.version or codes.untidy
        or context is not engine.context or context.block.version != engine.block_version or world.hashes_asked
    ):  # fmt: skip
        fresh, target = _prepared(engine, state, context, address, data[:4] if chooses else None)
        if target is None:
            return None
    if chooses:
        trial = engine.choice.next_native(target.code, data[:4])
        if trial is None:
            return None
    if target.plain:
        codes.run_plainly(target.code)
    if state.leftovers:
        state.forget_transaction()
    most = machinery.SLICE
    now = gas if gas < most else most
    given = GIVEN.pack(
        place, target.rest_place, now, gas - now, len(data), target.number, static, target.blank, fresh, keep,
        address, caller, caller, _ZERO,
    )  # fmt: skip
    kept.state = None  # until the call has ended well
    world.busy = True
    world.initially_warm = (caller, address, world.coinbase)
    state.ledger = world  # whoever finds it there ends what never was
    status = call(given, data)

    left, offset, size, changes, logs, refund, accounts, heavy = ENDED.unpack_from(ended)
    if status > _REVERT or accounts or heavy or changes >= CHANGES or world.changed:
        if keep or status > _REVERT or heavy:
            return partial(_go_on, engine, trial, status)
        world.end(state)  # accounts were moved and moved back, and Python may have learned of it
    output = tables.memory.read(offset, size) if size else b""
    result = Result(_SUCCESS if status < _REVERT else _REVERTED, output, gas - left, refund, [], None, None)
    if logs or refund or changes:
        _take(engine, state, context, result, data, changes, logs, keep=keep)
    if kept.on and not (accounts or state.handed_out):
        kept.state = state
    world.busy = False
    state.ledger = None
    if trial is not None:
        if trial.started:
            trial.ran_natively(time.perf_counter() - trial.started)
        trial.heat += trial.native
        if trial.heat > LOOK_AT_HEAT:
            codes.ran_for(target.code, trial.heat)
            trial.heat = 0.0
    if codes.in_use and codes.tiered:
        codes.tally()
    return result


def _prepared(
    engine: NativeEngine, state: State, context: Context, address: bytes, selector: bytes | None
) -> tuple[bool, Target | None]:
    """Whether native tables must be emptied, and whom to call: nobody where the call is not for this path.

    With a selector, that is so unless it is the call's turn to run natively.
    """
    world = engine.world
    if world.busy or state.ledger is not None:
        return False, None
    if context is not engine.context or context.block.version != engine.block_version:
        engine.bind(context)
    fresh = engine.kept.begin(state)
    code = state.unsettled_account(address).code
    if not code:
        return False, None
    if selector is not None and not engine.choice.is_natives_turn(code, selector):
        return False, None
    try:
        target = engine.kept.targets.get(address) or engine.kept.target(address, state)
    except NativeLimit:
        return False, None  # the general path knows what to do
    state.forget_transaction()
    world.prepare(state)
    world.busy = False  # as yet
    world.coinbase = context.block.coinbase if context.rules.warm_coinbase else b""
    state.always_warm = world.always_warm
    if isinstance(state.pending, PendingStorage):
        state.pending.ends_transaction = True
    elif state.pending is not None:
        state.settle()
    return fresh, target


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
        result.logs = NativeLogs(tables.logs.read(0, logs))
    if not keep:
        return
    if refund:
        state.add_refund(refund)
    if logs:
        state.add_logs(result.logs)
    if changes:
        raw, pending = tables.changes.read(0, changes * CHANGE_SIZE), state.pending
        state.remake()
        if isinstance(pending, PendingStorage):
            pending.raw.append(raw)
            if len(pending.raw) > PENDING_MOST:
                state.settle()
        else:
            state.pending = PendingStorage([raw], engine.world.addresses, ends_transaction=True)
        engine.kept.note(state)


def _go_on(
    engine: NativeEngine, trial: Trial | None, status: int, message: Message, state: State, context: Context
) -> Outcome:
    """Ends what native code came back from with a status."""
    outcome = engine.execute_surely(message, state, context, status)
    if trial is not None and trial.started:
        trial.ran_natively(time.perf_counter() - trial.started)
    return outcome
