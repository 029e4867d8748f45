"""Native calls that can be traced afterwards: the state goes back to where one began, and comes again.

A mark at the bottom of the journal stays open, so that every change since then can be undone. Where a call began is a
position in the journal, which costs nothing to note; where the journal was undone below it, a position and a diff.
Going back reads off what is undone, and sets it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from fusevm.chain.diffs import Diff, diff_since
from fusevm.chain.state import State

MAX_ENTRIES = 1 << 20  # of the journal: then older calls cannot be traced any more
_SCOPE = ("warm_addresses", "warm_slots", "transient", "original", "created", "destroyed", "touched")


class TraceLost(RuntimeError):
    """The state before a call is not known any more."""


@dataclass(eq=False)
class NativeCall:
    """A call that ran natively, and how to run it again."""

    mark: int  # of the state as it began
    again: Callable[[], Any]
    before: Diff | None = None  # from the mark to where it began, where that was undone since
    lost: bool = False
    traced: Any = field(default=None, repr=False)


class History:
    """The calls on one state that can still be traced."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._calls: WeakValueDictionary[int, NativeCall] = WeakValueDictionary()  # the oldest first
        self._numbers = count()
        self._forgotten = False
        self._begin()

    def _begin(self) -> None:
        self._base = self.state.mark()
        self.state.open_mark(self._base)

    def note(self, mark: int, again: Callable[[], Any]) -> NativeCall:
        call = self._calls[next(self._numbers)] = NativeCall(mark, again)
        if len(self.state.journal) > MAX_ENTRIES and self.state.open_marks == 1:
            self.forget()
        return call

    def forget(self) -> None:
        """Calls before now cannot be traced any more."""
        for call in self._calls.values():
            call.lost = True
        self._calls.clear()
        self._forgotten = True
        self.state.keep_since(keep=0)
        self._begin()

    @property
    def has_changes(self) -> bool:
        """Whether anything was done to the state that was not undone."""
        return self._forgotten or self.state.mark() > self._base

    def reverting(self, mark: int) -> None:
        """The state is about to go back to the mark: calls since then began somewhere that is not in the journal."""
        for call in reversed(list(self._calls.values())):
            if call.mark <= mark:
                break  # and so are those before it
            self.state.revert(call.mark)
            since = diff_since(self.state, mark)
            call.before = since if call.before is None else since.followed_by(call.before)
            call.mark = mark

    def trace(self, call: NativeCall) -> Any:
        """What running it again answers."""
        if call.traced is None:
            if call.lost:
                raise TraceLost(
                    f"call: what was before it is not known any more, after {MAX_ENTRIES:,} changes; trace it earlier"
                )
            call.traced = self._run_again(call)
        return call.traced

    def _run_again(self, call: NativeCall) -> Any:
        state = self.state
        state.settle()
        journal, handed_out = list(state.journal), state.handed_out
        kept = [(getattr(state, name), getattr(state, name).copy()) for name in _SCOPE]
        rest = state.refund, state.logs, state.always_warm
        since = diff_since(state, call.mark)
        try:
            state.revert(call.mark)
            if call.before is not None:
                call.before.apply(state)
            return call.again()
        finally:
            state.revert(call.mark)
            since.apply(state)
            state.journal[:] = journal
            state.handed_out = handed_out
            self._restore(kept, rest)

    def _restore(self, kept: list[Any], rest: tuple[Any, ...]) -> None:
        state = self.state
        for name, (members, copied) in zip(_SCOPE, kept, strict=True):
            members.clear()
            members.update(copied)
            setattr(state, name, members)
        state.refund, state.logs, state.always_warm = rest
        state.remake()
