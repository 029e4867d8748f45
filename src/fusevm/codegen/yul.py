"""Yul objects to bytecode: code, then the sub-objects and data it points to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fusevm.codegen import backend
from fusevm.codegen.source_map import FunctionEntry, mapped_code
from fusevm.codegen.validation import Validation
from fusevm.evm.assembler import ADDRESS_BYTES, STOP, Assembly, Piece, Source, Surroundings, assemble
from fusevm.evm.forks import rules_of
from fusevm.evm.keccak import keccak256
from fusevm.evm.source_map import Mapped
from fusevm.ir.fold.recorder import Recorder
from fusevm.yul.generate import StackTooDeep, generate
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
METADATA = ".metadata"  # data of this name is placed at the end of the code and cannot be referred to


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
    exact: bool = False,
    validation: Validation | None = None,
    recorder: Recorder | None = None,
) -> CompiledObject:
    """Bytecode of an analysed object and everything in it.

    `runs` is how often the deployed code is expected to run: 0 asks for the smallest code, many for the cheapest. None
    translates statement by statement, without optimisation. `exact` keeps the computation as written and only lays it
    out: for text that was optimised before. `validation` checks every pass, `recorder` records the history of the
    outermost object's values. Raises StackTooDeep if the values fit neither on the stack nor in memory.
    """
    with room_to_recurse():
        return _Compiler(dialect or dialect_for(), libraries or {}, runs, exact, validation).object(obj, recorder)


@dataclass(frozen=True, slots=True)
class _Compiler:
    dialect: Dialect
    libraries: Mapping[str, int]
    runs: int | None
    exact: bool
    validation: Validation | None

    def object(self, obj: Object, recorder: Recorder | None = None) -> CompiledObject:
        children = {child.name: self.object(child) for child in obj.children if isinstance(child, Object)}
        runs = CREATION_RUNS if children and self.runs is not None else self.runs
        most = rules_of(self.dialect.fork).max_code_size
        while True:
            compiled = _laid_out(obj, self.generate(obj, runs, recorder), children, self.libraries)
            if runs is None or runs <= RUNS or len(compiled.code) <= most:
                return compiled
            runs = max(runs // 8, RUNS)  # too large to be deployed: less speed, fewer bytes

    def generate(self, obj: Object, runs: int | None, recorder: Recorder | None) -> Assembly:
        if runs is None:
            return _plainly(obj.code, self.dialect)
        code = disambiguated(self.dialect, obj.code)
        for fewer in (runs, *(each for each in (RUNS, 0) if each < runs)):  # less inlining, fewer live values
            try:
                if self.validation is None:
                    return backend.generate(code, self.dialect, fewer, exact=self.exact, recorder=recorder)
                self.validation.object_name = obj.name
                assembly = backend.generate(code, self.dialect, fewer, exact=self.exact, run=self.validation.run)
            except StackTooDeep:
                continue
            return self.validation.whole(code, self.dialect, assembly, lambda: _plainly(obj.code, self.dialect))
        return _plainly(obj.code, self.dialect)  # the plain translation may still fit on the stack


def _plainly(code: Block, dialect: Dialect) -> Assembly:
    assembly = generate(code, dialect)
    assembly.at(code.location)
    assembly.raw(STOP, 0)
    return assembly


def _laid_out(
    obj: Object, assembly: Assembly, children: Mapping[str, CompiledObject], libraries: Mapping[str, int]
) -> CompiledObject:
    pieces = dict(_pieces(obj, children))
    tail = b"".join(child.content for child in obj.children if isinstance(child, Data) and child.name == METADATA)
    around = Surroundings(
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


def _pieces(obj: Object, children: Mapping[str, CompiledObject]) -> Iterator[tuple[str, Piece]]:
    """Everything inside the object that dataoffset and datasize may name, with its bytes."""
    for child in obj.children:
        if isinstance(child, Data):
            yield child.name, Piece(child.content)
        else:
            compiled = children[child.name]
            libraries = tuple((name, tuple(places)) for name, places in compiled.libraries.items())
            yield child.name, Piece(compiled.code, libraries)
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
