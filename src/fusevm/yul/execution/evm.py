"""A host backed by a real EVM: the interpreter walks the Yul, the reference tier executes every opcode it meets.

So a program and its bytecode can be run on the same state and must leave the same state, gas aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Failure, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.halts import ExceptionalHalt
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import table_of
from fusevm.reference.interpreter import execute
from fusevm.yul.execution.host import Ended, LimitReached, Limits, RunEnd
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import Builtin, dialect_for

Places = Mapping[str, tuple[int, int]]  # offset and size of what dataoffset and datasize name, in the frame's code


class EvmHost:
    """Operands go on the frame's stack, the instruction runs, the result comes off it again."""

    def __init__(self, frame: Frame, places: Places | None = None, immutables: Mapping[str, int] | None = None) -> None:
        self.frame = frame
        self.places = places or {}
        self.immutables = immutables or {}

    def operation(self, builtin: Builtin) -> Callable[..., int | None]:
        opcode = builtin.opcode
        frame, stack = self.frame, self.frame.stack
        byte = opcode.byte if opcode is not None else _CODECOPY  # datacopy is the only other one
        instruction, gas, _, _ = table_of(frame.context.fork)[byte]
        returns = builtin.returns

        def run(*words: int) -> int | None:
            stack.extend(reversed(words))
            try:
                frame.charge(gas)
                event = instruction(frame)
            except ExceptionalHalt as halt:
                frame.halt(halt)
                raise Ended(RunEnd.INVALID) from None
            if event is frame:
                raise Ended(RunEnd.REVERT if frame.reverted else RunEnd.RETURN, frame.output)
            if event is not None:
                hand_back(frame, event.message, execute(event.message, frame.state, frame.context))
            return stack.pop() if returns else None

        return run

    def named(self, function: str, name: str) -> int:
        if function in ("datasize", "dataoffset"):
            return self.places[name][function == "datasize"]
        if function == "loadimmutable":
            return self.immutables.get(name, 0)
        return 0  # a library that is not linked

    def set_immutable(self, offset: int, name: str, value: int) -> None:
        raise LimitReached("Immutables are assigned by bytecode only.")


_CODECOPY = 0x39


def hand_back(parent: Frame, message: Message, outcome: Outcome) -> None:
    """What a call or creation leaves with the frame that began it."""
    succeeded = outcome.status is Status.SUCCESS
    parent.gas += outcome.gas_left
    if message.creates:
        parent.returndata = outcome.output if outcome.status is Status.REVERT else b""
        parent.stack.append(int.from_bytes(message.address, "big") if succeeded else 0)
        return
    parent.returndata = outcome.output
    offset, size = parent.return_range
    parent.write(offset, outcome.output[:size])
    parent.stack.append(int(succeeded))


def run_message(
    obj: Object,
    message: Message,
    state: State,
    context: Context,
    places: Places | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Outcome:
    """A message call whose code is interpreted; the state keeps what it did, if it succeeded.

    Raises LimitReached where a limit of ours ends it, with the state as it was.
    """
    frame, mark = Frame(message, state, context), state.mark()
    if message.value and message.transfers:
        state.transfer(message.caller, message.address, message.value)
    outcome = interpret(obj, EvmHost(frame, places), dialect_for(context.fork), limits)
    if outcome.succeeded:
        return Outcome(Status.SUCCESS, frame.gas, outcome.data)
    state.revert(mark)
    if outcome.end is RunEnd.REVERT:
        return Outcome(Status.REVERT, frame.gas, outcome.data)
    if frame.error is None:
        raise LimitReached(outcome.reason)
    return Outcome(Status.HALT, 0, failure=Failure(frame.error.reason, frame.error.detail, 0))
