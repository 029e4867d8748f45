"""The tiers that run native code: each thread's engine of each setting, and how a message gets to one."""

from __future__ import annotations

import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.lockstep import Lockstep
from fusevm.native.host.settings import Setting
from fusevm.native.host.tables import NativeUnavailable
from fusevm.reference.hooks import Hooks
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.tracing.watching import RecordingWatcher

if TYPE_CHECKING:
    from fusevm.native.host.many import ResultBuffers


class OfThreads(threading.local):
    """What each thread has of one setting."""

    engine: NativeEngine | None = None
    pair: Lockstep | None = None
    buffers: ResultBuffers | None = None  # where one crossing at a time leaves what many calls return

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def free(self) -> NativeEngine:
        """This thread's engine; another one while that runs."""
        found = self.engine
        if found is None:
            found = self.engine = NativeEngine(self.setting)
        while found.busy:
            found.spare = found.spare or NativeEngine(self.setting)
            found = found.spare
        return found

    def lockstep(self) -> Lockstep:
        """This thread's engine with the reference tier beside it."""
        if self.pair is None:
            self.pair = Lockstep(self.free())
        return self.pair


_settings: dict[Setting, OfThreads] = {}


def of_threads(setting: Setting) -> OfThreads:
    return _settings.get(setting) or _settings.setdefault(setting, OfThreads(setting))


@cache
def recording(setting: Setting) -> OfThreads:
    """For what runs on this setting and is recorded."""
    return of_threads(setting._replace(recorded=True))


def engine(**setting: bool) -> NativeEngine:
    """This thread's engine of the setting with these fields."""
    return of_threads(Setting(**setting)).free()


def engines() -> list[NativeEngine]:
    """All of this thread."""
    return [each.engine for each in _settings.values() if each.engine is not None]


def execute(
    own: OfThreads, chooses: bool, message: Message, state: State, context: Context, hooks: Hooks | None = None
) -> Outcome:
    """As the reference tier, natively; or there, where the tier `chooses` and that was found to be quicker.

    What hooks watch runs on the reference tier; what is only recorded runs natively.
    """
    if hooks is not None:
        return _execute_watched(own.setting, message, state, context, hooks)
    if own.setting.compared:
        return own.lockstep().execute(message, state, context)
    if not chooses:
        return own.free().execute(message, state, context)
    tiered = own.engine
    if tiered is None or tiered.world.busy:
        try:
            tiered = own.free()
        except NativeUnavailable as error:
            _warn_once(f"fusevm: the native tier cannot run here ({error}); using the reference tier")
            return execute_reference(message, state, context)
    by_selector = tiered.choice.stats.get(message.code)
    stats = None if by_selector is None else by_selector.get(message.data[:4])
    if (stats is None or not stats.is_paused) and message.code:
        return tiered.choice.execute(stats, tiered.execute, message, state, context)
    if stats is not None:
        stats.skip()
    return tiered.execute(message, state, context)


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=6)


def _execute_watched(setting: Setting, message: Message, state: State, context: Context, hooks: Hooks) -> Outcome:
    watcher = hooks.watcher
    if setting.compared or not isinstance(watcher, RecordingWatcher) or not hooks.only_watches:
        return execute_reference(message, state, context, hooks)
    try:
        recorder = recording(setting).free()
    except NativeUnavailable:  # there is no address space for one more
        return execute_reference(message, state, context, hooks)
    return recorder.record(watcher.recording, message, state, context)
