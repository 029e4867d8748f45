"""The EVM dialect of Yul for each fork: its builtins, derived from the opcode table, and the names that are taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.evm.opcodes import OPCODES_TABLE, Opcode
from fusevm.yul.syntax.ast import LiteralKind

KEYWORDS = frozenset(
    ("function", "let", "if", "switch", "case", "default", "for", "break", "continue", "leave", "true", "false", "hex")
)


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function the dialect offers. A literal argument's kind stands in `literals`, None where anything may stand."""

    name: str
    parameters: int
    returns: int
    opcode: Opcode | None = None
    literals: tuple[LiteralKind | None, ...] = ()
    can_terminate: bool = False  # may end the call successfully (stop, return, selfdestruct)
    can_revert: bool = False  # may end the call and undo it (revert, invalid)
    can_continue: bool = True

    @property
    def is_verbatim(self) -> bool:
        return self.name.startswith("verbatim_")

    @property
    def has_literals(self) -> bool:
        return bool(self.literals)

    def literal_kind(self, index: int) -> LiteralKind | None:
        """The kind of literal the argument must be, if it must be one."""
        return self.literals[index] if index < len(self.literals) else None


_NUMBER, _STRING = LiteralKind.NUMBER, LiteralKind.STRING

# What Yul adds to the opcodes. memoryguard reserves memory, the rest speaks of objects, immutables and libraries.
OBJECT_BUILTINS = (
    Builtin("datasize", 1, 1, literals=(_STRING,)),
    Builtin("dataoffset", 1, 1, literals=(_STRING,)),
    Builtin("datacopy", 3, 0),
    Builtin("setimmutable", 3, 0, literals=(None, _STRING, None)),
    Builtin("loadimmutable", 1, 1, literals=(_STRING,)),
    Builtin("linkersymbol", 1, 1, literals=(_STRING,)),
    Builtin("memoryguard", 1, 1, literals=(_NUMBER,)),
)

# Names that may not be declared, besides the opcodes'. (memoryguard can't be declared either, being a builtin, but it
# is not in this list: a generated name may be `memoryguard_1` and the like.)
RESERVED_OBJECT_NAMES = frozenset(builtin.name for builtin in OBJECT_BUILTINS) - {"memoryguard"}

_REVERTING = {"REVERT", "INVALID"}
_JUMPS = {"JUMP", "JUMPI", "JUMPDEST"}
_VERBATIM = re.compile(r"verbatim_([1-9]?[0-9])i_([1-9]?[0-9])o")


def _function_of(op: Opcode, name: str) -> Builtin:
    reverts = op.name in _REVERTING
    return Builtin(
        name,
        op.pops,
        op.pushes,
        op,
        can_terminate=op.ends and not reverts,
        can_revert=op.ends and reverts,
        can_continue=not op.ends,
    )


@cache
def _verbatim(name: str) -> Builtin | None:
    match = _VERBATIM.fullmatch(name)
    if match is None:
        return None
    inputs, outputs = int(match[1]), int(match[2])
    literals = (_STRING, *(None for _ in range(inputs)))
    return Builtin(name, inputs + 1, outputs, literals=literals, can_terminate=True, can_revert=True)


def _yul_name(op: Opcode, fork: Fork) -> str:
    return "difficulty" if op.name == "PREVRANDAO" and fork < Fork.PARIS else op.name.lower()


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """What a fork's Yul knows. `builtins` lacks only the verbatim family: ask `builtin(name)`."""

    fork: Fork
    builtins: Mapping[str, Builtin] = field(repr=False)
    reserved: frozenset[str] = field(repr=False)

    def builtin(self, name: str) -> Builtin | None:
        found = self.builtins.get(name)
        if found is None and name.startswith("verbatim_"):
            return _verbatim(name)
        return found

    def is_builtin(self, name: str) -> bool:
        return self.builtin(name) is not None

    def is_reserved(self, name: str) -> bool:
        """The name may not be declared though it might be no builtin: opcodes without a builtin, opcodes to come."""
        return name in self.reserved or name.startswith("verbatim")

    def is_restricted(self, name: str) -> bool:
        """A generated name must not be this."""
        return not name or name[0] == "." or name[-1] == "." or name in KEYWORDS or self.is_reserved(name)


def _is_reserved_at(op: Opcode, fork: Fork) -> bool:
    """Old opcodes are reserved even before their fork; since London only from then on, PUSH0 aside."""
    return op.since < Fork.LONDON or op.since <= fork or op.is_push


@cache
def _dialect_for(fork: Fork) -> Dialect:
    functions = [
        _function_of(op, _yul_name(op, fork))
        for op in OPCODES_TABLE
        if op.since <= fork and op.name not in _JUMPS and not (op.is_stack and op.name != "POP")
    ]
    reserved = {op.name.lower() for op in OPCODES_TABLE if _is_reserved_at(op, fork)} | {"difficulty"}
    if fork < Fork.PARIS:
        reserved.discard("prevrandao")
    builtins = {builtin.name: builtin for builtin in (*functions, *OBJECT_BUILTINS)}
    return Dialect(fork, builtins, frozenset(reserved | RESERVED_OBJECT_NAMES))


def dialect_for(fork: Fork | str = LATEST) -> Dialect:
    """The dialect of a fork, by value or name; the same object each time."""
    return _dialect_for(fork_named(fork))
