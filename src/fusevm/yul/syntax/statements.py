"""Statements and expressions from tokens: solc's grammar, its error numbers and the places it points to."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto

from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Break,
    Case,
    Continue,
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
    Location,
    Statement,
    Switch,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.depth import MAX_PARSER_DEPTH, make_room
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import ErrorKind, ErrorList
from fusevm.yul.syntax.lexer import Token, TokenKind, as_bytes_text, tokenize

_PARSER, _SYNTAX = ErrorKind.PARSER, ErrorKind.SYNTAX
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_SPELLING = {
    TokenKind.IDENTIFIER: "an identifier",
    TokenKind.NUMBER: "a number",
    TokenKind.STRING: "a string",
    TokenKind.HEX_STRING: "a hex string",
    TokenKind.END: "the end",
}


class LoopPart(Enum):
    """Where in a loop a statement stands: break and continue belong in bodies only."""

    NONE = auto()
    PRE = auto()
    POST = auto()
    BODY = auto()


class Fatal(Exception):
    """Parsing of this block or object cannot go on; the complaint is in the list."""


def describe(token: Token) -> str:
    if token.kind is TokenKind.ILLEGAL:
        return f"something unreadable ({token.text})"
    return _SPELLING.get(token.kind) or f"'{token.text}'"


def number_value(text: str) -> int:
    """The number spelt in decimal or hexadecimal. Long decimals, which Python refuses, are too large for a word."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if len(text) < 100 else 1 << 256


def literal_of(token: Token, unlimited: bool = False) -> Literal:
    """The literal a number, string or boolean token stands for. Strings fill the word from the left."""
    location = Location(token.start, token.end)
    if token.kind is TokenKind.NUMBER:
        return Literal(LiteralKind.NUMBER, number_value(token.text), token.text, location)
    if token.kind is TokenKind.KEYWORD:
        return Literal(LiteralKind.BOOLEAN, int(token.text == "true"), token.text, location)
    value = 0 if unlimited else int.from_bytes(token.text.encode("latin-1")[:32].ljust(32, b"\0"), "big")
    return Literal(LiteralKind.STRING, value, token.text, location, unlimited)


class CodeParser:
    """Recursive descent over the token list. One instance parses one source."""

    def __init__(self, source: str | bytes, dialect: Dialect | None = None, errors: ErrorList | None = None) -> None:
        make_room()
        self.text = as_bytes_text(source)
        self.dialect = dialect or dialect_for()
        self.errors = errors if errors is not None else ErrorList(self.text)
        self.tokens = tokenize(self.text)
        self.index = 0
        self.token = self.tokens[0]
        self.depth = 0
        self.loop_part = LoopPart.NONE
        self.inside_function = False

    # -- tokens -------------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Step over the current token and return it. The last one is never passed."""
        token = self.token
        if self.index + 1 < len(self.tokens):
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def at(self, punctuation: str) -> bool:
        token = self.token
        return token.text == punctuation and token.kind is TokenKind.PUNCTUATION

    def expect(self, punctuation: str) -> Token:
        if not self.at(punctuation):
            self.expected(f"'{punctuation}'")
        return self.advance()

    def expected(self, what: str) -> None:
        self.fatal(2314, f"expected {what} but got {describe(self.token)}")

    def fatal(self, code: int, message: str, location: Location | None = None) -> None:
        self.errors.add(_PARSER, code, message, location or self.here())
        raise Fatal

    def complain(self, code: int, message: str, location: Location | None = None) -> None:
        self.errors.add(_PARSER, code, message, location or self.here())

    def here(self) -> Location:
        return Location(self.token.start, self.token.end)

    def enter(self) -> None:
        self.depth += 1
        if self.depth >= MAX_PARSER_DEPTH:
            self.fatal(7319, f"too deeply nested: blocks and calls may nest about {MAX_PARSER_DEPTH // 2} deep")

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self) -> Block:
        self.enter()
        start = self.expect("{").start
        statements: list[Statement] = []
        while not self.at("}"):
            statements.append(self.statement())
        end = self.advance().end
        self.depth -= 1
        return Block(statements, Location(start, end))

    def statement(self) -> Statement:
        self.enter()
        token = self.token
        parse = _STATEMENTS.get(token.text) if token.kind is TokenKind.KEYWORD else None
        result: Statement
        if parse is not None:
            result = parse(self)
        elif token.text == "{" and token.kind is TokenKind.PUNCTUATION:
            result = self.block()
        else:
            result = self.call_or_assignment()
        self.depth -= 1
        return result

    def call_or_assignment(self) -> Statement:
        first = self.literal_or_name()
        if self.at("("):
            call = self.call(first)
            return ExpressionStatement(call, call.location)
        if not (self.at(",") or self.at(":=")):
            self.fatal(6913, "expected a call or an assignment")
        targets = [self.target(first)]
        while self.at(","):
            self.advance()
            targets.append(self.target(self.literal_or_name()))
        self.expect(":=")
        value = self.expression()
        return Assignment(targets, value, Location(targets[0].location.start, value.location.end))

    def target(self, candidate: Literal | Identifier) -> Identifier:
        if isinstance(candidate, Literal):
            self.fatal(2856, f'a variable\'s name must stand before "{self.token.text}"')
            raise AssertionError
        if self.dialect.is_builtin(candidate.name):
            self.fatal(6272, f"cannot assign to the builtin function '{candidate.name}'")
        return candidate

    def if_(self) -> If:
        start = self.advance().start
        condition = self.expression()
        body = self.block()
        return If(condition, body, Location(start, body.location.end))

    def switch(self) -> Switch:
        start = self.advance().start
        expression = self.expression()
        cases: list[Case] = []
        while self.at_word("case"):
            cases.append(self.case())
        if self.at_word("default"):
            cases.append(self.case())
        if self.at_word("default"):
            self.fatal(6931, "only one default case is allowed")
        if self.at_word("case"):
            self.fatal(4904, "no case may follow the default case")
        if not cases:
            self.fatal(2418, "switch without any case")
        return Switch(expression, cases, Location(start, cases[-1].location.end))

    def at_word(self, keyword: str) -> bool:
        return self.token.text == keyword and self.token.kind is TokenKind.KEYWORD

    def case(self) -> Case:
        self.enter()
        word = self.advance()
        value: Literal | None = None
        if word.text == "case":
            label = self.literal_or_name()
            if isinstance(label, Identifier):
                self.fatal(4805, "expected a literal")
            else:
                value = label
        body = self.block()
        self.depth -= 1
        return Case(value, body, Location(word.start, body.location.end))

    def for_(self) -> ForLoop:
        self.enter()
        outer, start = self.loop_part, self.advance().start
        self.loop_part = LoopPart.PRE
        pre = self.block()
        self.loop_part = LoopPart.NONE
        condition = self.expression()
        self.loop_part = LoopPart.POST
        post = self.block()
        self.loop_part = LoopPart.BODY
        body = self.block()
        self.loop_part = outer
        self.depth -= 1
        return ForLoop(pre, condition, post, body, Location(start, body.location.end))

    def break_(self) -> Break:
        return Break(self.loop_exit())

    def continue_(self) -> Continue:
        return Continue(self.loop_exit())

    def loop_exit(self) -> Location:
        word, location = self.token.text, self.here()
        if self.loop_part is LoopPart.NONE:
            self.errors.add(_SYNTAX, 2592, f"'{word}' needs to be inside a loop's body", location)
        elif self.loop_part is LoopPart.PRE:
            self.errors.add(_SYNTAX, 9615, f"'{word}' is not allowed in a loop's init block", location)
        elif self.loop_part is LoopPart.POST:
            self.errors.add(_SYNTAX, 2461, f"'{word}' is not allowed in a loop's post block", location)
        self.advance()
        return location

    def leave(self) -> Leave:
        location = self.here()
        if not self.inside_function:
            self.errors.add(_SYNTAX, 8149, "'leave' can only be used inside a function", location)
        self.advance()
        return Leave(location)

    def let(self) -> VariableDeclaration:
        self.enter()
        start = self.advance().start
        variables = [self.typed_name()]
        while self.at(","):
            self.advance()
            variables.append(self.typed_name())
        value: Expression | None = None
        end = variables[-1].location.end
        if self.at(":="):
            self.advance()
            value = self.expression()
            end = value.location.end
        self.depth -= 1
        return VariableDeclaration(variables, value, Location(start, end))

    def function(self) -> FunctionDefinition:
        self.enter()
        if self.loop_part is LoopPart.PRE:
            self.errors.add(_SYNTAX, 3441, "functions cannot be defined inside a loop's init block", self.here())
        outer_part, self.loop_part = self.loop_part, LoopPart.NONE
        start = self.advance().start
        name = self.declared_name()
        parameters = self.parameters()
        returns = self.return_variables()
        outer_inside, self.inside_function = self.inside_function, True
        body = self.block()
        self.inside_function, self.loop_part = outer_inside, outer_part
        self.depth -= 1
        return FunctionDefinition(name, parameters, returns, body, Location(start, body.location.end))

    def parameters(self) -> list[TypedName]:
        names: list[TypedName] = []
        self.expect("(")
        while not self.at(")"):
            names.append(self.typed_name())
            if not self.at(")"):
                self.expect(",")
        self.advance()
        return names

    def return_variables(self) -> list[TypedName]:
        if not self.at("->"):
            return []
        self.advance()
        names = [self.typed_name()]
        while not self.at("{"):
            self.expect(",")
            names.append(self.typed_name())
        return names

    def typed_name(self) -> TypedName:
        start, end = self.token.start, self.token.end
        name = self.declared_name()
        if self.at(":"):
            end = self.type_annotation(start)
        return TypedName(name, Location(start, end))

    def declared_name(self) -> str:
        token = self.token
        if token.kind is not TokenKind.IDENTIFIER:
            self.expected("an identifier")
        if self.dialect.is_builtin(token.text):
            self.complain(5568, f"the builtin function's name '{token.text}' cannot be declared")
        return self.advance().text

    def type_annotation(self, start: int) -> int:
        """`: type`, which Yul's grammar knows and the EVM's dialect refuses. Returns where it ends."""
        self.advance()
        end = self.token.end
        self.declared_name()
        self.complain(5473, "types are not supported in untyped Yul", Location(start, end))
        return end

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, unlimited: bool = False) -> Expression:
        self.enter()
        operand = self.literal_or_name(unlimited)
        if isinstance(operand, Identifier):
            if self.at("("):
                call = self.call(operand)
                self.depth -= 1
                return call
            if self.dialect.is_builtin(operand.name):
                self.fatal(7104, f"the builtin function '{operand.name}' must be called", operand.location)
        self.depth -= 1
        return operand

    def literal_or_name(self, unlimited: bool = False) -> Literal | Identifier:
        token = self.token
        kind = token.kind
        if self.depth + 1 >= MAX_PARSER_DEPTH:
            self.enter()
        if kind is TokenKind.IDENTIFIER:
            self.advance()
            return Identifier(token.text, Location(token.start, token.end))
        if kind is TokenKind.NUMBER:
            if _NUMBER.fullmatch(token.text) is None:
                self.fatal(4828, "invalid number")
        elif kind is TokenKind.ILLEGAL:
            self.fatal(1465, f"illegal token: {token.text}")
        elif not (kind is TokenKind.STRING or kind is TokenKind.HEX_STRING or token.text in ("true", "false")):
            self.fatal(1856, f"expected a literal or an identifier but got {describe(token)}")
        self.advance()
        if self.at(":"):
            self.type_annotation(token.start)
        return literal_of(token, unlimited and kind is not TokenKind.NUMBER and kind is not TokenKind.KEYWORD)

    def call(self, function: Literal | Identifier) -> FunctionCall:
        self.enter()
        if isinstance(function, Literal):
            self.fatal(9980, "expected a function's name")
            raise AssertionError
        builtin = self.dialect.builtin(function.name)
        self.advance()
        arguments: list[Expression] = []
        while not self.at(")"):
            if arguments:
                self.expect(",")
            is_name = builtin is not None and builtin.literal_kind(len(arguments)) is LiteralKind.STRING
            arguments.append(self.expression(is_name))
        end = self.advance().end
        self.depth -= 1
        return FunctionCall(function, arguments, Location(function.location.start, end))


_STATEMENTS: dict[str, Callable[[CodeParser], Statement]] = {
    "let": CodeParser.let,
    "function": CodeParser.function,
    "if": CodeParser.if_,
    "switch": CodeParser.switch,
    "for": CodeParser.for_,
    "break": CodeParser.break_,
    "continue": CodeParser.continue_,
    "leave": CodeParser.leave,
}
