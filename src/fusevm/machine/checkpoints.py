"""Going back: snapshots that a `with` block undoes, checkpoints by id, and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import NamedTuple, Self

from fusevm.chain.environment import Block
from fusevm.chain.state import State
from fusevm.machine.settings import BUSY, Settings, WrongThread
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


class _Checkpoint(NamedTuple):
    id: int
    state: State
    mark: int
    opened: int  # marks of the state that were open before it
    restore_block: Callable[[], Block]


class Checkpoints(Settings):
    """Marks in the journal of the state, and the block as it was."""

    def _start(self) -> None:
        super()._start()
        self._checkpoints: list[_Checkpoint] = []
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
        state, restore_block = self._state, self._block.keep()
        opened, checkpoints, floor = state.open_marks, len(self._checkpoints), self._snapshot_floor
        mark = state.mark()

        def undo() -> None:
            self._drop_checkpoints(checkpoints)
            state.close_mark(mark, keep=opened)
            self._state, self._block, self._snapshot_floor = state, restore_block(), floor

        try:
            try:
                state.open_mark(mark)
                self._snapshot_floor = checkpoints
                yield state
            finally:
                undo()
        finally:  # again: Ctrl-C may have come in the middle of the first
            undo()

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
        self._require_idle()
        state, restore_block = self._state, self._block.keep()
        mark = state.mark()
        made = _Checkpoint(next(self._checkpoint_ids), state, mark, state.open_marks, restore_block)
        self._checkpoints.append(made)  # first: an open mark without an owner would keep the journal for ever
        state.open_mark(mark)
        return made.id

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
            each.state.close_mark(each.mark, keep=each.opened)
        self._state, self._block = target.state, target.restore_block()
        self._drop_checkpoints(place)

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
        self._drop_checkpoints(place)

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

    def _drop_checkpoints(self, keep: int) -> None:
        del self._checkpoints[keep:]

    def _place_of(self, checkpoint: int) -> int:
        """The index of an open checkpoint; fails if it may not be closed now."""
        self._require_idle()
        open_ids = [each.id for each in self._checkpoints]
        if isinstance(checkpoint, bool) or not isinstance(checkpoint, int):
            raise UnknownCheckpoint(f"checkpoint: expected an id that checkpoint() gave, got {shown(checkpoint)}")
        if checkpoint not in open_ids:
            listed = f"open: {', '.join(map(str, open_ids))}" if open_ids else "none is"
            raise UnknownCheckpoint(f"checkpoint {checkpoint} is not open; {listed}")
        place = open_ids.index(checkpoint)
        if place < self._snapshot_floor:
            raise UnknownCheckpoint(
                f"checkpoint {checkpoint} was made before the snapshot that is open; leave the with block first"
            )
        return place

    def _require_idle(self) -> None:
        if self._running:
            raise WrongThread(BUSY)
