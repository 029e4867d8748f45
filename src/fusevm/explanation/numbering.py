"""Optimised Yul with a number in the place of every location, so that the code generator's source map leads back to the
very node: many nodes come from one place of the source once functions are inlined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fusevm.evm.assembler import Source
from fusevm.explanation.document import CODE, LABEL, Line
from fusevm.explanation.places import Lines
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Case,
    Data,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Literal,
    Location,
    Object,
    Switch,
    VariableDeclaration,
    callers_of,
)
from fusevm.yul.syntax.depth import room_to_recurse
from fusevm.yul.syntax.origins import NO_ORIGINS
from fusevm.yul.syntax.printer import block_lines
from fusevm.yul.syntax.walk import Copier, children, nodes

_SIMPLE = (ExpressionStatement, Assignment, VariableDeclaration, FunctionCall, Identifier, Literal)


class _Fresh(Copier):
    """Copies names and literals as well, which steps share."""

    def expression(self, expression: Expression) -> Expression:
        return replace(expression) if isinstance(expression, Literal) else super().expression(expression)

    def identifier(self, identifier: Identifier) -> Identifier:
        return replace(identifier)

    def switch(self, statement: Switch) -> Switch:
        made = super().switch(statement)
        for case in made.cases:
            case.value = replace(case.value) if case.value is not None else None
        return made


def _names_of(node: Any) -> list[Any]:
    """The names that a node itself mentions, expressions aside."""
    if isinstance(node, FunctionCall):
        return [node.function]
    if isinstance(node, Assignment):
        return node.targets
    if isinstance(node, VariableDeclaration):
        return node.variables
    return [*node.parameters, *node.returns] if isinstance(node, FunctionDefinition) else []


class Numbering:
    """A copy of an object whose nodes are numbered.

    `starts` has, by number, the offset of a node in the source, and those of the calls that it was inlined for.
    """

    def __init__(self, obj: Object) -> None:
        with room_to_recurse():
            code = _Fresh().block(obj.code)
        self.obj = replace(obj, code=code, debug=None, origins=NO_ORIGINS)
        self.starts: list[tuple[int, ...]] = []
        self._number(code)

    def _number(self, code: Block) -> None:
        """Nodes inserted by steps, names and literals count as part of the enclosing node."""
        work: list[tuple[Any, tuple[int, ...], Location]] = [(code, _starts_of(code.location), Location())]
        while work:
            node, outer, around = work.pop()
            if node.__class__ in (Identifier, Literal):
                node.location = around
                continue
            start = _starts_of(node.location) if node.location.start >= 0 else outer
            place = node.location = self._new(start)
            work += [(child, start, place) for child in children(node)]
            for name in _names_of(node):
                name.location = place
            for case in node.cases if isinstance(node, Switch) else ():
                case.location = self._new(_starts_of(case.location) if case.location.start >= 0 else start)
                if case.value is not None:
                    case.value.location = case.location

    def _new(self, starts: tuple[int, ...]) -> Location:
        self.starts.append(starts)
        return Location(len(self.starts) - 1, len(self.starts))

    def starts_of(self, source: Source | None) -> tuple[int, ...]:
        """The offsets in the source text of what has a place in the numbered code, innermost first."""
        return self.starts[source[0]] if source is not None and source[0] >= 0 else ()

    def lines(self, lines: Lines, sources: Mapping[int, Sequence[Source]]) -> list[Line]:
        """The numbered code as text, each line with the opcodes of the nodes on it."""
        made: dict[int, list[int]] = {}
        for pc, places in sources.items():
            for source in places:
                made.setdefault(source[0], []).append(pc)
        found: list[Line] = []
        for text, printed in block_lines(self.obj.code):
            numbers = [number for node in printed for number in self._numbers_on(node)]
            starts = [start for number in numbers for start in self.starts[number]]
            pcs = tuple(sorted({pc for number in numbers for pc in made.get(number, ())}))
            kind = LABEL if any(isinstance(node, FunctionDefinition) for node in printed) else CODE
            found.append(Line(text, lines.of(starts), pcs, kind))
        return found

    @staticmethod
    def _numbers_on(node: Any) -> Iterator[int]:
        """Of a node and the expressions that stand on its line. Names and literals are shared, so they tell nothing."""
        for each in _on_line(node):
            if each.__class__ not in (Identifier, Literal, Data, Object):
                yield each.location.start


def _starts_of(location: Location) -> tuple[int, ...]:
    return location.start, *(each.start for each in callers_of(location))


def _on_line(node: Any) -> Iterator[Any]:
    if isinstance(node, _SIMPLE):
        yield from nodes(node)
        return
    yield node
    head = {If: "condition", Switch: "expression", ForLoop: "condition", Case: "value"}.get(node.__class__)
    expression = getattr(node, head) if head is not None else None
    if expression is not None:
        yield from nodes(expression)
