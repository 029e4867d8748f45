"""The data-flow analyzer: while it walks the code it tracks the values of variables, storage and memory.

Known values are movable expressions. A value is forgotten when a variable it mentions is assigned to, and at joins of
control flow if any path may have assigned. Steps subclass it and read `values` from their `expression`.
Needs unique names and loops without init block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from fusevm.yul.analysis.contents import KnownHashes, KnownMemory, KnownStorage
from fusevm.yul.analysis.distances import KnowledgeBase
from fusevm.yul.analysis.effects import IMMOVABLE, WRITES_MEMORY, WRITES_STORAGE, EffectTable, effects_of
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Continue,
    Expression,
    ExpressionStatement,
    ForLoop,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    If,
    Switch,
    VariableDeclaration,
)
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.walk import AssignedNames, Modifier, children, inner_blocks

ZERO = literals.zero()


class DataFlowAnalyzer(Modifier):
    """`values` holds what is known, `in_scope` the variables that may be mentioned at this point."""

    def __init__(self, dialect: Dialect, effects: EffectTable) -> None:
        super().__init__()
        self.dialect = dialect
        self.effects = effects
        self.values: dict[str, Expression] = {}
        self.mentions: dict[str, Collection[str]] = {}  # by variable, the variables its value mentions
        self.mentioned_by: dict[str, set[str]] = {}  # the opposite; may hold variables that were given another value
        self.in_scope: set[str] = set()
        self.declared: list[str] = []  # in the block we are in
        self.loop_depth = 0
        self.assigned_in = AssignedNames().inside
        self._continuing: dict[int, bool] = {}

    # -- statements ---------------------------------------------------------------------------------------------------

    def assignment(self, assignment: Assignment) -> None:
        value = assignment.value = self.expression(assignment.value)
        names = [target.name for target in assignment.targets]
        self.clear_values(names)
        self._give(names, value)

    def declaration(self, declaration: VariableDeclaration) -> None:
        names = [variable.name for variable in declaration.variables]
        self.in_scope.update(names)
        self.declared += names
        if declaration.value is None:
            for name in names:
                self.assign(name, ZERO)
        else:
            value = declaration.value = self.expression(declaration.value)
            self._give(names, value)

    def if_(self, statement: If) -> None:
        statement.condition = self.expression(statement.condition)
        self.block(statement.body)
        self.clear_values(self.assigned_in(statement.body))

    def switch(self, statement: Switch) -> None:
        statement.expression = self.expression(statement.expression)
        assigned: set[str] = set()
        for case in statement.cases:
            self.block(case.body)
            here = self.assigned_in(case.body)
            self.clear_values(here)
            assigned |= here
        self.clear_values(assigned)

    def loop(self, loop: ForLoop) -> None:
        self.loop_depth += 1
        assigned = self.assigned_in(loop.body) | self.assigned_in(loop.post)
        self.clear_values(assigned)
        loop.condition = self.expression(loop.condition)
        self.block(loop.body)
        self.clear_values(self.assigned_before_continue(loop.body))
        self.block(loop.post)
        self.clear_values(assigned)
        self.loop_depth -= 1

    def function(self, function: FunctionDefinition) -> None:
        saved = self._enter_function()
        self.in_scope.update(each.name for each in function.parameters)
        for variable in function.returns:
            self.in_scope.add(variable.name)
            self.assign(variable.name, ZERO)
        self.block(function.body)
        self._leave_function(saved)

    def block(self, block: Block) -> None:
        outer, self.declared = self.declared, []
        super().block(block)
        values, mentions = self.values, self.mentions
        for name in self.declared:
            values.pop(name, None)
            mentions.pop(name, None)
        self.in_scope.difference_update(self.declared)
        self.declared = outer

    # -- values -------------------------------------------------------------------------------------------------------

    def assign(self, name: str, value: Expression) -> None:
        """The variable holds the value from now on."""
        self.values[name] = value

    def clear_values(self, names: Iterable[str]) -> None:
        """Forget what the variables hold, and the values that mention them (what mentions those is still true)."""
        mentions, lost = self.mentions, list(names)
        for name in names:
            for other in self.mentioned_by.pop(name, ()):
                if name in mentions.get(other, ()):
                    lost.append(other)
        self._lose(lost)

    def _lose(self, names: list[str]) -> None:
        for name in names:
            self.values.pop(name, None)
            self.mentions.pop(name, None)

    def _give(self, names: list[str], value: Expression) -> None:
        if value.__class__ is FunctionCall:
            mentioned: set[str] = set()
            effects = self._look_into(value, mentioned)
        elif value.__class__ is Identifier:
            mentioned, effects = {value.name}, 0
        else:
            mentioned, effects = set(), 0
        if len(names) == 1 and not effects & IMMOVABLE and names[0] not in mentioned:
            self.assign(names[0], value)
        for name in names:
            self.mentions[name] = mentioned
            for other in mentioned:
                self.mentioned_by.setdefault(other, set()).add(name)

    def _look_into(self, call: FunctionCall, mentioned: set[str]) -> int:
        """The call's effects; the variables in it are collected."""
        effects = self.effects[call.function.name]
        for argument in call.arguments:
            if argument.__class__ is Identifier:
                mentioned.add(argument.name)
            elif argument.__class__ is FunctionCall:
                effects |= self._look_into(argument, mentioned)
        return effects

    def assigned_before_continue(self, body: Block) -> set[str]:
        """The variables that a loop's body may have assigned differently on the paths to its post block."""
        names: set[str] = set()
        self._since_continue(body, False, names)
        return names

    def _since_continue(self, block: Block, seen: bool, names: set[str]) -> bool:
        """Walk in order of the text; collect what is assigned after a `continue` of this loop."""
        if not seen and not self._has_continue(block):
            return False
        for statement in block.statements:
            if statement.__class__ is Continue:
                seen = True
            elif statement.__class__ is Assignment:
                if seen:
                    names.update(target.name for target in statement.targets)
            elif statement.__class__ is ForLoop:
                for inner in inner_blocks(statement):
                    self._since_continue(inner, seen, names)  # its own `continue`s are not ours
            elif statement.__class__ is not FunctionDefinition:
                for inner in inner_blocks(statement):
                    seen = self._since_continue(inner, seen, names)
        return seen

    def _has_continue(self, block: Block) -> bool:
        found = self._continuing.get(id(block))
        if found is None:
            found = False
            for statement in block.statements:
                if statement.__class__ is Continue:
                    found = True
                for inner in inner_blocks(statement):
                    found = self._has_continue(inner) or found
            self._continuing[id(block)] = found
        return found

    def _enter_function(self) -> Any:
        saved = self.values, self.mentions, self.mentioned_by, self.in_scope, self.declared, self.loop_depth
        self.values, self.mentions, self.mentioned_by = {}, {}, {}
        self.in_scope, self.declared, self.loop_depth = set(), [], 0
        return saved

    def _leave_function(self, saved: Any) -> None:
        self.values, self.mentions, self.mentioned_by, self.in_scope, self.declared, self.loop_depth = saved


# -- storage and memory -----------------------------------------------------------------------------------------------


def simple_store(builtin: str, expression: Expression) -> tuple[str, str] | None:
    """Place and value of a store whose arguments are both variables."""
    if isinstance(expression, FunctionCall) and expression.function.name == builtin:
        place, value = expression.arguments
        if isinstance(place, Identifier) and isinstance(value, Identifier):
            return place.name, value.name
    return None


class StoreAnalyzer(DataFlowAnalyzer):
    """Also tracks which variable's value is at a location of storage or memory, and which hashes were computed."""

    def __init__(self, dialect: Dialect, effects: EffectTable) -> None:
        super().__init__(dialect, effects)
        self._writes: dict[int, int] = {}
        self._know_nothing()

    def _know_nothing(self) -> None:
        self.knowledge = KnowledgeBase(self.values)
        self.storage = KnownStorage(self.knowledge.offset)
        self.memory = KnownMemory(self.knowledge.offset)
        self.hashes = KnownHashes()

    def expression_statement(self, statement: ExpressionStatement) -> None:
        store = simple_store("sstore", statement.expression)
        if store is not None:
            place, value = store
            self.expression(statement.expression)
            self.storage.store(place, value)
            return
        store = simple_store("mstore", statement.expression)
        if store is not None:
            place, value = store
            self.expression(statement.expression)
            self.memory.store(place, value)
            self.hashes.clear()
            return
        self._forget_written(effects_of(statement.expression, self.effects))
        super().expression_statement(statement)

    def assignment(self, assignment: Assignment) -> None:
        self._forget_written(effects_of(assignment.value, self.effects))
        super().assignment(assignment)
        self._note_load([target.name for target in assignment.targets], assignment.value)

    def declaration(self, declaration: VariableDeclaration) -> None:
        if declaration.value is not None:
            self._forget_written(effects_of(declaration.value, self.effects))
        super().declaration(declaration)
        if declaration.value is not None:
            self._note_load([variable.name for variable in declaration.variables], declaration.value)

    def if_(self, statement: If) -> None:
        self._forget_written(effects_of(statement.condition, self.effects))
        statement.condition = self.expression(statement.condition)
        self._branch(statement.body)
        self.clear_values(self.assigned_in(statement.body))

    def switch(self, statement: Switch) -> None:
        self._forget_written(effects_of(statement.expression, self.effects))
        statement.expression = self.expression(statement.expression)
        assigned: set[str] = set()
        for case in statement.cases:
            self._branch(case.body)
            here = self.assigned_in(case.body)
            assigned |= here
            self.clear_values(here)
            self._forget_written(self._effects_in(case.body))
        for case in statement.cases:
            self._forget_written(self._effects_in(case.body))
        self.clear_values(assigned)

    def loop(self, loop: ForLoop) -> None:
        self.loop_depth += 1
        assigned = self.assigned_in(loop.body) | self.assigned_in(loop.post)
        self.clear_values(assigned)
        in_body = self._effects_in(loop.body)
        anywhere = effects_of(loop.condition, self.effects) | self._effects_in(loop.post) | in_body
        self._forget_written(anywhere)
        loop.condition = self.expression(loop.condition)
        self.block(loop.body)
        self.clear_values(self.assigned_before_continue(loop.body))
        self._forget_written(in_body)
        self.block(loop.post)
        self.clear_values(assigned)
        self._forget_written(anywhere)
        self.loop_depth -= 1

    def clear_values(self, names: Iterable[str]) -> None:
        gone = set(names)
        if not gone:
            return
        for known in (self.storage, self.memory, self.hashes):
            known.forget(gone)
        super().clear_values(gone)

    def _lose(self, names: list[str]) -> None:
        super()._lose(names)
        vague = self.knowledge.forget(names)
        self.storage.moved(vague)
        self.memory.moved(vague)

    def _note_load(self, names: list[str], value: Expression) -> None:
        """After `let x := mload(k)` memory at k holds x."""
        if len(names) != 1 or value.__class__ is not FunctionCall:
            return
        call: FunctionCall = value
        arguments = [each.name for each in call.arguments if isinstance(each, Identifier)]
        if len(arguments) != len(call.arguments) or names[0] in arguments:
            return
        match call.function.name:
            case "mload":
                self.memory.note(arguments[0], names[0])
            case "sload":
                self.storage.note(arguments[0], names[0])
            case "keccak256":
                self.hashes.note((arguments[0], arguments[1]), names[0])

    def _forget_written(self, effects: int) -> None:
        if effects & WRITES_STORAGE:
            self.storage.clear()
        if effects & WRITES_MEMORY:
            self.memory.clear()
            self.hashes.clear()

    def _effects_in(self, block: Block) -> int:
        effects = self._writes.get(id(block))
        if effects is None:
            effects = 0
            for statement in block.statements:
                for part in children(statement):
                    if part.__class__ is FunctionCall:
                        effects |= effects_of(part, self.effects)
                for inner in inner_blocks(statement):
                    effects |= self._effects_in(inner)
            self._writes[id(block)] = effects
        return effects

    def _branch(self, body: Block) -> None:
        """A body that may be passed by: what was known before and is still so at its end is kept."""
        everything = self.storage, self.memory, self.hashes
        for known in everything:
            known.begin_branch()
        self.block(body)
        for known in everything:
            known.join()

    def _enter_function(self) -> Any:
        saved = super()._enter_function(), self.storage, self.memory, self.hashes, self.knowledge
        self._know_nothing()
        return saved

    def _leave_function(self, saved: Any) -> None:
        inner, self.storage, self.memory, self.hashes, self.knowledge = saved
        super()._leave_function(inner)
