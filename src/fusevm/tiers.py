"""The execution tiers by name. All answer alike; they differ in speed alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module

from fusevm.chain import patricia
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.outcomes import Outcomes
from fusevm.chain.packed import Packed
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.reference.hooks import Hooks
from fusevm.tracing.session import Session
from fusevm.values import BadValue, shown

TierExecutor = Callable[[Message, State, Context, Hooks | None], Outcome]
# Of state, context, caller, address, data, gas, static, and whether what changes is kept. Answers a result; or None
# where nothing has begun; or, once it has begun, the executor that continues it.
DirectCall = Callable[[State, Context, bytes, bytes, bytes, int, bool, bool], Result | Executor | None]
# Of state, context, many calls, their outcomes (to be written), and whether what changes is kept. What it answers runs
# calls until one has begun that it cannot end (and returns the executor for that one), or the next one is not for it,
# or none is left (None).
ManyCalls = Callable[[State, Context, Packed, Outcomes, bool], Callable[[], Executor | None]]

TIERS = {
    "auto": "native where that is quicker, prepared for speed where that is worth it; else reference",
    "native": "fused handlers made by LLVM",
    "regions": "native, all that regions can be made of compiled before it runs",
    "native-unfused": "native, one handler per opcode",
    "native-tiered": "native, fused where that is worth it: `auto` without its runs on the reference tier",
    "lockstep": "native, compared with the reference at every section",
    "lockstep-regions": "regions, compared with the reference wherever one is left or fails",
    "reference": "plain Python, to be read; the judge of all others",
}
_PLACES = {
    "quickest": ("fusevm.native.host.tiers", "execute_quickest"),  # what "auto" means where LLVM can run
    "native": ("fusevm.native.host.tiers", "execute"),
    "regions": ("fusevm.native.host.tiers", "execute_regions"),
    "native-unfused": ("fusevm.native.host.tiers", "execute_unfused"),
    "native-tiered": ("fusevm.native.host.tiers", "execute_tiered"),
    "lockstep": ("fusevm.native.host.lockstep", "execute"),
    "lockstep-regions": ("fusevm.native.host.region_lockstep", "execute"),
    "reference": ("fusevm.reference.interpreter", "execute"),
}


def _load_native_tries() -> None:
    """Roots of large states by native code even before it has run a call; in Python where LLVM cannot run."""
    with suppress(ImportError, OSError, RuntimeError):
        import_module("fusevm.native.emit.merkle").load()


patricia.load_for_many(_load_native_tries)

# The engine of each, and whether the reference tier may run a call instead.
_DIRECT = {
    "auto": ("tiered", True),
    "native": ("fused", False),
    "native-unfused": ("unfused", False),
    "native-tiered": ("tiered", False),
}


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
    if tier == "auto":
        return _best()
    module, name = _PLACES[tier]
    executor: TierExecutor = getattr(import_module(module), name)
    return executor


@cache
def _best() -> TierExecutor:
    """The native tier, fused where that pays; or the reference tier, and one warning, where LLVM cannot run."""
    try:
        module, name = _PLACES["quickest"]
        native: TierExecutor = getattr(import_module(module), name)
        import_module("fusevm.native.emit.build").library()  # what LLVM cannot build or load here must show now
    except (ImportError, OSError, RuntimeError) as error:
        warnings.warn(f"fusevm: the native tier cannot run here ({error}); using the reference tier", stacklevel=4)
        return executor_for("reference")
    return native


def direct_call_for(tier: str, executor: TierExecutor) -> DirectCall | None:
    """The direct path of native calls, for a tier that has one and runs here."""
    if tier not in _DIRECT or executor is executor_for("reference"):
        return None
    switches = import_module("fusevm.native.switches")
    if not switches.is_on("direct"):
        return None
    return partial(import_module("fusevm.native.host.direct").call_directly, *_DIRECT[tier])


def recorded_call_for(tier: str, session: Session) -> DirectCall:
    """The same for calls that are recorded."""
    return partial(_recorded_call(), f"{_DIRECT[tier][0]}-recorded", session)


@cache
def _recorded_call() -> Callable[..., Result | Executor | None]:
    found: Callable[..., Result | Executor | None] = import_module("fusevm.native.host.direct").record_directly
    return found


@cache
def many_calls_for(tier: str) -> ManyCalls:
    """The native loop over many calls, for a tier that has a direct path."""
    return partial(import_module("fusevm.native.host.many").many_calls, _DIRECT[tier][0])
