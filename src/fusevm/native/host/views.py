"""Native structs as Python sees them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from fusevm.native.lang import Struct


@cache
def view_of(struct: type[Struct]) -> Any:
    """A ctypes structure of the same layout: words of 64 bits as numbers, wider ones as bytes."""
    fields: list[tuple[str, Any]] = []
    for name, (_, kind) in struct._fields.items():
        size = 8 if isinstance(kind, type) else kind.size
        fields.append((name, ctypes.c_uint64 if size <= 8 else ctypes.c_ubyte * size))
    return type(f"{struct.__name__}View", (ctypes.Structure,), {"_fields_": fields, "_pack_": 8})


def words(struct: type[Struct], first: str | None = None, last: str | None = None) -> str:
    """The layout as the `struct` module spells it, of all fields or of those from one to another."""
    names = list(struct._fields)
    start, stop = names.index(first) if first else 0, names.index(last) + 1 if last else len(names)
    parts = []
    for name in names[start:stop]:
        kind = struct._fields[name][1]
        size = 8 if isinstance(kind, type) else kind.size
        parts.append("Q" if size <= 8 else f"{size}s")
    return "<" + "".join(parts)
