"""The journal that can undo whatever was done to a state, and marks in it.

Every change leaves an entry that undoes it: a function and its arguments. A snapshot is a position in the journal, so
taking one costs nothing, and reverting costs what is undone.

Ctrl-C may come between any two lines. So an entry is written before the change it undoes, undoing twice is the same as
undoing once, an entry is removed only after it was undone, and an interrupted revert is finished by the next reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Pending(Protocol):
    """What must be done before the state is read: storage that a tier has changed but not yet written, say."""

    def apply(self, state: Any) -> None: ...

    def dropped(self, state: Any) -> None:
        """It never was, and nothing else was undone with it that accounts have."""


class _Revert:
    """A revert in progress: it is always completed, if necessary by the next reader of the state."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length

    def apply(self, state: Any) -> None:
        state.undo_to_length(self.length)

    def dropped(self, state: Any) -> None:
        pass


class Journal:
    """Entries that undo, marks that stay good, and what is pending."""

    def __init__(self) -> None:
        self.journal: list[tuple[Any, ...]] = []
        self._forgotten = 0  # entries that were dropped: marks count them too
        self._open: list[int] = []  # marks that must outlive the transactions after them
        self.pending: Pending | None = None
        # for tiers that keep copies of accounts between calls
        self.version = 0  # moves on with every change
        self.remade = 0  # incremented with every change except those listed in `State.moved`

    def mark(self) -> int:
        """A position in the journal, for `revert`; valid until the next transaction begins."""
        self.settle()
        return self._forgotten + len(self.journal)

    def open_mark(self, mark: int) -> None:
        """Makes a mark that was just taken stay good until `close_mark`, whatever transactions come."""
        self._open.append(mark)

    def close_mark(self, mark: int, *, keep: int) -> None:
        """Reverts to an open mark and closes it and those opened after it, so that `keep` stay open.

        Calling it again changes nothing.
        """
        self.revert(mark)
        del self._open[keep:]

    def keep_since(self, *, keep: int) -> None:
        """Closes the marks after the first `keep` open ones, and keeps all changes since them."""
        self.settle()
        del self._open[keep:]
        if not self._open:
            self._forgotten += len(self.journal)
            self.journal = []

    @property
    def open_marks(self) -> int:
        return len(self._open)

    def settle(self) -> None:
        """Applies all pending changes, or none; called before any read of storage."""
        pending = self.pending
        if pending is None:
            return
        if isinstance(pending, _Revert):
            pending.apply(self)
            return
        mark = self._forgotten + len(self.journal)
        try:
            self.pending = None
            pending.apply(self)
        except BaseException:  # Ctrl-C
            self.revert(mark)
            self.pending = pending
            raise

    def revert(self, mark: int) -> None:
        """Undoes all changes since the mark."""
        length = mark - self._forgotten
        if length < 0:
            raise ValueError(
                "this mark is gone: a call or transaction began after it, or the state was copied; "
                "use EVM.snapshot(), or State.open_mark()"
            )
        self.undo_to_length(length)

    def entries_since(self, mark: int) -> list[tuple[Any, ...]]:
        """What would be undone to be back at the mark, the oldest first."""
        self.settle()
        return self.journal[mark - self._forgotten :]

    def undo_to_length(self, length: int) -> None:
        """Undoes the journal's last entries until this many are left."""
        journal, dropped = self.journal, self.pending
        alone = dropped is not None and all(entry[1] is self for entry in journal[length:])  # except logs and refund
        if dropped is not None or len(journal) > length:
            self.remake()
        self.pending = _Revert(length)  # in place of anything pending: that came later, since taking a mark settles
        while len(journal) > length:
            undo, *arguments = journal[-1]
            undo(*arguments)
            journal.pop()
        self.pending = None
        if dropped is not None and alone:
            dropped.dropped(self)

    def remake(self) -> None:
        """Something is about to change that is not listed in `State.moved`."""
        self.remade += 1
        self.version += 1

    def _undoable(self, undo: Callable[..., Any], *arguments: Any) -> None:
        self.journal.append((undo, *arguments))
