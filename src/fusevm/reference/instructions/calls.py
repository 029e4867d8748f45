"""Calls and creations: who runs next, with what gas. Running them is the interpreter's business."""

from __future__ import annotations

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import Message
from fusevm.evm.gas import call_cost, creation_cost, delegation_cost, most_given
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.limits import CALL_DEPTH_LIMIT, MAX_NONCE
from fusevm.reference.frame import Frame
from fusevm.reference.instructions.environment import charge_cold_account, to_address


def _call(frame: Frame) -> Frame | None:
    stack = frame.stack
    gas, to, value = stack.pop(), to_address(stack.pop()), stack.pop()
    return _enter(frame, gas, to, caller=frame.message.address, address=to, value=value, pays_new_account=True)


def _callcode(frame: Frame) -> Frame | None:
    """Runs another's code as one's own; the value goes from oneself to oneself."""
    stack, own = frame.stack, frame.message.address
    gas, to, value = stack.pop(), to_address(stack.pop()), stack.pop()
    return _enter(frame, gas, to, caller=own, address=own, value=value)


def _delegatecall(frame: Frame) -> Frame | None:
    """As CALLCODE, with the parent's caller and value (EIP-7)."""
    stack, parent = frame.stack, frame.message
    gas, to = stack.pop(), to_address(stack.pop())
    return _enter(
        frame, gas, to, caller=parent.caller, address=parent.address, value=parent.value, transfers=False
    )  # fmt: skip


def _staticcall(frame: Frame) -> Frame | None:
    stack = frame.stack
    gas, to = stack.pop(), to_address(stack.pop())
    return _enter(frame, gas, to, caller=frame.message.address, address=to, value=0, static=True)


def _enter(
    frame: Frame,
    requested: int,
    to: bytes,
    *,
    caller: bytes,
    address: bytes,
    value: int,
    transfers: bool = True,
    static: bool = False,
    pays_new_account: bool = False,
) -> Frame | None:
    state, rules, stack = frame.state, frame.context.rules, frame.stack
    in_offset, in_size, out_offset, out_size = (stack.pop() for _ in range(4))

    frame.expand(in_offset, in_size)
    frame.expand(out_offset, out_size)
    charge_cold_account(frame, to)
    moved = value if transfers else 0
    creates = False
    if pays_new_account:
        creates = bool(value) and state.is_dead(to) if rules.call_new_account_if_dead else not state.exists(to)
    if moved or creates:
        frame.charge(call_cost(rules, bool(moved), creates))
    delegate = state.delegate_of(to) if rules.delegation else None
    if delegate is not None:
        frame.charge(delegation_cost(rules, not state.is_warm(delegate)))
        state.warm_address(delegate)
    # Before EIP-150, asking for more than there is was out of gas.
    given = min(requested, most_given(rules, frame.gas)) if rules.all_but_64th else requested
    frame.charge(given)
    if value and pays_new_account:
        frame.forbid_static("CALL with value")
    if moved:
        given += rules.call_stipend

    frame.returndata = b""
    if moved > state.account(frame.message.address).balance or frame.message.depth >= CALL_DEPTH_LIMIT:
        frame.gas += given
        stack.append(0)
        return None
    frame.return_range = (out_offset, out_size)
    message = Message(
        caller=caller,
        address=address,
        code=state.account(delegate or to).code,
        data=frame.read(in_offset, in_size),
        value=value,
        gas=given,
        depth=frame.message.depth + 1,
        static=static or frame.static,
        transfers=transfers,
        code_address=to,
        runs_precompile=delegate is None,
    )
    return Frame(message, state, frame.context)


def _create(frame: Frame) -> Frame | None:
    return _begin_creation(frame, salted=False)


def _create2(frame: Frame) -> Frame | None:
    return _begin_creation(frame, salted=True)


def _begin_creation(frame: Frame, *, salted: bool) -> Frame | None:
    state, rules, stack, creator = frame.state, frame.context.rules, frame.stack, frame.message.address
    value, offset, size = stack.pop(), stack.pop(), stack.pop()
    salt = stack.pop() if salted else 0

    frame.expand(offset, size)
    frame.charge(creation_cost(rules, salted, size))
    if size > rules.max_initcode_size:
        raise ExceptionalHalt(HaltReason.INITCODE_TOO_LARGE, f"{size} bytes")
    frame.forbid_static("CREATE2" if salted else "CREATE")

    frame.returndata = b""
    account = state.account(creator)
    if account.balance < value or account.nonce == MAX_NONCE or frame.message.depth >= CALL_DEPTH_LIMIT:
        stack.append(0)
        return None
    initcode = frame.read(offset, size)
    given = most_given(rules, frame.gas)
    frame.charge(given)
    address = create2_address(creator, salt, initcode) if salted else create_address(creator, account.nonce)
    state.warm_address(address)
    state.set_nonce(creator, account.nonce + 1)
    if state.has_code_or_nonce_or_storage(address):  # a collision takes the gas it was given
        stack.append(0)
        return None
    frame.return_range = (0, 0)
    message = Message(
        caller=creator,
        address=address,
        code=initcode,
        value=value,
        gas=given,
        depth=frame.message.depth + 1,
        creates=True,
        code_address=address,
    )
    return Frame(message, state, frame.context)


INSTRUCTIONS = {
    "CALL": _call,
    "CALLCODE": _callcode,
    "DELEGATECALL": _delegatecall,
    "STATICCALL": _staticcall,
    "CREATE": _create,
    "CREATE2": _create2,
}
