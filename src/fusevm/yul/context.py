"""What a step is given besides the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fusevm.yul.syntax.ast import Block, Identifier, Literal, Location, Switch, inlined
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.names import NameDispenser
from fusevm.yul.syntax.walk import count_nodes, nodes


class DeepPlace(NamedTuple):
    """A place where the stack is too deep by some slots; moving that many of the variables away would help."""

    deficit: int
    choices: list[str]


# By function ("" is the main code), where its stack is too deep, in the order in which the generator meets it.
StackReport = Mapping[str, list[DeepPlace]]


# How many nodes of the tree steps may copy in total: a constant, and a factor per node there was at first. Inlining,
# specialising and rematerialising can double a program with every function or variable; this is several times what
# they take for any ordinary contract.
GROWTH, GROWTH_PER_NODE = 50_000, 10


@dataclass(slots=True)
class StepContext:
    """`runs` is how often the code is expected to run in its life, None for creation code, which runs once."""

    dialect: Dialect
    dispenser: NameDispenser
    runs: int | None = 200
    reserved: frozenset[str] = field(default_factory=frozenset)  # functions that someone outside uses
    report: tuple[str, StackReport] | None = None  # the last text asked about, and where its stack is too deep
    growth: int = GROWTH  # nodes that may still be copied
    keeps_calls: bool = False  # whether inlined code shall remember where it was called

    @classmethod
    def for_block(cls, dialect: Dialect, block: Block, runs: int | None = 200) -> StepContext:
        growth = GROWTH + GROWTH_PER_NODE * count_nodes(block)
        return cls(dialect, NameDispenser.for_block(dialect, block), runs, growth=growth)

    def mark_inlined(self, root: Any, place: Location) -> None:
        """The tree, a copy, is what a call at that place became."""
        if not self.keeps_calls:
            return
        for node in nodes(root):
            if node.__class__ is not Identifier and node.__class__ is not Literal:
                node.location = inlined(node.location, place)
            if node.__class__ is Switch:
                for case in node.cases:
                    case.location = inlined(case.location, place)

    def may_copy(self, root: Any, times: int = 1) -> bool:
        """Take a copy of the tree from what may still be copied. Once one is refused, all are."""
        if self.growth > 0:
            self.growth -= times * count_nodes(root)
        return self.growth > 0
