"""From a module of LLVM text to machine code in memory, through object code that can be cached on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import count
from typing import Any, TypeVar

from llvmlite import binding as llvm
from llvmlite import ir

from fusevm.native.lang import Native
from fusevm.native.lang.foreign import prototype_of
from fusevm.native.processor import initialise, target

R = TypeVar("R", int, None)

# A child forked while another thread is in LLVM would find llvmlite's lock taken for ever: the fork waits for LLVM.
if hasattr(os, "register_at_fork"):
    _lock: Any = llvm.ffi.lib._lock
    _leave = partial(_lock.__exit__, None, None, None)
    os.register_at_fork(before=_lock.__enter__, after_in_parent=_leave, after_in_child=_leave)


def target_machine(speed: int = 2, *, scattered: bool = False) -> llvm.TargetMachine:
    """`scattered`: the code works wherever the loader places its sections."""
    initialise()
    wanted = target()
    architecture = llvm.Target.from_triple(wanted.triple)
    # No vectors, only limbs: a word stored by four machine words and loaded again as one vector before the stores have
    # reached the cache costs ten nanoseconds, and LLVM would mix both.
    scalar = wanted.features + ",-sse" if wanted.is_x86 else wanted.features
    if scattered and wanted.is_x86:
        return architecture.create_target_machine(
            cpu=wanted.name, features=scalar, opt=speed, reloc="static", codemodel="large"
        )
    # Position-independent small code: what the loader places anywhere, and jump tables without absolute addresses.
    return architecture.create_target_machine(
        cpu=wanted.name, features=scalar, opt=speed, reloc="pic", codemodel="small"
    )


def optimised(
    module: ir.Module, speed: int = 2, *, scattered: bool = False
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """The module as LLVM's own, verified and optimised, and the machine it is meant for."""
    machine = target_machine(speed, scattered=scattered)
    module.triple = target().triple
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


@cache
def _linker() -> llvm.LLJIT:
    """One for all: it places each piece of object code in memory as a whole, so that its parts reach each other."""
    initialise()
    return llvm.create_lljit_compiler(target_machine(), use_jit_link=True)


_numbers = count()


class Loaded:
    """Object code in memory, executable for as long as this lives."""

    def __init__(self, code: bytes, names: Iterable[str] = (), imports: Mapping[str, int] | None = None) -> None:
        """`names` are looked up at once, others when asked for; `imports` says where functions are that it calls."""
        self.code, self._name = code, f"fusevm {next(_numbers)}"
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        names = list(names)
        for name in names:
            builder.export_symbol(name)
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        self._places = builder.link(_linker(), self._name)
        self._known = frozenset(names)
        self._found: list[llvm.ResourceTracker] = []

    def address(self, name: str) -> int:
        """Where a function is."""
        if name in self._known:
            return int(self._places[name])
        try:
            found = _linker().lookup(self._name, name)
            self._found.append(found)  # whatever is looked up is unloaded when the answer goes
            return int(found[name])
        except RuntimeError:
            raise KeyError(f"no native function {name!r}") from None

    def exported(self, function: Callable[..., R], *, locked: bool = False) -> Callable[..., R]:
        """A function of the subset as Python calls it; it must not outlive this. `locked`: see `prototype_of`."""
        if not isinstance(function, Native) or not function.export:
            raise TypeError(f"{function!r} is not exported: mark it with @exported")
        return prototype_of(function, locked=locked)(self.address(function.symbol))
