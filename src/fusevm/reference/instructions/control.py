"""Jumps and endings."""

from __future__ import annotations

from fusevm.chain.outcome import check_room
from fusevm.evm.gas import selfdestruct_cost
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.reference.frame import Frame


def _jump_to(frame: Frame, target: int) -> None:
    if not frame.is_jumpdest(target):
        raise ExceptionalHalt(HaltReason.INVALID_JUMP, f"0x{target:x} is not a JUMPDEST")
    frame.pc = target


def _jump(frame: Frame) -> None:
    _jump_to(frame, frame.stack.pop())


def _jumpi(frame: Frame) -> None:
    target, condition = frame.stack.pop(), frame.stack.pop()
    if condition:
        _jump_to(frame, target)


def _jumpdest(frame: Frame) -> None:
    pass


def _pc(frame: Frame) -> None:
    frame.stack.append(frame.pc - 1)


def _gas(frame: Frame) -> None:
    frame.stack.append(frame.gas)


def _stop(frame: Frame) -> Frame:
    return frame


def _return(frame: Frame) -> Frame:
    offset, size = frame.stack.pop(), frame.stack.pop()
    frame.expand(offset, size)
    frame.output = frame.read(offset, size)
    return frame


def _revert(frame: Frame) -> Frame:
    frame.reverted = True
    return _return(frame)


def _selfdestruct(frame: Frame) -> Frame:
    """EIP-150 and 161 (a new beneficiary), 2929 (a cold one), 3529 (no refund), 6780 (only accounts made just now)."""
    state, rules, address = frame.state, frame.context.rules, frame.message.address
    beneficiary = frame.stack.pop().to_bytes(32, "big")[12:]
    balance = state.account(address).balance
    cold = rules.access_sets and not state.is_warm(beneficiary)
    if rules.call_new_account_if_dead:
        creates = bool(balance) and state.is_dead(beneficiary)
    else:
        creates = rules.selfdestruct_new_account and not state.exists(beneficiary)
    frame.charge(selfdestruct_cost(rules, cold, creates))
    if cold:
        state.warm_address(beneficiary)
    if rules.selfdestruct_refund and address not in state.destroyed:
        state.add_refund(rules.selfdestruct_refund)
    frame.forbid_static("SELFDESTRUCT")
    state.touch(beneficiary)
    destroys = not rules.selfdestruct_only_new or address in state.created
    if beneficiary != address:
        check_room(state, beneficiary, balance)
    state.transfer(address, beneficiary, balance)
    if destroys:
        state.set_balance(address, 0)  # what it sends to itself is lost
        state.mark_destroyed(address)
    return frame


INSTRUCTIONS = {
    "JUMP": _jump,
    "JUMPI": _jumpi,
    "JUMPDEST": _jumpdest,
    "PC": _pc,
    "GAS": _gas,
    "STOP": _stop,
    "RETURN": _return,
    "REVERT": _revert,
    "SELFDESTRUCT": _selfdestruct,
}
