"""Running recorded messages natively: on engines of their own, whose schedules note what they do."""

from __future__ import annotations

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.native.emit.build import library
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.halting import FailedInRegion
from fusevm.native.host.tables import NativeLimit, NativeUnavailable
from fusevm.native.host.tiers import engines
from fusevm.reference.hooks import Hooks
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.tracing.recording import Recording
from fusevm.tracing.watching import RecordingWatcher


def recording_engine(kind: str) -> NativeEngine:
    """This thread's engine that records: fused, unfused, tiered or with regions; a new one while that is in use."""
    name = f"{kind}-recorded"
    found: NativeEngine | None = getattr(engines, name, None)
    if found is not None and not found.busy:
        return found
    native = library()
    handlers = native.handlers.only(frozenset()) if kind == "unfused" else native.handlers
    regions = Regions() if kind == "regions" else None
    made = NativeEngine(native, handlers, tiered=kind == "tiered", regions=regions, recorded=True)
    if found is None:
        setattr(engines, name, made)
    return made


def execute_watched(kind: str, message: Message, state: State, context: Context, hooks: Hooks) -> Outcome:
    """What hooks watch runs in the reference tier; what is only recorded runs natively."""
    watcher = hooks.watcher
    if not isinstance(watcher, RecordingWatcher) or not hooks.only_watches:
        return execute_reference(message, state, context, hooks)
    try:
        engine = recording_engine(kind)
    except NativeUnavailable:  # there is no address space for one more
        return execute_reference(message, state, context, hooks)
    return _recorded(engine, message, state, context, watcher.recording)


def record_elsewhere(
    engine: NativeEngine, limit: NativeLimit, message: Message, state: State, context: Context
) -> Outcome:
    """A recorded message from the start, which this engine could not run to its end."""
    recorder = engine.recorder
    assert recorder is not None
    hooks, recording = recorder.hooks, recorder.recording
    recorder.leave()
    if isinstance(limit, FailedInRegion) and recording is not None:
        return _recorded(recording_engine("fused"), message, state, context, recording)
    return execute_reference(message, state, context, hooks)


def _recorded(engine: NativeEngine, message: Message, state: State, context: Context, recording: Recording) -> Outcome:
    recorder = engine.recorder
    assert recorder is not None
    recorder.start(recording, message.gas)
    try:
        outcome = engine.execute_surely(message, state, context)
    except BaseException:
        recorder.drop()
        raise
    recorder.finish()
    return outcome
