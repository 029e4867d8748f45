"""The rules as a table, looked up by a 24-bit key.

    |23_____17|16___10|9_____________0|
    |folded ir|left ir|right ir opcode|
    | opcode  | opcode| or any        |

The key of an instruction with one operand has only the left; with three operands, the first two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from fusevm.evm.forks import Fork
from fusevm.ir.values import CONST, NUMBER_OF, Value
from fusevm.rules.families import by_root, engine_rules, range_rules
from fusevm.rules.matching import NUMBER, Matcher, View, form_of
from fusevm.rules.pattern import Node, Rule, Tree, is_constant, nodes

ANY_LEFT, ANY_RIGHT = 0x7F, 0x3FF


def key_of(op: str, left: int, right: int) -> int:
    return NUMBER_OF[op] << 17 | left << 10 | right


def keys_of(op: str, args: tuple[Value, ...]) -> tuple[int, int, int, int]:
    """From the most to the least specific: both operands, only the right, only the left, none."""
    root = NUMBER_OF[op] << 17
    left = (NUMBER_OF[args[0].op] if args else ANY_LEFT) << 10
    right = NUMBER_OF[args[1].op] if len(args) > 1 else ANY_RIGHT
    any_left = ANY_LEFT << 10
    return root | left | right, root | any_left | right, root | left | ANY_RIGHT, root | any_left | ANY_RIGHT


COMPARISONS = frozenset({"LT", "GT", "SLT", "SGT", "EQ", "ISZERO"})  # their results are zero or one


def is_boolean(value: Value) -> bool:
    """Whether the value is known to be zero or one."""
    op, args = value.op, value.args
    if op in ("AND", "OR", "XOR"):
        known = [_is_flag(arg) for arg in args]
        return any(known) if op == "AND" else all(known)
    if op == "SHR":
        return args[0].op == CONST and args[0].number == 255
    return _is_flag(value)


def _is_flag(value: Value) -> bool:
    return value.number in (0, 1) if value.op == CONST else value.op in COMPARISONS


class MatchedValues(View):
    """How generated matchers access IR values."""

    names: ClassVar = {"is_boolean": is_boolean}

    def is_call(self, term: str, op: str) -> str:
        return f"{term}.op == {op!r}"

    def operands(self, term: str) -> str:
        return f"{term}.args"

    def is_number(self, term: str) -> str:
        return f"{term}.op == {CONST!r}"

    def number(self, term: str) -> str:
        return f"{term}.number"

    def same(self, one: str, other: str) -> str:
        return f"{one} is {other}"

    def is_boolean(self, term: str) -> str:
        return f"is_boolean({term})"


VALUES = MatchedValues()


class AnalysedValues(MatchedValues):
    """The matchers are called with what is known of values first: a `RangeFolder`."""

    parameters = ("facts",)
    facts: ClassVar = {
        "low": "facts.range({}).low",
        "high": "facts.range({}).high",
        "bits": "facts.bits({})",
        "less": "facts.is_less({}, {}) is True",
        "not_greater": "facts.is_less({}, {}) is not None",
    }

    def fact(self, name: str, terms: list[str]) -> str:
        found: str = self.facts[name].format(*terms)
        return found


class Folding(Matcher[Value]):
    """A rule with its matcher; where that returns None, the next rule is tried (NEXTFOLD)."""

    __slots__ = ("grows", "inner")

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule, VALUES)
        self.grows = _growth(rule)  # instructions it may add beyond the one it replaces
        self.inner = tuple(_inner(rule.pattern))  # the inner instructions of the pattern: paths of operand indices


@dataclass(slots=True)
class RuleTable:
    buckets: dict[int, list[Folding]] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)

    def add(self, rule: Rule) -> None:
        args = rule.pattern.args
        left = _field(args[0], ANY_LEFT) if args else ANY_LEFT
        right = _field(args[1], ANY_RIGHT) if len(args) > 1 else ANY_RIGHT
        self.buckets.setdefault(key_of(rule.pattern.op, left, right), []).append(Folding(rule))
        self.roots.add(rule.pattern.op)


def _field(operand: Tree, wildcard: int) -> int:
    form = form_of(operand)
    return wildcard if form is None else NUMBER_OF[CONST if form == NUMBER else form]


def _growth(rule: Rule) -> int:
    """New instructions beyond the one that replaces the root; subtrees of the pattern are not new."""
    there = set(nodes(rule.pattern))
    return sum(node not in there and not is_constant(node) for node in nodes(rule.result)) - 1


def _inner(pattern: Node, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for place, arg in enumerate(pattern.args):
        if isinstance(arg, Node):
            found += [(*path, place), *_inner(arg, (*path, place))]
    return found


@cache
def table_of(fork: Fork, native: bool) -> RuleTable:
    """The engine's rules of that fork; `native` adds those that pay only where gas is charged separately."""
    table = RuleTable()
    for rule in engine_rules(fork, native):
        table.add(rule)
    return table


@cache
def range_table() -> dict[str, tuple[Matcher[Value], ...]]:
    """The rules with conditions on facts, by opcode, in the order in which they are tried."""
    view = AnalysedValues()
    return {op: tuple(Matcher(rule, view) for rule in rules) for op, rules in by_root(range_rules()).items()}
