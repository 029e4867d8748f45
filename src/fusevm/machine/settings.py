"""What a machine was made with, and how it is pickled and copied."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

from fusevm.chain.environment import MEMORY_LIMIT, ZERO_ADDRESS, Block, Context
from fusevm.chain.state import State
from fusevm.evm.forks import Fork, Rules, fork_named, rules_of
from fusevm.reference.hooks import Hooks
from fusevm.tiers import direct_call_for, executor_for, recorded_call_for
from fusevm.tracing.session import Session
from fusevm.values import Number, to_instance, to_number, to_seconds

LIMIT_BITS = 62
# Made from the rest when a machine is unpickled.
_MADE_ANEW = ("_running", "_rules", "_execute", "_direct", "_recorded", "_context", "session")


class Settings:
    """Fork, tier, block, state, hooks and limits. Assigning takes effect with the next call."""

    def __init__(
        self,
        fork: str | Fork = "osaka",
        tier: str = "auto",
        *,
        block: Block | None = None,
        state: State | None = None,
        hooks: Hooks | None = None,
        timeout: float | None = None,
        memory_limit: Number = MEMORY_LIMIT,
    ) -> None:
        self._running: dict[int, object] = {}  # whoever runs it
        self.session: Session | None = None  # the recording that is under way
        self._block = Block() if block is None else to_instance(block, Block, "block")
        self._state = State() if state is None else to_instance(state, State, "state")
        self._memory_limit = to_number(memory_limit, "memory_limit", bits=LIMIT_BITS)
        self.fork = fork_named(fork)
        self.tier = tier
        self.hooks = hooks
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._fork.label}, {self._tier} tier, {self._state.size} accounts>"

    @property
    def fork(self) -> Fork:
        return self._fork

    @fork.setter
    def fork(self, fork: str | Fork) -> None:
        self._fork = fork_named(fork)
        self._rules = rules_of(self._fork)
        self._context = self._new_context(ZERO_ADDRESS, 0)  # the last call's; the next is often in the same

    @property
    def rules(self) -> Rules:
        """The fork's."""
        return self._rules

    @property
    def tier(self) -> str:
        return self._tier

    @tier.setter
    def tier(self, tier: str) -> None:
        self._execute = executor_for(tier)
        self._direct = direct_call_for(tier, self._execute)
        self._recorded = recorded_call_for(tier, self._direct)
        self._tier = tier

    @property
    def block(self) -> Block:
        return self._block

    @block.setter
    def block(self, block: Block) -> None:
        self._block = to_instance(block, Block, "block")

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = to_instance(state, State, "state")

    @property
    def hooks(self) -> Hooks | None:
        hooks: Hooks | None = self._hooks
        return hooks

    @hooks.setter
    def hooks(self, hooks: Hooks | None) -> None:
        self._hooks = to_instance(hooks, Hooks, "hooks", optional=True)

    @property
    def timeout(self) -> float | None:
        """Seconds a call or transaction may take; past them it ends in TimeLimit."""
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: float | None) -> None:
        self._timeout = to_seconds(timeout, "timeout")
        self._context = self._new_context(ZERO_ADDRESS, 0)  # without the last call's deadline

    @property
    def memory_limit(self) -> int:
        """Bytes of EVM memory that all frames of a call may have together; more ends it in `EngineLimit`.

        The default, 1 GiB, is more than 1,000,000,000 gas can buy.
        """
        return self._memory_limit

    @memory_limit.setter
    def memory_limit(self, limit: Number) -> None:
        self._memory_limit = to_number(limit, "memory_limit", bits=LIMIT_BITS)
        self._context = self._new_context(ZERO_ADDRESS, 0)

    def _new_context(self, origin: bytes, gas_price: int) -> Context:
        context = Context(self._fork, self._block, origin, gas_price)
        context.memory_limit = self._memory_limit
        return context

    # -- pickled and copied: as it was made, on a state of its own

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE_ANEW}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._running, self.session = {}, None
        self.fork, self.tier = self._fork, self._tier

    def __copy__(self) -> Self:
        """Independent of this one: state and block are copied. The hooks are the same."""
        twin = object.__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_block": copy(self._block), "_state": copy(self._state)})
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = memo[id(self)] = object.__new__(type(self))
        memo[id(self._hooks)] = self._hooks
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin
