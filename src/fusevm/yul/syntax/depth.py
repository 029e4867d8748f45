"""How deep Yul may nest, and the room Python needs so that every recursive walk over a tree can rely on it.

Everything here recurses in Python alone, never through C (no `map`, no generator handed to `tuple` or `any`, no nested
tuple hashed or compared): since Python 3.11 such calls take no machine stack, and only the interpreter's own limit is
in the way. It is raised while trees are walked, so that depth is bounded by memory, as width is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# solc's parser counts its own nested calls and gives up at this number. A nested block, call or object costs about two,
# so a tree that parses is at most 600 levels deep. Steps can nest expressions far deeper.
MAX_PARSER_DEPTH = 1200

# A walker may use ten Python frames per level of what was parsed: 600 * 10, and twice that to be safe.
PYTHON_FRAMES = 12_000
_DEEP_FRAMES = 10_000_000


def make_room() -> None:
    """Raise Python's recursion limit. The parser calls it, so that any tree can be walked."""
    if sys.getrecursionlimit() < PYTHON_FRAMES:
        sys.setrecursionlimit(PYTHON_FRAMES)


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Room for trees that steps have made, which nest as deep as the program is long."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEP_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
