"""A syntax tree to text, laid out as solc lays it out: exact to the letter, so that texts can be compared."""

from __future__ import annotations

from typing import Any, NamedTuple

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Break,
    Case,
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


class Line(NamedTuple):
    """A line of text, and the nodes whose text stands on it: statements, for a compound one only its head."""

    text: str
    nodes: tuple[Any, ...] = ()


def print_block(block: Block) -> str:
    with room_to_recurse():
        return _text(_block(block))


def print_object(obj: Object) -> str:
    """The whole object with everything in it; an object without name and children is only its block."""
    return _text(object_lines(obj))


def object_lines(obj: Object) -> list[Line]:
    """The lines of `print_object`, each with what it was printed from."""
    with room_to_recurse():
        return _block(obj.code) if is_bare(obj) else _object(obj)


def block_lines(block: Block) -> list[Line]:
    """The lines of `print_block`, each with what it was printed from."""
    with room_to_recurse():
        return _block(block)


def is_bare(obj: Object) -> bool:
    return not obj.name and not obj.children


def _text(lines: list[Line]) -> str:
    return "\n".join([line.text for line in lines])


# -- lines, not indented; the block around them indents ---------------------------------------------------------------


def _object(obj: Object) -> list[Line]:
    inner = _after("code ", _block(obj.code))
    for child in obj.children:
        inner += _data(child) if isinstance(child, Data) else _object(child)
    head = [Line(f"/// @use-src {obj.debug}")] if obj.debug is not None else []
    return [*head, Line(f"object {quote(obj.name or 'object')} {{", (obj,)), *_indented(inner), Line("}")]


def _data(data: Data) -> list[Line]:
    return [Line(f'data {quote(data.name)} hex"{data.content.hex()}"', (data,))]


def _indented(lines: list[Line]) -> list[Line]:
    return [Line(INDENT + text, nodes) for text, nodes in lines]


def _after(head: str, lines: list[Line], *nodes: Any) -> list[Line]:
    """The first line continues the head, which is printed from some nodes."""
    return [Line(head + lines[0].text, (*nodes, *lines[0].nodes)), *lines[1:]]


def _block(block: Block) -> list[Line]:
    if not block.statements:
        return [Line("{ }")]
    lines = [line for statement in block.statements for line in _lines(statement)]
    if len(lines) == 1 and len(lines[0].text) < SHORT_BLOCK:
        return [Line(f"{{ {lines[0].text} }}", lines[0].nodes)]
    return [_OPENS, *_indented(lines), _CLOSES]


_OPENS, _CLOSES = Line("{"), Line("}")


def _lines(statement: Statement) -> list[Line]:
    return _PRINTERS[type(statement)](statement)  # type: ignore[operator,no-any-return]


def _expression_statement(statement: ExpressionStatement) -> list[Line]:
    return [Line(print_expression(statement.expression), (statement,))]


def _assignment(statement: Assignment) -> list[Line]:
    targets = ", ".join(target.name for target in statement.targets)
    return [Line(f"{targets} := {print_expression(statement.value)}", (statement,))]


def _declaration(statement: VariableDeclaration) -> list[Line]:
    names = ", ".join(variable.name for variable in statement.variables)
    text = f"let {names}" if statement.value is None else f"let {names} := {print_expression(statement.value)}"
    return [Line(text, (statement,))]


def _function(function: FunctionDefinition) -> list[Line]:
    parameters = ", ".join(parameter.name for parameter in function.parameters)
    returns = ", ".join(variable.name for variable in function.returns)
    arrow = f" -> {returns}" if returns else ""
    return [Line(f"function {function.name}({parameters}){arrow}", (function,)), *_block(function.body)]


def _if(statement: If) -> list[Line]:
    head, body = f"if {print_expression(statement.condition)}", _block(statement.body)
    return _after(f"{head} ", body, statement) if len(body) == 1 else [Line(head, (statement,)), *body]


def _switch(statement: Switch) -> list[Line]:
    lines = [Line(f"switch {print_expression(statement.expression)}", (statement,))]
    for case in statement.cases:
        lines += _case(case)
    return lines


def _case(case: Case) -> list[Line]:
    head = "default " if case.value is None else f"case {print_literal(case.value)} "
    return _after(head, _block(case.body), case)


def _for(loop: ForLoop) -> list[Line]:
    pre, condition, post = _block(loop.pre), print_expression(loop.condition), _block(loop.post)
    body = _block(loop.body)
    if len(pre) == len(post) == 1 and len(pre[0].text) + len(condition) + len(post[0].text) < SHORT_LOOP_HEAD:
        head = f"for {pre[0].text} {condition} {post[0].text}"
        return [Line(head, (loop, *pre[0].nodes, *post[0].nodes)), *body]
    return [*_after("for ", pre), Line(condition, (loop,)), *post, *body]


_PRINTERS = {
    ExpressionStatement: _expression_statement,
    Assignment: _assignment,
    VariableDeclaration: _declaration,
    FunctionDefinition: _function,
    If: _if,
    Switch: _switch,
    ForLoop: _for,
    Block: _block,
    Break: lambda each: [Line("break", (each,))],
    Continue: lambda each: [Line("continue", (each,))],
    Leave: lambda each: [Line("leave", (each,))],
}
