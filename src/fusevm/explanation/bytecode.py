"""Bytecode explained: the code as it was given, the functions found in it, and the cheaper code made of them."""

from __future__ import annotations

from functools import partial

from fusevm.api import EVM
from fusevm.codegen.bytecode import optimize
from fusevm.evm import assembler
from fusevm.evm.assembly import AssemblyError, assemble, items_of
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.explanation.document import Line, Made, Pane, Totals
from fusevm.explanation.folds import folds_of
from fusevm.explanation.inputs import BadSource
from fusevm.explanation.irlines import Watching, block_ir_lines, ir_lines, places_of
from fusevm.explanation.listing import listed, source_listing, static_gas
from fusevm.explanation.places import Lines, opcodes_by_line
from fusevm.ir.fold.recorder import number_of

# Instructions of code that is optimised without being asked for, and that is shown as dependency blocks.
MAX_OPTIMISED, MAX_FOLDED = 3_000, 18_000
GAS = 10_000_000  # for creation code whose runtime is asked for
_OPTIMISED = "The code that fusevm.optimize makes of it."
_AS_IT_IS = "The code as it was given."
LinesAt = dict[int, tuple[int, ...]]


CREATION, RUNTIME = "creation", "runtime"


def explain_bytecode(
    code: bytes, creation: bytes, fork: Fork, runs: int, optimised: bool | None, wanted: str | None
) -> Made:
    """`optimised`: None optimises what is short enough for that to be quick.

    `creation` is the code that deploys this one, if it is known. `wanted` is creation or runtime: the runtime of code
    that is only known as creation code is what it leaves when it is run.
    """
    if wanted not in (None, CREATION, RUNTIME):
        raise BadSource(f"object {wanted!r} is not there; bytecode has {CREATION!r} and {RUNTIME!r}")
    if wanted == CREATION and creation:
        code, creation = creation, b""
        made = _listed_code(code, fork, runs, optimised)
        made.is_creation = True
    elif wanted == RUNTIME and not creation:
        creation, code = code, _deployed(code, fork)
        made = _listed_code(code, fork, runs, optimised)
    else:
        made = _listed_code(code, fork, runs, optimised)
    if made.is_creation or creation:
        made.objects, made.chosen = [CREATION, RUNTIME], CREATION if made.is_creation else RUNTIME
    made.creation = partial(bytes, creation)
    return made


def _listed_code(code: bytes, fork: Fork, runs: int, optimised: bool | None) -> Made:
    lines, lines_at = source_listing(code, fork)
    return explain_code(code, fork, runs, optimised, lines, lines_at, "bytecode")


def _deployed(code: bytes, fork: Fork) -> bytes:
    result = EVM(fork=fork).deploy(code, gas=GAS)
    if not result.ok or not result.output:
        raise BadSource(f"object {RUNTIME!r}: the code deploys nothing: {result.error or 'it returns no code'}")
    return result.output


def explain_assembly(text: str, fork: Fork, runs: int, optimised: bool | None) -> Made:
    try:
        code = assemble(text, fork)
    except AssemblyError as error:
        raise BadSource(f"assembly: {error}") from None
    layout = assembler.assemble(items_of(text, fork), fork)
    lines_at: LinesAt = {pc: (source[0],) for pc, source in layout.sources().items()}
    lines = [Line(each, (number,)) for number, each in enumerate(Lines(text).texts, 1)]
    return explain_code(code, fork, runs, optimised, lines, lines_at, "assembly")


def explain_code(
    code: bytes,
    fork: Fork,
    runs: int,
    optimised: bool | None,
    lines: list[Line],
    lines_at: LinesAt,
    language: str,
) -> Made:
    """`lines_at` gives the lines of the source by the pc of the code as it was given."""
    watching, notes, is_creation = Watching(), list[str](), False
    count = sum(1 for _ in instructions(code, fork))
    small = count <= MAX_FOLDED
    made_of: dict[int, tuple[int, ...]] = {pc: (pc,) for pc in lines_at}  # new pcs to old ones
    new, ir = code, list[Line]()
    if optimised or (optimised is None and count <= MAX_OPTIMISED):
        found = optimize(code, fork, runs, recorder=watching)
        notes += [f"optimize: {reason}" for reason in found.report.left_alone]
        is_creation = found.report.kind == "creation"
        if found.layout is not None:
            sources = places_of(watching, found.layout.sources())
            new = found.code
            made_of = {pc: _old_pcs(places, watching) for pc, places in sources.items()}
            names = {each.pc: each.name for each in instructions(new, fork)}
            ir = ir_lines(watching, sources, lambda where: lines_at.get(where[-1], ()) if where[0] >= 0 else (), names)
    elif optimised is None:
        notes.append(
            f"optimize: not run: {count:,} instructions; more than {MAX_OPTIMISED:,} take some seconds "
            "(in Python: optimised=True)"
        )
    new_lines_at = {
        pc: tuple(sorted({line for old in olds for line in lines_at.get(old, ())})) for pc, olds in made_of.items()
    }
    note = "Functions in SSA form, folded: what the new code is written from."
    if new is code and small:
        ir, note = (
            block_ir_lines(code, fork, lines_at, watching),
            "Dependency blocks of the code, folded with gas kept exact.",
        )
    elif new is code:
        notes.append(f"IR: not made: {count:,} instructions, more than {MAX_FOLDED:,}")
    became = opcodes_by_line(new_lines_at)
    lines = [Line(line.text, line.src, tuple(became.get(at, ())), line.kind) for at, line in enumerate(lines, 1)]
    panes = [Pane("source", "Original" if language == "bytecode" else "Source", _AS_IT_IS, lines)]
    if ir:
        panes.append(Pane("ir", "Folded IR", note, ir))
    note = _OPTIMISED if new is not code else _AS_IT_IS
    panes.append(Pane("bytecode", "Bytecode", note, listed(new, fork, new_lines_at, {})))
    gas = static_gas(code, fork)
    totals = Totals(len(code), len(new), gas, gas if new is code else static_gas(new, fork))
    folds = folds_of(watching, ir)
    line_at = {pc: found[0] for pc, found in new_lines_at.items() if found}
    made = Made(language, new, panes, totals, lines_at=new_lines_at, line_at=line_at, notes=notes, folds=folds)
    made.is_creation = is_creation
    made.deferred = optimised is None and count > MAX_OPTIMISED
    return made


def _old_pcs(places: list[assembler.Source], watching: Watching) -> tuple[int, ...]:
    found: set[int] = set()
    for source in places:
        number = number_of(source)
        where = watching.place(number) if number is not None else source
        if where[0] >= 0 and len(where) == 3:
            found.add(where[-1])
    return tuple(sorted(found))
