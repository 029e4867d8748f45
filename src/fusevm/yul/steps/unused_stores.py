"""The walk that UnusedAssignEliminator and UnusedStoreEliminator share: which stores can no longer be read?

It carries the set of *active* stores along the control flow, each neither read nor overwritten yet. A store that is
read on some path is used; a store that never is, goes. Loops are walked twice, which is enough: a store has only three
states on its way (unknown, active, settled).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from fusevm.yul.ast import Block, Break, Continue, ForLoop, FunctionDefinition, If, Switch
from fusevm.yul.walk import Modifier

State = TypeVar("State")

_DEEP = 6  # loops nested so deep are walked once: time would double with every level


class StoreWalker(Modifier, Generic[State]):
    def __init__(self) -> None:
        super().__init__()
        self.all: set[int] = set()  # statements, by identity
        self.used: set[int] = set()
        self.removable: set[int] = set()
        self.active: State = self.nothing()
        self.at_break: list[State] = []
        self.at_continue: list[State] = []
        self.loop_depth = 0

    # -- what the subclass knows --------------------------------------------------------------------------------------

    @abstractmethod
    def nothing(self) -> State: ...

    @abstractmethod
    def copied(self, state: State) -> State: ...

    @abstractmethod
    def merge(self, target: State, other: State) -> None:
        """Add the other's stores to the target's."""

    @abstractmethod
    def end_function(self, function: FunctionDefinition) -> None:
        """Control has come to the function's end."""

    @abstractmethod
    def use_new(self, before: State) -> None:
        """Count every active store as used that was not active before."""

    def next_round(self, loop: ForLoop) -> None:
        """The loop is about to be walked again."""

    # -- the walk -----------------------------------------------------------------------------------------------------

    def finished(self, block: Block) -> set[int]:
        """Walk it all; the statements that may go."""
        self.block(block)
        self.end_program()
        return self.removable | (self.all - self.used)

    def end_program(self) -> None:
        pass

    def if_(self, statement: If) -> None:
        self.expression(statement.condition)
        skipped = self.copied(self.active)
        self.block(statement.body)
        self.merge(self.active, skipped)

    def switch(self, statement: Switch) -> None:
        self.expression(statement.expression)
        before = self.active
        has_default = False
        branches: list[State] = []
        for case in statement.cases:
            has_default |= case.value is None
            self.active = self.copied(before)
            self.block(case.body)
            branches.append(self.active)
        self.active = branches.pop() if has_default else before
        for branch in branches:
            self.merge(self.active, branch)

    def function(self, function: FunctionDefinition) -> None:
        outer = self.all, self.used, self.active, self.at_break, self.at_continue, self.loop_depth
        self.all, self.used, self.active = set(), set(), self.nothing()
        self.at_break, self.at_continue, self.loop_depth = [], [], 0
        self.block(function.body)
        self.end_function(function)
        self.removable |= self.all - self.used
        self.all, self.used, self.active, self.at_break, self.at_continue, self.loop_depth = outer

    def loop(self, loop: ForLoop) -> None:
        outer = self.at_break, self.at_continue
        self.at_break, self.at_continue = [], []
        self.loop_depth += 1
        self.expression(loop.condition)
        no_round = self.copied(self.active)
        self._round(loop)
        if self.loop_depth < _DEEP:
            one_round = self.copied(self.active)
            self.next_round(loop)
            self._round(loop)
            self.merge(self.active, one_round)
        else:
            self.use_new(no_round)
        self.merge(self.active, no_round)
        for state in self.at_break:
            self.merge(self.active, state)
        self.loop_depth -= 1
        self.at_break, self.at_continue = outer

    def _round(self, loop: ForLoop) -> None:
        self.block(loop.body)
        for state in self.at_continue:
            self.merge(self.active, state)
        self.at_continue = []
        self.block(loop.post)
        self.expression(loop.condition)

    def break_(self, statement: Break) -> None:
        self.at_break.append(self.active)
        self.active = self.nothing()

    def continue_(self, statement: Continue) -> None:
        self.at_continue.append(self.active)
        self.active = self.nothing()
