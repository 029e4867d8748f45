"""Lowered functions to stack code; what does not fit on the stack is made again or kept in memory."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from fusevm.analysis.graphs import strong_components
from fusevm.codegen.arrangements import OutOfReach
from fusevm.codegen.blocks import StackProgram
from fusevm.codegen.inlining import recursive_functions
from fusevm.codegen.spilling import costs_of_spilling, is_cheap, keep_in_memory, recompute, users
from fusevm.codegen.stack_code import CodeWriter
from fusevm.codegen.weights import Weights, all_weights
from fusevm.evm.assembler import WORD_BYTES
from fusevm.ir import analyses
from fusevm.ir.fold.summaries import unseen_in
from fusevm.ir.functions import Function, Unit
from fusevm.ir.values import Value
from fusevm.yul.generate import StackTooDeep

BEAM = 6  # stack arrangements kept by the beam search
MAX_SPILLS = 2  # of one value: again where its store has to come before that of another, but not without end


@dataclass(slots=True)
class Spills:
    """Values that did not fit on the stack."""

    used: int = 0  # bytes of memory they take
    known: dict[str, list[int]] = field(default_factory=dict)  # value ids by function, reused by the next attempt


def write(unit: Unit, runs: int, spills: Spills, beam: int = BEAM, low: bool = False) -> StackProgram:
    """Writes the code of a lowered unit; a narrow beam is faster, a wide one finds better code."""
    recursive = recursive_functions(unit)
    parts = strong_components(analyses.call_graph(unit))
    part_of = {name: frozenset(map(unit.number_of, part)) for part in parts for name in part}
    writer = CodeWriter(unit, unseen_in(unit), runs, beam, frozenset(recursive) if low else frozenset())
    weights = all_weights(unit)
    for name, function in unit.functions.items():
        cycle = part_of[name] if name in recursive else frozenset()
        write_function(writer, function, weights[name], unit.guard, spills, cycle)
    return writer.program


def write_function(
    writer: CodeWriter,
    function: Function,
    weights: Weights,
    room: int | None,
    spills: Spills,
    cycle: Set[int] = frozenset(),
) -> None:
    """Writes a function, spilling as few values as possible.

    `room`: where free memory begins, or None; `cycle`: the numbers of the functions that may call a recursive one.
    """
    known = spills.known.setdefault(function.name, [])
    again = list(known)
    known.clear()
    writer.rescues = False
    while True:
        remembered = bool(again)
        try:
            if not remembered:
                writer.spilled = range(0) if room is None or cycle else range(room, room + spills.used)
                writer.write(function, weights)
                return
            candidates = wanted = {again.pop(0)}
        except OutOfReach as reason:
            # What a recursive function spills is on the stack again at calls: there only what is wanted helps.
            candidates, wanted = reason.candidates, reason.wanted if cycle else reason.candidates
        spent = {each for each in known if known.count(each) >= MAX_SPILLS}
        found = _spillable(function, wanted - spent, room) or _spillable(function, candidates - spent, room)
        costs = costs_of_spilling(function, found, weights, cycle)
        value = min(found, key=lambda value: (costs[value], value.id), default=None)
        if value is None and remembered:
            continue
        if not remembered and not writer.rescues and (value is None or (cycle and not is_cheap(value))):
            writer.rescues = True  # dearer than to compute values again, cheaper than to keep them across calls
            continue
        if value is None:
            raise StackTooDeep({function.name: []})
        known.append(value.id)
        if is_cheap(value):
            recompute(function, value)
        else:
            assert room is not None
            keep_in_memory(function, value, room + spills.used, cycle)
            spills.used += WORD_BYTES


def _spillable(function: Function, candidates: set[int], room: int | None) -> list[Value]:
    """The candidates that can be spilled, but for reloads (MLOAD) and rematerialised values with one use."""
    found = [
        value
        for block in function.blocks()
        for value in (*block.params, *block.instructions)
        if value.id in candidates and value.op != "MLOAD" and (room is not None or is_cheap(value))
    ]
    return [value for value in found if len(users(function, value)) > (1 if is_cheap(value) else 0)]
