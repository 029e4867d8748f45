"""Yul explained: the text, what the steps made of it, the folded functions, and the bytecode, linked line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fusevm.codegen.yul import NO_COST, CompiledObject, StepOrder, compile_object
from fusevm.evm.bytecode import instructions
from fusevm.explanation.document import Line, Made, Pane, Totals
from fusevm.explanation.folds import folds_of
from fusevm.explanation.inputs import BadSource
from fusevm.explanation.irlines import LinesOf, Watching, ir_lines, places_of
from fusevm.explanation.listing import listed, static_gas
from fusevm.explanation.numbering import Numbering
from fusevm.explanation.places import Lines, OriginLines, opcodes_by_line
from fusevm.explanation.steps import StepWatcher
from fusevm.ir.fold.recorder import number_of
from fusevm.yul.sequence import COMPILED_SEQUENCE, Names, SequenceError
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.errors import YulError

_TITLES = {
    StepOrder.STEPS: ("Optimised Yul", "What the optimiser's steps made of it."),
    StepOrder.AS_WRITTEN: ("Yul", "What the code is made from: the text as it was given."),
}


def explain_yul(
    text: str,
    dialect: Dialect,
    runs: int,
    steps: str | Names | None,
    wanted: str | None,
    original: tuple[str, int] | None = None,
    as_written: bool = False,
) -> Made:
    """Raises BadSource for a program that is wrong, or a sequence that cannot be read.

    `original` is the text that this one was made from, and its number in `@src` comments. `as_written` leaves out all
    optimisation.
    """
    obj = _checked(text, dialect)
    lines = Lines(text) if original is None else OriginLines(original[0], obj.origins, original[1], len(text.encode()))
    objects = dict(_objects(obj))
    chosen = _chosen(objects, wanted)
    watcher = StepWatcher(dialect, lines)
    whole = _compiled(obj, dialect, None if as_written else runs, steps, watcher)
    found = dict(_compiled_objects(whole))[chosen]
    assert found.text is not None
    numbering, watching = Numbering(found.text), Watching()
    compiled = compile_object(
        numbering.obj, dialect, runs=None if as_written else runs, order=StepOrder.AS_WRITTEN, recorder=watching
    )
    fork, size, sources = dialect.fork, code_size(compiled), places_of(watching, compiled.sources)
    starts_at = {
        pc: [start for each in places for start in numbering.starts_of(each)] for pc, places in sources.items()
    }
    lines_at = {pc: lines.of(starts) for pc, starts in starts_at.items()}
    functions = {entry.pc: name for name, entry in compiled.functions.items()}
    panes = [
        Pane("source", "Source", "The text as it was given.", source_lines(lines, lines_at)),
        Pane("yul", *_TITLES[found.order], numbering.lines(lines, sources)),
    ]
    folds = {}
    from_ir = any(number_of(source) is not None for source in compiled.sources.values())  # and not plainly translated
    if from_ir:
        note = "Functions in SSA form, folded and inlined: what the code generator writes down."
        names = {each.pc: each.name for each in instructions(compiled.code[:size], fork)}
        panes.append(Pane("ir", "Folded IR", note, ir_lines(watching, sources, _lines_of(lines, numbering), names)))
        folds = folds_of(watching, panes[-1].lines)
    note = "The code as it is deployed and run."
    panes.append(Pane("bytecode", "Bytecode", note, listed(compiled.code, fork, lines_at, functions, size)))
    made = Made("yul", compiled.code, panes, _totals(objects[chosen], compiled, dialect, size))
    made.objects, made.chosen, made.size = list(objects), chosen, size
    made.lines_at, made.functions_at = lines_at, functions
    made.line_at = {pc: lines.innermost(starts) for pc, starts in starts_at.items()}
    made.sequence = None if as_written else steps if isinstance(steps, str) else COMPILED_SEQUENCE
    made.steps, made.folds = watcher.steps, folds
    outermost = next(iter(objects))
    made.is_creation = chosen == outermost and len(objects) > 1
    if chosen != outermost:
        made.creation = partial(bytes, whole.code)
    if watcher.left_out:
        made.notes.append(f"steps: {watcher.left_out:,} more are not shown")
    if found.order is StepOrder.AS_WRITTEN and watcher.steps:
        made.notes.append(f"steps: tried, and not used: {_compared(found, runs)}")
    if not from_ir:
        why = "nothing is optimised" if as_written else "the values do not fit on the stack"
        made.notes.append(f"IR: not made, because {why}: the code was translated as it stands")
    return made


def _lines_of(lines: Lines, numbering: Numbering) -> LinesOf:
    return lambda where: lines.of(numbering.starts_of(where))


def _compared(found: CompiledObject, runs: int) -> str:
    """What the code would cost in each order, by the compiler's own measure."""
    each = [
        f"{order.value} {cost.bytes:,} bytes and {cost.gas:,.0f} static gas"
        for order, cost in found.costs.items()
        if cost is not NO_COST
    ]
    return "; ".join(each) + f", at {runs:,} runs"


def source_lines(lines: Lines, lines_at: dict[int, tuple[int, ...]]) -> list[Line]:
    made = opcodes_by_line(lines_at)
    return [Line(text, (number,), tuple(made.get(number, ()))) for number, text in enumerate(lines.texts, 1)]


def code_size(compiled: CompiledObject) -> int:
    """Of the instructions, without the data after them."""
    last = max(compiled.locations, default=-1)
    return last + next(instructions(compiled.code[last:])).size if last >= 0 else 0


def _checked(text: str, dialect: Dialect) -> Object:
    obj, errors = check(text, dialect)
    wrong = [error for error in errors if not error.is_warning]
    if wrong or obj is None:
        raise BadSource(str(wrong[0]))
    return obj


def _objects(obj: Object) -> Iterator[tuple[str, Object]]:
    return _named(obj, lambda each: [child for child in each.children if isinstance(child, Object)])


def _compiled_objects(obj: CompiledObject) -> Iterator[tuple[str, CompiledObject]]:
    return _named(obj, lambda each: list(each.children.values()))


def _named(obj: Any, children_of: Callable[[Any], list[Any]]) -> Iterator[tuple[str, Any]]:
    """By name, outermost first; by path where a name is taken."""
    seen: set[str] = set()
    work = [(obj, obj.name)]
    while work:
        each, path = work.pop(0)
        name = path if each.name in seen else each.name
        seen.add(name)
        yield name, each
        work += [(child, f"{path}.{child.name}") for child in children_of(each)]


def _chosen(objects: dict[str, Object], wanted: str | None) -> str:
    """The one asked for, else what is deployed, else the outermost."""
    if wanted is not None:
        if wanted not in objects:
            raise BadSource(f"object {wanted!r} is not there; there are {', '.join(map(repr, objects))}")
        return wanted
    names = list(objects)
    deployed = [name for name in names if name.endswith("_deployed")]
    inner = [child.name for child in objects[names[0]].children if isinstance(child, Object)]
    return deployed[0] if deployed else inner[0] if len(inner) == 1 else names[0]


def _compiled(
    obj: Object, dialect: Dialect, runs: int | None, steps: str | Names | None, watcher: StepWatcher
) -> CompiledObject:
    """As `fusevm yul compile` compiles it; with `steps` given, after these."""
    try:
        return compile_object(obj, dialect, runs=runs, steps=steps if runs is not None else None, on_step=watcher.watch)
    except SequenceError as error:
        raise BadSource(str(error)) from None
    except YulError as error:
        raise BadSource(str(error)) from None


def _totals(before: Object, compiled: CompiledObject, dialect: Dialect, size: int) -> Totals:
    after = static_gas(compiled.code[:size], dialect.fork)
    try:
        plain = compile_object(before, dialect, runs=None)
    except YulError:  # it does not even fit on the stack as it stands
        return Totals(len(compiled.code), len(compiled.code), after, after)
    return Totals(len(plain.code), len(compiled.code), static_gas(plain.code[: code_size(plain)], dialect.fork), after)
