"""UnusedPruner (u): drops what is not mentioned.

Needs: Disambiguator.
Does: removes unused functions, unused variables (an expression that may not go stays as `pop(E)`) and expression
statements without effect, until nothing more can go.
Why: most steps leave things unused and rely on this one.
"""

from __future__ import annotations

from collections.abc import Collection

from fusevm.yul.analysis.effects import (
    EffectTable,
    builtin_effects,
    effects_of,
    is_removable,
    program_effects,
    uses_msize,
)
from fusevm.yul.context import StepContext
from fusevm.yul.steps import function_grouper
from fusevm.yul.steps.control_flow_simplifier import discard
from fusevm.yul.syntax.ast import Block, ExpressionStatement, FunctionDefinition, Statement, VariableDeclaration
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import Modifier, count_names, remove_empty_blocks


def run(context: StepContext, block: Block) -> None:
    effects = program_effects(context.dialect, block)
    _prune(block, effects, uses_msize(block), context.reserved)
    function_grouper.run(context, block)


def prune_variables(dialect: Dialect, block: Block, functions: Collection[str]) -> None:
    """Without knowing what user's functions do; the functions named stay."""
    _prune(block, builtin_effects(dialect), uses_msize(block), functions)


def _prune(block: Block, effects: EffectTable, has_msize: bool, kept: Collection[str]) -> None:
    """Rounds go from the last statement to the first, so that what only the dead mention mostly goes with them."""
    pruner = _Pruner(effects, has_msize)
    pruner.counts = count_names(block)
    for name in kept:
        pruner.counts[name] = pruner.counts.get(name, 0) + 1
    pruner.again = True
    while pruner.again:
        pruner.again = False
        pruner.block(block)
    if pruner.removed:
        _Sweeper().block(block)


class _Pruner(Modifier):
    def __init__(self, effects: EffectTable, has_msize: bool) -> None:
        super().__init__()
        self.effects = effects
        self.has_msize = has_msize
        self.counts: dict[str, int] = {}
        self.again = False
        self.removed = False

    def block(self, block: Block) -> None:
        kept: list[Statement] = []
        for statement in reversed(block.statements):
            left = self.pruned(statement)
            if left is not None:
                self.statement(left)
                kept.append(left)
        kept.reverse()
        block.statements = kept

    def pruned(self, statement: Statement) -> Statement | None:
        """What is left of it. (Blocks that were empty go; those that become so only if something else went too.)"""
        if isinstance(statement, VariableDeclaration):
            return self.pruned_declaration(statement)
        if isinstance(statement, ExpressionStatement):
            if self.may_go(statement):
                self.forget(statement.expression)
                return None
        elif isinstance(statement, FunctionDefinition) and not self.counts.get(statement.name):
            self.forget(statement.body)
            return None
        elif isinstance(statement, Block) and not statement.statements:
            return None
        return statement

    def pruned_declaration(self, declaration: VariableDeclaration) -> Statement | None:
        counts = self.counts
        for variable in declaration.variables:
            if counts.get(variable.name):
                return declaration
        value = declaration.value
        if value is None:
            return None
        if is_removable(effects_of(value, self.effects), self.has_msize):
            self.forget(value)
            return None
        return discard(value, declaration.location) if len(declaration.variables) == 1 else declaration

    def may_go(self, statement: ExpressionStatement) -> bool:
        return is_removable(effects_of(statement.expression, self.effects), self.has_msize)

    def forget(self, root: object) -> None:
        self.removed = True
        for name, count in count_names(root).items():
            self.counts[name] -= count
            if not self.counts[name]:
                self.again = True


class _Sweeper(Modifier):
    """Drops empty blocks, inner ones first."""

    def block(self, block: Block) -> None:
        super().block(block)
        remove_empty_blocks(block)
