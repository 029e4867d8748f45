"""The execution tiers by name: a table of settings. All answer alike; they differ in speed alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

from fusevm.chain import patricia
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.outcomes import Outcomes
from fusevm.chain.packed import PackedCalls
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.native import switches
from fusevm.native.host.settings import Setting
from fusevm.reference.hooks import Hooks
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.tracing.session import RecordingSession
from fusevm.values import BadValue, shown

TierExecutor = Callable[[Message, State, Context, Hooks | None], Outcome]
# Of state, context, caller, address, data, gas, static, and whether what changes is kept. Answers a result; or None
# where nothing has begun; or, once it has begun, the executor that continues it.
DirectCall = Callable[[State, Context, bytes, bytes, bytes, int, bool, bool], Result | Executor | None]
# Of state, context, many calls, their outcomes (to be written), and whether what changes is kept. What it answers runs
# calls until one has begun that it cannot end (and returns the executor for that one), or the next one is not for it,
# or none is left (None).
ManyCalls = Callable[[State, Context, PackedCalls, Outcomes, bool], Callable[[], Executor | None]]


class Tier(NamedTuple):
    setting: Setting | None  # of its engine; None: the reference tier
    chooses: bool = False  # whether the reference tier runs the calls that it was found to be quicker for


TIERS = {
    "auto": Tier(Setting(tiered=True), chooses=True),
    "native": Tier(Setting()),
    "regions": Tier(Setting(regions=True)),
    "native-unfused": Tier(Setting(fused=False)),
    "native-tiered": Tier(Setting(tiered=True)),
    "lockstep": Tier(Setting(compared=True)),
    "lockstep-regions": Tier(Setting(regions=True, compared=True)),
    "reference": Tier(None),
}


def _load_native_tries() -> None:
    """Roots of large states by native code even before it has run a call; in Python where LLVM cannot run."""
    with suppress(ImportError, OSError, RuntimeError):
        from fusevm.native.emit import merkle

        merkle.load()


patricia.load_for_many(_load_native_tries)


class UnknownTier(BadValue):
    """A name that no tier has; the message lists those there are.

    >>> try:
    ...     executor_for("warp")
    ... except UnknownTier as error:
    ...     print(str(error)[:27])
    unknown tier 'warp'; known:
    """

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"unknown tier {shown(self.name)}; known: {', '.join(TIERS)}"


def executor_for(tier: str) -> TierExecutor:
    if not isinstance(tier, str) or tier not in TIERS:
        raise UnknownTier(tier)
    return _automatic() if tier == "auto" else _executor(tier)


@cache
def _executor(tier: str) -> TierExecutor:
    setting, chooses = TIERS[tier]
    if setting is None:
        return execute_reference
    from fusevm.native.host.tiers import execute, of_threads

    return partial(execute, of_threads(setting), chooses)


@cache
def _automatic() -> TierExecutor:
    """The native tier, fused where that pays; or the reference tier, and one warning, where LLVM cannot run."""
    try:
        native = _executor("auto")
        from fusevm.native.emit.build import library

        library()  # what LLVM cannot build or load here must show now
    except (ImportError, OSError, RuntimeError) as error:
        warnings.warn(f"fusevm: the native tier cannot run here ({error}); using the reference tier", stacklevel=4)
        return execute_reference
    return native


def direct_call_for(tier: str, executor: TierExecutor) -> DirectCall | None:
    """The direct path of native calls, for a tier that has one and runs here."""
    setting, chooses = TIERS[tier]
    if setting is None or executor is execute_reference or not (setting.is_direct and switches.is_on("direct")):
        return None
    from fusevm.native.host.direct import call_directly
    from fusevm.native.host.tiers import of_threads

    return partial(call_directly, of_threads(setting), chooses)


def recorded_call_for(tier: str, session: RecordingSession) -> DirectCall:
    """The same for calls that are recorded."""
    return partial(_recorded_call(tier), session)


@cache
def _recorded_call(tier: str) -> Callable[..., Result | Executor | None]:
    from fusevm.native.host.direct import record_directly
    from fusevm.native.host.tiers import recording

    return partial(record_directly, recording(_native(tier)))


def many_calls_for(tier: str) -> ManyCalls:
    """The native loop over many calls, for a tier that has a direct path."""
    from fusevm.native.host.many import many_calls
    from fusevm.native.host.tiers import of_threads

    return partial(many_calls, of_threads(_native(tier)))


def _native(tier: str) -> Setting:
    setting = TIERS[tier].setting
    assert setting is not None
    return setting
