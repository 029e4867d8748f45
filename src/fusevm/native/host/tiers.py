"""The tiers that run native code: the engines of each thread, and how a message gets to one."""

from __future__ import annotations

import threading
import warnings
from functools import cache

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.native.emit.build import library
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tables import NativeUnavailable
from fusevm.reference.hooks import Hooks
from fusevm.reference.interpreter import execute as execute_reference

engines = threading.local()  # of each thread: fused, unfused, tiered


def engine(*, fuse: bool = True, tiered: bool = False) -> NativeEngine:
    """This thread's engine: with fused sequences or without, at once or where it is worth while."""
    name = ("tiered" if tiered else "fused") if fuse else "unfused"
    found: NativeEngine | None = getattr(engines, name, None)
    if found is None:
        native = library()
        found = NativeEngine(native, native.handlers if fuse else native.handlers.only(frozenset()), tiered=tiered)
        setattr(engines, name, found)
    while found.busy:
        found.spare = found.spare or NativeEngine(found.native, found.handlers, tiered=tiered)
        found = found.spare
    return found


def _watched(kind: str, message: Message, state: State, context: Context, hooks: Hooks) -> Outcome:
    from fusevm.native.host.recorded import execute_watched

    return execute_watched(kind, message, state, context, hooks)


def execute(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As the reference tier, natively. What is watched by hooks runs in the reference tier."""
    if hooks is not None:
        return _watched("fused", message, state, context, hooks)
    return engine().execute_surely(message, state, context)


def execute_tiered(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As `execute`, except that code is prepared for speed only once it has run for as long as that takes."""
    if hooks is not None:
        return _watched("tiered", message, state, context, hooks)
    return engine(tiered=True).execute_surely(message, state, context)


def execute_quickest(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As `execute_tiered`, or on the reference tier: whichever was found to be quicker for calls like this one."""
    if hooks is not None:
        return _watched("tiered", message, state, context, hooks)
    tiered: NativeEngine | None = getattr(engines, "tiered", None)
    if tiered is None or tiered.world.busy:
        try:
            tiered = engine(tiered=True)
        except NativeUnavailable as error:
            _warn_once(f"fusevm: the native tier cannot run here ({error}); using the reference tier")
            return execute_reference(message, state, context)
    trials = tiered.choice.trials.get(message.code)
    trial = None if trials is None else trials.get(message.data[:4])
    if (trial is None or not trial.is_paused) and message.code:
        return tiered.choice.execute(trial, tiered.execute_surely, message, state, context)
    if trial is not None:
        trial.skip()
    return tiered.execute_surely(message, state, context)


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=6)


def execute_unfused(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As `execute`, one handler per opcode: to measure what fusion brings, and to test it."""
    if hooks is not None:
        return _watched("unfused", message, state, context, hooks)
    return engine(fuse=False).execute(message, state, context)


def execute_regions(message: Message, state: State, context: Context, hooks: Hooks | None = None) -> Outcome:
    """As `execute`, all code that regions can be made of compiled before it runs: for tests and measurements."""
    if hooks is not None:
        return _watched("regions", message, state, context, hooks)
    return region_engine().execute_surely(message, state, context)


def region_engine() -> NativeEngine:
    from fusevm.native.host.all_regions import Regions

    found: NativeEngine | None = getattr(engines, "regions", None)
    if found is None or found.busy:
        native = library()
        made = NativeEngine(native, native.handlers, regions=Regions())
        if found is None:
            engines.regions = made
        return made
    return found
