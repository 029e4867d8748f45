"""Yul source to a syntax tree: objects with their sub-objects and data, or a bare block."""

from __future__ import annotations

import re

from fusevm.yul.syntax.ast import Block, Data, Location, Object
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.errors import ErrorList, TooManyErrors
from fusevm.yul.syntax.lexer import TokenKind
from fusevm.yul.syntax.origins import NO_ORIGINS, Origins, origins_of
from fusevm.yul.syntax.statements import CodeParser, Fatal, LoopPart

_USE_SRC = re.compile(r"///[ \t]*@use-src[ \t]+([^\n\r]*)")


class Parser(CodeParser):
    """The grammar around code blocks."""

    def parse_top(self) -> Object | None:
        """The whole source: an object, or a bare block as an object without name."""
        try:
            result = self.bare_code() if self.at("{") else self.object_(None)
            if result is not None and self.token.kind is not TokenKind.END:
                self.expected("the end")
        except (Fatal, TooManyErrors):
            return None
        return result

    def bare_code(self) -> Object | None:
        start = self.token.start
        debug = self.debug_comment()
        code = self.code_block()
        if code is None:
            return None
        return Object("", code, [], debug, Location(start, code.location.end), self.origins())

    def debug_comment(self) -> str | None:
        """The `@use-src` comment between the last token and this one, if there is one."""
        begin = self.tokens[self.index - 1].end if self.index else 0
        found = _USE_SRC.findall(self.text, begin, self.token.start) if begin < self.token.start else None
        return found[-1].strip() if found else None

    def origins(self) -> Origins:
        """What `@src` comments say, anywhere in the source."""
        if "@src" not in self.text:
            return NO_ORIGINS
        ends = [0, *(token.end for token in self.tokens)]
        return origins_of(self.text, zip(ends, (token.start for token in self.tokens), strict=False))

    def object_(self, parent: Object | None) -> Object:
        self.enter()
        start, debug = self.token.start, self.debug_comment()
        if self.token.kind is not TokenKind.IDENTIFIER or self.token.text != "object":
            self.fatal(4294, 'expected the keyword "object"')
        self.advance()
        result = Object(self.unique_name(parent), Block(), [], debug)
        result.origins = self.origins() if parent is None else parent.origins
        self.expect("{")
        if self.token.kind is not TokenKind.IDENTIFIER or self.token.text != "code":
            self.fatal(4846, 'expected the keyword "code"')
        self.advance()
        result.code = self.code_block() or Block()
        while not self.at("}"):
            self.child(result)
        result.location = Location(start, self.advance().end)
        self.depth -= 1
        return result

    def child(self, parent: Object) -> None:
        word = self.token.text if self.token.kind is TokenKind.IDENTIFIER else ""
        if word == "object":
            parent.children.append(self.object_(parent))
        elif word == "data":
            parent.children.append(self.data(parent))
        else:
            self.fatal(8143, 'expected the keyword "data" or "object" or \'}\'')

    def data(self, parent: Object) -> Data:
        start = self.advance().start
        name = self.unique_name(parent)
        if self.token.kind is not TokenKind.HEX_STRING and self.token.kind is not TokenKind.STRING:
            self.expected("a string")
        content = self.advance()
        return Data(name, content.text.encode("latin-1"), Location(start, content.end))

    def unique_name(self, parent: Object | None) -> str:
        if self.token.kind is not TokenKind.STRING:
            self.expected("a string")
        name = self.token.text
        if not name:
            self.complain(3287, "an object's name cannot be empty")
        elif parent is not None and parent.name == name:
            self.complain(8311, f'the name "{name}" is the containing object\'s')
        elif parent is not None and any(child.name == name for child in parent.children):
            self.complain(8794, f'the name "{name}" already exists inside the containing object')
        self.advance()
        return name

    def code_block(self) -> Block | None:
        """A block with loops, functions and depth of its own. If it is broken, the object continues there."""
        saved, self.depth = self.depth, 0
        self.loop_part, self.inside_function = LoopPart.NONE, False
        try:
            return self.block()
        except Fatal:
            return None
        finally:
            self.depth = saved


def parse_with_errors(source: str | bytes, dialect: Dialect | None = None) -> tuple[Object | None, ErrorList]:
    """The tree, or None where there is none, and everything the parser has to say."""
    parser = Parser(source, dialect)
    tree = parser.parse_top()
    return (tree if parser.errors.count == 0 else None), parser.errors


def parse_object(source: str | bytes, dialect: Dialect | None = None) -> Object:
    """Parse an object or a bare block. Raises the first YulError, which carries the others."""
    tree, errors = parse_with_errors(source, dialect)
    errors.raise_if_any()
    assert tree is not None
    return tree


def parse_block(source: str | bytes, dialect: Dialect | None = None) -> Block:
    """Parse a bare block, or take the code of the outermost object."""
    return parse_object(source, dialect).code
