"""What the commands of `fusevm yul` share: reading a program, and its errors in lines or as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from fusevm.cli.inputs import (
    ASSEMBLY,
    YUL,
    BadInput,
    explained,
    fork_or_exit,
    language_in,
    parse_hex,
    quit_with,
    read_file,
)
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check as check_source
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError

_LONGEST_LINE = 400  # characters; a longer one is not shown

File = Annotated[str, typer.Argument(metavar="FILE", help="a file of Yul, or - for standard input")]
Evm = Annotated[str, typer.Option("--fork", "--evm", "-f", help="the fork whose builtins exist")]
Json = Annotated[bool, typer.Option("--json", help="the result as data")]


def read_source(file: str, wanted: str = YUL) -> bytes:
    """Or one line on standard error and exit code 2, also where the file is evidently something else."""
    try:
        source = read_file(file, f"a file of {wanted}")
        if not source.strip() or Path(file).suffix.lower() in (".sol", ".vy"):
            raise explained(f"{file} is not {wanted}", source, "standard input" if file == "-" else file, wanted)
    except BadInput as error:
        quit_with(str(error))
    return source


def hex_or_exit(text: str, what: str) -> bytes:
    try:
        return parse_hex(text, what)
    except BadInput as error:
        quit_with(str(error))


def dialect_or_exit(evm: str) -> Dialect:
    return dialect_for(fork_or_exit(evm))


def checked(file: str, dialect: Dialect, as_json: bool = False) -> tuple[Object, bytes]:
    """The program and its source, or its errors and exit code 1."""
    source = read_source(file)
    obj, errors = check_source(source, dialect)
    wrong = [error for error in errors if not error.is_warning]
    if wrong or obj is None:
        check_language(source, file)
        fail(wrong or errors, file, source, as_json)
    return obj, source


def check_language(source: bytes, file: str) -> None:
    """Exit code 2 where a text that cannot be parsed is not Yul at all."""
    if source.isascii() and language_in(source, file) not in (YUL, ASSEMBLY, None):
        quit_with(str(explained(f"{file} is not {YUL}", source, file, YUL)))


def fail(errors: list[YulError], file: str, source: bytes, as_json: bool) -> NoReturn:
    report(errors, file, source, as_json)
    raise typer.Exit(1)


def report(errors: list[YulError], file: str, source: bytes, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([_as_data(error) for error in errors]))
        return
    for error in errors:
        typer.echo(shown_error(error, "standard input" if file == "-" else file, source), err=True)


def shown_error(error: YulError, file: str, source: bytes) -> str:
    """As compilers write it: file, line and column, the message; then the source line, and carets under the place."""
    warning = "warning: " if error.is_warning else ""
    if not error.line:
        return f"{file}: {warning}{error.message}"
    message = f"{file}:{error.line}:{error.column}: {warning}{error.message}"
    lines = source.decode("utf-8", "replace").splitlines()
    if error.line > len(lines) or len(lines[error.line - 1]) > _LONGEST_LINE:
        return message
    line = lines[error.line - 1]
    width = max(1, min(error.location.end - error.location.start, len(line) - error.column + 1))
    before = "".join("\t" if character == "\t" else " " for character in line[: error.column - 1])
    return f"{message}\n    {line}\n    {before}{'^' * width}"


def _as_data(error: YulError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "code": error.code,
        "line": error.line,
        "column": error.column,
        "start": error.location.start,
        "end": error.location.end,
        "message": error.message,
    }
