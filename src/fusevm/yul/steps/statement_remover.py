"""Takes marked statements out of a tree; for steps that first look at everything and then remove."""

from __future__ import annotations

from collections.abc import Set

from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.walk import Modifier


def remove_statements(block: Block, marked: Set[int]) -> None:
    """Remove the statements whose identities are marked."""
    if marked:
        _Remover(marked).block(block)


class _Remover(Modifier):
    def __init__(self, marked: Set[int]) -> None:
        super().__init__()
        self.marked = marked

    def block(self, block: Block) -> None:
        block.statements = [each for each in block.statements if id(each) not in self.marked]
        super().block(block)
