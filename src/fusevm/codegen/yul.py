"""Yul objects to bytecode: code, then the sub-objects and data it points to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from fusevm.codegen import backend
from fusevm.codegen.backend import Generated
from fusevm.codegen.measure import StaticCost
from fusevm.codegen.pipeline import REWRITES, YUL_STEPS, just_run
from fusevm.codegen.source_map import FunctionEntry, mapped_code
from fusevm.codegen.validation import Validation
from fusevm.evm.assembler import ADDRESS_BYTES, STOP, Assembly, CodePiece, ObjectReferences, Source, assemble
from fusevm.evm.forks import rules_of
from fusevm.evm.keccak import keccak256
from fusevm.evm.source_map import Mapped
from fusevm.ir.fold.recorder import FoldRecorder
from fusevm.yul.analysis.metrics import code_size
from fusevm.yul.generate import StackTooDeep, generate
from fusevm.yul.optimise import OnStep, optimize
from fusevm.yul.sequence import COMPILED_SEQUENCE, Names
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.ast import Block, Data, Literal, Object
from fusevm.yul.syntax.depth import room_to_recurse
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import ErrorKind, YulError
from fusevm.yul.syntax.origins import source_names
from fusevm.yul.syntax.walk import calls_of

RUNS = 200
# Creation code runs once, and its bytes are sent but not kept: 16 gas each instead of 216.
CREATION_RUNS = 13
MAX_TRIED = 8_000  # of `code_size`: larger programs are compiled as written only, since the steps would take minutes
NO_GAIN = 0.001  # code that is hardly cheaper does not replace that of the text as written
CERTAINTY = 0.05  # of estimates: code that costs so much less is cheaper
NEAR = 1.01  # so many times the bytes or the gas are about the same
NO_COST = StaticCost(1 << 62, float(1 << 62))  # of a plain translation, which is only taken if there is nothing else
METADATA = ".metadata"  # data of this name is placed at the end of the code and cannot be referred to


class StepOrder(StrEnum):
    """Whether the optimiser's steps run over the text before it becomes functions."""

    AS_WRITTEN = "as written"
    STEPS = "after the Yul steps"
    CHEAPER = "the cheaper of both"


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """Bytecode of an object, and the offsets at which immutables (32 bytes) and library addresses (20 bytes) go.

    These are zero in `code`; offsets in embedded sub-objects are included.
    """

    name: str
    code: bytes
    immutables: Mapping[str, list[int]]
    libraries: Mapping[str, list[int]]
    places: Mapping[str, tuple[int, int]]  # offset and size of what the code names; -1 if it is not embedded
    children: Mapping[str, CompiledObject] = field(default_factory=dict)
    locations: Mapping[int, Mapped] = field(default_factory=dict)  # source range of each instruction, by offset
    functions: Mapping[str, FunctionEntry] = field(default_factory=dict)
    source_names: Mapping[int, str] = field(default_factory=dict)  # of the numbers in locations, from @use-src
    sources: Mapping[int, Source] = field(default_factory=dict)  # the same in offsets of the Yul text, by offset
    order: StepOrder = StepOrder.AS_WRITTEN  # in which the code was made
    costs: Mapping[StepOrder, StaticCost] = field(default_factory=dict)  # of the orders that were tried
    notes: tuple[str, ...] = ()  # what was done otherwise than usual, and why
    text: Object | None = None  # what the code was made from: the object as written, or what the steps made of it

    def placeholder_hex(self) -> str:
        """The code in hex, with solc's placeholders where library addresses are missing."""
        digits = self.code.hex()
        for name, places in self.libraries.items():
            for place in places:
                digits = digits[: 2 * place] + placeholder(name) + digits[2 * (place + ADDRESS_BYTES) :]
        return digits

    @property
    def runtime(self) -> CompiledObject | None:
        """The object that gets deployed: the one named `…_deployed`, else the only one."""
        named = [child for child in self.children.values() if child.name.endswith("_deployed")]
        candidates = named or list(self.children.values())
        return candidates[0] if len(candidates) == 1 else None


def placeholder(library: str) -> str:
    """The placeholder of solc and linkers for a library address, as long as its hex digits."""
    return f"__${keccak256(library.encode()).hex()[:34]}$__"


def library_names(obj: Object) -> set[str]:
    """The libraries whose addresses the object or one of its sub-objects uses."""
    calls = calls_of(obj.code, "linkersymbol")
    names = {each.text for call in calls for each in call.arguments if isinstance(each, Literal)}
    return names.union(*(library_names(child) for child in obj.children if isinstance(child, Object)))


def compile_object(
    obj: Object,
    dialect: Dialect | None = None,
    libraries: Mapping[str, int] | None = None,
    *,
    runs: int | None = RUNS,
    order: StepOrder | None = None,
    steps: str | Names | None = None,
    exact: bool = False,
    without: Set[str] = frozenset(),
    validation: Validation | None = None,
    recorder: FoldRecorder | None = None,
    on_step: OnStep | None = None,
) -> CompiledObject:
    """Bytecode of an analysed object and everything in it, by the passes of `pipeline`.

    - `runs` is how often the deployed code is expected to run: 0 asks for the smallest code, many for the cheapest.
      None translates statement by statement, without optimisation.
    - `order`: whether the optimiser's steps over the text come first. By default both orders are tried, and the cheaper
      code is kept (`Order.CHEAPER`); with `steps`, a sequence of them, these are run. `on_step` sees each step.
    - `exact` keeps the computation as written, or as the steps of the given order leave it, and only lays it out.
    - `without` names passes to be left out, `validation` checks every pass, and `recorder` records the history of the
      outermost object's values in the order as written.

    Raises StackTooDeep if the values fit neither on the stack nor in memory.
    """
    dialect = dialect or dialect_for()
    if order is None:
        as_written = steps is None and (exact or recorder is not None)
        order = StepOrder.AS_WRITTEN if as_written else StepOrder.CHEAPER if steps is None else StepOrder.STEPS
    left_out = frozenset(without) | (REWRITES if exact else frozenset())
    with room_to_recurse():
        trees = {StepOrder.AS_WRITTEN: obj}
        if runs is None or (order is StepOrder.CHEAPER and not _within_budget(obj, without)):
            order = StepOrder.AS_WRITTEN
        if order is not StepOrder.AS_WRITTEN:
            sequence = COMPILED_SEQUENCE if steps is None and not exact else steps
            keeps = on_step is not None
            trees[StepOrder.STEPS] = optimize(
                obj, dialect, runs or 0, sequence, on_step, keep_calls=keeps, fitting=False
            )
        orders = tuple(trees) if order is StepOrder.CHEAPER else (order,)
        return _Compiler(dialect, libraries or {}, runs, orders, left_out, validation).object(trees, recorder)


def _within_budget(obj: Object, without: Set[str]) -> bool:
    """Whether the code is small enough to be compiled twice, and the steps are not left out."""
    return YUL_STEPS.name not in without and sum(code_size(each.code, True) for each in objects_of(obj)) <= MAX_TRIED


class _Part(NamedTuple):
    """The code of one object, made in one order."""

    obj: Object
    order: StepOrder
    assembly: Assembly
    cost: StaticCost
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compiler:
    dialect: Dialect
    libraries: Mapping[str, int]
    runs: int | None
    orders: tuple[StepOrder, ...]
    without: frozenset[str]
    validation: Validation | None

    def object(self, trees: Mapping[StepOrder, Object], recorder: FoldRecorder | None = None) -> CompiledObject:
        inner: dict[str, dict[StepOrder, Object]] = {}
        for order, tree in trees.items():
            for child in tree.children:
                if isinstance(child, Object):
                    inner.setdefault(child.name, {})[order] = child
        children = {name: self.object(each) for name, each in inner.items()}
        runs = CREATION_RUNS if children and self.runs is not None else self.runs
        most = rules_of(self.dialect.fork).max_code_size
        while True:
            parts = self.parts(trees, runs, recorder)
            best = cheapest(parts, runs or 0)
            compiled = _laid_out(best.obj, best.assembly, children, self.libraries)
            if runs is None or runs <= RUNS or len(compiled.code) <= most:
                costs = {part.order: part.cost for part in parts}
                return replace(
                    compiled, order=best.order, costs=costs, notes=best.notes, text=_with_texts(best.obj, children)
                )
            runs = max(runs // 8, RUNS)  # too large to be deployed: less speed, fewer bytes

    def parts(self, trees: Mapping[StepOrder, Object], runs: int | None, recorder: FoldRecorder | None) -> list[_Part]:
        """The code in each order; an order in which the values do not fit is left out if they fit in another."""
        found: list[_Part] = []
        too_deep: StackTooDeep | None = None
        for order in self.orders:
            obj = trees[order]
            try:
                made = self.generate(obj, trees[StepOrder.AS_WRITTEN], runs, recorder)
            except StackTooDeep as error:
                too_deep = too_deep or error
                continue
            found.append(_Part(obj, order, made.assembly, made.cost, made.notes))
        if not found and too_deep is not None:
            raise too_deep
        return found

    def generate(self, obj: Object, written: Object, runs: int | None, recorder: FoldRecorder | None) -> Generated:
        if runs is None:
            return Generated(_plainly(obj.code, self.dialect), NO_COST)
        code = disambiguated(self.dialect, obj.code)
        run = just_run if self.validation is None else self.validation.run
        for fewer in (runs, *(each for each in (RUNS, 0) if each < runs)):  # less inlining, fewer live values
            if self.validation is not None:
                self.validation.object_name = obj.name
            try:
                made = backend.generate(code, self.dialect, fewer, without=self.without, run=run, recorder=recorder)
            except StackTooDeep:
                continue
            if self.validation is None:
                return made
            plain = partial(_plainly, written.code, self.dialect)
            whole = self.validation.whole(code, self.dialect, made.assembly, plain)
            return made._replace(assembly=whole)
        note = f"{_named(obj)}: translated as it stands, because its values do not fit on the stack"
        return Generated(_plainly(obj.code, self.dialect), NO_COST, (note,))


def _with_texts(obj: Object, children: Mapping[str, CompiledObject]) -> Object:
    """The object with what its children were made from."""
    made = [children[each.name].text or each if isinstance(each, Object) else each for each in obj.children]
    return replace(obj, children=made)


def cheapest(parts: Sequence[_Part], runs: int) -> _Part:
    """The part that costs least; that of the text as written unless another costs really less.

    One that gives up bytes for gas does not replace the text after the steps, since gas is only estimated, and one that
    gives up gas for bytes only if it costs much less.
    """
    *written, after = parts
    best = min(parts, key=lambda part: part.cost.over(runs))
    if parts[0].cost.over(runs) <= best.cost.over(runs) * (1 + NO_GAIN):
        best = parts[0]
    if best not in written:
        return best
    bytes_, gas = (1.0 if not theirs else ours / theirs for ours, theirs in zip(best.cost, after.cost, strict=True))
    is_much = best.cost.over(runs) < after.cost.over(runs) * (1 - CERTAINTY)
    spends_bytes = runs <= RUNS and bytes_ > NEAR and gas < 1 / NEAR
    spends_gas = runs >= RUNS and gas > NEAR and bytes_ < 1 / NEAR and not is_much
    return after if spends_bytes or spends_gas else best


def objects_of(obj: Object) -> Iterator[Object]:
    """The object and those in it."""
    yield obj
    for child in obj.children:
        if isinstance(child, Object):
            yield from objects_of(child)


def _named(obj: Object) -> str:
    return f'object "{obj.name}"' if obj.name else "the code"


def _plainly(code: Block, dialect: Dialect) -> Assembly:
    """Translated as it stands, by the passes that rewrite nothing where a variable has to be moved."""
    try:
        assembly = generate(code, dialect)
    except StackTooDeep as error:
        with suppress(StackTooDeep):
            return backend.generate(disambiguated(dialect, code), dialect, 0, without=REWRITES).assembly
        raise error
    assembly.at(code.location)
    assembly.raw(STOP, 0)
    return assembly


def _laid_out(
    obj: Object, assembly: Assembly, children: Mapping[str, CompiledObject], libraries: Mapping[str, int]
) -> CompiledObject:
    pieces = dict(_pieces(obj, children))
    tail = b"".join(child.content for child in obj.children if isinstance(child, Data) and child.name == METADATA)
    around = ObjectReferences(
        {name: len(piece.content) for name, piece in pieces.items()},
        pieces,
        obj.name or "object",
        tail,
        _immutables_of(children),
    )
    layout = assemble(assembly.items, assembly.fork, around)
    code, unlinked = _link(layout.code, layout.libraries, libraries)
    sources = layout.sources()
    locations = mapped_code(layout.code[: layout.size], sources, obj, assembly.fork)
    functions = {name: FunctionEntry(layout.labels[at], *slots) for name, (at, *slots) in assembly.entries.items()}
    names = source_names(obj.debug) or {}
    return CompiledObject(
        obj.name, code, layout.immutables, unlinked, layout.places, children, locations, functions, names, sources
    )


def _pieces(obj: Object, children: Mapping[str, CompiledObject]) -> Iterator[tuple[str, CodePiece]]:
    """Everything inside the object that dataoffset and datasize may name, with its bytes."""
    for child in obj.children:
        if isinstance(child, Data):
            yield child.name, CodePiece(child.content)
        else:
            compiled = children[child.name]
            libraries = tuple((name, tuple(places)) for name, places in compiled.libraries.items())
            yield child.name, CodePiece(compiled.code, libraries)
            for name, piece in _pieces(child, compiled.children):
                yield f"{child.name}.{name}", piece


def _immutables_of(children: Mapping[str, CompiledObject]) -> Mapping[str, list[int]]:
    """Offsets in the one sub-object that reads immutables; with several, the deployed one would be ambiguous."""
    readers = [child for child in children.values() if child.immutables]
    if len(readers) > 1:
        names = " and ".join(f'"{child.name}"' for child in readers)
        raise YulError(ErrorKind.CODE_GENERATION, 0, f"more than one sub-object reads immutables: {names}")
    return readers[0].immutables if readers else {}


def _link(
    code: bytes, places: Mapping[str, list[int]], libraries: Mapping[str, int]
) -> tuple[bytes, dict[str, list[int]]]:
    """Fills in known library addresses; the others must be linked later."""
    linked = bytearray(code)
    for name in places.keys() & libraries.keys():
        for place in places[name]:
            linked[place : place + ADDRESS_BYTES] = libraries[name].to_bytes(ADDRESS_BYTES, "big")
    return bytes(linked), {name: offsets for name, offsets in places.items() if name not in libraries}
