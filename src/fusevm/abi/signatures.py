"""Signatures as people write them: `function transfer(address to, uint256 amount) returns (bool)`, and shorter."""

from __future__ import annotations

import re

from fusevm.abi.entries import Constructor, CustomError, Entry, Event, Function
from fusevm.abi.types import Array, BadAbi, Parameter, Tuple, Type, UnknownType, scalar
from fusevm.values import shown as quoted

_TOKEN = re.compile(r"\s*(?:([A-Za-z_$][\w$]*)|(\d+)|([()\[\],;]))")
_KINDS = ("function", "event", "error", "constructor")
_PLACES = ("memory", "calldata", "storage", "payable")  # after a type, and without a meaning for the ABI
_MUTABILITY = ("pure", "view", "payable", "nonpayable")
_IGNORED = ("external", "public", "internal", "private", "virtual", "override")
_DEEPEST = 32  # tuples within tuples, and arrays within arrays


def parse_entry(text: str) -> Entry:
    """The function, event, error or constructor that the text declares; without a keyword it is a function."""
    return _Parser(text).entry()


def parse_type(text: str) -> Type:
    """`uint256`, `(address,uint256)[]`, …

    >>> parse_type("(address owner, uint)[2]").name
    '(address,uint256)[2]'
    """
    parser = _Parser(text)
    found = parser.type_()
    parser.expect_end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()
        self.at = 0
        self.depth = 0

    def _split(self) -> list[str]:
        tokens, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"unexpected {text[at:].strip()[:1]!r}")
            tokens.append(found[0].strip())
            at = found.end()
        return tokens

    def shown(self) -> str:
        return repr(" ".join(self.text.split())[:100])

    def wrong(self, why: str) -> BadAbi:
        return BadAbi(f"{self.shown()}: {why}; expected something like transfer(address to, uint256 amount)")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def found(self) -> str:
        return quoted(self.peek()) if self.peek() else "the end"

    def take(self, *wanted: str) -> str:
        """The next token, if it is one of these; else the empty text."""
        token = self.peek()
        if token not in wanted:
            return ""
        self.at += 1
        return token

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.wrong(f"expected {wanted!r} instead of {self.found()}")

    def word(self) -> str:
        token = self.peek()
        if not re.match(r"[A-Za-z_$]", token):
            raise self.wrong(f"expected a name instead of {self.found()}")
        self.at += 1
        return token

    def expect_end(self) -> None:
        self.take(";")
        if self.peek():
            raise self.wrong(f"unexpected {quoted(self.peek())}")

    def entry(self) -> Entry:
        kind = self._kind()
        name = "" if kind == "constructor" else self.word()
        inputs = self.parameters()
        mutability, anonymous, outputs = "nonpayable", False, None
        while self.peek() not in ("", ";"):
            if self.take("returns") or self.peek() == "(":
                outputs = self.parameters()
            elif self.take("anonymous"):
                anonymous = True
            elif found := self.take(*_MUTABILITY):
                mutability = found
            elif not self.take(*_IGNORED):
                raise self.wrong(f"unexpected {quoted(self.peek())}")
        self.expect_end()
        if kind == "event":
            return Event(name, inputs, anonymous)
        if kind == "error":
            return CustomError(name, inputs)
        if kind == "constructor":
            return Constructor("", inputs, mutability)
        return Function(name, inputs, outputs, mutability)

    def _kind(self) -> str:
        """The keyword, unless it is the name of a function: `error(uint256)`."""
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if self.peek() != "constructor" and following == "(":
            return "function"
        return self.take(*_KINDS) or "function"

    def parameters(self) -> tuple[Parameter, ...]:
        self.need("(")
        found: list[Parameter] = []
        if self.take(")"):
            return ()
        while True:
            found.append(self.parameter())
            if self.take(")"):
                return tuple(found)
            self.need(",")

    def parameter(self) -> Parameter:
        type_ = self.type_()
        name, indexed = "", False
        while self.peek() not in (",", ")", ""):
            if self.take("indexed"):
                indexed = True
            elif not self.take(*_PLACES):
                if name:
                    raise self.wrong(f"unexpected {quoted(self.peek())}")
                name = self.word()
        return Parameter(name, type_, indexed)

    def type_(self) -> Type:
        self.take("tuple")
        if self.peek() == "(":
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.wrong("tuples nested too deeply")
            found: Type = Tuple(self.parameters())
            self.depth -= 1
        else:
            found = self._scalar()
        arrays = 0
        while self.take("["):
            arrays += 1
            if arrays > _DEEPEST:
                raise self.wrong("arrays nested too deeply")
            size = None if self.peek() == "]" else self._size()
            self.need("]")
            found = Array(found, size)
        return found

    def _scalar(self) -> Type:
        try:
            return scalar(self.word())
        except UnknownType as error:
            raise BadAbi(f"{self.shown()}: {error}") from None

    def _size(self) -> int:
        token = self.peek()
        if not token.isdigit() or len(token) > 9:
            raise self.wrong(f"{quoted(token)} is not the size of an array")
        self.at += 1
        return int(token)
