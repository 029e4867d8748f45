"""LoopInvariantCodeMotion (M): declarations whose value is the same in every round, before the loop.

Needs: Disambiguator, ForLoopInitRewriter, FunctionHoister; finds more after SSATransform.
Does: moves `let x := E` out of a loop's body or post block if x is never assigned to, E mentions only such variables
from outside, and the loop writes nothing E reads. Inner loops first.
Why: once instead of every round.
"""

from __future__ import annotations

from fusevm.yul.analysis.effects import effects_below, effects_of, is_movable_out_of, program_effects, uses_msize
from fusevm.yul.analysis.ssa import fixed_names
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, ForLoop, FunctionCall, Identifier, Statement, VariableDeclaration
from fusevm.yul.syntax.walk import Rewriter, nodes


def run(context: StepContext, block: Block) -> None:
    if any(node.__class__ is ForLoop for node in nodes(block)):
        _Mover(context, block).block(block)


class _Mover(Rewriter):
    def __init__(self, context: StepContext, block: Block) -> None:
        super().__init__()
        self.effects = program_effects(context.dialect, block)
        self.uses_msize = uses_msize(block)
        self.loops: dict[int, int] = {}  # the effects of loops; what is moved out of one stays in those around it
        self.fixed = fixed_names(block)

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        self.statement(statement)
        return self.outside(statement) if isinstance(statement, ForLoop) else None

    def outside(self, loop: ForLoop) -> list[Statement] | None:
        effects = self.loops[id(loop)] = effects_below(loop, self.effects, self.loops)
        moved: list[Statement] = []
        for block in (loop.post, loop.body):
            local: set[str] = set()
            kept: list[Statement] = []
            for statement in block.statements:
                if isinstance(statement, VariableDeclaration):
                    if self.can_move(statement, local, effects):
                        moved.append(statement)
                        continue
                    local.update(variable.name for variable in statement.variables)
                kept.append(statement)
            block.statements = kept
        return [*moved, loop] if moved else None

    def can_move(self, declaration: VariableDeclaration, local: set[str], loop_effects: int) -> bool:
        if any(variable.name not in self.fixed for variable in declaration.variables):
            return False
        value = declaration.value
        if value is None:
            return True
        if isinstance(value, (FunctionCall, Identifier)):
            for node in nodes(value):
                if node.__class__ is Identifier and (node.name in local or node.name not in self.fixed):
                    return False
        return is_movable_out_of(effects_of(value, self.effects), loop_effects, self.uses_msize)
