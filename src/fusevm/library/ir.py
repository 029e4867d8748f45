"""Dependency blocks as plain functions: lift bytecode, fold it, write and read it as text."""

from __future__ import annotations

from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.ir.block import DependencyBlock, Mode, Program
from fusevm.ir.fold.program import fold_program
from fusevm.ir.fold.stats import Stats
from fusevm.ir.parse import parse
from fusevm.ir.program import lift_program
from fusevm.ir.text import program_text
from fusevm.values import BytesLike, to_bytes


def lifted(code: BytesLike, fork: str | Fork = LATEST) -> Program:
    """The dependency blocks of a program, as its code has them.

    >>> len(lifted("0x600160020160005500").blocks)
    1
    """
    return lift_program(to_bytes(code, "code"), fork_named(fork))


def folded(code: BytesLike, fork: str | Fork = LATEST, *, optimise: bool = False) -> tuple[Program, Stats]:
    """The blocks folded (rules, common subexpressions, forwarding, dead stores), and what each stage did.

    Gas stays exact, unless `optimise` allows it to fall.

    >>> program, stats = folded("0x600160020160005500")
    >>> print(written(program), end="")
    dependency block 0:
        $0 = SStore #0 #3
        Stop
    """
    mode = Mode.OPTIMISATION if optimise else Mode.EXECUTION
    return fold_program(to_bytes(code, "code"), fork_named(fork), mode)


def written(program: Program) -> str:
    """The blocks as `read` reads them.

    >>> "SStore" in written(lifted("0x600160020160005500"))
    True
    """
    return program_text(program)


def read(source: str) -> list[DependencyBlock]:
    """The blocks of a text. Raises `IrSyntaxError` with the line of a mistake.

    >>> [block.start for block in read(written(lifted("0x600160020160005500")))]
    [0]
    """
    return list(parse(source))
