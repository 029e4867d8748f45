"""Bytecode as plain functions: text to bytes and back, control flow, cheaper code, fusions and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.values import BytesLike, to_bytes

if TYPE_CHECKING:
    from fusevm.analysis.loops.metadata import LoopMetadata
    from fusevm.codegen.bytecode import Optimized
    from fusevm.control_flow.graph import Cfg
    from fusevm.schedule.detect import FusionInfo


def keccak(data: BytesLike) -> bytes:
    """Keccak-256 of bytes, or of the bytes that hex text spells.

    >>> keccak(b"").hex()[:16]
    'c5d2460186f7233c'
    """
    from fusevm.evm.keccak import keccak256

    return keccak256(to_bytes(data))


def assemble(text: str, fork: str | Fork = LATEST) -> bytes:
    """Bytecode from mnemonics, labels and data. Raises `AssemblyError`, a ValueError, with the line of a mistake.

    >>> assemble("PUSH1 1 PUSH1 2 ADD").hex()
    '6001600201'
    >>> assemble("top: JUMPDEST PUSH1 @top JUMP").hex()  # a jump to a label
    '5b600056'
    """
    from fusevm.evm.assembly import assemble

    return assemble(text, fork_named(fork))


def disassemble(code: BytesLike, fork: str | Fork = LATEST, *, labels: bool = False) -> str:
    """Text that `assemble` reads back: one instruction per line, its position after it.

    >>> print(disassemble("0x600160020100"), end="")
    PUSH1 0x01                      ; 0x0000
    PUSH1 0x02                      ; 0x0002
    ADD                             ; 0x0004
    STOP                            ; 0x0005
    """
    from fusevm.evm.assembly import disassemble

    return disassemble(to_bytes(code, "code"), fork_named(fork), labels)


@dataclass(frozen=True)
class FlowGraph:
    """The basic blocks of some code, where their jumps go, and loops. Printed it is text; in a notebook, a picture.

    >>> graph = cfg("0x5b600056")
    >>> len(graph.cfg.nodes), graph.dot().startswith("digraph"), graph.svg().startswith("<svg")
    (1, True, True)
    """

    cfg: Cfg

    def __str__(self) -> str:
        from fusevm.control_flow.view import as_text

        return as_text(self.cfg, instructions=True)

    def dot(self) -> str:
        """For graphviz."""
        from fusevm.control_flow.view import as_dot

        return as_dot(self.cfg)

    def svg(self) -> str:
        """A picture, drawn without any other program."""
        from fusevm.control_flow.view import as_svg

        return as_svg(self.cfg)

    def as_data(self) -> dict[str, Any]:
        """Blocks and loops as JSON has them."""
        from fusevm.control_flow.view import as_data

        return dict(as_data(self.cfg))

    def _repr_svg_(self) -> str:
        return self.svg()


def cfg(code: BytesLike, fork: str | Fork = LATEST) -> FlowGraph:
    """The control-flow graph.

    >>> graph = cfg("0x5b600056")  # an endless loop
    >>> graph.cfg.nodes[0].successors
    (0,)
    """
    from fusevm.control_flow.graph import control_flow

    return FlowGraph(control_flow(to_bytes(code, "code"), fork_named(fork)))


def optimize(code: BytesLike, fork: str | Fork = LATEST, *, runs: int = 200) -> Optimized:
    """Optimised bytecode with the same behaviour, for code that is deployed once and run `runs` times.

    What cannot be followed with certainty is returned unchanged; `report` says why, and what was gained.

    >>> made = optimize("0x6001600201600301" + "5f5260205ff3")  # return 1 + 2 + 3
    >>> made.code.hex()
    '60065f5260205ff3'
    """
    from fusevm.codegen.bytecode import optimize

    return optimize(to_bytes(code, "code"), fork_named(fork), runs)


def fusions_in(code: BytesLike, fork: str | Fork = LATEST) -> dict[int, FusionInfo]:
    """The fusions of some code by the pc where each begins.

    >>> fusions_in("0x6001600201" + "5f55")[0].folded_value  # PUSH1 1 PUSH1 2 ADD
    3
    """
    from fusevm.schedule.detect import fusions_in

    return fusions_in(to_bytes(code, "code"), fork_named(fork))


def loops_in(code: BytesLike, fork: str | Fork = LATEST) -> list[LoopMetadata]:
    """The loops of some code: how each counts, which a region can hold ("fused"), and why the others are not.

    >>> loop = loops_in(assemble("PUSH0 top: JUMPDEST PUSH1 1 ADD DUP1 PUSH1 9 GT PUSH1 @top JUMPI STOP"))[0]
    >>> loop.kind, loop.increment, loop.fused
    ('do-while', 1, True)
    """
    from fusevm.native.region.loops import loops_in

    return loops_in(to_bytes(code, "code"), fork_named(fork))
