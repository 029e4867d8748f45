"""A syntax tree to text, laid out as solc lays it out: exact to the letter, so that texts can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Break,
    Continue,
    Data,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Leave,
    Literal,
    LiteralKind,
    Object,
    Statement,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.depth import room_to_recurse

INDENT = "    "
SHORT_BLOCK = 30  # a block whose text is shorter than this stands on one line
SHORT_LOOP_HEAD = 60  # and a loop's init block, condition and post block together

_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_ESCAPES |= {code: f"\\x{code:02x}" for code in range(256) if not 0x20 <= code < 0x7F and code not in _ESCAPES}


def quote(text: str) -> str:
    """A string of bytes (as Latin-1) between quotes, unprintable ones escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def print_literal(literal: Literal) -> str:
    return quote(literal.text) if literal.kind is LiteralKind.STRING else literal.text


def print_expression(expression: Expression) -> str:
    parts: list[str] = []
    work: list[Expression | str] = [expression]
    while work:  # not recursive: what is nested deep would be copied at every level
        part = work.pop()
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, FunctionCall):
            parts.append(f"{part.function.name}(")
            work.append(")")
            for index in range(len(part.arguments) - 1, -1, -1):
                work.append(part.arguments[index])
                if index:
                    work.append(", ")
        else:
            parts.append(part.name if isinstance(part, Identifier) else print_literal(part))
    return "".join(parts)


class PrintedLine(NamedTuple):
    """A line of text, and the nodes whose text stands on it: statements, for a compound one only its head."""

    text: str
    nodes: tuple[Any, ...] = ()


# A line that is not indented yet: how deep it stands, its text, its nodes.
_Raw = tuple[int, str, tuple[Any, ...]]


def print_block(block: Block) -> str:
    return _text(_printed(block))


def print_object(obj: Object) -> str:
    """The whole object with everything in it; an object without name and children is only its block."""
    return _text(_printed(obj))


def block_lines(block: Block) -> list[PrintedLine]:
    """The lines of `print_block`, each with what it was printed from."""
    return _lines(_printed(block))


def is_bare(obj: Object) -> bool:
    return not obj.name and not obj.children


def _printed(root: Block | Object) -> list[_Raw]:
    out: list[_Raw] = []
    with room_to_recurse():
        if isinstance(root, Block):
            _block(root, 0, out)
        elif is_bare(root):
            _block(root.code, 0, out)
        else:
            _object(root, 0, out)
    return out


def _text(lines: list[_Raw]) -> str:
    return "\n".join([INDENT * depth + text for depth, text, _ in lines])


def _lines(lines: list[_Raw]) -> list[PrintedLine]:
    return [PrintedLine(INDENT * depth + text, nodes) for depth, text, nodes in lines]


# -- what follows appends lines; one that turns out to be short is joined with the one before it -----------------------


def _object(obj: Object, depth: int, out: list[_Raw]) -> None:
    if obj.debug is not None:
        out.append((depth, f"/// @use-src {obj.debug}", ()))
    out.append((depth, f"object {quote(obj.name or 'object')} {{", (obj,)))
    start = len(out)
    _block(obj.code, depth + 1, out)
    _put_before("code ", (), start, out)
    for child in obj.children:
        if isinstance(child, Data):
            out.append((depth + 1, f'data {quote(child.name)} hex"{child.content.hex()}"', (child,)))
        else:
            _object(child, depth + 1, out)
    out.append((depth, "}", ()))


def _put_before(head: str, nodes: tuple[Any, ...], at: int, out: list[_Raw]) -> None:
    """The line continues the head."""
    depth, text, others = out[at]
    out[at] = depth, head + text, nodes + others


def _block(block: Block, depth: int, out: list[_Raw]) -> None:
    if not block.statements:
        out.append((depth, "{ }", ()))
        return
    start = len(out)
    out.append((depth, "{", ()))
    for statement in block.statements:
        _statement(statement, depth + 1, out)
    _, text, nodes = out[-1]
    if len(out) == start + 2 and len(text) < SHORT_BLOCK:
        out[start:] = [(depth, f"{{ {text} }}", nodes)]
    else:
        out.append((depth, "}", ()))


def _statement(statement: Statement, depth: int, out: list[_Raw]) -> None:
    simple = _SIMPLE.get(type(statement))
    if simple is not None:
        out.append((depth, simple(statement), (statement,)))
    else:
        _COMPOUND[type(statement)](statement, depth, out)


def _assignment(statement: Assignment) -> str:
    targets = ", ".join([target.name for target in statement.targets])
    return f"{targets} := {print_expression(statement.value)}"


def _declaration(statement: VariableDeclaration) -> str:
    names = ", ".join([variable.name for variable in statement.variables])
    return f"let {names}" if statement.value is None else f"let {names} := {print_expression(statement.value)}"


def _function(function: FunctionDefinition, depth: int, out: list[_Raw]) -> None:
    parameters = ", ".join(parameter.name for parameter in function.parameters)
    returns = ", ".join(variable.name for variable in function.returns)
    arrow = f" -> {returns}" if returns else ""
    out.append((depth, f"function {function.name}({parameters}){arrow}", (function,)))
    _block(function.body, depth, out)


def _if(statement: If, depth: int, out: list[_Raw]) -> None:
    start = len(out)
    out.append((depth, f"if {print_expression(statement.condition)}", (statement,)))
    _block(statement.body, depth, out)
    if len(out) == start + 2:
        _, head, nodes = out.pop(start)
        _put_before(f"{head} ", nodes, start, out)


def _switch(statement: Switch, depth: int, out: list[_Raw]) -> None:
    out.append((depth, f"switch {print_expression(statement.expression)}", (statement,)))
    for case in statement.cases:
        start = len(out)
        _block(case.body, depth, out)
        head = "default " if case.value is None else f"case {print_literal(case.value)} "
        _put_before(head, (case,), start, out)


def _for(loop: ForLoop, depth: int, out: list[_Raw]) -> None:
    start = len(out)
    _block(loop.pre, depth, out)
    middle = len(out)
    out.append((depth, print_expression(loop.condition), (loop,)))
    _block(loop.post, depth, out)
    parts = out[start:]
    if len(parts) == 3 and middle == start + 1 and sum(len(text) for _, text, _ in parts) < SHORT_LOOP_HEAD:
        head = " ".join(["for", *(text for _, text, _ in parts)])
        out[start:] = [(depth, head, (loop, *parts[0][2], *parts[2][2]))]
    else:
        _put_before("for ", (), start, out)
    _block(loop.body, depth, out)


_SIMPLE: dict[type, Callable[[Any], str]] = {
    ExpressionStatement: lambda each: print_expression(each.expression),
    Assignment: _assignment,
    VariableDeclaration: _declaration,
    Break: lambda _: "break",
    Continue: lambda _: "continue",
    Leave: lambda _: "leave",
}
_COMPOUND: dict[type, Callable[[Any, int, list[_Raw]], None]] = {
    FunctionDefinition: _function,
    If: _if,
    Switch: _switch,
    ForLoop: _for,
    Block: _block,
}
