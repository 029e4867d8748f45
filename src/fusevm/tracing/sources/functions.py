"""The functions of a source file, found in its text: artifacts seldom come with a syntax tree."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple


class SourceFunction(NamedTuple):
    name: str  # with its contract: `ERC20.transfer`
    start: int  # offsets in bytes
    end: int
    body: int  # where the body begins


_SKIPPED = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_CONTRACT = re.compile(rb"\b(?:contract|library|interface)\s+([\w$]+)[^{};]*\{")
_FUNCTION = re.compile(rb"\b(?:function\s+([\w$]+)|(constructor|receive|fallback)|modifier\s+([\w$]+))\s*(?=[({v])")
_VYPER = re.compile(rb"^def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
_OUTDENTED = re.compile(rb"^[^\s#]", re.MULTILINE)


def functions_of(path: str, text: bytes) -> list[SourceFunction]:
    """In the order in which they begin; a function may be inside another (in assembly)."""
    if path.endswith((".vy", ".vyi")):
        return _in_vyper(path, text)
    return _in_solidity(_SKIPPED.sub(_blank, text))


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _in_solidity(text: bytes) -> list[SourceFunction]:
    closing = _closing_braces(text)
    contracts = [
        (match.start(), closing.get(match.end() - 1, len(text)), match[1].decode())
        for match in _CONTRACT.finditer(text)
    ]
    found = []
    for match in _FUNCTION.finditer(text):
        body = _body_after(text, match.end())
        if body is None:
            continue
        name = (match[1] or match[2] or match[3]).decode()
        owner = next((owner for start, end, owner in contracts if start < match.start() < end), None)
        end = closing.get(body, len(text) - 1) + 1
        found.append(SourceFunction(name if owner is None else f"{owner}.{name}", match.start(), end, body))
    return found


def _body_after(text: bytes, at: int) -> int | None:
    """Where the body of a function begins; None where it has none."""
    brace, end = text.find(b"{", at), text.find(b";", at)
    return None if brace < 0 or 0 <= end < brace else brace


def _closing_braces(text: bytes) -> dict[int, int]:
    found, open_ones = {}, []
    for match in re.finditer(rb"[{}]", text):
        if match[0] == b"{":
            open_ones.append(match.start())
        elif open_ones:
            found[open_ones.pop()] = match.start()
    return found


def _in_vyper(path: str, text: bytes) -> list[SourceFunction]:
    """A function goes to the next line that is not indented."""
    module = PurePosixPath(path).stem
    found = []
    for match in _VYPER.finditer(text):
        closed = _signature_end(text, match.end())
        after, body = _OUTDENTED.search(text, closed), text.find(b"\n", closed)
        end = len(text) if after is None else after.start()
        found.append(SourceFunction(f"{module}.{match[1].decode()}", match.start(), end, closed if body < 0 else body))
    return found


def _signature_end(text: bytes, at: int) -> int:
    """After the parameters, whose closing parenthesis may stand on a line of its own."""
    depth = 1
    while at < len(text) and depth:
        depth += {0x28: 1, 0x29: -1}.get(text[at], 0)
        at += 1
    return at
