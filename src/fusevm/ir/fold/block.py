"""Passes a dependency block, lifted or read from text, through the fold engine on its own."""

from __future__ import annotations

from dataclasses import replace

from fusevm.evm.forks import LATEST, Fork
from fusevm.ir.builder import NeverReached
from fusevm.ir.fold import guards, stores
from fusevm.ir.fold.engine import Folder, fuel_for
from fusevm.ir.fold.guards import Verdict
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.ir.fold.stages import EVERYTHING, Mode, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import CONTINUES, DependencyBlock, End
from fusevm.ir.values import CONST, OWN, TRAITS, Value


def fold_block(
    block: DependencyBlock,
    fork: Fork = LATEST,
    mode: Mode = Mode.EXECUTION,
    stages: Stage = EVERYTHING,
    recorder: FoldRecorder | None = None,
) -> tuple[DependencyBlock, Stats]:
    """Emits the block's instructions again. Guards and prepaid (`prechecked`) instructions are kept unchanged.

    A recorder knows values by block and pc.
    """
    folder = Folder(fork, mode, stages)
    folder.recorder = recorder
    folder.fuel = fuel_for(len(block.instructions))
    made = DependencyBlock(block.start, high=block.high)
    folder.begin(made)
    folder.enter(len(block.params))
    folder.charge(block.gas)
    stands_for = dict(zip(map(id, block.params), made.params, strict=True))

    def known(value: Value) -> Value:
        return folder.const(value.number) if value.op == CONST else stands_for[id(value)]

    def emitted(value: Value) -> Value | None:
        args = tuple(map(known, value.args))
        if value.prechecked or value.op in OWN:
            kept = folder.raw(value.op, args, value.number)
            kept.prechecked = value.prechecked
            return kept
        if recorder is not None:
            folder.where = recorder.numbered_place((block.start, value.number))
        return folder.emit(value.op, args, value.number)

    try:
        for value in block.instructions:
            new = emitted(value)
            if new is not None:
                stands_for[id(value)] = new
            if TRAITS[value.op].observes:
                folder.charge(value.gas)
        words = tuple(map(known, block.end.words))
        made.end = _ended(folder, replace(block.end, args=tuple(map(known, block.end.args)), words=words))
    except NeverReached:
        made.end = End("INVALID")
    folder.sweep()
    return made, folder.stats


def _ended(folder: Folder, end: End) -> End:
    """The terminator, its guard decided; stores that are never read after it are removed."""
    if end.op == "JUMPI" and folder.folds:
        target, condition = end.args
        verdict = guards.holds(condition)
        folder.stats.guards_decided += verdict is not Verdict.KEEP
        if verdict is Verdict.FAIL:
            return replace(end, op="FALL", args=())
        if verdict is Verdict.DROP:
            return replace(end, op="JUMP", args=(target,), cases=())
    if end.op not in CONTINUES and folder.unmakes:
        stores.kill_unread(folder, end.op, end.args)
    return end
