"""The back end: a block of Yul to assembly, by the passes of `pipeline`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.measure import StaticCost, static_cost
from fusevm.codegen.pipeline import (
    FROM_BYTECODE,
    IMPROVE,
    OPTIMISE,
    SCHEDULE,
    PassRunner,
    Work,
    flat,
    just_run,
    run_passes,
)
from fusevm.codegen.yul_functions import unit_of
from fusevm.evm.assembler import Assembly
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.functions import Unit
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect

ATTEMPTS = 4  # to find how much memory spilling needs
# Passes that only code from bytecode goes through.
LEFT_OUT = frozenset(each.name for each in flat(FROM_BYTECODE) if each not in flat(OPTIMISE))


class Generated(NamedTuple):
    assembly: Assembly
    cost: StaticCost
    notes: tuple[str, ...] = ()


def generate(
    code: Block,
    dialect: Dialect,
    runs: int = 200,
    *,
    without: frozenset[str] = frozenset(),
    run: PassRunner = just_run,
    recorder: FoldRecorder | None = None,
) -> Generated:
    """The code of a block of Yul whose names are unique, made by all passes but those named in `without`.

    A function that does not fit on the stack is compiled with less: first nothing is inlined into it and no constants
    are shared in it, then equal values are computed again. Raises StackTooDeep if one does not fit that way either.
    """
    apart: set[str] = set()
    unshared: set[str] = set()
    while True:
        work = Work(Unit(), runs, without | LEFT_OUT, run, recorder, apart=apart, unshared=unshared)
        try:
            return _generate(code, dialect, work)
        except StackTooDeep as error:
            names = error.unreachable.keys()
            if not names or names <= unshared:
                raise
            unshared |= names & apart
            apart |= names


def _generate(code: Block, dialect: Dialect, work: Work) -> Generated:
    recorder, spills = work.recorder, work.spills
    for _ in range(ATTEMPTS):
        reserved = spills.used
        work.unit = unit_of(code, dialect, reserved)
        work.largest = None
        if not work.does("constants"):
            work.unit.plain = None
        if recorder is not None:
            recorder.start()
        run_passes(work, OPTIMISE)
        if recorder is not None:
            recorder.finish(work.unit)
        spills.used = 0
        run_passes(work, SCHEDULE)
        if spills.used <= reserved:
            run_passes(work, IMPROVE)
            if recorder is not None:
                recorder.merged(work.program.merged)
            assembly = assembly_of(work.program, work.unit, work.runs)
            return Generated(assembly, static_cost(work.program, work.unit, work.runs), tuple(_notes(work)))
    raise StackTooDeep({})


def _notes(work: Work) -> Iterator[str]:
    for name in sorted(work.apart):
        where = f"function '{name}'" if name else "the main code"
        again = ", equal values are computed again" if name in work.unshared else ""
        yield f"{where} does not fit on the stack with everything shared: nothing is inlined into it{again}"
