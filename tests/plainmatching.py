"""Matching as it is defined, pattern against term: the oracle of the compiled matchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fusevm.evm.words import INTEGERS
from fusevm.rules.pattern import Const, Meta, Node, Rule, Tree, VariableKind, evaluate, is_constant, tree

T = TypeVar("T")

COMPARISONS = frozenset({"LT", "GT", "SLT", "SGT", "EQ", "ISZERO"})  # their results are zero or one


class View(Generic[T]):
    """What matching asks of a term: an IR value, a Yul expression, a plain tree."""

    def call(self, term: T) -> tuple[str, Sequence[T]] | None:
        """The opcode and its operands in stack order, where the term is an instruction."""
        raise NotImplementedError

    def constant(self, term: T) -> int | None:
        raise NotImplementedError

    def same(self, left: T, right: T) -> bool:
        """Whether the two are certainly the same value."""
        raise NotImplementedError

    def boolean(self, term: T) -> bool:
        """Whether the value is certainly zero or one."""
        call = self.call(term)
        if call is None:
            return self.constant(term) in (0, 1)
        op, args = call
        if op in ("AND", "OR", "XOR"):
            known = [self.constant(arg) in (0, 1) or self._compares(arg) for arg in args]
            return any(known) if op == "AND" else all(known)
        return op in COMPARISONS or (op == "SHR" and self.constant(args[0]) == 255)

    def _compares(self, term: T) -> bool:
        call = self.call(term)
        return call is not None and call[0] in COMPARISONS

    def fact(self, name: str, terms: list[T]) -> int:
        """What is known of the terms: see `Fact`."""
        raise NotImplementedError

    def admits(self, term: T) -> bool:
        """Whether a metavariable may stand for the term."""
        return True


class Maker(Generic[T]):
    """What building a result asks for."""

    def instruction(self, op: str, args: list[T]) -> T:
        raise NotImplementedError

    def number(self, value: int) -> T:
        raise NotImplementedError


@dataclass(slots=True)
class Match(Generic[T]):
    rule: Rule
    values: dict[str, T] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)


def match(rule: Rule, term: T, view: View[T]) -> Match[T] | None:
    """What the metavariables stand for, where the rule's pattern fits and its condition holds."""
    found: Match[T] = Match(rule)
    if not _fits(rule.pattern, term, view, found) or not rule.holds(found.constants):
        return None
    facts = {fact.text: view.fact(fact.name, [found.values[meta.name] for meta in fact.of]) for fact in rule.facts}
    return found if all(evaluate(part, INTEGERS, {**found.constants, **facts}) for part in rule.given) else None


def _fits(pattern: Tree, term: T, view: View[T], found: Match[T]) -> bool:
    if isinstance(pattern, Node):
        call = view.call(term)
        if call is None or call[0] != pattern.op:
            return False
        return all(_fits(part, arg, view, found) for part, arg in zip(pattern.args, call[1], strict=True))
    if isinstance(pattern, Const):
        return view.constant(term) == pattern.at(256)
    if isinstance(pattern, Meta):
        return _binds(pattern, term, view, found)
    raise TypeError(f"not a pattern: {pattern!r}")


def _binds(meta: Meta, term: T, view: View[T], found: Match[T]) -> bool:
    if meta.kind is VariableKind.CONSTANT:
        value = view.constant(term)
        found.values.setdefault(meta.name, term)
        return value is not None and found.constants.setdefault(meta.name, value) == value
    if not view.admits(term) or (meta.kind is VariableKind.VARIABLE and view.constant(term) is not None):
        return False
    if meta.kind is VariableKind.BOOLEAN and not view.boolean(term):
        return False
    bound = found.values.setdefault(meta.name, term)
    return bound is term or view.same(bound, term)


def build(result: Tree, found: Match[T], maker: Maker[T]) -> T:
    """The result as a term, innermost instructions first; what is made of constants alone becomes a number."""
    if is_constant(result):
        return maker.number(found.rule.number(result, found.constants))
    if isinstance(result, Node):
        return maker.instruction(result.op, [build(arg, found, maker) for arg in result.args])
    if isinstance(result, Meta):
        return found.values[result.name]
    raise TypeError(f"not a result: {result!r}")


class Trees(View[Tree], Maker[Tree]):
    """Plain trees as terms: nodes are instructions, constants numbers, metavariables values from outside."""

    def call(self, term: Tree) -> tuple[str, Sequence[Tree]] | None:
        return (term.op, term.args) if isinstance(term, Node) else None

    def constant(self, term: Tree) -> int | None:
        return term.at(256) if isinstance(term, Const) else None

    def same(self, left: Tree, right: Tree) -> bool:
        return left == right

    def instruction(self, op: str, args: list[Tree]) -> Tree:
        return Node(op, tuple(args))

    def number(self, value: int) -> Tree:
        return tree(value)


def rewrite(rule: Rule, term: Tree, trees: Trees) -> Tree | None:
    """The term after the rule is applied at its root, or None where it does not match."""
    found = match(rule, term, trees)
    return None if found is None else build(rule.result, found, trees)
