"""The Yul syntax tree: small mutable nodes, each with the place in the source it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from fusevm.yul.syntax.origins import NO_ORIGINS, Origins


class Location(NamedTuple):
    """Offsets into the source text, end exclusive; -1 if the node was inserted by a step."""

    start: int = -1
    end: int = -1


NOWHERE = Location()
DEEPEST = 8  # calls that the place of inlined code remembers


class Inlined(Location):
    """A place in the body of a function that was copied to where it is called: `caller` is the place of the call."""

    caller: Location = NOWHERE


def inlined(place: Location, caller: Location) -> Location:
    """What has no place of its own counts as part of the call."""
    if place.start < 0 or caller.start < 0:
        return place if place.start >= 0 else caller
    made = Inlined(*place)
    made.caller = inlined(place.caller, caller) if isinstance(place, Inlined) else caller
    return made


def callers_of(place: Location) -> list[Location]:
    """The calls that led to a place, innermost first."""
    found: list[Location] = []
    while isinstance(place, Inlined) and len(found) < DEEPEST:
        place = place.caller
        found.append(place)
    return found


class LiteralKind(Enum):
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING = "string"


@dataclass(slots=True, eq=False)
class Literal:
    """A constant. `value` is the word it stands for; `text` is how it is spelt (a string's raw bytes, as Latin-1)."""

    kind: LiteralKind
    value: int
    text: str
    location: Location = NOWHERE
    unlimited: bool = False  # a name handed to datasize and the like, not a word


@dataclass(slots=True, eq=False)
class Identifier:
    name: str
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class FunctionCall:
    """A call of a builtin or of a user's function: the dialect tells which."""

    function: Identifier
    arguments: list[Expression]
    location: Location = NOWHERE

    @property
    def name(self) -> str:
        return self.function.name


@dataclass(slots=True, eq=False)
class TypedName:
    """A name where it is declared."""

    name: str
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class ExpressionStatement:
    expression: Expression
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class VariableDeclaration:
    variables: list[TypedName]
    value: Expression | None
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Assignment:
    targets: list[Identifier]
    value: Expression
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Block:
    statements: list[Statement] = field(default_factory=list)
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class If:
    condition: Expression
    body: Block
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Case:
    """`value` is None for the default case."""

    value: Literal | None
    body: Block
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Switch:
    expression: Expression
    cases: list[Case]
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class ForLoop:
    pre: Block
    condition: Expression
    post: Block
    body: Block
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class FunctionDefinition:
    name: str
    parameters: list[TypedName]
    returns: list[TypedName]
    body: Block
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Break:
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Continue:
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Leave:
    location: Location = NOWHERE


Expression: TypeAlias = FunctionCall | Identifier | Literal
Statement: TypeAlias = (
    ExpressionStatement
    | Assignment
    | VariableDeclaration
    | FunctionDefinition
    | If
    | Switch
    | ForLoop
    | Break
    | Continue
    | Leave
    | Block
)
Node: TypeAlias = Expression | Statement | Case | TypedName


@dataclass(slots=True, eq=False)
class Data:
    """A named piece of bytes inside an object."""

    name: str
    content: bytes
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Object:
    """Code with named sub-objects and data; a bare code block parses as an object with an empty name."""

    name: str
    code: Block
    children: list[Object | Data] = field(default_factory=list)
    debug: str | None = None  # the text of a `/// @use-src` comment, where there was one
    location: Location = NOWHERE
    origins: Origins = NO_ORIGINS  # what `@src` comments say, in the whole source
