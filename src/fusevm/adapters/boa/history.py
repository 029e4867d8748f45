"""Native calls that can be traced afterwards: the state goes back to where one began, and comes again.

A mark at the bottom of the journal stays open, so that every change since then can be undone. Where a call began is a
position in the journal, which costs nothing to note. Going back reads off what is undone, and sets it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fusevm.chain.diffs import diff_since
from fusevm.chain.state import State

MOST_ENTRIES = 1 << 20  # of the journal: then older calls cannot be traced any more
_SCOPE = ("warm_addresses", "warm_slots", "transient", "original", "created", "destroyed", "touched")


class TraceLost(RuntimeError):
    """The state before a call is not known any more."""


@dataclass(eq=False)
class NativeCall:
    """A call that ran natively, and how to run it again."""

    serial: int
    mark: int  # of the state as it began
    again: Callable[[], Any]
    lost: bool = False
    traced: Any = field(default=None, repr=False)


class History:
    """Of one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.calls: list[NativeCall] = []  # not traced yet, the oldest first
        self.noted = 0  # how many there have been
        self._going_back = False
        self._begin()

    def _begin(self) -> None:
        self._base = self.state.mark()
        self.state.open_mark(self._base)

    def note(self, mark: int, again: Callable[[], Any]) -> NativeCall:
        self.noted += 1
        call = NativeCall(self.noted, mark, again)
        self.calls.append(call)
        if len(self.state.journal) > MOST_ENTRIES and self.state.open_marks == 1:
            self.forget()
        return call

    def forget(self) -> None:
        """Calls before now cannot be traced any more."""
        for call in self.calls:
            call.lost = True
        self.calls = []
        self.state.keep_since(keep=0)
        self._begin()

    def reverted(self, noted: int) -> None:
        """The state was reverted to where it was after this many calls: later calls are dropped."""
        while self.calls and self.calls[-1].serial > noted:
            self.calls.pop().lost = True

    def trace(self, call: NativeCall) -> Any:
        """The traced run of one call. Those before it are traced first, so that boa learns in order."""
        if call.traced is None:
            if call.lost:
                raise TraceLost(
                    "call: what was before it is not known any more; look at its trace before env.anchor() ends"
                )
            self._go_back_for([each for each in self.calls if each.serial <= call.serial])
        return call.traced

    def trace_all(self) -> None:
        """Traces all calls, so that everything hashed and stored is known."""
        if self.calls and not self._going_back:
            self._go_back_for(list(self.calls))

    def _go_back_for(self, wanted: Iterable[NativeCall]) -> None:
        state, wanted = self.state, list(wanted)
        state.settle()
        journal, handed_out = list(state.journal), state.handed_out
        kept = [(getattr(state, name), getattr(state, name).copy()) for name in _SCOPE]
        rest = state.refund, state.logs, state.always_warm
        diffs: list[Any] = []
        self._going_back = True
        try:
            for call in reversed(wanted):
                diffs.append(diff_since(state, call.mark))
                state.revert(call.mark)
            for call in wanted:
                call.traced = call.again()
                diffs.pop().apply(state)
        finally:
            for diff in reversed(diffs):
                diff.apply(state)
            state.journal[:] = journal
            state.handed_out = handed_out
            self._restore(kept, rest)
            self._going_back = False
            self.calls = [call for call in self.calls if call.traced is None]

    def _restore(self, kept: list[Any], rest: tuple[Any, ...]) -> None:
        state = self.state
        for name, (members, copied) in zip(_SCOPE, kept, strict=True):
            members.clear()
            members.update(copied)
            setattr(state, name, members)
        state.refund, state.logs, state.always_warm = rest
        state.remake()
