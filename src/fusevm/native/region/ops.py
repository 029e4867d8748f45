"""Native code of a region's opcodes that are not pure word operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from fusevm.evm.opcodes import CONTEXT_WORDS, OPCODES_TABLE
from fusevm.evm.words import MEANINGS
from fusevm.ir.values import CONST, Value
from fusevm.native.emit.handlers import FRAME_SIZES, FRAME_WORDS
from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.state import I8, I64, I256
from fusevm.native.lang import PTR
from fusevm.native.layout import WORD, Status
from fusevm.native.region.state import LEFT, NARROW, FunctionState
from fusevm.native.runtime import frames, memory, outside, storage

Emit = Callable[[FunctionState, Value], None]


def emit(state: FunctionState, value: Value) -> None:
    op = value.op
    if op in MEANINGS:
        if op == "EXP" and not value.raw:
            _pay_exponent(state, value, value.args[1])
        state.bind(value, state.meanings[op](*[state.value(arg) for arg in value.args]))
    elif op in FRAME_WORDS:
        state.bind(value, state.field(FRAME_WORDS[op], I256))
    elif op in FRAME_SIZES:
        state.bind(value, state.build.zext(state.field(FRAME_SIZES[op]), I256))
    elif op in CONTEXT_WORDS:
        state.bind(value, state.engine_field(CONTEXT_WORDS[op], I256))
    else:
        OPS[op](state, value)


def _pay_exponent(state: FunctionState, value: Value, exponent: Value) -> None:
    state.charged(state.call(memory.exponent_gas, state.frame, state.gas, state.word(exponent)), value.state)


# -- memory ---------------------------------------------------------------------------------------------------------


def reach(state: FunctionState, value: Value) -> None:
    """Expands memory unless it is large enough."""
    offset, size = value.args
    build = state.build
    if size.op != CONST:
        start, length = (state.call(memory.clamp, state.word(each)) for each in (offset, size))
        state.charged(state.call(memory.grow, state.frame, state.gas, start, length), value.state)
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
    state.charged(state.call(memory.grow, state.frame, gas, start, length), value.state)
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


def _pointer(state: FunctionState, offset: Value) -> ir.Value:
    return state.build.gep(state.memory, [state.limb(offset)], source_etype=I8)


def mload(state: FunctionState, value: Value) -> None:
    assert value.raw
    state.bind(value, state.build.bswap(state.build.load(_pointer(state, value.args[0]), typ=I256, align=1)))


def mstore(state: FunctionState, value: Value) -> None:
    assert value.raw
    offset, word = value.args
    state.build.store(state.build.bswap(state.word(word)), _pointer(state, offset), align=1)


def mstore8(state: FunctionState, value: Value) -> None:
    assert value.raw
    offset, word = value.args
    state.build.store(state.build.trunc(state.word(word), I8), _pointer(state, offset), align=1)


def keccak256(state: FunctionState, value: Value) -> None:
    offset, size = value.args
    if value.raw:
        start = ir.Constant(I64, 0) if size.number == 0 else state.limb(offset)
        state.answering(value, memory.hash_paid, start, ir.Constant(I64, size.number))
    else:
        state.answering(value, memory.hash_memory, state.word(offset), state.word(size))


def calldataload(state: FunctionState, value: Value) -> None:
    data, size = state.field("data", PTR), state.field("data_size")
    state.bind(value, state.call(memory.read_data, data, size, state.word(value.args[0])))


def _acting(function: Callable[..., int], state: FunctionState, value: Value, *more: ir.Value) -> None:
    operands = [state.word(arg) for arg in value.args]
    state.charged(state.call(function, state.frame, state.gas, *operands, *more), value.state)


def _copying(source: str, state: FunctionState, value: Value) -> None:
    _acting(memory.copy_padded, state, value, state.field(source, PTR), state.field(f"{source}_size"))


def _asking(function: Callable[..., int], state: FunctionState, value: Value) -> None:
    state.answering(value, function, *[state.word(arg) for arg in value.args])


# -- the rest -------------------------------------------------------------------------------------------------------


def gas(state: FunctionState, value: Value) -> None:
    state.bind(value, state.build.zext(state.build.add(state.gas, state.field("reserve")), I256))


def block_hash(state: FunctionState, value: Value) -> None:
    scratch = state.scratch()
    done = state.call(outside.block_hash, state.frame, state.word(value.args[0]), scratch)
    back = state.branch_off(state.build.icmp_unsigned("!=", done, ir.Constant(I64, frames.DONE)), "bad")
    state.build.ret(ir.Constant(I64, LEFT - 1 - Status.ERROR))  # Python holds the exception, which says everything
    back()
    state.bind(value, state.build.load(scratch, typ=I256, align=8))


def log(state: FunctionState, value: Value) -> None:
    """Its operands are read from the stack in memory."""
    assert value.state is not None
    offset, size, *topics = value.args
    left = state.call(outside.pay_log, state.frame, state.gas, state.word(offset), state.word(size))
    state.charged(left, value.state)
    height = state.height(value.state.words)
    for number, arg in enumerate(value.args, 1):
        state.build.store(state.word(arg), state.slot(height - number), align=8)
    count = ir.Constant(I64, len(topics))
    state.charged(state.call(outside.write_log, state.frame, state.gas, state.slot(height), count), value.state)


def blob_hash(state: FunctionState, value: Value) -> None:
    state.bind(value, V(state.words, state.call(outside.blob_hash, state.frame, state.word(value.args[0]))))


OPS: dict[str, Emit] = {
    "REACH": reach,
    "MLOAD": mload,
    "MSTORE": mstore,
    "MSTORE8": mstore8,
    "KECCAK256": keccak256,
    "CALLDATALOAD": calldataload,
    "CALLDATACOPY": partial(_copying, "data"),
    "CODECOPY": partial(_copying, "code"),
    "RETURNDATACOPY": partial(_acting, memory.copy_returned),
    "MCOPY": partial(_acting, memory.copy_memory),
    "EXTCODECOPY": partial(_acting, outside.copy_code),
    "EXPGAS": lambda state, value: _pay_exponent(state, value, value.args[0]),
    "SLOAD": partial(_asking, storage.storage_load),
    "TLOAD": partial(_asking, storage.transient_load),
    "SSTORE": partial(_acting, storage.storage_store),
    "TSTORE": partial(_acting, storage.transient_store),
    "BALANCE": partial(_asking, outside.read_balance),
    "SELFBALANCE": partial(_asking, outside.read_own_balance),
    "EXTCODESIZE": partial(_asking, outside.read_code_size),
    "EXTCODEHASH": partial(_asking, outside.read_code_hash),
    "BLOCKHASH": block_hash,
    "BLOBHASH": blob_hash,
    "GAS": gas,
    **{op.name: log for op in OPCODES_TABLE if op.is_log},
}
DONE_IN_REGIONS = frozenset((*MEANINGS, *FRAME_WORDS, *FRAME_SIZES, *CONTEXT_WORDS, *OPS))
# Opcodes whose gas is not known in advance.
SPENDS = frozenset(OPS) - {"MLOAD", "MSTORE", "MSTORE8", "CALLDATALOAD", "BLOBHASH", "BLOCKHASH", "GAS"} | {
    "EXP",
    "CALLFN",
}
