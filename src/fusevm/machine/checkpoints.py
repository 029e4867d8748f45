"""Going back: snapshots that a `with` block undoes, checkpoints by id, and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import NamedTuple, Self

from fusevm.chain.environment import Block
from fusevm.chain.state import State
from fusevm.machine.settings import Settings
from fusevm.machine.turns import alone, idle, refuse_others
from fusevm.values import BadValue, shown


class UnknownCheckpoint(BadValue):
    """An id that `EVM.checkpoint()` did not give, or that is not open any more.

    >>> from fusevm import EVM
    >>> try:
    ...     EVM().revert(7)
    ... except UnknownCheckpoint as error:
    ...     "7" in str(error)
    True
    """


class _Mark(NamedTuple):
    """A state and a block as they were."""

    state: State
    mark: int
    opened: int  # marks of the state that were open before it
    restore_block: Callable[[], Block]
    number: int  # the checkpoint's; of a snapshot, how many checkpoints there were before it

    def undo(self) -> None:
        self.state.close_mark(self.mark, keep=self.opened)


class Checkpoints(Settings):
    """Marks in the journal of the state, and the block as it was."""

    def _start(self) -> None:
        super()._start()
        self._checkpoints: list[_Mark] = []
        self._snapshot_floor = 0  # how many of them were there as the innermost snapshot began
        self._checkpoint_ids = count(1)

    @contextmanager
    def snapshot(self) -> Iterator[State]:
        """Whatever happens inside the `with` block is undone at its end: to the state, and to `block` and its fields.

        Hooks, fork, tier and timeout stay as they were set. Checkpoints made inside are dropped.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> with evm.snapshot():
        ...     evm.set_balance("0x" + "11" * 20, 5)
        >>> evm.get_balance("0x" + "11" * 20)
        0
        """
        refuse_others(self._running)
        begun, floor = self._mark(len(self._checkpoints)), self._snapshot_floor
        try:
            try:
                begun.state.open_mark(begun.mark)
                self._snapshot_floor = begun.number
                yield begun.state
            finally:
                self._undo(begun, floor)
        finally:  # again: Ctrl-C may have come in the middle of the first
            self._undo(begun, floor)

    @alone
    def _undo(self, begun: _Mark, floor: int) -> None:
        del self._checkpoints[begun.number :]
        begun.undo()
        self._state, self._block, self._snapshot_floor = begun.state, begun.restore_block(), floor

    def _mark(self, number: int) -> _Mark:
        return _Mark(self._state, self._state.mark(), self._state.open_marks, self._block.keep(), number)

    @idle
    def checkpoint(self) -> int:
        """Notes state and block as they are, and gives an id to `revert` to, or to `commit`.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> before = evm.checkpoint()
        >>> evm.set_balance(alice, 5)
        >>> evm.revert(before)
        >>> evm.get_balance(alice)
        0
        """
        made = self._mark(next(self._checkpoint_ids))
        self._checkpoints.append(made)  # first: an open mark without an owner would keep the journal for ever
        made.state.open_mark(made.mark)
        return made.number

    @idle
    def revert(self, checkpoint: int) -> None:
        """Takes state and block back to a checkpoint; it and all younger ones are gone.

        Interrupted by Ctrl-C, it can be called again with the same id.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> first, second = evm.checkpoint(), evm.checkpoint()
        >>> evm.revert(first)
        >>> evm.revert(second)
        Traceback (most recent call last):
        fusevm.machine.checkpoints.UnknownCheckpoint: checkpoint 2 is not open; none is
        """
        place = self._place_of(checkpoint)
        target = self._checkpoints[place]
        for each in reversed(self._checkpoints[place:]):
            each.undo()
        self._state, self._block = target.state, target.restore_block()
        del self._checkpoints[place:]

    @idle
    def commit(self, checkpoint: int) -> None:
        """Keeps what was done since a checkpoint; it and all younger ones are gone, older ones stay.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> outer = evm.checkpoint()
        >>> inner = evm.checkpoint()
        >>> evm.set_balance(alice, 5)
        >>> evm.commit(inner)
        >>> evm.get_balance(alice)
        5
        >>> evm.revert(outer)
        >>> evm.get_balance(alice)
        0
        """
        place = self._place_of(checkpoint)
        for each in reversed(self._checkpoints[place:]):
            each.state.keep_since(keep=each.opened)
        del self._checkpoints[place:]

    def copy(self) -> Self:
        """An independent machine: state and block are copied, the hooks are the same. Checkpoints stay here.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> twin = evm.copy()
        >>> twin.set_balance(alice, 5)
        >>> evm.get_balance(alice), twin.get_balance(alice)
        (0, 5)
        """
        return copy(self)

    def _place_of(self, checkpoint: int) -> int:
        """The index of an open checkpoint; fails if it may not be closed now."""
        open_ids = [each.number for each in self._checkpoints]
        if isinstance(checkpoint, bool) or not isinstance(checkpoint, int):
            raise UnknownCheckpoint(f"checkpoint: expected an id that checkpoint() gave, got {shown(checkpoint)}")
        if checkpoint not in open_ids:
            listed = f"open: {', '.join(map(str, open_ids))}" if open_ids else "none is"
            raise UnknownCheckpoint(f"checkpoint {shown(checkpoint)} is not open; {listed}")
        place = open_ids.index(checkpoint)
        if place < self._snapshot_floor:
            raise UnknownCheckpoint(
                f"checkpoint {checkpoint} was made before the snapshot that is open; leave the with block first"
            )
        return place
