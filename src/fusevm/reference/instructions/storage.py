"""Storage, persistent and transient, and logs."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.addresses import Address
from fusevm.chain.state import Log
from fusevm.evm.gas import cold_slot_cost, log_cost, sstore_cost, sstore_is_starved, sstore_refund
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.reference.frame import Frame


def _sload(frame: Frame) -> None:
    key, address = frame.stack.pop(), frame.message.address
    rules = frame.context.rules
    if rules.access_sets and not frame.state.is_warm_slot(address, key):
        frame.charge(cold_slot_cost(rules))
        frame.state.warm_slot(address, key)
    frame.stack.append(frame.state.storage(address, key))


def _sstore(frame: Frame) -> None:
    state, rules, address = frame.state, frame.context.rules, frame.message.address
    key, value = frame.stack.pop(), frame.stack.pop()
    if sstore_is_starved(rules, frame.gas):
        raise ExceptionalHalt(HaltReason.OUT_OF_GAS, f"SSTORE needs more than {rules.call_stipend} gas left")
    original, current = state.original_storage(address, key), state.storage(address, key)
    cold = rules.access_sets and not state.is_warm_slot(address, key)
    frame.charge(sstore_cost(rules, original, current, value, cold))
    if cold:
        state.warm_slot(address, key)
    if refund := sstore_refund(rules, original, current, value):
        state.add_refund(refund)
    frame.forbid_static("SSTORE")
    state.set_storage(address, key, value)


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
        frame.charge(log_cost(frame.context.rules, size))
        frame.expand(offset, size)
        frame.forbid_static(f"LOG{topic_count}")
        frame.state.add_log(Log(Address(frame.message.address), topics, frame.read(offset, size)))

    return run


INSTRUCTIONS = {
    "SLOAD": _sload,
    "SSTORE": _sstore,
    "TLOAD": _tload,
    "TSTORE": _tstore,
    **{f"LOG{count}": _log(count) for count in range(5)},
}
