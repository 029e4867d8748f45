"""Functions in SSA form as lines, each with the opcodes that it became and the source lines it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusevm.codegen.ordering import FREE
from fusevm.evm.assembler import Source
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.explanation.document import CODE, LABEL, Line
from fusevm.explanation.folds import with_removed
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.recorder import FoldRecorder, Tag, number_of
from fusevm.ir.functions import Unit
from fusevm.ir.lift import lift_block
from fusevm.ir.ordering import schedule
from fusevm.ir.text import IrLine as TextLine
from fusevm.ir.text import block_text, function_lines

MAX_PLACES = 64  # of one opcode
LinesOf = Callable[[Source], tuple[int, ...]]


class Watching(FoldRecorder):
    """A recorder that keeps the text of the unit as it was once folded."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[TextLine] = []

    def start(self) -> None:
        super().start()
        self.lines = []

    def finish(self, unit: Unit) -> None:
        super().finish(unit)
        self.lines = [line for function in unit.functions.values() for line in function_lines(function, unit)]


def places_of(recorder: FoldRecorder, sources: Mapping[int, Source]) -> dict[int, list[Source]]:
    """All source locations of each opcode: its own, those of the calls that were inlined, and
    those of equal code that was merged with it."""
    found: dict[int, list[Source]] = {}
    for pc, source in sources.items():
        number = number_of(source)
        found[pc] = [source]
        if number is not None:
            written = [number, *sorted(recorder.written_for(number) - {number})[:MAX_PLACES]]
            calls = [call for each in written for call in recorder.callers(each)]
            others = dict.fromkeys([*calls, *written[1:]])
            found[pc] += [(*recorder.place(other)[:2], Tag(other)) for other in others]
    return found


def opcodes_by_number(places: Mapping[int, Sequence[Source]]) -> dict[int, list[int]]:
    """The opcodes generated from every numbered instruction."""
    found: dict[int, list[int]] = {}
    for pc, sources in places.items():
        for number in map(number_of, sources):
            if number is not None:
                found.setdefault(number, []).append(pc)
    return found


def ir_lines(
    watching: Watching, places: Mapping[int, Sequence[Source]], lines_of: LinesOf, names: Mapping[int, str]
) -> list[Line]:
    """`lines_of` gives the source lines of a place, `names` are those of the opcodes."""
    became = opcodes_by_number(places)
    _add_pushed(became, watching.lines, names)
    found: list[Line] = []
    for line in watching.lines:
        number = number_of(line.where)
        if number is None:
            src = lines_of(line.where) if line.where is not None else ()
            found.append(Line(line.text, src, (), LABEL))
            continue
        written = [watching.place(each) for each in (number, *watching.callers(number))]
        src = tuple(sorted({line for place in written for line in lines_of(place)}))
        pcs = tuple(sorted(became.get(number, ())))
        found.append(Line(line.text, src, pcs, CODE, None, number))
    return with_removed(watching, found, lines_of)


def _add_pushed(became: dict[int, list[int]], lines: Sequence[TextLine], names: Mapping[int, str]) -> None:
    """What is pushed wherever it is used, as CALLER, has no code of its own: its opcodes are among its users'."""
    for line in lines:
        user = number_of(line.where)
        for value in line.uses:
            number = number_of(value.where)
            if value.op in FREE and number is not None and user is not None:
                pcs = [pc for pc in became.get(user, ()) if names.get(pc) == value.op]
                known = became.setdefault(number, [])
                known += [pc for pc in pcs if pc not in known]


def block_ir_lines(
    code: bytes, fork: Fork, lines_at: Mapping[int, tuple[int, ...]], recorder: FoldRecorder
) -> list[Line]:
    """Dependency blocks as lines: values know the opcode they come from. The recorder records their history."""
    recorder.start()
    found: list[Line] = []
    for source in basic_blocks(code, fork):
        block, _ = fold_block(lift_block(source, fork), fork, recorder=recorder)
        order = schedule(block)
        head, *texts = block_text(block, order).rstrip("\n").split("\n")
        found.append(Line(head, (), (block.start,) if block.start in lines_at else (), LABEL))
        for text, value in zip(texts, [*[step.value for step in order.steps], None], strict=True):
            pcs = (value.number,) if value is not None and value.op in BY_NAME and value.number in lines_at else ()
            number = number_of(value.where) if value is not None else None
            found.append(Line(text, lines_at.get(pcs[0], ()) if pcs else (), pcs, CODE, None, number))
    return with_removed(recorder, found, lambda place: lines_at.get(place[-1], ()))
