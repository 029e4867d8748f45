"""Yul objects to bytecode: code, then the sub-objects and data it points to; and what does not fit on the stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fusevm.codegen.yul_assembly import ADDRESS_BYTES, STOP, Assembly, Piece, Surroundings, assemble
from fusevm.codegen.yul_stack import Generator, TooDeep
from fusevm.evm.keccak import keccak256
from fusevm.yul.ast import Block, Data, Literal, Object
from fusevm.yul.dialect import Dialect, dialect_for
from fusevm.yul.errors import ErrorKind, YulError
from fusevm.yul.walk import calls_of

_MOST_EVASIONS = 4  # moving variables to memory needs stack itself, so that once may not be enough
METADATA = ".metadata"  # data of this name stands at the end of the code and cannot be referred to


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """Bytecode of an object, and where immutables (32 bytes) and library addresses (20 bytes) have to be filled in.

    What has to be filled in is zero in `code`; places in embedded sub-objects are included.
    """

    name: str
    code: bytes
    immutables: Mapping[str, list[int]]
    libraries: Mapping[str, list[int]]
    places: Mapping[str, tuple[int, int]]  # offset and size of what the code names; -1 for what is not embedded
    children: Mapping[str, CompiledObject] = field(default_factory=dict)

    def placeholder_hex(self) -> str:
        """The code in hex, with solc's placeholders where library addresses are missing."""
        digits = self.code.hex()
        for name, places in self.libraries.items():
            for place in places:
                digits = digits[: 2 * place] + placeholder(name) + digits[2 * (place + ADDRESS_BYTES) :]
        return digits

    @property
    def runtime(self) -> CompiledObject | None:
        """The object that gets deployed: the one named so, else the only one."""
        named = [child for child in self.children.values() if child.name.endswith("_deployed")]
        candidates = named or list(self.children.values())
        return candidates[0] if len(candidates) == 1 else None


def placeholder(library: str) -> str:
    """What solc and linkers write for the address of a library, as long as its hex digits."""
    return f"__${keccak256(library.encode()).hex()[:34]}$__"


def library_names(obj: Object) -> set[str]:
    """The libraries that code of the object or of one within it wants the address of."""
    calls = calls_of(obj.code, "linkersymbol")
    names = {each.text for call in calls for each in call.arguments if isinstance(each, Literal)}
    return names.union(*(library_names(child) for child in obj.children if isinstance(child, Object)))


class StackTooDeep(YulError):
    """Variables that DUP and SWAP cannot reach, by function."""

    def __init__(self, unreachable: Mapping[str, list[str]]) -> None:
        self.unreachable = dict(unreachable)
        super().__init__(ErrorKind.CODE_GENERATION, 0, "; ".join(_describe(unreachable)))


def _describe(unreachable: Mapping[str, list[str]]) -> Iterator[str]:
    for function, variables in unreachable.items():
        where = f"function '{function}'" if function else "the main code"
        if variables:
            yield f"stack too deep in {where}: cannot reach {', '.join(variables)}"
        else:
            yield f"stack too deep in {where}: too many parameters and return variables"


def _by_function(reports: list[TooDeep]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for report in reports:
        variables = found.setdefault(report.function, [])
        if report.variable and report.variable not in variables:
            variables.append(report.variable)
    return found


def unreachable_variables(block: Block, dialect: Dialect | None = None) -> dict[str, list[str]]:
    """Function name ('' for the main code) to the variables out of reach, in the order in which they are found.

    The list is empty for a function whose parameters and return variables are too many to be put in order.
    """
    dialect = dialect or dialect_for()
    generator = Generator(dialect, Assembly(dialect.fork))
    generator.program(block)
    return _by_function(generator.too_deep)


def compile_object(
    obj: Object, dialect: Dialect | None = None, libraries: Mapping[str, int] | None = None
) -> CompiledObject:
    """Bytecode of an analysed object and everything in it.

    Variables out of reach are moved to memory where a memoryguard leaves room for them, else StackTooDeep is raised.
    """
    try:
        return _compile(obj, dialect or dialect_for(), libraries or {})
    except RecursionError:  # steps can join expressions far deeper than anything that parses
        raise YulError(ErrorKind.CODE_GENERATION, 7319, "too deeply nested") from None


def _compile(obj: Object, dialect: Dialect, libraries: Mapping[str, int]) -> CompiledObject:
    children = {child.name: _compile(child, dialect, libraries) for child in obj.children if isinstance(child, Object)}
    assembly = _generate(obj.code, dialect)
    assembly.raw(STOP, 0)
    pieces = dict(_pieces(obj, children))
    tail = b"".join(child.content for child in obj.children if isinstance(child, Data) and child.name == METADATA)
    around = Surroundings(
        {name: len(piece.content) for name, piece in pieces.items()},
        pieces,
        obj.name or "object",
        tail,
        _immutables_of(children),
    )
    layout = assemble(assembly, around)
    code, unlinked = _link(layout.code, layout.libraries, libraries)
    return CompiledObject(obj.name, code, layout.immutables, unlinked, layout.places, children)


def _generate(code: Block, dialect: Dialect) -> Assembly:
    found: dict[str, list[str]] = {}
    for _ in range(_MOST_EVASIONS):
        generator = Generator(dialect, Assembly(dialect.fork))
        generator.program(code)
        if not generator.too_deep:
            return generator.assembly
        found = found or _by_function(generator.too_deep)  # by the names they have in the source
        code = _with_memory(code, dialect)
    raise StackTooDeep(found)


def _with_memory(code: Block, dialect: Dialect) -> Block:
    """A copy in which StackLimitEvader has moved what *this* generator cannot reach to memory, as far as it can."""
    from fusevm.yul.context import Context
    from fusevm.yul.steps.disambiguator import disambiguated
    from fusevm.yul.steps.stack_limit_evader import evade

    copy = disambiguated(dialect, code)
    evade(Context.for_block(dialect, copy), copy, unreachable_variables(copy, dialect))
    return copy


def _pieces(obj: Object, children: Mapping[str, CompiledObject]) -> Iterator[tuple[str, Piece]]:
    """Everything dataoffset and datasize may name inside the object, with its bytes."""
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
    """Places in the one sub-object that reads immutables: nobody could tell which of several is being deployed."""
    readers = [child for child in children.values() if child.immutables]
    if len(readers) > 1:
        names = " and ".join(f'"{child.name}"' for child in readers)
        raise YulError(ErrorKind.CODE_GENERATION, 0, f"more than one sub-object reads immutables: {names}")
    return readers[0].immutables if readers else {}


def _link(
    code: bytes, places: Mapping[str, list[int]], libraries: Mapping[str, int]
) -> tuple[bytes, dict[str, list[int]]]:
    """Fill in the libraries that are known; the rest is left to whoever deploys."""
    linked = bytearray(code)
    for name in places.keys() & libraries.keys():
        for place in places[name]:
            linked[place : place + ADDRESS_BYTES] = libraries[name].to_bytes(ADDRESS_BYTES, "big")
    return bytes(linked), {name: offsets for name, offsets in places.items() if name not in libraries}
