"""Native code of opcodes, from operands to result: the one table of handlers and regions.

What is done with the stack, with gas known in advance, with jumps and calls is said where those differ: in `handlers`,
`control` and `outside`, and in `region/ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from fusevm.evm.opcodes import CONTEXT_WORDS, OPCODES_TABLE
from fusevm.evm.words import MEANINGS
from fusevm.native.emit.emitter import I8, I64, I256, Emitter
from fusevm.native.emit.llvm_words import V
from fusevm.native.lang import PTR
from fusevm.native.layout import WORD, Status
from fusevm.native.runtime import frames, memory, noted_storage, outside, storage

Emit = Callable[..., V | None]  # of an emitter and the operands, the topmost first

# What the frame knows, by opcode; sizes are not words, so the opcode table does not have them.
FRAME_WORDS = {op.name: op.word.rpartition(".")[2] for op in OPCODES_TABLE if op.word.startswith("message.")}
FRAME_SIZES = {
    "CALLDATASIZE": "data_size",
    "CODESIZE": "code_size",
    "RETURNDATASIZE": "returned_size",
    "MSIZE": "memory_size",
}


def noted_name(name: str) -> str:
    """The name of the opcode's variant that also writes notes, for recordings."""
    return name + "!"


def emit(to: Emitter, name: str, operands: list[V]) -> V | None:
    if name in MEANINGS:
        if name == "EXP":
            pay_exponent(to, operands[1])
        return meaning(to, name, operands)
    if name in FRAME_WORDS:
        return V(to.words, to.field(FRAME_WORDS[name], I256))
    if name in FRAME_SIZES:
        return V(to.words, to.build.zext(to.field(FRAME_SIZES[name]), I256))
    if name in CONTEXT_WORDS:
        return V(to.words, to.engine_field(CONTEXT_WORDS[name], I256))
    return (EMITTED.get(name) or NOTED[name])(to, *operands)


def meaning(to: Emitter, name: str, operands: list[V]) -> V:
    word: V = to.meanings[name](*operands)
    return word


def pay_exponent(to: Emitter, exponent: V) -> None:
    to.charged(to.call(memory.exponent_gas, to.frame, to.gas, exponent.value))


def _asking(function: Callable[..., int], to: Emitter, *operands: V) -> V:
    return to.answering(function, *[each.value for each in operands])


def _acting(function: Callable[..., int], to: Emitter, *operands: V) -> None:
    to.charged(to.call(function, to.frame, to.gas, *[each.value for each in operands]))


def _copying(source: str, to: Emitter, *operands: V) -> None:
    words = [each.value for each in operands]
    there = to.field(source, PTR), to.field(f"{source}_size")
    to.charged(to.call(memory.copy_padded, to.frame, to.gas, *words, *there))


def _mload(to: Emitter, offset: V) -> V:
    return V(to.words, to.build.bswap(to.build.load(to.pointer(offset, WORD), typ=I256, align=1)))


def _mstore(to: Emitter, offset: V, word: V) -> None:
    pointer = to.pointer(offset, WORD)
    to.build.store(to.build.bswap(word.value), pointer, align=1)


def _mstore8(to: Emitter, offset: V, word: V) -> None:
    pointer = to.pointer(offset, 1)
    to.build.store(to.build.trunc(word.value, I8), pointer, align=1)


def _calldataload(to: Emitter, offset: V) -> V:
    data, size = to.field("data", PTR), to.field("data_size")
    return V(to.words, to.call(memory.read_data, data, size, offset.value))


def _gas(to: Emitter) -> V:
    return V(to.words, to.build.zext(to.build.add(to.gas, to.field("reserve")), I256))


def _blockhash(to: Emitter, number: V) -> V:
    scratch = to.scratch()
    done = to.call(outside.block_hash, to.frame, number.value, scratch)
    to.fail_if(to.build.icmp_unsigned("!=", done, ir.Constant(I64, frames.DONE)), Status.ERROR)
    return V(to.words, to.build.load(scratch, typ=I256, align=8))


EMITTED: dict[str, Emit] = {
    "GAS": _gas,
    "MLOAD": _mload,
    "MSTORE": _mstore,
    "MSTORE8": _mstore8,
    "KECCAK256": partial(_asking, memory.hash_memory),
    "CALLDATALOAD": _calldataload,
    "CALLDATACOPY": partial(_copying, "data"),
    "CODECOPY": partial(_copying, "code"),
    "RETURNDATACOPY": partial(_acting, memory.copy_returned),
    "MCOPY": partial(_acting, memory.copy_memory),
    "SLOAD": partial(_asking, storage.storage_load),
    "SSTORE": partial(_acting, storage.storage_store),
    "TLOAD": partial(_asking, storage.transient_load),
    "TSTORE": partial(_acting, storage.transient_store),
    "BLOCKHASH": _blockhash,
    "BLOBHASH": lambda to, number: V(to.words, to.call(outside.blob_hash, to.frame, number.value)),
    "BALANCE": partial(_asking, outside.read_balance),
    "SELFBALANCE": partial(_asking, outside.read_own_balance),
    "EXTCODESIZE": partial(_asking, outside.read_code_size),
    "EXTCODEHASH": partial(_asking, outside.read_code_hash),
    "EXTCODECOPY": partial(_acting, outside.copy_code),
}
NOTED: dict[str, Emit] = {
    noted_name("KECCAK256"): partial(_asking, noted_storage.hash_memory_noted),
    noted_name("SLOAD"): partial(_asking, noted_storage.storage_load_noted),
    noted_name("SSTORE"): partial(_acting, noted_storage.storage_store_noted),
    noted_name("TLOAD"): partial(_asking, noted_storage.transient_load_noted),
    noted_name("TSTORE"): partial(_acting, noted_storage.transient_store_noted),
}
