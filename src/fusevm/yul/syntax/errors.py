"""Errors and warnings about Yul source: what is wrong, where, and solc's number for it."""

from __future__ import annotations

from enum import Enum

from fusevm.yul.syntax.ast import NOWHERE, Location


class ErrorKind(Enum):
    PARSER = "ParserError"
    SYNTAX = "SyntaxError"
    DECLARATION = "DeclarationError"
    TYPE = "TypeError"
    CODE_GENERATION = "CodeGenerationError"
    WARNING = "Warning"


class YulError(Exception):
    """One complaint about a Yul source; `others` are the ones found before it in the same run.

    `location` counts bytes of the source, `line` and `column` count from 1 (0 where there is no place to point to).

    >>> from fusevm import yul
    >>> try:
    ...     yul.compile("{ sstore(0, x) }")
    ... except YulError as error:
    ...     print(error, error.line, error.column)
    yul: 1:13: 'x' is not declared 1 13
    """

    def __init__(
        self, kind: ErrorKind, code: int, message: str, location: Location = NOWHERE, source: str | None = None
    ) -> None:
        self.kind = kind
        self.code = code
        self.message = message
        self.location = location
        self.line, self.column = place_of(source, location.start) if source is not None else (0, 0)
        self.others: list[YulError] = []
        super().__init__(message)

    @property
    def is_warning(self) -> bool:
        return self.kind is ErrorKind.WARNING

    def __str__(self) -> str:
        place = f" {self.line}:{self.column}:" if self.line else ""
        warning = " warning:" if self.is_warning else ""
        return f"yul:{place}{warning} {self.message}"


def place_of(source: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1; (0, 0) for nowhere."""
    if offset < 0:
        return 0, 0
    return source.count("\n", 0, offset) + 1, offset - (source.rfind("\n", 0, offset) + 1) + 1


class ErrorList:
    """Collects complaints about one source, and gives up after as many as solc does."""

    MOST = 256

    def __init__(self, source: str | None = None) -> None:
        self.source = source
        self.errors: list[YulError] = []
        self.count = 0  # of errors, warnings aside

    def add(self, kind: ErrorKind, code: int, message: str, location: Location = NOWHERE) -> YulError:
        error = YulError(kind, code, message, location, self.source)
        if kind is not ErrorKind.WARNING:
            self.count += 1
            if self.count > self.MOST:
                message = f"there are more than {self.MOST} errors"
                self.errors.append(YulError(ErrorKind.WARNING, 4013, message))
                raise TooManyErrors
        self.errors.append(error)
        return error

    def raise_if_any(self) -> None:
        """Raise the first error with all of them (and the warnings) as its `others`."""
        for error in self.errors:
            if not error.is_warning:
                error.others = [other for other in self.errors if other is not error]
                raise error


class TooManyErrors(Exception):
    """The list is full: the reporter must stop."""
