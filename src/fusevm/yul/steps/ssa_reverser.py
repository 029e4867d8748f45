"""SSAReverser (V): turns the pairs SSATransform makes round, so that the new variable becomes the copy.

Needs: Disambiguator.
Does: `let a_1 := E a := a_1` becomes `a := E let a_1 := a`; so does `let a := a_1` if a is assigned to more often.
Why: CommonSubexpressionEliminator then mentions a instead of a_1, and UnusedPruner removes a_1: SSA undone.
"""

from __future__ import annotations

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Assignment, Block, Identifier, Statement, VariableDeclaration
from fusevm.yul.syntax.walk import Modifier, nodes, rewrite_pairs


def run(context: StepContext, block: Block) -> None:
    _Reverser(_assignment_counts(block)).block(block)


def _assignment_counts(block: Block) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in nodes(block):
        if node.__class__ is Assignment:
            for target in node.targets:
                counts[target.name] = counts.get(target.name, 0) + 1
    return counts


class _Reverser(Modifier):
    def __init__(self, counts: dict[str, int]) -> None:
        super().__init__()
        self.counts = counts

    def block(self, block: Block) -> None:
        super().block(block)
        block.statements = rewrite_pairs(block.statements, self.reversed_pair)

    def reversed_pair(self, first: Statement, second: Statement) -> list[Statement] | None:
        if first.__class__ is not VariableDeclaration or second.__class__ not in (Assignment, VariableDeclaration):
            return None
        declaration: VariableDeclaration = first
        copied = second.value
        if declaration.value is None or len(declaration.variables) != 1 or copied.__class__ is not Identifier:
            return None
        name = declaration.variables[0].name
        if copied.name != name:
            return None
        if isinstance(second, Assignment):
            if len(second.targets) != 1:
                return None
            if second.targets[0].name == name:
                return [first]  # `a := a` says nothing
            copy = VariableDeclaration(declaration.variables, second.targets[0], declaration.location)
            return [Assignment(second.targets, declaration.value, second.location), copy]
        assert isinstance(second, VariableDeclaration)
        if len(second.variables) != 1:
            return None
        variable = second.variables[0]
        if self.counts.get(variable.name, 0) <= self.counts.get(name, 0):
            return None
        original = VariableDeclaration(second.variables, declaration.value, second.location)
        mention = Identifier(variable.name, variable.location)
        return [original, VariableDeclaration(declaration.variables, mention, declaration.location)]
