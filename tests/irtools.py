"""Short ways to blocks and programs, for the tests of the IR and of folding."""

from __future__ import annotations

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.opcodes import MSIZE, Effect
from fusevm.ir.block import DependencyBlock, Mode, Program
from fusevm.ir.fold.engine import fold_block
from fusevm.ir.fold.program import fold_program
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule
from fusevm.ir.program import lift_program
from fusevm.ir.text import step_text


def lifted(text: str) -> DependencyBlock:
    return lift_block(basic_blocks(assemble(text))[0])


def folded(text: str, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING) -> tuple[DependencyBlock, Stats]:
    return fold_block(basic_blocks(assemble(text))[0], mode=mode, stages=stages)


def steps(block: DependencyBlock, unseen: Effect | None = None) -> list[str]:
    """The scheduled block, without the identifiers of instructions: 'Add $0 #1'."""
    order = schedule(block, unseen)
    return [step_text(step).split(" = ", 1)[1] for step in order.steps]


def fold_steps(text: str, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING) -> list[str]:
    return steps(folded(text, mode, stages)[0], MSIZE if mode is Mode.OPTIMISATION else None)


def program(text: str) -> Program:
    return lift_program(assemble(text))


def folded_program(text: str, mode: Mode = Mode.EXECUTION, peel: bool = False) -> tuple[Program, Stats]:
    return fold_program(assemble(text), mode=mode, peel=peel)
