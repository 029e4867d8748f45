"""A recording in progress on a machine: `EVM.record`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Protocol

from fusevm.reference.hooks import Hooks
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.watching import RecordingWatcher
from fusevm.values import BadValue


class RecordingSession:
    """Adds the recording to the hooks that a machine has."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @cached_property
    def _hooks(self) -> Hooks:
        return Hooks(watcher=RecordingWatcher(self.recording))

    def hooks(self, others: Hooks | None) -> Hooks:
        return self._hooks if others is None else replace(others, watcher=self._hooks.watcher)


class Recorded(Protocol):
    session: RecordingSession | None


class recording_on:  # noqa: N801 - read as a verb: `with recording_on(machine, wanted) as recording`
    """Records what a machine runs in the `with` block."""

    def __init__(self, machine: Recorded, wanted: Wanted) -> None:
        self._machine = machine
        self._recording = Recording(wanted.checked())

    def __enter__(self) -> Recording:
        if self._machine.session is not None:
            raise BadValue("record: this EVM is being recorded already; leave the other `with` block first")
        self._machine.session = RecordingSession(self._recording)
        return self._recording

    def __exit__(self, *_: object) -> None:
        try:
            self._machine.session = None
        finally:
            self._recording.close()
