"""A syntax tree to text, laid out as solc lays it out: exact to the letter, so that texts can be compared."""

from __future__ import annotations

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


def print_block(block: Block) -> str:
    with room_to_recurse():
        return "\n".join(_block(block))


def print_object(obj: Object) -> str:
    """The whole object with everything in it; an object without name and children is only its block."""
    with room_to_recurse():
        return print_block(obj.code) if is_bare(obj) else "\n".join(_object(obj))


def is_bare(obj: Object) -> bool:
    return not obj.name and not obj.children


# -- lines, not indented; the block around them indents ---------------------------------------------------------------


def _object(obj: Object) -> list[str]:
    inner = _after("code ", _block(obj.code))
    for child in obj.children:
        inner += _data(child) if isinstance(child, Data) else _object(child)
    head = [f"/// @use-src {obj.debug}"] if obj.debug is not None else []
    return [*head, f"object {quote(obj.name or 'object')} {{", *_indented(inner), "}"]


def _data(data: Data) -> list[str]:
    return [f'data {quote(data.name)} hex"{data.content.hex()}"']


def _indented(lines: list[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _after(head: str, lines: list[str]) -> list[str]:
    """The first line continues the head."""
    return [head + lines[0], *lines[1:]]


def _block(block: Block) -> list[str]:
    if not block.statements:
        return ["{ }"]
    lines = [line for statement in block.statements for line in _lines(statement)]
    if len(lines) == 1 and len(lines[0]) < SHORT_BLOCK:
        return [f"{{ {lines[0]} }}"]
    return ["{", *_indented(lines), "}"]


def _lines(statement: Statement) -> list[str]:
    return _PRINTERS[type(statement)](statement)  # type: ignore[operator,no-any-return]


def _expression_statement(statement: ExpressionStatement) -> list[str]:
    return [print_expression(statement.expression)]


def _assignment(statement: Assignment) -> list[str]:
    targets = ", ".join(target.name for target in statement.targets)
    return [f"{targets} := {print_expression(statement.value)}"]


def _declaration(statement: VariableDeclaration) -> list[str]:
    names = ", ".join(variable.name for variable in statement.variables)
    return [f"let {names}" if statement.value is None else f"let {names} := {print_expression(statement.value)}"]


def _function(function: FunctionDefinition) -> list[str]:
    parameters = ", ".join(parameter.name for parameter in function.parameters)
    returns = ", ".join(variable.name for variable in function.returns)
    arrow = f" -> {returns}" if returns else ""
    return [f"function {function.name}({parameters}){arrow}", *_block(function.body)]


def _if(statement: If) -> list[str]:
    head, body = f"if {print_expression(statement.condition)}", _block(statement.body)
    return [f"{head} {body[0]}"] if len(body) == 1 else [head, *body]


def _switch(statement: Switch) -> list[str]:
    lines = [f"switch {print_expression(statement.expression)}"]
    for case in statement.cases:
        lines += _case(case)
    return lines


def _case(case: Case) -> list[str]:
    head = "default " if case.value is None else f"case {print_literal(case.value)} "
    return _after(head, _block(case.body))


def _for(loop: ForLoop) -> list[str]:
    pre, condition, post = _block(loop.pre), print_expression(loop.condition), _block(loop.post)
    body = _block(loop.body)
    if len(pre) == len(post) == 1 and len(pre[0]) + len(condition) + len(post[0]) < SHORT_LOOP_HEAD:
        return [f"for {pre[0]} {condition} {post[0]}", *body]
    return [*_after("for ", pre), condition, *post, *body]


_PRINTERS = {
    ExpressionStatement: _expression_statement,
    Assignment: _assignment,
    VariableDeclaration: _declaration,
    FunctionDefinition: _function,
    If: _if,
    Switch: _switch,
    ForLoop: _for,
    Block: _block,
    Break: lambda _: ["break"],
    Continue: lambda _: ["continue"],
    Leave: lambda _: ["leave"],
}
