"""Names: the dispenser of new ones, and the order in which sets of names are gone through.

solc keeps sets of names ordered by a 64-bit FNV-1 hash. That order shows in the texts, so it is kept here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import declared_names

_OFFSET = 14695981039346656037
_PRIME = 1099511628211
_MASK = (1 << 64) - 1


@lru_cache(1 << 16)
def name_hash(name: str) -> int:
    value = _OFFSET
    for byte in name.encode():
        value = (value * _PRIME & _MASK) ^ byte
    return value


def by_hash(names: Iterable[str]) -> list[str]:
    """The names in hash order."""
    return sorted(names, key=name_hash)


class NameDispenser:
    """Gives names that are legal and not yet used. One counter serves all hints."""

    def __init__(self, dialect: Dialect, used: Iterable[str] = ()) -> None:
        self.dialect = dialect
        self.used = set(used)
        self.counter = 0

    @classmethod
    def for_block(cls, dialect: Dialect, block: Block, reserved: Iterable[str] = ()) -> NameDispenser:
        """A dispenser that knows the names declared in the block."""
        return cls(dialect, declared_names(block).union(reserved))

    def new_name(self, hint: str) -> str:
        name, used, restricted = hint, self.used, self.dialect.is_restricted
        while name in used or restricted(name):
            self.counter += 1
            name = f"{hint}_{self.counter}"
        used.add(name)
        return name

    def is_illegal(self, name: str) -> bool:
        return name in self.used or self.dialect.is_restricted(name)

    def mark_used(self, name: str) -> None:
        self.used.add(name)

    def reset(self, block: Block) -> None:
        """Starts again with the names the block declares now."""
        self.used = declared_names(block)
        self.counter = 0
