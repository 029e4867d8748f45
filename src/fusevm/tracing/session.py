"""A recording under way on a machine: `EVM.record`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from fusevm.reference.hooks import Hooks
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.watching import RecordingWatcher
from fusevm.values import BadValue


class Session:
    """Adds the recording to the hooks that a machine has."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.watcher = RecordingWatcher(recording)
        self.own_hooks = Hooks(watcher=self.watcher)
        self.way: object = None  # a tier's straight path for recorded calls, and bound to this recording
        self.direct: Any = None

    def direct_with(self, way: Callable[..., Any] | None) -> Any:
        if way is not self.way:
            self.way, self.direct = way, None if way is None else partial(way, self)
        return self.direct

    def hooks(self, others: Hooks | None) -> Hooks:
        return self.own_hooks if others is None else replace(others, watcher=self.watcher)


class Recorded(Protocol):
    session: Session | None


@contextmanager
def recording_on(machine: Recorded, wanted: Wanted) -> Iterator[Recording]:
    """Records what a machine runs in the `with` block."""
    recording = Recording(wanted.checked())
    if machine.session is not None:
        raise BadValue("record: this EVM is being recorded already; leave the other `with` block first")
    session = machine.session = Session(recording)
    try:
        yield recording
    finally:
        machine.session = None
        session.direct_with(None)  # no cycle is left, so that a recording goes with its last user
        recording.close()
