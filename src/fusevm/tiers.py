"""The execution tiers by name. All answer alike; they differ in speed alone."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.reference.hooks import Hooks

TierExecutor = Callable[[Message, State, Context, Hooks | None], Outcome]

TIERS = ("auto", "native", "reference")


class UnknownTier(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"unknown tier {name!r}; known: {', '.join(TIERS)}")


def executor_for(tier: str) -> TierExecutor:
    if tier not in TIERS:
        raise UnknownTier(tier)
    if tier == "native":
        from fusevm.native.engine import execute as execute_native

        return execute_native
    from fusevm.reference.interpreter import execute

    return execute
