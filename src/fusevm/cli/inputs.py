"""What users hand to commands as code: hex text, 0x-hex, or a file of hex or binary."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

from fusevm.evm.forks import Fork, UnknownFork, fork_named

_NOT_HEX = re.compile(r"[^0-9a-fA-F\s]")
MOST_ANALYSED = 1 << 17  # bytes


class BadInput(ValueError):
    """One clear line about an input that cannot be read."""


def read_code(text: str) -> bytes:
    """The bytes meant by hex text, by a file's name (its hex text or its raw bytes), or by '-' for standard input."""
    if text == "-":
        return _from_file(sys.stdin.buffer.read(), "standard input")
    if _looks_like_a_path(text):
        path = Path(text)
        if path.is_dir():
            raise BadInput(f"{text} is a folder, not a file of code")
        if not path.is_file():
            raise BadInput(f"no such file: {text}")
        try:
            return _from_file(path.read_bytes(), text)
        except OSError as error:
            raise BadInput(f"cannot read {text}: {error.strerror}") from None
    return parse_hex(text)


def parse_json(text: str | bytes, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{source}: not text") from None
    except RecursionError:
        raise BadInput(f"{source}: nested too deeply") from None


def parse_hex(text: str, source: str = "code") -> bytes:
    """Hex digits with or without 0x; blanks between them do not count."""
    stripped = text.strip()
    start = 2 if stripped[:2] in ("0x", "0X") else 0
    wrong = _NOT_HEX.search(stripped, start)
    if wrong is not None:
        raise BadInput(f"{source} is not hex: {wrong[0]!r} at position {wrong.start()}")
    digits = "".join(stripped[start:].split())
    if len(digits) % 2:
        raise BadInput(f"{source} has an odd number of hex digits: {len(digits)}")
    return bytes.fromhex(digits)


def _looks_like_a_path(text: str) -> bool:
    """Hex wins over a file of the same name, unless the name has something hex has not."""
    if "/" in text or "\\" in text:
        return True
    try:
        exists = Path(text).is_file()
    except (OSError, ValueError):  # too long or not a name at all
        return False
    if exists:
        return bool(set(text) - set("0123456789abcdefABCDEF")) and not text.startswith("0x")
    return "." in text


def _from_file(data: bytes, source: str) -> bytes:
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return data
    if not text.isprintable() and any(not c.isprintable() and not c.isspace() for c in text):
        return data
    return parse_hex(text, source)


# -- for commands: the input, or one line on standard error and exit code 2 -----------------------------------------


def quit_with(message: str) -> NoReturn:
    typer.echo(f"fusevm: {message}", err=True)
    raise typer.Exit(2)


def code_or_exit(text: str) -> bytes:
    try:
        return read_code(text)
    except BadInput as error:
        quit_with(str(error))


def code_to_analyse(text: str) -> bytes:
    """As `code_or_exit`, and no more than an analysis can be expected to answer in seconds."""
    code = code_or_exit(text)
    if len(code) > MOST_ANALYSED:
        quit_with(
            f"the code has {len(code):,} bytes; at most {MOST_ANALYSED:,} are analysed (contracts have up to 24,576, "
            "init code 49,152); `fusevm disasm` takes any"
        )
    return code


def fork_or_exit(name: str) -> Fork:
    try:
        return fork_named(name)
    except UnknownFork as error:
        quit_with(str(error))


def text_or_exit(source: str) -> str:
    """The text itself, or that of a file of this name."""
    if source == "-":
        return sys.stdin.read()
    try:
        path = Path(source)
        is_file = path.is_file()
    except (OSError, ValueError):  # a program, not a name
        return source
    if not is_file:
        if path.is_dir():
            quit_with(f"{source} is a folder, not a file of text")
        if len(source.split()) == 1 and set(source) & set("./\\"):  # no word of a program has these
            quit_with(f"no such file: {source}")
        return source
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        quit_with(f"cannot read {source}: {error}")
