"""Handlers of opcodes on memory, hashes of it, storage, and data that is copied into it."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from fusevm.native.emit.llvm_words import V
from fusevm.native.emit.state import I8, I64, I256, Handler, Opcode, noted_name
from fusevm.native.lang import PTR
from fusevm.native.layout import WORD
from fusevm.native.runtime import memory, noted_storage, storage


def _memory_pointer(handler: Handler, offset: V, size: int) -> ir.Value:
    """Where in memory an access of one byte or one word goes, memory grown if need be."""
    build = handler.build
    low = build.trunc(offset.value, I64)
    high = build.trunc(build.lshr(offset.value, ir.Constant(I256, 64)), ir.IntType(192))
    limit = handler.field("load_limit") if size == WORD else handler.field("memory_size")
    fits = build.and_(
        build.icmp_unsigned("==", high, ir.Constant(ir.IntType(192), 0)),
        build.icmp_unsigned("<", low, limit),
    )
    before = build.block
    slow, after = handler.function.append_basic_block("grow"), handler.function.append_basic_block("there")
    branch = build.cbranch(fits, after, slow)
    branch.set_weights([2000, 1])
    build.position_at_end(slow)
    old_gas = handler.gas
    start = handler.call(memory.clamp, offset.value)
    handler.charged(handler.call(memory.grow, handler.frame, handler.gas, start, ir.Constant(I64, size)))
    grown = build.block
    build.branch(after)
    build.position_at_end(after)
    gas = build.phi(I64)
    gas.add_incoming(old_gas, before)
    gas.add_incoming(handler.gas, grown)
    handler.gas = gas
    return build.gep(handler.field("memory", PTR), [low], source_etype=I8)


def mload(handler: Handler) -> None:
    pointer = _memory_pointer(handler, handler.pop(), WORD)
    handler.push(handler.build.bswap(handler.build.load(pointer, typ=I256, align=1)))


def mstore(handler: Handler) -> None:
    offset, value = handler.pop(), handler.pop()
    pointer = _memory_pointer(handler, offset, WORD)
    handler.build.store(handler.build.bswap(value.value), pointer, align=1)


def mstore8(handler: Handler) -> None:
    offset, value = handler.pop(), handler.pop()
    pointer = _memory_pointer(handler, offset, 1)
    handler.build.store(handler.build.trunc(value.value, I8), pointer, align=1)


def calldataload(handler: Handler) -> None:
    data, size = handler.field("data", PTR), handler.field("data_size")
    handler.push(handler.call(memory.read_data, data, size, handler.pop().value))


def keccak256(handler: Handler, hash_memory: Callable[..., int] = memory.hash_memory) -> None:
    offset, size = handler.pop(), handler.pop()
    handler.answering(hash_memory, offset.value, size.value)


def calldatacopy(handler: Handler) -> None:
    handler.acting(memory.copy_padded, 3, handler.field("data", PTR), handler.field("data_size"))


def codecopy(handler: Handler) -> None:
    handler.acting(memory.copy_padded, 3, handler.field("code", PTR), handler.field("code_size"))


MEMORY: dict[str, Opcode] = {
    "MLOAD": mload,
    "MSTORE": mstore,
    "MSTORE8": mstore8,
    "CALLDATALOAD": calldataload,
    "KECCAK256": keccak256,
    "SLOAD": lambda handler: handler.answering(storage.storage_load, handler.pop().value),
    "SSTORE": lambda handler: handler.acting(storage.storage_store, 2),
    "TLOAD": lambda handler: handler.answering(storage.transient_load, handler.pop().value),
    "TSTORE": lambda handler: handler.acting(storage.transient_store, 2),
    noted_name("KECCAK256"): lambda handler: keccak256(handler, noted_storage.hash_memory_noted),
    noted_name("SLOAD"): lambda handler: handler.answering(noted_storage.storage_load_noted, handler.pop().value),
    noted_name("SSTORE"): lambda handler: handler.acting(noted_storage.storage_store_noted, 2),
    noted_name("TLOAD"): lambda handler: handler.answering(noted_storage.transient_load_noted, handler.pop().value),
    noted_name("TSTORE"): lambda handler: handler.acting(noted_storage.transient_store_noted, 2),
    "CALLDATACOPY": calldatacopy,
    "CODECOPY": codecopy,
    "RETURNDATACOPY": lambda handler: handler.acting(memory.copy_returned, 3),
    "MCOPY": lambda handler: handler.acting(memory.copy_memory, 3),
}
