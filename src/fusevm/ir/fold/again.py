"""Passes a dependency block that was parsed from text through the fold engine again, on its own."""

from __future__ import annotations

from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.block import DependencyBlock, Mode, Terminator
from fusevm.ir.builder import NeverReached
from fusevm.ir.copies import name_of
from fusevm.ir.fold.engine import Folder, fuel_for
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.values import CONST, OWN, TRAITS, UNSPILL, Value


class NotAlone(ValueError):
    """The block uses values of another block, or passes values to one."""


def fold_again(
    block: DependencyBlock, fork: Fork = LATEST, mode: Mode = Mode.EXECUTION, stages: Stage = EVERYTHING
) -> tuple[DependencyBlock, Stats]:
    """Emits the block's instructions again. Guards and prepaid (`raw`) instructions are kept unchanged."""
    _require_alone(block)
    folder = Folder(fork, mode, stages)
    folder.fuel = fuel_for(len(block.instructions))
    made = DependencyBlock(block.start, low=block.low, high=block.high, opcodes=len(block.instructions))
    folder.begin(made)
    folder.enter(len(block.entry))
    folder.charge(block.gas)
    stands_for = dict(zip(map(id, block.entry), made.entry, strict=True))

    def known(value: Value) -> Value:
        return folder.const(value.number) if value.op == CONST else stands_for[id(value)]

    def emitted(value: Value) -> Value | None:
        args = tuple(map(known, value.args))
        if value.raw or value.op in OWN:
            kept = folder.raw(value.op, args, value.number)
            kept.raw = value.raw
            return kept
        return folder.emit(value.op, args, value.number)

    try:
        for value in block.instructions:
            new = emitted(value)
            if new is not None:
                stands_for[id(value)] = new
            if TRAITS[value.op].observes:
                folder.charge(value.gas)
        made.stack = tuple(map(known, block.stack))
        end = block.terminator
        folder.end(Terminator(end.op, tuple(map(known, end.args)), end.falls))
    except NeverReached:
        made.stack, made.terminator = (), Terminator("INVALID")
    folder.finish()
    return made, folder.stats


def _require_alone(block: DependencyBlock) -> None:
    if block.terminator.edges or any(value.op != UNSPILL for value in block.entry):
        raise NotAlone(
            f"block {name_of(block.start)} hands words over to others, or takes them: it cannot be folded alone"
        )
    own = {id(value) for value in (*block.entry, *block.instructions)}
    used = [*block.instructions, *block.spills]
    for arg in (*block.terminator.args, *(arg for value in used for arg in value.args)):
        if arg.op != CONST and id(arg) not in own:
            raise NotAlone(f"block {name_of(block.start)} uses ${arg.id} of another block: it cannot be folded alone")
