"""What opcodes are emitted with, in a handler or a region: values, the frame, functions of the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from llvmlite import ir

from fusevm.evm.words import meanings_in
from fusevm.native.emit.llvm_words import LlvmWords, V
from fusevm.native.lang import PTR, Native, Struct
from fusevm.native.layout import Engine, NativeFrame

I8, I32, I64, I256 = (ir.IntType(bits) for bits in (8, 32, 64, 256))


class Emitter(ABC):
    gas: ir.Value  # that is left of the slice

    def __init__(self, module: ir.Module, function: ir.Function, frame: ir.Value) -> None:
        self.module = module
        self.frame = frame
        self.build = ir.IRBuilder(function.append_basic_block("entry"))
        self.words = LlvmWords(self.build, module, frame)
        self.meanings = meanings_in(self.words)
        self._scratch: ir.Value = None

    # -- the frame

    def at(self, base: ir.Value, offset: int) -> ir.Value:
        return self.build.gep(base, [ir.Constant(I64, offset)], source_etype=I8)

    def _place(self, struct: type[Struct], base: ir.Value, name: str) -> ir.Value:
        return self.at(base, struct.offset(name))

    def field(self, name: str, kind: ir.Type = I64) -> ir.Value:
        return self.build.load(self._place(NativeFrame, self.frame, name), typ=kind, align=8)

    def set_field(self, name: str, value: ir.Value) -> None:
        self.build.store(value, self._place(NativeFrame, self.frame, name), align=8)

    def engine_field(self, name: str, kind: ir.Type = I64) -> ir.Value:
        return self.build.load(self._place(Engine, self.field("engine", PTR), name), typ=kind, align=8)

    @abstractmethod
    def pointer(self, offset: V, size: int) -> ir.Value:
        """Where in memory an access of one byte or one word goes."""

    # -- functions of the runtime

    def call(self, function: Callable[..., int | None], *arguments: ir.Value) -> ir.Value:
        assert isinstance(function, Native)
        return self.build.call(function.define(self.module), list(arguments))

    def scratch(self) -> ir.Value:
        """A word of machine stack for a runtime function to answer in."""
        if self._scratch is None:
            with self.build.goto_entry_block():
                self._scratch = self.build.alloca(I256)
        return self._scratch

    def answering(self, function: Callable[..., int], *arguments: ir.Value) -> V:
        """Calls a runtime function that charges gas and answers one word."""
        scratch = self.scratch()
        self.charged(self.call(function, self.frame, self.gas, *arguments, scratch))
        return V(self.words, self.build.load(scratch, typ=I256, align=8))

    @abstractmethod
    def charged(self, gas: ir.Value) -> None:
        """Continues with the gas that a runtime function left, or fails with its status."""

    @abstractmethod
    def fail_if(self, condition: ir.Value, status: int) -> None:
        """A cold branch out of here, with nothing to be told but the status."""
