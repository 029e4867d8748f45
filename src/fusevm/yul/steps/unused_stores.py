"""The walk that UnusedAssignEliminator and UnusedStoreEliminator share: which stores can no longer be read?

It carries the set of *active* stores along the control flow, each neither read nor overwritten yet. A store that is
read on some path is used; a store that never is, goes. Loops are walked twice, which is enough: a store has only three
states on its way (unknown, active, settled).

Sets of stores are numbers with one bit for each store of the function: branches copy and join them all the time.
"""

from __future__ import annotations

from abc import abstractmethod

from fusevm.yul.syntax.ast import Block, Break, Continue, ForLoop, FunctionDefinition, If, Switch
from fusevm.yul.syntax.walk import Modifier

_DEEP = 6  # loops nested so deep are walked once: time would double with every level


class StoreWalker(Modifier):
    def __init__(self) -> None:
        super().__init__()
        self.stores: dict[int, int] = {}  # the bits of each store of this function, by the identity of its statement
        self.used = 0
        self.removable: set[int] = set()  # statements, by identity
        self.active = 0
        self.at_break = 0
        self.at_continue = 0
        self.loop_depth = 0

    # -- what the subclass knows --------------------------------------------------------------------------------------

    @abstractmethod
    def end_function(self, function: FunctionDefinition) -> None:
        """Control has reached the function's end."""

    def begin_function(self) -> None:
        """Another function: no facts about stores apply."""

    def next_round(self, loop: ForLoop) -> None:
        """The loop is about to be walked again."""

    # -- the walk -----------------------------------------------------------------------------------------------------

    def finished(self, block: Block) -> set[int]:
        """Walk it all; the statements that may go."""
        self.block(block)
        self.end_program()
        self._settle()
        return self.removable

    def end_program(self) -> None:
        pass

    def _settle(self) -> None:
        self.removable.update(statement for statement, store in self.stores.items() if not self.used & store)

    def if_(self, statement: If) -> None:
        self.expression(statement.condition)
        skipped = self.active
        self.block(statement.body)
        self.active |= skipped

    def switch(self, statement: Switch) -> None:
        self.expression(statement.expression)
        before, after, has_default = self.active, 0, False
        for case in statement.cases:
            has_default |= case.value is None
            self.active = before
            self.block(case.body)
            after |= self.active
        self.active = after if has_default else after | before

    def function(self, function: FunctionDefinition) -> None:
        outer = self.stores, self.used, self.active, self.at_break, self.at_continue, self.loop_depth
        self.stores, self.used, self.active = {}, 0, 0
        self.at_break, self.at_continue, self.loop_depth = 0, 0, 0
        self.begin_function()
        self.block(function.body)
        self.end_function(function)
        self._settle()
        self.stores, self.used, self.active, self.at_break, self.at_continue, self.loop_depth = outer

    def loop(self, loop: ForLoop) -> None:
        outer = self.at_break, self.at_continue
        self.at_break, self.at_continue = 0, 0
        self.loop_depth += 1
        self.expression(loop.condition)
        no_round = self.active
        self._round(loop)
        if self.loop_depth < _DEEP:
            one_round = self.active
            self.next_round(loop)
            self._round(loop)
            self.active |= one_round
        else:
            self.used |= self.active & ~no_round
        self.active |= no_round | self.at_break
        self.loop_depth -= 1
        self.at_break, self.at_continue = outer

    def _round(self, loop: ForLoop) -> None:
        self.block(loop.body)
        self.active |= self.at_continue
        self.at_continue = 0
        self.block(loop.post)
        self.expression(loop.condition)

    def break_(self, statement: Break) -> None:
        self.at_break |= self.active
        self.active = 0

    def continue_(self, statement: Continue) -> None:
        self.at_continue |= self.active
        self.active = 0
