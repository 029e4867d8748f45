"""Short ways to blocks, for the tests of the IR and of folding."""

from __future__ import annotations

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.opcodes import MSIZE, Effect
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.functions import fold_unit
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import DependencyBlock, Unit
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule
from fusevm.ir.recovery.unit import recover
from fusevm.ir.text import step_text


def lifted(text: str) -> DependencyBlock:
    return lift_block(basic_blocks(assemble(text))[0])


def folded(text: str, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING) -> tuple[DependencyBlock, Stats]:
    return fold_block(lifted(text), mode=mode, stages=stages)


def steps(block: DependencyBlock, unseen: Effect | None = None) -> list[str]:
    """The scheduled block, without the identifiers of instructions: 'Add $0 #1'."""
    order = schedule(block, unseen)
    return [step_text(step).split(" = ", 1)[1] for step in order.steps]


def fold_steps(text: str, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING) -> list[str]:
    return steps(folded(text, mode, stages)[0], MSIZE if mode is Mode.OPTIMISATION else None)


def folded_functions(text: str) -> tuple[Unit, Stats]:
    """The functions of a program, folded once, where gas may fall."""
    unit = recover(assemble(text)).unit
    return unit, fold_unit(unit)
