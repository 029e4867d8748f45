"""NameDisplacer: frees names by renaming what uses them.

Needs: Disambiguator.
Does: gives every variable and function with one of the names another one.
Why: someone outside, or another step, wants to use the names for something else.
"""

from __future__ import annotations

from collections.abc import Collection

from fusevm.yul.steps.name_simplifier import Renamer
from fusevm.yul.syntax.ast import Block, FunctionDefinition, TypedName
from fusevm.yul.syntax.names import NameDispenser


def displace(dispenser: NameDispenser, block: Block, names: Collection[str]) -> dict[str, str]:
    """Free the names; tells what each was renamed to."""
    for name in names:
        dispenser.mark_used(name)
    displacer = _Displacer(dispenser, names)
    displacer.block(block)
    return displacer.renamed


class _Displacer(Renamer):
    def __init__(self, dispenser: NameDispenser, names: Collection[str]) -> None:
        super().__init__({})
        self.dispenser = dispenser
        self.names = names

    def new_name(self, name: str) -> str:
        if name not in self.names:
            return name
        new = self.renamed[name] = self.dispenser.new_name(name)
        return new

    def declared(self, variables: list[TypedName]) -> list[TypedName]:
        return [TypedName(self.new_name(each.name), each.location) for each in variables]

    def block(self, block: Block) -> None:
        for statement in block.statements:  # functions can be called before they are defined
            if isinstance(statement, FunctionDefinition):
                statement.name = self.new_name(statement.name)
        super().block(block)
