"""What a step is given besides the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.yul.ast import Block
from fusevm.yul.dialect import Dialect
from fusevm.yul.names import NameDispenser


class TooDeep(NamedTuple):
    """A place where the stack is so many slots too deep; moving that many of the variables away would help."""

    deficit: int
    choices: list[str]


# By function ("" is the main code), where its stack is too deep, in the order in which the generator meets it.
StackReport = Mapping[str, list[TooDeep]]


@dataclass(slots=True)
class Context:
    """`runs` is how often the code is expected to run in its life, None for creation code, which runs once."""

    dialect: Dialect
    dispenser: NameDispenser
    runs: int | None = 200
    reserved: frozenset[str] = field(default_factory=frozenset)  # functions that someone outside uses
    report: tuple[str, StackReport] | None = None  # the last text asked about, and where its stack is too deep

    @classmethod
    def for_block(cls, dialect: Dialect, block: Block, runs: int | None = 200) -> Context:
        return cls(dialect, NameDispenser.for_block(dialect, block), runs)
