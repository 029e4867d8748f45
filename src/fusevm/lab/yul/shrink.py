"""A small program that still shows a finding: statements are taken out and expressions made plainer, one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import perf_counter

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Literal,
    LiteralKind,
    Object,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object


def shrunken(source: str, still: Callable[[str], bool], seconds: float = 120.0) -> str:
    """A program of which `still` holds, as for the one given, and of which every smaller one tried does not."""
    ends = perf_counter() + seconds
    best = source
    changed = True
    while changed and perf_counter() < ends:
        changed = False
        at = 0
        while perf_counter() < ends:
            obj = parse_object(best, dialect_for())
            edits = list(_edits(obj))
            if at >= len(edits):
                break
            edits[at]()
            text = _printed(obj)
            if (len(text), text) < (len(best), best) and _is_valid(text) and still(text):
                best, changed = text, True
            else:
                at += 1
    return best


def _printed(obj: Object) -> str:
    text = print_object(obj)
    return re.sub(r"\n\s*", "\n", text)


def _is_valid(text: str) -> bool:
    return all(error.is_warning for error in check(text, dialect_for())[1])


def _edits(obj: Object) -> Iterator[Callable[[], None]]:
    """What could be tried, the largest changes first."""
    blocks = [block for code in _codes(obj) for block in _blocks(code)]
    for size in (16, 4, 1):
        for block in blocks:
            for start in range(0, len(block.statements), size):
                if size == 1 or len(block.statements) > size:
                    yield _Removal(block, start, size)
    for block in blocks:
        for place, statement in enumerate(block.statements):
            inner = _inner(statement)
            if inner is not None:
                yield _Opening(block, place, inner)
            if isinstance(statement, Switch):
                for number in range(len(statement.cases)):
                    yield _CaseRemoval(statement, number)
    for block in blocks:
        for statement in block.statements:
            yield from _plainer(statement)


class _Removal:
    def __init__(self, block: Block, start: int, size: int) -> None:
        self.block, self.start, self.size = block, start, size

    def __call__(self) -> None:
        del self.block.statements[self.start : self.start + self.size]


class _Opening:
    def __init__(self, block: Block, place: int, inner: Block) -> None:
        self.block, self.place, self.inner = block, place, inner

    def __call__(self) -> None:
        self.block.statements[self.place] = self.inner


class _CaseRemoval:
    def __init__(self, switch: Switch, number: int) -> None:
        self.switch, self.number = switch, number

    def __call__(self) -> None:
        del self.switch.cases[self.number]


class _Plainer:
    """An operand or a value becomes zero, or one of its own operands."""

    def __init__(self, holder: object, name: str | int, value: object) -> None:
        self.holder, self.name, self.value = holder, name, value

    def __call__(self) -> None:
        if isinstance(self.name, int):
            self.holder[self.name] = self.value  # type: ignore[index]
        else:
            setattr(self.holder, self.name, self.value)


def _codes(obj: Object) -> Iterator[Block]:
    yield obj.code
    for child in obj.children:
        if isinstance(child, Object):
            yield from _codes(child)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for statement in block.statements:
        match statement:
            case Block():
                yield from _blocks(statement)
            case If(_, body) | FunctionDefinition(_, _, _, body):
                yield from _blocks(body)
            case Switch(_, cases):
                for case in cases:
                    yield from _blocks(case.body)
            case ForLoop(pre, _, post, body):
                for each in (pre, post, body):
                    yield from _blocks(each)


def _inner(statement: Statement) -> Block | None:
    match statement:
        case If(_, body) | ForLoop(_, _, _, body):
            return body
        case Switch(_, cases) if cases:
            return cases[0].body
    return None


def _plainer(statement: Statement) -> Iterator[_Plainer]:
    match statement:
        case ExpressionStatement(expression):
            if isinstance(expression, FunctionCall):
                yield from _plainer_arguments(expression)
        case VariableDeclaration(_, value) | Assignment(_, value):
            if value is not None:
                yield from _plainer_value(statement, "value", value)
        case If(condition, _) | ForLoop(_, condition, _, _):
            yield from _plainer_value(statement, "condition", condition)
        case Switch(expression, _):
            yield from _plainer_value(statement, "expression", expression)


def _plainer_value(holder: object, name: str | int, value: object) -> Iterator[_Plainer]:
    if isinstance(value, FunctionCall):
        for argument in value.arguments:
            yield _Plainer(holder, name, argument)
    if not (isinstance(value, Literal) and value.value == 0):
        yield _Plainer(holder, name, Literal(LiteralKind.NUMBER, 0, "0"))
    if isinstance(value, FunctionCall):
        yield from _plainer_arguments(value)


def _plainer_arguments(call: FunctionCall) -> Iterator[_Plainer]:
    for place, argument in enumerate(call.arguments):
        if isinstance(argument, FunctionCall | Identifier) or (isinstance(argument, Literal) and argument.value > 9):
            yield from _plainer_value(call.arguments, place, argument)
