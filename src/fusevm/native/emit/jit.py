"""From a module of LLVM text to machine code in memory, by way of object code that can be kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llvmlite import binding as llvm
from llvmlite import ir

from fusevm.native.lang import Native
from fusevm.native.lang.foreign import prototype_of
from fusevm.native.processor import initialise, target

R = TypeVar("R", int, None)


def target_machine(speed: int = 2, *, scattered: bool = False) -> llvm.TargetMachine:
    """`scattered`: the code works wherever the loader places its sections."""
    initialise()
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


def optimised(
    module: ir.Module, speed: int = 2, *, scattered: bool = False
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
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
        initialise()
        self.code = code
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise KeyError(f"no native function {name!r}")
        return found

    def exported(self, function: Callable[..., R]) -> Callable[..., R]:
        """A function of the subset as Python calls it; it must not outlive this."""
        if not isinstance(function, Native) or not function.export:
            raise TypeError(f"{function!r} is not exported: mark it with @exported")
        return prototype_of(function)(self.address(function.symbol))


def link(name: str, address: int) -> None:
    """Object code that is loaded from now on may use the name."""
    llvm.add_symbol(name, address)
