"""What evaluating an expression may do and see, derived from the table of opcodes: movability, removability, accesses.

An effect is a set of bits where a set bit is bad news, so that effects combine with `|` and 0 is the best there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from fusevm.evm.opcodes import Effect, Opcode
from fusevm.yul.analysis.callgraph import CallGraph, call_graph
from fusevm.yul.syntax.ast import Block, Expression, FunctionCall
from fusevm.yul.syntax.dialect import Builtin, Dialect
from fusevm.yul.syntax.walk import children, nodes

IMMOVABLE = 1 << 0  # its value depends on more than its operands and what is fixed for the call, or it does something
IMMOVABLE_APART = 1 << 1  # even if nothing writes what it reads, it may not be moved
IRREMOVABLE = 1 << 2
IRREMOVABLE_WITHOUT_MSIZE = 1 << 3  # it may not be dropped even where the program never asks for the size of memory
MAY_LOOP = 1 << 4
READS_OTHER, WRITES_OTHER = 1 << 5, 1 << 6  # accounts, code, logs, returned data
READS_STORAGE, WRITES_STORAGE = 1 << 7, 1 << 8
READS_MEMORY, WRITES_MEMORY = 1 << 9, 1 << 10
READS_TRANSIENT, WRITES_TRANSIENT = 1 << 11, 1 << 12

WRITES = WRITES_OTHER | WRITES_STORAGE | WRITES_MEMORY | WRITES_TRANSIENT
PURE = 0
STUCK = IMMOVABLE | IMMOVABLE_APART | IRREMOVABLE | IRREMOVABLE_WITHOUT_MSIZE
WORST = STUCK | MAY_LOOP | WRITES
# Code that may run forever can be neither moved nor removed, but its value does not depend on writes.
FOREVER = IMMOVABLE | IRREMOVABLE | IRREMOVABLE_WITHOUT_MSIZE | MAY_LOOP

NONE_KNOWN: Mapping[int, int] = {}

_OTHER = Effect.ACCOUNTS | Effect.CODE | Effect.LOGS | Effect.RETURNDATA | Effect.OUTSIDE
_PLACES = (
    (_OTHER, READS_OTHER, WRITES_OTHER),
    (Effect.STORAGE, READS_STORAGE, WRITES_STORAGE),
    (Effect.MEMORY, READS_MEMORY, WRITES_MEMORY),
    (Effect.TRANSIENT, READS_TRANSIENT, WRITES_TRANSIENT),
)
_PLACE_DEPENDENT = frozenset({"PC"})  # no effect in the table, but where it stands is what it says
_MEMORY_WRITERS = frozenset({"datacopy", "setimmutable"})  # of the builtins without an opcode


class EffectTable(dict[str, int]):
    """Effects by function. Functions that are not in it, user's and verbatim, are taken as the worst."""

    def __missing__(self, name: str) -> int:
        return WORST


def _effects_of_opcode(op: Opcode) -> int:
    bits = PURE
    for place, reads, writes in _PLACES:
        if op.writes & place:
            bits |= writes
        elif op.reads & place:
            bits |= reads
    if bits & WRITES or op.ends or op.halts:
        return bits | STUCK
    if op.writes & Effect.MSIZE:
        bits |= IRREMOVABLE  # without msize the program cannot see that memory has not grown
    if op.reads & (Effect.GAS | Effect.MSIZE) or op.name in _PLACE_DEPENDENT:
        bits |= IMMOVABLE_APART | IMMOVABLE
    if op.reads & Effect.MSIZE:
        bits |= READS_MEMORY
    if bits & ~IRREMOVABLE:
        bits |= IMMOVABLE
    return bits


def _effects_of_builtin(builtin: Builtin) -> int:
    if builtin.opcode is not None:
        return _effects_of_opcode(builtin.opcode)
    return WRITES_MEMORY | STUCK if builtin.name in _MEMORY_WRITERS else PURE


@cache
def builtin_effects(dialect: Dialect) -> EffectTable:
    """The effects of the dialect's builtins; user's functions count as the worst. Shared: do not change it."""
    return EffectTable((name, _effects_of_builtin(builtin)) for name, builtin in dialect.builtins.items())


def function_effects(dialect: Dialect, graph: CallGraph) -> EffectTable:
    """The effects of builtins and user's functions, which have those of everything they may call."""
    builtins = builtin_effects(dialect)
    table = EffectTable(builtins)
    for part in graph.components():
        effects = FOREVER if len(part) > 1 or part[0] in graph.calls[part[0]] else PURE
        members = set(part)
        for name in part:
            if name in graph.loops:
                effects |= FOREVER
            for callee in graph.calls[name]:
                if callee not in members:
                    effects |= table[callee]
        for name in part:
            table[name] = effects
    return table


def program_effects(dialect: Dialect, block: Block) -> EffectTable:
    return function_effects(dialect, call_graph(block))


# -- asking -----------------------------------------------------------------------------------------------------------


def effects_of(expression: Expression, table: EffectTable) -> int:
    """Everything evaluating the expression may do."""
    if expression.__class__ is not FunctionCall:
        return PURE
    bits = table[expression.function.name]
    for argument in expression.arguments:
        if argument.__class__ is FunctionCall:
            bits |= effects_of(argument, table)
    return bits


def effects_below(root: Any, table: EffectTable, known: Mapping[int, int] = NONE_KNOWN) -> int:
    """Everything the calls in there may do, whatever they stand in. `known` has the effects of nodes by identity."""
    bits, work = PURE, [root]
    while work:
        node = work.pop()
        if id(node) in known:
            bits |= known[id(node)]
            continue
        if node.__class__ is FunctionCall:
            bits |= table[node.function.name]
        work += children(node)
    return bits


def is_movable(expression: Expression, table: EffectTable) -> bool:
    return not effects_of(expression, table) & IMMOVABLE


def is_removable(effects: int, has_msize: bool) -> bool:
    return not effects & (IRREMOVABLE if has_msize else IRREMOVABLE_WITHOUT_MSIZE)


def is_movable_out_of(effects: int, loop: int, has_msize: bool) -> bool:
    """Whether an expression may be evaluated before a loop instead of in it, given the loop's effects."""
    if effects & MAY_LOOP:
        return False
    if not effects & IMMOVABLE:
        return True
    if effects & (IMMOVABLE_APART | WRITES):
        return False
    if effects & READS_MEMORY and has_msize:
        return False
    return all(not (effects & reads and loop & writes) for _, reads, writes in _PLACES)


def uses_msize(root: Any) -> bool:
    """Whether someone in there may ask for the size of memory. Verbatim code may do anything."""
    for node in nodes(root):
        if node.__class__ is FunctionCall:
            name = node.function.name
            if name == "msize" or name.startswith("verbatim_"):
                return True
    return False


_FREEDOMS = (
    (IMMOVABLE, "movable"),
    (IMMOVABLE_APART, "movable apart from effects"),
    (IRREMOVABLE, "can be removed"),
    (IRREMOVABLE_WITHOUT_MSIZE, "can be removed if no msize"),
)
_PLACE_NAMES = ("other state", "storage", "memory")  # transient storage is not spoken of


def describe(effects: int) -> list[str]:
    """The properties in words, in the order solc's tests list them."""
    words = [words for bit, words in _FREEDOMS if not effects & bit]
    if effects & MAY_LOOP:
        words.append("can loop")
    for name, (_, reads, writes) in zip(_PLACE_NAMES, _PLACES, strict=False):
        if effects & writes:
            words.append(f"writes {name}")
        elif effects & reads:
            words.append(f"reads {name}")
    return words
