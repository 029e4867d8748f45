"""The rules as a table: each compiled to a matcher, found by a 24-bit key.

    |23_____17|16___10|9_____________0|
    |folded ir|left ir|right ir opcode|
    | opcode  | opcode| or any        |

An instruction with one operand keys on the left alone, one with three on the first two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fusevm.evm.forks import Fork
from fusevm.ir.values import CONST, NUMBER_OF, Value
from fusevm.rules.families import engine_rules
from fusevm.rules.matching import Match, View
from fusevm.rules.pattern import Const, Kind, Meta, Node, Rule, Tree, is_constant, nodes

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


class Terms(View[Value]):
    """What the rules' matching asks of an IR value."""

    def call(self, term: Value) -> tuple[str, Sequence[Value]] | None:
        return None if term.op == CONST else (term.op, term.args)

    def constant(self, term: Value) -> int | None:
        return term.number if term.op == CONST else None

    def same(self, left: Value, right: Value) -> bool:
        return left is right


TERMS = Terms()


@dataclass(slots=True)
class Folding:
    """A rule ready to be tried: `match` answers what its metavariables stand for, or None (NEXTFOLD)."""

    rule: Rule
    match: Callable[..., Match[Value] | None]
    grows: int  # instructions it may add beyond those it replaces one for one
    inner: tuple[tuple[int, ...], ...]  # where in the pattern other instructions stand, as paths of operand numbers


@dataclass(slots=True)
class Table:
    buckets: dict[int, list[Folding]] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)

    def add(self, rule: Rule) -> None:
        args = rule.pattern.args
        left = _field(args[0], ANY_LEFT) if args else ANY_LEFT
        right = _field(args[1], ANY_RIGHT) if len(args) > 1 else ANY_RIGHT
        folding = Folding(rule, _matcher(rule), _growth(rule), tuple(_inner(rule.pattern)))
        self.buckets.setdefault(key_of(rule.pattern.op, left, right), []).append(folding)
        self.roots.add(rule.pattern.op)


def _field(operand: Tree, wildcard: int) -> int:
    if isinstance(operand, Node):
        return NUMBER_OF[operand.op]
    if isinstance(operand, Const) or (isinstance(operand, Meta) and operand.kind is Kind.CONSTANT):
        return NUMBER_OF[CONST]
    return wildcard


def _growth(rule: Rule) -> int:
    """New instructions beyond the one that replaces the root; what the pattern already holds is not new."""
    there = set(nodes(rule.pattern))
    return sum(node not in there and not is_constant(node) for node in nodes(rule.result)) - 1


def _inner(pattern: Node, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for place, arg in enumerate(pattern.args):
        if isinstance(arg, Node):
            found += [(*path, place), *_inner(arg, (*path, place))]
    return found


@cache
def table_of(fork: Fork, native: bool) -> Table:
    """The engine's rules of that fork; `native` adds those that pay only where gas is charged apart."""
    table = Table()
    for rule in engine_rules(fork, native):
        table.add(rule)
    return table


# -- matchers -----------------------------------------------------------------------------------------------------


def _matcher(rule: Rule) -> Callable[..., Match[Value] | None]:
    """A function of the operands, compiled when it is first called: most rules of a run are never asked."""
    compiled: list[Callable[..., Match[Value] | None]] = []

    def first(*args: Value) -> Match[Value] | None:
        if not compiled:
            compiled.append(_compiled(rule))
        return compiled[0](*args)

    return first


def _compiled(rule: Rule) -> Callable[..., Match[Value] | None]:
    """The pattern as straight-line Python: tests from the outside in, then the condition."""
    names = [f"a{place}" for place in range(len(rule.pattern.args))]
    lines: list[str] = []
    bound: dict[str, str] = {}
    constants: dict[str, str] = {}
    literals: list[int] = []
    for name, arg in zip(names, rule.pattern.args, strict=True):
        _test(arg, name, lines, bound, constants, literals)
    if rule.when:
        lines.append(f"if not holds({{{_dict(constants, '.number')}}}): return None")
    lines.append(f"return Match(rule, {{{_dict(bound, '')}}}, {{{_dict(constants, '.number')}}})")
    source = f"def match({', '.join(names)}):\n    " + "\n    ".join(lines)
    scope: dict[str, Any] = {"rule": rule, "Match": Match, "holds": rule.holds, "K": literals, "boolean": TERMS.boolean}
    exec(source, scope)
    match: Callable[..., Match[Value] | None] = scope["match"]
    return match


def _dict(names: dict[str, str], suffix: str) -> str:
    return ", ".join(f"{name!r}: {place}{suffix}" for name, place in names.items())


def _test(
    pattern: Tree, at: str, lines: list[str], bound: dict[str, str], constants: dict[str, str], literals: list[int]
) -> None:
    if isinstance(pattern, Node):
        lines.append(f"if {at}.op != {pattern.op!r}: return None")
        if pattern.args:
            parts = [f"{at}_{place}" for place in range(len(pattern.args))]
            lines.append(f"{', '.join(parts)}, = {at}.args")
            for part, arg in zip(parts, pattern.args, strict=True):
                _test(arg, part, lines, bound, constants, literals)
    elif isinstance(pattern, Const):
        literals.append(pattern.at(256))
        lines.append(f"if {at}.op != 'CONST' or {at}.number != K[{len(literals) - 1}]: return None")
    elif isinstance(pattern, Meta) and pattern.kind is Kind.CONSTANT:
        lines.append(f"if {at}.op != 'CONST': return None")
        if pattern.name in constants:
            lines.append(f"if {at}.number != {constants[pattern.name]}.number: return None")
        constants.setdefault(pattern.name, at)
    elif isinstance(pattern, Meta):
        if pattern.name in bound:
            lines.append(f"if {at} is not {bound[pattern.name]}: return None")
        elif pattern.kind is Kind.VARIABLE:
            lines.append(f"if {at}.op == 'CONST': return None")
        elif pattern.kind is Kind.BOOLEAN:
            lines.append(f"if not boolean({at}): return None")
        bound.setdefault(pattern.name, at)
