"""Handlers of everything outside the frame: calls, logs, other accounts, and instructions that Python executes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.native.emit.emitter import I64
from fusevm.native.emit.opcodes import noted_name
from fusevm.native.emit.state import Handler, Opcode
from fusevm.native.layout import Status
from fusevm.native.runtime import calls, creations, destruction, frames, noted_calls, outside


def _python(handler: Handler, status: int) -> None:
    """Python executes the instruction, or inspects the frame; the pc is the operand."""
    pc = handler.next_operand(I64)
    handler.write_back()
    handler.set_field("pc", pc)
    handler.leave(status)


def _log(handler: Handler, topics: int) -> None:
    handler.stack.reach(2)
    offset, size = map(handler.resolve, handler.stack.words[:-3:-1])
    handler.charged(handler.call(outside.pay_log, handler.frame, handler.gas, offset.value, size.value))
    handler.write_back()
    left = handler.call(outside.write_log, handler.frame, handler.gas, handler.sp, ir.Constant(I64, topics))
    handler.charged(left)
    handler.sp = handler.slot_address(topics + 2)


def _call_out(
    handler: Handler, begin: Callable[..., int], kind: int, done_status: int = Status.CALLING, *, noted: bool = False
) -> None:
    """CALL, CREATE and the like: done natively, or by Python."""
    build = handler.build
    pc = handler.next_operand(I64)
    if noted:
        handler.set_field("pc", pc)
    number = ir.Constant(I64, kind)
    answer = handler.call(begin, handler.frame, handler.gas, handler.sp, number, handler.next_ip())
    done = build.icmp_unsigned("==", answer, ir.Constant(I64, frames.DONE))
    with build.if_then(done, likely=True):
        build.ret(ir.Constant(I64, done_status))
    ask = build.icmp_unsigned("==", answer, ir.Constant(I64, frames.ASK_PYTHON))
    with build.if_then(ask):
        handler.set_field("pc", pc)
        handler.leave(Status.SYNC)
    handler.fail_unpaid(answer)


OUTSIDE: dict[str, Opcode] = {
    "SYNC": lambda handler: _python(handler, Status.SYNC),
    "MORE": lambda handler: _python(handler, Status.MORE),
    "PROBE": lambda handler: _python(handler, Status.PROBE),
    "CALL": lambda handler: _call_out(handler, calls.begin_call, calls.CALL),
    "CALLCODE": lambda handler: _call_out(handler, calls.begin_call, calls.CALLCODE),
    "DELEGATECALL": lambda handler: _call_out(handler, calls.begin_call, calls.DELEGATECALL),
    "STATICCALL": lambda handler: _call_out(handler, calls.begin_call, calls.STATICCALL),
    "CREATE": lambda handler: _call_out(handler, creations.begin_creation, 0),
    "CREATE2": lambda handler: _call_out(handler, creations.begin_creation, 1),
    "SELFDESTRUCT": lambda handler: _call_out(handler, destruction.self_destruct, 0, Status.STOP),
    noted_name("CALL"): lambda handler: _call_out(handler, noted_calls.begin_call_noted, calls.CALL, noted=True),
    noted_name("CALLCODE"): lambda handler: _call_out(
        handler, noted_calls.begin_call_noted, calls.CALLCODE, noted=True
    ),
    noted_name("DELEGATECALL"): lambda handler: _call_out(
        handler, noted_calls.begin_call_noted, calls.DELEGATECALL, noted=True
    ),
    noted_name("STATICCALL"): lambda handler: _call_out(
        handler, noted_calls.begin_call_noted, calls.STATICCALL, noted=True
    ),
    noted_name("CREATE"): lambda handler: _call_out(handler, noted_calls.begin_creation_noted, 0, noted=True),
    noted_name("CREATE2"): lambda handler: _call_out(handler, noted_calls.begin_creation_noted, 1, noted=True),
    noted_name("SELFDESTRUCT"): lambda handler: _call_out(
        handler, noted_calls.self_destruct_noted, 0, Status.STOP, noted=True
    ),
    **{op.name: partial(_log, topics=op.pops - 2) for op in OPCODES_TABLE if op.is_log},
}
