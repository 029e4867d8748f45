"""The stack of frames of calls and creations: how each begins, ends, and returns to its parent.

Frames live on a list, not on Python's own stack, so that 1,024 nested calls need no recursion. What runs a frame is the
tier's own business.
"""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.environment import Message
from fusevm.chain.outcome import Failure, Outcome, Status, check_room
from fusevm.chain.state import State
from fusevm.evm.gas import deposit_cost
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.precompiles import PrecompileFailure
from fusevm.reference.apart import Runner, run_precompile
from fusevm.reference.frame import Frame
from fusevm.reference.hooks import Hooks


def drive(
    first: Frame,
    run: Callable[[Frame], Frame],
    hooks: Hooks | None = None,
    run_precompile: Runner = run_precompile,
) -> Outcome:
    """Runs a frame and all it calls. `run` steps a frame until it ends (and returns it) or calls (the callee's)."""
    frames: list[Frame] = []
    entering: Frame | None = first
    watcher = None if hooks is None else hooks.watcher
    while True:
        if entering is not None:
            if hooks is not None and hooks.on_call is not None:
                hooks.on_call(entering.message)
            if watcher is not None:
                watcher.enter(entering)
            frames.append(entering)
            ended = begin(entering, run_precompile)
            entering = None
        else:
            frame = frames[-1]
            try:
                event = run(frame)
            except ExceptionalHalt as halt:
                frame.halt(halt)
                event = frame
            ended = event is frame
            if not ended:
                entering = event
        if ended:
            frame = frames.pop()
            end(frame)
            if hooks is not None and hooks.on_return is not None:
                hooks.on_return(frame.message, outcome_of(frame))
            if watcher is not None:
                watcher.leave(frame)
            if not frames:
                return outcome_of(frame)
            resume(frames[-1], frame)


def outcome_of(frame: Frame) -> Outcome:
    if frame.error is not None:
        failure = Failure(frame.error.reason, frame.error.detail, max(frame.pc - 1, 0))
        return Outcome(Status.HALT, 0, failure=failure)
    status = Status.REVERT if frame.reverted else Status.SUCCESS
    return Outcome(status, frame.gas, frame.output, created=frame.created)


def begin(frame: Frame, run_precompile: Runner = run_precompile) -> bool:
    """Moves the value, and runs a precompile on the spot; whether the frame has ended already."""
    message, state, rules = frame.message, frame.state, frame.context.rules
    frame.mark = state.mark()
    if message.creates:
        state.mark_created(message.address)
        state.set_nonce(message.address, rules.create_nonce)
    if not rules.clears_empty_accounts:
        state.ensure(message.address)  # before EIP-161 any call created the account it called
    begin_payment(message, state)
    precompile = frame.context.precompiles.get(message.code_address)
    if precompile is None or message.creates:
        return False
    if message.runs_precompile:
        try:
            if precompile.answers is not None:
                output, price = precompile.answers(message.data, frame.gas)
                frame.charge(price)
                frame.output = output
                return True
            fork, price = frame.context.fork, precompile.gas(message.data, frame.context.fork)
            frame.charge(price)
            frame.output = run_precompile(precompile, message.data, fork, price, frame.context.deadline)
        except PrecompileFailure as failure:
            frame.error = ExceptionalHalt(HaltReason.PRECOMPILE_FAILED, f"{precompile.name}: {failure}")
        except ExceptionalHalt as halt:
            frame.halt(halt)
        return True
    return False


def begin_payment(message: Message, state: State) -> None:
    """Moves the value, if there is any."""
    state.touch(message.address)
    if message.value and message.transfers:
        if message.address != message.caller:
            check_room(state, message.address, message.value)
        state.transfer(message.caller, message.address, message.value)


def end(frame: Frame) -> None:
    """Keeps a new contract's code; undoes everything if the frame failed."""
    frame.context.memory_used -= len(frame.memory)
    if frame.message.creates and frame.succeeded:
        try:
            _deposit_code(frame)
        except ExceptionalHalt as halt:
            frame.halt(halt)
    if frame.error is not None:
        frame.gas = 0
        frame.output = b""
    if not frame.succeeded:
        frame.state.revert(frame.mark)


def _deposit_code(frame: Frame) -> None:
    code, rules = frame.output, frame.context.rules
    if rules.rejects_ef_code and code.startswith(b"\xef"):
        raise ExceptionalHalt(HaltReason.CODE_STARTS_WITH_EF)
    price = deposit_cost(rules, len(code))
    if price > frame.gas and not rules.creation_needs_deposit:
        frame.output, code, price = b"", b"", 0  # Frontier: the contract is created without code
    frame.charge(price)
    if len(code) > rules.max_code_size:
        raise ExceptionalHalt(HaltReason.CODE_TOO_LARGE, f"{len(code)} bytes")
    frame.state.set_code(frame.message.address, code)
    frame.created = frame.message.address


def resume(parent: Frame, child: Frame) -> None:
    """Returns the child's gas, output and success to its parent."""
    parent.gas += child.gas
    if child.message.creates:
        parent.returndata = child.output if child.reverted else b""
        parent.stack.append(int.from_bytes(child.message.address, "big") if child.succeeded else 0)
        return
    parent.returndata = child.output
    offset, size = parent.return_range
    parent.write(offset, child.output[:size])
    parent.stack.append(1 if child.succeeded else 0)
