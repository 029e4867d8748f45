"""What is to be explained: text or a file in one of the languages, hex, bytes, or a build tool's artifact."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusevm.abi.artifacts import Artifact
from fusevm.values import BadValue, to_bytes

MAX_CODE = 1 << 17  # bytes
MAX_TEXT = 1 << 21  # characters
LANGUAGES = ("yul", "bytecode", "assembly", "solidity", "vyper")
_SUFFIXES = {".yul": "yul", ".sol": "solidity", ".vy": "vyper", ".asm": "assembly", ".easm": "assembly"}
_HEX = re.compile(r"\s*(0[xX])?[0-9a-fA-F\s]*")
_JSON = re.compile(r'\s*(?:\[\s*[\[{"\d]|\{\s*")')  # which the beginning of no other language is
_YUL = re.compile(r'\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*(?:object\s*"|\{)', re.DOTALL)
_SOLIDITY = re.compile(r"\bpragma\s+solidity\b|^\s*(?:abstract\s+)?(?:contract|library|interface)\s+\w+", re.MULTILINE)
_VYPER = re.compile(r"^\s*#\s*(?:pragma|@)\s*version|^@(?:external|internal|deploy)\b", re.MULTILINE)


class BadSource(BadValue):
    """Something that cannot be explained: one line that says what and why.

    >>> try:
    ...     __import__("fusevm").explain("0x123")
    ... except BadSource as error:
    ...     print(error)
    source: hex text with an odd number of digits: 3
    """


@dataclass(frozen=True, slots=True)
class SourceInput:
    """What was read: a text in some language, or code; an artifact's interface where there is one."""

    name: str
    language: str
    text: str = ""
    code: bytes = b""
    creation: bytes = b""
    artifact: Artifact | None = None


def read(source: Any, language: str | None = None, name: str | None = None, contract: str | None = None) -> SourceInput:
    """Raises BadSource."""
    if language is not None and language not in LANGUAGES:
        raise BadSource(f"language {language!r} is not known; it is one of {', '.join(LANGUAGES)}")
    if isinstance(source, Artifact | dict):
        return _artifact(source, name, contract)
    if isinstance(source, bytes | bytearray | memoryview):
        return _code(bytes(source), name or "code")
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_path(source)):
        return _file(Path(source), language, name, contract)
    if not isinstance(source, str):
        raise BadSource(f"source: {type(source).__name__} is neither text nor bytes nor a file's name")
    return _text(source, language, name or "", contract)


def _is_path(text: str) -> bool:
    if "\n" in text or len(text) > 4096 or text.lstrip()[:1] in ("{", "["):
        return False
    try:
        return Path(text).is_file() or (Path(text).suffix in {*_SUFFIXES, ".json", ".hex", ".bin"} and " " not in text)
    except (OSError, ValueError):
        return False


def _file(path: Path, language: str | None, name: str | None, contract: str | None) -> SourceInput:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadSource(f"cannot read {path}: {error.strerror}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _code(data, name or path.name)
    return _text(text, language or _SUFFIXES.get(path.suffix), name or path.name, contract)


def _text(text: str, language: str | None, name: str, contract: str | None) -> SourceInput:
    if len(text) > MAX_TEXT:
        raise BadSource(f"source: {len(text):,} characters; at most {MAX_TEXT:,} are explained")
    language = language or language_of(text)
    if language == "bytecode":
        if text.lstrip()[:1] in ("{", "["):
            return _artifact(text, name, contract)
        return _code(_from_hex(text), name or "code")
    return SourceInput(name or language, language, text)


def language_of(text: str) -> str:
    """By its first words: hex digits and JSON are bytecode."""
    if _HEX.fullmatch(text):
        return "bytecode"
    if text.lstrip()[:1] in ("{", "[") and (_is_json(text) or _JSON.match(text)):
        return "bytecode"
    if _YUL.match(text):
        return "yul"
    if _SOLIDITY.search(text):
        return "solidity"
    return "vyper" if _VYPER.search(text) else "assembly"


def _is_json(text: str) -> bool:
    """Braces with nothing in them are Yul."""
    try:
        return bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _from_hex(text: str) -> bytes:
    digits = "".join(text.split()).removeprefix("0x").removeprefix("0X")
    if len(digits) % 2:
        raise BadSource(f"source: hex text with an odd number of digits: {len(digits)}")
    try:
        return to_bytes(digits, "source")
    except BadValue as error:
        raise BadSource(str(error)) from None


def _code(code: bytes, name: str, creation: bytes = b"", artifact: Artifact | None = None) -> SourceInput:
    if len(code) > MAX_CODE:
        raise BadSource(f"source: {len(code):,} bytes of code; at most {MAX_CODE:,} are explained")
    return SourceInput(name, "bytecode", "", code, creation, artifact)


def _artifact(given: Any, name: str | None, contract: str | None) -> SourceInput:
    try:
        artifact = Artifact.read(given, contract)
        runtime = artifact.runtime_code()
    except BadValue as error:
        raise BadSource(str(error).removeprefix("the JSON text: ")) from None
    creation = bytes.fromhex(artifact.creation) if re.fullmatch("(?:[0-9a-fA-F]{2})*", artifact.creation) else b""
    if not runtime and not creation:
        raise BadSource(f"{artifact.name or 'the artifact'} has no code: an interface, or an abstract contract?")
    return _code(runtime or creation, name or artifact.name or "code", creation if runtime else b"", artifact)
