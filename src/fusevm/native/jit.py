"""From a module of LLVM text to machine code in memory, by way of object code that can be kept on disk."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # x86_divide is written in assembly


_chosen: list[tuple[str, str]] = []


def host() -> tuple[str, str]:
    """The processor's name and features: code made for one pair need not run on another."""
    _initialise()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def triple() -> str:
    return str(llvm.get_default_triple())


def build_for(name: str, features: str) -> None:
    """From now on code is made for another processor than this one. Before anything else is imported."""
    _chosen[:] = [(name, features)]


def target() -> tuple[str, str]:
    """The processor code is made for."""
    return _chosen[0] if _chosen else host()


def target_machine(speed: int = 2, *, scattered: bool = False) -> Any:
    """`scattered`: the code works wherever the loader places its sections."""
    _initialise()
    name, features = target()
    architecture = llvm.Target.from_default_triple()
    # No vectors, only limbs: a word stored by four machine words and loaded again as one vector before the stores have
    # reached the cache costs ten nanoseconds, and LLVM would mix both.
    scalar = features + ",-sse" if architecture.name == "x86-64" else features
    if scattered and architecture.name == "x86-64":
        return architecture.create_target_machine(
            cpu=name, features=scalar, opt=speed, reloc="static", codemodel="large"
        )
    # Position-independent small code: what the loader places anywhere, and jump tables without absolute addresses.
    return architecture.create_target_machine(cpu=name, features=scalar, opt=speed, reloc="pic", codemodel="small")


def optimised(module: ir.Module, speed: int = 2, *, scattered: bool = False) -> tuple[Any, Any]:
    """The module as LLVM's own, verified and optimised, and the machine it is meant for."""
    machine = target_machine(speed, scattered=scattered)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    if speed:
        tuning = llvm.create_pipeline_tuning_options(speed_level=speed)
        tuning.loop_vectorization = tuning.slp_vectorization = False  # limbs are not lanes
        tuning.loop_unrolling = False  # loops worth unrolling are unrolled by `lang`
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(parsed, builder)
    return parsed, machine


def object_code(module: ir.Module, *, speed: int = 2, scattered: bool = False) -> bytes:
    parsed, machine = optimised(module, speed, scattered=scattered)
    return bytes(machine.emit_object(parsed))


class Loaded:
    """Object code in memory, executable for as long as this lives."""

    def __init__(self, code: bytes) -> None:
        _initialise()
        self.code = code
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is; native functions of Python name `f` are called `fusevm_f`."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise KeyError(f"no native function {name!r}")
        return found

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function as ctypes calls it; it must not outlive this."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))


def compile_module(module: ir.Module, *, speed: int = 2) -> Loaded:
    """Translates, optimises and loads a module; the result's `code` can be kept and given to `Loaded` later."""
    return Loaded(object_code(module, speed=speed))
