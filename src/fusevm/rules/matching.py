"""Matching rules against terms of any kind: a rule's pattern is compiled to straight-line Python, written for one view.

A view says in Python source how its terms are looked at: an IR value, a Yul expression. Rules are found by the forms of
a term's operands (`form_of`), in whatever order their reader tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from fusevm.rules.pattern import PYTHON_NAMES, Const, Meta, Node, Rule, Tree, VariableKind, facts, python

T = TypeVar("T")

NUMBER = "number"  # the form of a constant


def form_of(pattern: Tree) -> str | None:
    """What a term must be to fit at all: the name of an opcode, or a number; None where several forms may."""
    if isinstance(pattern, Node):
        return pattern.op
    is_number = isinstance(pattern, Const) or (isinstance(pattern, Meta) and pattern.kind is VariableKind.CONSTANT)
    return NUMBER if is_number else None


@dataclass(slots=True)
class Match(Generic[T]):
    """What the metavariables stand for; `constants` has the numbers of those that stand for one."""

    rule: Rule
    values: dict[str, T]
    constants: dict[str, int]


class View:
    """How generated Python code accesses a term: every method returns an expression over the given names."""

    parameters: ClassVar[tuple[str, ...]] = ()  # what a matcher is called with before the operands
    names: ClassVar[Mapping[str, object]] = {}  # what the expressions mention

    def shown(self, term: str) -> str | None:
        """The term that `is_call` and `is_number` test, if it is another one."""
        return None

    def refuses(self, operand: str) -> str | None:
        """Whether no pattern fits the operand, whatever it is."""
        return None

    def is_call(self, term: str, op: str) -> str:
        raise NotImplementedError

    def operands(self, term: str) -> str:
        raise NotImplementedError

    def is_number(self, term: str) -> str:
        raise NotImplementedError

    def number(self, term: str) -> str:
        raise NotImplementedError

    def same(self, one: str, other: str) -> str:
        """Whether the two are certainly the same value."""
        raise NotImplementedError

    def is_boolean(self, term: str) -> str:
        """Whether the value is certainly zero or one."""
        raise NotImplementedError

    def fact(self, name: str, terms: list[str]) -> str:
        """What value analysis knows of the terms, as a number."""
        raise NotImplementedError


class Matcher(Generic[T]):
    """A rule ready to be tried. `match` takes the view's parameters and the operands of a term with the rule's opcode,
    and answers None where the rule does not fit. It is compiled when first called: most rules of a run never are."""

    __slots__ = ("match", "rule", "view")

    def __init__(self, rule: Rule, view: View) -> None:
        self.rule, self.view = rule, view
        self.match: Callable[..., Match[T] | None] = self._first

    def _first(self, *args: Any) -> Match[T] | None:
        self.match = compiled(self.rule, self.view)
        return self.match(*args)


def compiled(rule: Rule, view: View) -> Callable[..., Match[Any] | None]:
    """A function that answers a Match or None."""
    return _Compiler(rule, view).function()


class _Compiler:
    """Writes tests from the outside in, then the conditions."""

    def __init__(self, rule: Rule, view: View) -> None:
        self.rule, self.view = rule, view
        self.lines: list[str] = []
        self.values: dict[str, str] = {}  # metavariable to the name of the term it stands for
        self.numbers: dict[str, str] = {}  # of those that stand for a number, the expression of it
        self.scope: dict[str, Any] = {"rule": rule, "Match": Match, "holds": rule.holds, **view.names}

    def function(self) -> Callable[..., Match[Any] | None]:
        names = [f"a{place}" for place in range(len(self.rule.pattern.args))]
        for name, arg in zip(names, self.rule.pattern.args, strict=True):
            self.test(arg, name)
        if self.rule.when:
            self.demand(f"holds({{{_items(self.numbers)}}})")
        if self.rule.given:
            self.given()
        self.lines.append(f"return Match(rule, {{{_items(self.values)}}}, {{{_items(self.numbers)}}})")
        source = f"def match({', '.join((*self.view.parameters, *names))}):\n    " + "\n    ".join(self.lines)
        exec(source, self.scope)
        match: Callable[..., Match[Any] | None] = self.scope["match"]
        return match

    def demand(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def shown(self, term: str) -> str:
        other = self.view.shown(term)
        if other is None:
            return term
        self.lines.append(f"{term}_ = {other}")
        return f"{term}_"

    def test(self, pattern: Tree, term: str) -> None:
        view = self.view
        if (refused := view.refuses(term)) is not None:
            self.lines.append(f"if {refused}: return None")
        if isinstance(pattern, Node):
            self.call(pattern, self.shown(term))
        elif isinstance(pattern, Const):
            self.number(self.shown(term), self.literal(pattern))
        elif isinstance(pattern, Meta) and pattern.kind is VariableKind.CONSTANT:
            shown = self.shown(term)
            self.number(shown, self.numbers.get(pattern.name))
            self.numbers.setdefault(pattern.name, view.number(shown))
            self.values.setdefault(pattern.name, shown)
        elif isinstance(pattern, Meta):
            self.bind(pattern, term)
        else:
            raise TypeError(f"not a pattern: {pattern!r}")

    def call(self, pattern: Node, term: str) -> None:
        self.demand(self.view.is_call(term, pattern.op))
        parts = [f"{term}_{place}" for place in range(len(pattern.args))]
        if parts:
            self.lines.append(f"{', '.join(parts)}, = {self.view.operands(term)}")
        for part, arg in zip(parts, pattern.args, strict=True):
            self.test(arg, part)

    def number(self, term: str, expected: str | None) -> None:
        self.demand(self.view.is_number(term))
        if expected is not None:
            self.demand(f"{self.view.number(term)} == {expected}")

    def given(self) -> None:
        """Tests the conditions on facts; each fact is asked for once, by the first that needs it."""
        self.scope |= PYTHON_NAMES
        known = dict(self.numbers)
        for condition in self.rule.given:
            for fact in facts(condition):
                if fact.text not in known:
                    known[fact.text] = f"f{len(known)}"
                    terms = [self.values[meta.name] for meta in fact.of]
                    self.lines.append(f"{known[fact.text]} = {self.view.fact(fact.name, terms)}")
            self.demand(python(condition, known))

    def literal(self, pattern: Const) -> str:
        name = f"K{len(self.scope)}"
        self.scope[name] = pattern.at(256)
        return name

    def bind(self, meta: Meta, term: str) -> None:
        if meta.name in self.values:
            self.demand(self.view.same(term, self.values[meta.name]))
        elif meta.kind is VariableKind.VARIABLE:
            self.demand(f"not ({self.view.is_number(self.shown(term))})")
        elif meta.kind is VariableKind.BOOLEAN:
            self.demand(self.view.is_boolean(term))
        self.values.setdefault(meta.name, term)


def _items(names: dict[str, str]) -> str:
    return ", ".join(f"{name!r}: {expression}" for name, expression in names.items())
