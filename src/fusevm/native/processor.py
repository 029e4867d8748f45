"""The processor that native code is made for: this one, unless another is chosen before anything is built."""

from __future__ import annotations

import functools

from llvmlite import binding as llvm


@functools.cache
def initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # x86_divide is written in assembly


_chosen: list[tuple[str, str]] = []


def host() -> tuple[str, str]:
    """The processor's name and features: code made for one pair need not run on another."""
    initialise()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def triple() -> str:
    return str(llvm.get_default_triple())


def build_for(name: str, features: str) -> None:
    """From now on code is made for another processor than this one. Before anything else is imported."""
    _chosen[:] = [(name, features)]


def target() -> tuple[str, str]:
    """The processor code is made for."""
    return _chosen[0] if _chosen else host()
