"""Frames of calls and creations, from the instruction: of those that begin, and of those that do not.

Those are too deep, without the balance, or at an address that is taken. The reference tier makes no frame for them, so
what they would have been is worked out.
"""

from __future__ import annotations

from typing import NamedTuple

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.outcome import Status
from fusevm.evm.gas import creation_cost, growth_cost, most_given
from fusevm.evm.halts import HaltReason
from fusevm.evm.limits import CALL_DEPTH_LIMIT, MAX_NONCE
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.frame import Frame as Running
from fusevm.reference.instructions.environment import to_address
from fusevm.tracing.recording import FrameKind, RecordedFrame, Refusal

NOWHERE = bytes(20)
SENDING = (FrameKind.CALL, FrameKind.CALLCODE)


class FrameBefore(NamedTuple):
    """A call instruction and its frame, as it was before."""

    kind: FrameKind
    pc: int
    operands: tuple[int, ...]  # the top of the stack first
    gas: int
    memory_size: int
    balance: int
    nonce: int

    @classmethod
    def of(cls, kind: FrameKind, running: Running) -> FrameBefore:
        operands = tuple(reversed(running.stack[-BY_NAME[kind.value].pops :]))
        account = running.state.account(running.message.address)
        memory_size = len(running.memory)
        return cls(kind, running.pc - 1, operands, running.gas, memory_size, account.balance, account.nonce)

    def refusal(self, depth: int) -> Refusal | None:
        """Why it does not begin, if it can be paid for. The depth is looked at first, as geth does."""
        if depth >= CALL_DEPTH_LIMIT:
            return Refusal.DEPTH
        if self.kind.creates:
            value = self.operands[0]
        else:
            value = self.operands[2] if self.kind in SENDING else 0
        if value > self.balance:
            return Refusal.BALANCE
        if self.kind.creates and self.nonce == MAX_NONCE:
            return Refusal.NONCE
        return None


def unbegun(running: Running, before: FrameBefore) -> RecordedFrame:
    """The call or creation that an instruction was, which has ended without a frame."""
    frame = _creation(running, before) if before.kind.creates else _call(running, before)
    frame.status = Status.HALT
    frame.failure = before.refusal(running.message.depth)
    if frame.failure is None:
        frame.failure, frame.gas_used = HaltReason.ADDRESS_COLLISION, frame.gas
    return frame


def _call(running: Running, before: FrameBefore) -> RecordedFrame:
    message, rules, kind = running.message, running.context.rules, before.kind
    requested, to, *others = before.operands
    value = others.pop(0) if kind in SENDING else 0
    stipend = rules.call_stipend if value else 0
    given = min(requested, most_given(rules, running.gas - stipend)) if rules.all_but_64th else requested
    caller = address = message.address
    if kind is FrameKind.DELEGATECALL:
        caller, value = message.caller, message.value
    elif kind is not FrameKind.CALLCODE:
        address = to_address(to)
    return RecordedFrame(
        kind,
        caller,
        address,
        to_address(to),
        value,
        given + stipend,
        running.read(others[0], others[1]),
        message.depth + 1,
        before.pc,
        running.static or kind is FrameKind.STATICCALL,
        running.state.delegate_of(to_address(to)) if rules.delegation else None,
    )


def _creation(running: Running, before: FrameBefore) -> RecordedFrame:
    message, rules, kind = running.message, running.context.rules, before.kind
    value, offset, size, *salt = before.operands
    init = running.read(offset, size)
    cost = BY_NAME[kind.value].gas_at(running.context.fork) + creation_cost(rules, len(salt), size)
    cost += growth_cost(before.memory_size // 32, len(running.memory) // 32)
    address = NOWHERE
    if before.refusal(message.depth) is None:
        if salt:
            address = create2_address(message.address, salt[0], init)
        else:
            address = create_address(message.address, before.nonce)
    given = most_given(rules, before.gas - cost)
    return RecordedFrame(kind, message.address, address, address, value, given, init, message.depth + 1, before.pc)


def begun(running: Running, before: FrameBefore | None) -> RecordedFrame:
    """The frame of a message that begins to run, called by that instruction or from outside."""
    message = running.message
    kind, pc, delegate = FrameKind.CREATE if message.creates else FrameKind.CALL, None, None
    if before is not None:
        kind, pc = before.kind, before.pc
    if running.context.rules.delegation and not message.creates:
        delegate = running.state.delegate_of(message.code_address)
    return RecordedFrame(
        kind,
        message.caller,
        message.address,
        message.code_address,
        message.value,
        message.gas,
        message.code if message.creates else message.data,
        message.depth,
        pc,
        message.static,
        delegate,
    )
