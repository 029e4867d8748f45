"""Storage, persistent and transient, and logs."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.state import Log
from fusevm.evm.forks import Rules
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.reference.frame import Frame

SSTORE_SET = 20_000
STIPEND = 2_300
LOG_BYTE = 8


def _sload(frame: Frame) -> None:
    key, address = frame.stack.pop(), frame.message.address
    rules = frame.context.rules
    if rules.access_sets and not frame.state.is_warm_slot(address, key):
        frame.charge(rules.cold_sload - rules.warm_access)
        frame.state.warm_slot(address, key)
    frame.stack.append(frame.state.storage(address, key))


def _sstore(frame: Frame) -> None:
    state, rules, address = frame.state, frame.context.rules, frame.message.address
    key, value = frame.stack.pop(), frame.stack.pop()
    if rules.sstore_sentry and frame.gas <= STIPEND:
        raise ExceptionalHalt(HaltReason.OUT_OF_GAS, f"SSTORE needs more than {STIPEND} gas left")
    original, current = state.original_storage(address, key), state.storage(address, key)
    cost, refund = sstore_cost(rules, original, current, value)
    cold = rules.access_sets and not state.is_warm_slot(address, key)
    frame.charge(cost + rules.cold_sload if cold else cost)
    if cold:
        state.warm_slot(address, key)
    if refund:
        state.add_refund(refund)
    frame.forbid_static("SSTORE")
    state.set_storage(address, key, value)


def sstore_cost(rules: Rules, original: int, current: int, new: int) -> tuple[int, int]:
    """Gas and change of the refund counter, a cold slot aside (EIP-1283, 2200, 2929, 3529)."""
    clear_refund = rules.sstore_clear_refund
    if not rules.net_sstore:
        cost = SSTORE_SET if new and not current else rules.sstore_reset
        return cost, clear_refund if current and not new else 0
    if current == new:
        return rules.sstore_noop, 0
    if original == current:
        if not original:
            return SSTORE_SET, 0
        return rules.sstore_reset, 0 if new else clear_refund
    refund = 0
    if original:
        if not current:
            refund -= clear_refund
        elif not new:
            refund += clear_refund
    if original == new:
        refund += (rules.sstore_reset if original else SSTORE_SET) - rules.sstore_noop
    return rules.sstore_noop, refund


def _tload(frame: Frame) -> None:
    frame.stack.append(frame.state.transient_storage(frame.message.address, frame.stack.pop()))


def _tstore(frame: Frame) -> None:
    key, value = frame.stack.pop(), frame.stack.pop()
    frame.forbid_static("TSTORE")
    frame.state.set_transient(frame.message.address, key, value)


def _log(topic_count: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        offset, size = frame.stack.pop(), frame.stack.pop()
        topics = tuple(frame.stack.pop() for _ in range(topic_count))
        frame.charge(LOG_BYTE * size)
        frame.expand(offset, size)
        frame.forbid_static(f"LOG{topic_count}")
        frame.state.add_log(Log(frame.message.address, topics, frame.read(offset, size)))

    return run


INSTRUCTIONS = {
    "SLOAD": _sload,
    "SSTORE": _sstore,
    "TLOAD": _tload,
    "TSTORE": _tstore,
    **{f"LOG{count}": _log(count) for count in range(5)},
}
