"""Native code of what is special in regions: guards, what they have paid for already, and logs."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from fusevm.evm.opcodes import CONTEXT_WORDS, OPCODES_TABLE
from fusevm.evm.words import MEANINGS
from fusevm.ir.values import CONST, Value
from fusevm.native.emit.emitter import I64, I256
from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.opcodes import EMITTED, FRAME_SIZES, FRAME_WORDS, meaning, pay_exponent
from fusevm.native.emit.opcodes import emit as emit_opcode
from fusevm.native.layout import WORD
from fusevm.native.region.state import NARROW, FunctionState
from fusevm.native.runtime import memory, outside

Emit = Callable[[FunctionState, Value], None]


def emit(state: FunctionState, value: Value) -> None:
    op, state.anchor = value.op, value.state
    if op in OPS:
        OPS[op](state, value)
        return
    assert value.prechecked or op not in ("MLOAD", "MSTORE", "MSTORE8")
    paid = PAID if value.prechecked else {}
    found = paid[op](state, value) if op in paid else emit_opcode(state, op, [state.value(arg) for arg in value.args])
    if found is not None:
        state.bind(value, found)


# -- memory ---------------------------------------------------------------------------------------------------------


def reach(state: FunctionState, value: Value) -> None:
    """Expands memory unless it is large enough."""
    offset, size = value.args
    build = state.build
    if size.op != CONST:
        start, length = (state.call(memory.clamp, state.word(each)) for each in (offset, size))
        state.charged(state.call(memory.grow, state.frame, state.gas, start, length))
        _look_ahead(state, value)
        return
    length = ir.Constant(I64, size.number)
    if offset.op == CONST:
        end = ir.Constant(I64, offset.number + size.number)
        missing = build.icmp_unsigned("<", state.field("memory_size"), end)
        start = ir.Constant(I64, offset.number)
    else:
        missing = _is_missing(state, offset, size.number)
        start = None
    gas = state.gas
    slow, after = state.llvm.append_basic_block("grow"), state.llvm.append_basic_block("there")
    build.cbranch(missing, slow, after).set_weights([1, 2000])
    build.position_at_end(slow)
    start = state.call(memory.clamp, state.word(offset)) if start is None else start
    state.charged(state.call(memory.grow, state.frame, gas, start, length))
    _look_ahead(state, value)
    build.branch(after)
    build.position_at_end(after)


def _look_ahead(state: FunctionState, value: Value) -> None:
    """The next blocks do not check whether growth has left enough gas for them. If not, the block is left as if
    it had not begun: memory stays grown, and what that cost is paid."""
    if state.ahead:
        assert value.state is not None
        short = state.build.icmp_signed("<", state.gas, ir.Constant(I64, state.ahead))
        back = state.branch_off(short, "short")
        state.gas = state.build.add(state.gas, ir.Constant(I64, value.state.gas))
        state.leave_to(value.state.pc, value.state.words)
        back()


def _is_missing(state: FunctionState, offset: Value, size: int) -> ir.Value:
    build, low = state.build, state.limb(offset)
    if size <= WORD:
        limit = state.field("load_limit") if size > 1 else state.field("memory_size")
        missing = build.icmp_unsigned(">=", low, limit)
    else:
        there = state.field("memory_size")
        end = build.add(low, ir.Constant(I64, size))
        missing = build.or_(build.icmp_unsigned(">=", low, there), build.icmp_unsigned(">", end, there))
    if state.range(offset).high > NARROW:
        wide = build.icmp_unsigned(">", state.word(offset), ir.Constant(I256, NARROW))
        missing = build.or_(wide, missing)
    return missing


def _hash_paid(state: FunctionState, value: Value) -> V:
    offset, size = value.args
    start = ir.Constant(I64, 0) if size.number == 0 else state.limb(offset)
    return state.answering(memory.hash_paid, start, ir.Constant(I64, size.number))


def log(state: FunctionState, value: Value) -> None:
    """Its operands are read from the stack in memory."""
    assert value.state is not None
    offset, size, *topics = value.args
    left = state.call(outside.pay_log, state.frame, state.gas, state.word(offset), state.word(size))
    state.charged(left)
    height = state.height(value.state.words)
    for number, arg in enumerate(value.args, 1):
        state.build.store(state.word(arg), state.slot(height - number), align=8)
    count = ir.Constant(I64, len(topics))
    state.charged(state.call(outside.write_log, state.frame, state.gas, state.slot(height), count))


PAID: dict[str, Callable[[FunctionState, Value], V]] = {  # where guards have charged what their operands make them cost
    "EXP": lambda state, value: meaning(state, "EXP", [state.value(arg) for arg in value.args]),
    "KECCAK256": _hash_paid,
}
OPS: dict[str, Emit] = {
    "REACH": reach,
    "EXPGAS": lambda state, value: pay_exponent(state, state.value(value.args[0])),
    **{op.name: log for op in OPCODES_TABLE if op.is_log},
}
_ALL = frozenset((*EMITTED, *OPS))
DONE_IN_REGIONS = _ALL.union(MEANINGS, FRAME_WORDS, FRAME_SIZES, CONTEXT_WORDS)
# Opcodes whose gas is not known in advance.
SPENDS = _ALL - {"MLOAD", "MSTORE", "MSTORE8", "CALLDATALOAD", "BLOBHASH", "BLOCKHASH", "GAS"} | {"EXP", "CALLFN"}
