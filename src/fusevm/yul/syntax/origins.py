"""Where Yul comes from: `@src` comments, by which a compiler's Yul points into the sources it was made from.

A documentation comment `/// @src 3:120:145` says that everything from the next token on, up to the next such comment,
comes from bytes 120 to 145 of source 3. Sources are numbered by the object's `@use-src` comment; without one, Yul is
its own source, and such comments mean nothing. `@src -1:-1:-1` says that what follows comes from nowhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

# Line comments in a row are one comment.
_COMMENT = re.compile(r"///[^\n\r]*(?:[\n\r]+[ \t]*///[^\n\r]*)*|/\*\*.*?\*/|//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_TAG = re.compile(r"(?:^|\s)@src[ \t]+(-1|[0-9]+):(-1|[0-9]+):(-1|[0-9]+)(?=\s|$)")
_SOURCE_NAME = re.compile(r'([0-9]+)[ \t]*:[ \t]*"((?:[^"\\]|\\.)*)"')
_DIGITS = 10  # of numbers that can be meant


class Origin(NamedTuple):
    """Bytes of one of the sources; -1 for nowhere."""

    source: int = -1
    start: int = -1
    end: int = -1


NO_ORIGIN = Origin()


class Origins(NamedTuple):
    """What comments say, by the place of the token after each."""

    places: tuple[int, ...] = ()
    origins: tuple[Origin, ...] = ()

    def at(self, place: int, start: int, end: int) -> Origin:
        """The origin of a node that begins there, in code from `start` to `end`.

        Comments of other code do not count. What stands before the first comment, such as the block around all of the
        code, has that one's origin.
        """
        found = max(bisect_right(self.places, place), bisect_right(self.places, start) + 1) - 1
        return self.origins[found] if found < len(self.places) and self.places[found] < end else NO_ORIGIN


NO_ORIGINS = Origins()


def origins_of(text: str, gaps: Iterable[tuple[int, int]]) -> Origins:
    """What the comments say that stand in the gaps between tokens."""
    places: list[int] = []
    origins: list[Origin] = []
    for start, end in gaps:
        if text.find("@src", start, end) >= 0:
            origin = _said_in(text[start:end])
            if origin is not None:
                places.append(end)
                origins.append(origin)
    return Origins(tuple(places), tuple(origins))


def _said_in(gap: str) -> Origin | None:
    """What the last documentation comment says."""
    comments = [comment for comment in _COMMENT.findall(gap) if comment.startswith(("///", "/**"))]
    found = _TAG.findall(comments[-1]) if comments else []
    if not found or any(len(number) > _DIGITS for number in found[-1]):
        return None
    return Origin(*map(int, found[-1]))


def source_names(comment: str | None) -> dict[int, str] | None:
    """The sources that an `@use-src` comment numbers; None where there is no such comment."""
    if comment is None:
        return None
    return {int(number): re.sub(r"\\(.)", r"\1", name) for number, name in _SOURCE_NAME.findall(comment)}
