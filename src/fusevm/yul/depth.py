"""How deep Yul may nest, and the room Python needs so that every recursive walk over a parsed tree can rely on it."""

from __future__ import annotations

import sys

# solc's parser counts its own nested calls and gives up at this number. A nested block, call or object costs about two,
# so a tree that parses is at most 600 levels deep.
MAX_PARSER_DEPTH = 1200

# A walker may use ten Python frames a level: 600 * 10, and twice that for trees which steps have made deeper.
PYTHON_FRAMES = 12_000


def make_room() -> None:
    """Raise Python's recursion limit. The parser calls it, so that whoever holds a tree has the room to walk it."""
    if sys.getrecursionlimit() < PYTHON_FRAMES:
        sys.setrecursionlimit(PYTHON_FRAMES)
