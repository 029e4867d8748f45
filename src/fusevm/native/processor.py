"""The target processor and system of native code: this one, unless another is chosen before anything is built."""

from __future__ import annotations

import functools
from typing import NamedTuple

from llvmlite import binding as llvm


class ProcessorTarget(NamedTuple):
    """As LLVM names them."""

    triple: str
    name: str
    features: str

    @property
    def is_x86(self) -> bool:
        return architecture_of(self.triple) == "x86-64"


@functools.cache
def initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # x86_divide and x86_add_row are written in assembly


_chosen: list[ProcessorTarget] = []


def host() -> tuple[str, str]:
    """The processor's name and features: code built for one pair need not run on another."""
    initialise()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def host_triple() -> str:
    return str(llvm.get_default_triple())


def build_for(chosen: ProcessorTarget) -> None:
    """From now on code is made for another processor or system than this one. Before anything else is imported."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    _chosen[:] = [chosen]


def target() -> ProcessorTarget:
    """The target that code is built for."""
    return _chosen[0] if _chosen else ProcessorTarget(host_triple(), *host())


def architecture_of(triple: str) -> str:
    first = triple.partition("-")[0]
    return {"x86_64": "x86-64", "amd64": "x86-64", "arm64": "aarch64"}.get(first, first)


def system_of(triple: str) -> str:
    """Object formats and calling conventions differ by it: ELF, Mach-O and COFF."""
    rest = triple.partition("-")[2]
    for system, signs in {"linux": ("linux",), "macos": ("darwin", "macos"), "windows": ("windows",)}.items():
        if any(sign in rest for sign in signs):
            return system
    return rest
