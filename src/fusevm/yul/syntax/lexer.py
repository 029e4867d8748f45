"""Yul source text to tokens, with one regular expression; places are offsets in bytes, as solc counts them."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from fusevm.yul.syntax.dialect import KEYWORDS


class TokenKind(Enum):
    IDENTIFIER = auto()
    KEYWORD = auto()
    NUMBER = auto()
    STRING = auto()
    HEX_STRING = auto()
    PUNCTUATION = auto()
    ILLEGAL = auto()  # the text is the reason
    END = auto()


class Token(NamedTuple):
    kind: TokenKind
    text: str  # of a string, its bytes as Latin-1
    start: int
    end: int


def as_bytes_text(source: str | bytes) -> str:
    """One character a byte: the form in which the lexer reads and places are counted."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    return data.decode("latin-1")


# A line comment ends at any of Unicode's line ends (NEL is C2 85; LS and PS are E2 80 A8 and A9 in UTF-8).
_LINE_COMMENT = r"//(?:[^\n\x0b\x0c\r\xc2\xe2]|\xc2(?!\x85)|\xe2(?!\x80[\xa8\xa9]))*"
_BLOCK_COMMENT = r"/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/"
_NUMBER = (
    r"0x[0-9a-fA-F][0-9a-fA-F_]*"
    r"|(?:0(?![0-9])[0-9_]*|[1-9][0-9_]*)(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?"
    r"|\.[0-9][0-9_]*(?:[eE][+-]?[0-9][0-9_]*)?"
)
_OPERATORS = (
    ">>>= >>> >>= <<= => == != <= >= << >> ++ -- += -= -> ** *= /= %= && &= || |= ^= := "
    "{ } ( ) [ ] , ; : . ? = + - * / % < > ! ~ & | ^"
)
_ESCAPE = r"\\(?:['\"\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|\r\n|[\n\r])"
_PLAIN_D, _PLAIN_S = r"[\x20!#-\[\]-\x7e]", r"[\x20-&(-\[\]-\x7e]"
_HEX = r"(?:[0-9a-fA-F]{2}(?:_?[0-9a-fA-F]{2})*)?"

_TOKEN = re.compile(
    rf"(?P<space>[ \t\n\r]+)"
    rf"|(?P<comment>{_LINE_COMMENT}|{_BLOCK_COMMENT})"
    rf"|(?P<hex>hex(?:\"{_HEX}\"|'{_HEX}'))"
    rf"|(?P<name>[a-zA-Z_$][a-zA-Z0-9_$.]*)"
    rf"|(?P<number>(?:{_NUMBER})(?![0-9a-zA-Z_$]))"
    rf"|(?P<string>\"(?:{_PLAIN_D}++|{_ESCAPE})*+\"|'(?:{_PLAIN_S}++|{_ESCAPE})*+')"
    rf"|(?P<bad>0x|[0-9]|\.[0-9]|/\*|[\"'])"
    rf"|(?P<operator>{'|'.join(re.escape(op) for op in _OPERATORS.split())})"
)
_ESCAPES = re.compile(_ESCAPE)
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

# Unicode's embedding and override marks (U+202A, B, D, E open; U+202C closes), in UTF-8. Text that reads differently
# from what it says is refused.
_DIRECTION = re.compile("\xe2\x80([\xaa-\xae])")
_CLOSE = "\xac"


def _unescape(match: re.Match[str]) -> str:
    escape = match[0][1:]
    if escape[0] == "x":
        return chr(int(escape[1:], 16))
    if escape[0] == "u":
        return chr(int(escape[1:], 16)).encode("utf-8", "surrogatepass").decode("latin-1")
    if escape[0] in "\r\n":
        return ""
    return _SIMPLE_ESCAPES.get(escape, escape)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text of bytes. Ends with END, or with ILLEGAL where something can't be read."""
    tokens: list[Token] = []
    append, match_at, position, length = tokens.append, _TOKEN.match, 0, len(text)
    identifier, keyword, punctuation = TokenKind.IDENTIFIER, TokenKind.KEYWORD, TokenKind.PUNCTUATION
    while position < length:
        match = match_at(text, position)
        start = position
        group = match.lastgroup if match is not None else "bad"
        if match is None or group == "bad":
            append(_illegal(text, start))
            return tokens
        position = match.end()
        if group == "space":
            continue
        word = match[0]
        if group == "name":
            if word == "hex":
                append(_illegal(text, start))
                return tokens
            append(Token(keyword if word in KEYWORDS else identifier, word, start, position))
        elif group == "operator":
            append(Token(punctuation, word, start, position))
        elif group == "number":
            append(Token(TokenKind.NUMBER, word, start, position))
        elif group == "comment":
            if "\xe2\x80" in word and (fault := _misdirected(word, start)):
                append(fault)
                return tokens
        elif group == "string":
            body = word[1:-1]
            append(Token(TokenKind.STRING, _ESCAPES.sub(_unescape, body) if "\\" in body else body, start, position))
        else:
            digits = word[4:-1].replace("_", "")
            append(Token(TokenKind.HEX_STRING, bytes.fromhex(digits).decode("latin-1"), start, position))
    append(Token(TokenKind.END, "", length, length))
    return tokens


def _misdirected(comment: str, start: int) -> Token | None:
    depth = 0
    for mark in _DIRECTION.finditer(comment):
        depth += -1 if mark[1] == _CLOSE else 1
        if depth < 0:
            reason = "Unicode direction override underflow in comment"
            return Token(TokenKind.ILLEGAL, reason, start, start + mark.start())
    if depth > 0:
        return Token(
            TokenKind.ILLEGAL, "mismatching Unicode direction overrides in comment", start, start + len(comment)
        )
    return None


# -- what is wrong with a text that is not a token --------------------------------------------------------------------

_STRING_HEAD = {quote: re.compile(rf"(?:{plain}++|{_ESCAPE})*+") for quote, plain in (('"', _PLAIN_D), ("'", _PLAIN_S))}
_HEX_HEAD = re.compile(rf"{_HEX}_?")
_NUMBER_HEAD = re.compile(_NUMBER)
_EXPONENT = re.compile(r"[eE][+-]?")


def _illegal(text: str, start: int) -> Token:
    reason, end = _diagnose(text, start)
    return Token(TokenKind.ILLEGAL, reason, start, min(end, len(text)))


def _diagnose(text: str, start: int) -> tuple[str, int]:
    """Why no token starts here, and how far the reading went."""
    first = text[start]
    if first in "\"'":
        return _bad_string(text, start)
    if text.startswith("hex", start):
        return _bad_hex(text, start)
    if text.startswith("/*", start):
        return "comment without end", len(text)
    if first.isdigit() or first == ".":
        return _bad_number(text, start)
    return "invalid token", start + 1


def _bad_string(text: str, start: int) -> tuple[str, int]:
    head = _STRING_HEAD[text[start]].match(text, start + 1)
    end = head.end() if head is not None else start + 1
    if end >= len(text) or text[end] in "\n\v\f\r":
        return "string without closing quote", end
    if text[end] == "\\":
        return "invalid escape sequence", end + 2
    return "invalid character in string", end + 1


def _bad_hex(text: str, start: int) -> tuple[str, int]:
    end = start + 3
    if text[end : end + 1] not in ('"', "'"):
        return "hex needs a quoted string", end
    head = _HEX_HEAD.match(text, end + 1)
    return "hex string needs pairs of hexadecimal digits", head.end() if head is not None else end + 1


def _bad_number(text: str, start: int) -> tuple[str, int]:
    head = _NUMBER_HEAD.match(text, start)
    if head is not None and not text.startswith("0x", head.end() - 1):
        exponent = _EXPONENT.match(text, head.end())
        return "number runs into a name", exponent.end() if exponent else head.end()
    if text.startswith("0x", start):
        return "hexadecimal digit missing", start + 2
    return "octal numbers are not allowed", start + 1
