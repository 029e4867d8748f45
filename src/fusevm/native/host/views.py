"""Native structs as Python reads and writes them: field by field in place, or several fields at once as bytes."""

from __future__ import annotations

import ctypes
import struct
from typing import TypeVar, cast

from fusevm.native.lang import Struct
from fusevm.native.lang.types import size_of

S = TypeVar("S", bound=Struct)
_WORD = 8  # bytes


def view_at(layout: type[S], address: int) -> S:
    """The struct at an address; every field is a number, and a name that is not a field is an error."""
    return cast(S, _view_of(layout).from_address(address))


def packed(layout: type[Struct], names: str) -> struct.Struct:
    """Fields as the `struct` module reads and writes them: numbers, or bytes where they are wider than a machine word.

    They are named in the order of their values. If the layout does not have them one after another, that is an error,
    so that a change of layout fails here and shows its dependents.
    """
    wanted, fields = names.split(), list(layout._fields)
    start = fields.index(wanted[0]) if wanted[0] in fields else 0
    if fields[start : start + len(wanted)] != wanted:
        raise TypeError(f"{layout.__name__} has the fields {fields}, not {wanted} one after another")
    sizes = [size_of(layout._fields[name][1]) for name in wanted]
    return struct.Struct("<" + "".join("Q" if size <= _WORD else f"{size}s" for size in sizes))


def packed_whole(layout: type[Struct], names: str) -> struct.Struct:
    """As `packed`, of all fields."""
    found = packed(layout, names)
    if found.size != layout.byte_size():
        raise TypeError(f"{layout.__name__} has the fields {list(layout._fields)}, more than {names.split()}")
    return found


_views: dict[type[Struct], type[ctypes.Structure]] = {}


def _view_of(layout: type[Struct]) -> type[ctypes.Structure]:
    found = _views.get(layout)
    if found is None:
        found = _views[layout] = _made_view(layout)
    return found


def _made_view(layout: type[Struct]) -> type[ctypes.Structure]:
    fields: list[tuple[str, type[ctypes.c_uint64] | type[ctypes.Array[ctypes.c_ubyte]]]] = []
    # What `_pack_` has always meant; from 3.14 on Python wants it said.
    body: dict[str, object] = {"__slots__": (), "_pack_": 8, "_layout_": "ms"}
    for name, (_, kind) in layout._fields.items():
        size = size_of(kind)
        if size <= _WORD:
            fields.append((name, ctypes.c_uint64))
        else:
            fields.append((f"_{name}", ctypes.c_ubyte * size))
            body[name] = _wide(f"_{name}", size)
    return type(f"{layout.__name__}View", (ctypes.Structure,), body | {"_fields_": fields})


def _wide(raw: str, size: int) -> property:
    """A number of more bytes than ctypes has."""

    def read(view: ctypes.Structure) -> int:
        return int.from_bytes(getattr(view, raw), "little")

    def write(view: ctypes.Structure, value: int) -> None:
        getattr(view, raw)[:] = value.to_bytes(size, "little")

    return property(read, write)
