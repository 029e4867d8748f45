"""What a machine was made with, and how it is pickled and copied."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

from fusevm.chain.checks import ALL_CHECKS, Checks, rules_with
from fusevm.chain.environment import MEMORY_LIMIT, ZERO_ADDRESS, Block, Context
from fusevm.chain.state import State
from fusevm.evm.forks import Fork, Rules, fork_named, rules_of
from fusevm.reference.hooks import Hooks
from fusevm.tiers import direct_call_for, executor_for
from fusevm.values import Number, to_instance, to_number, to_seconds

LIMIT_BITS = 62
_MADE_ANEW = (  # when a machine is unpickled: from the rest, or empty
    "_running", "_rules", "_execute", "_direct", "_context", "_checkpoints", "_snapshot_floor", "_checkpoint_ids"
)  # fmt: skip
BUSY = "this EVM is running already; give each thread (and each hook) an EVM of its own"


class WrongThread(RuntimeError):
    """An EVM is used by one thread at a time."""


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
        checks: Checks = ALL_CHECKS,
    ) -> None:
        self._start()
        self._block = Block() if block is None else to_instance(block, Block, "block")
        self._state = State() if state is None else to_instance(state, State, "state")
        self._memory_limit = to_number(memory_limit, "memory_limit", bits=LIMIT_BITS)
        self._checks: Checks = to_instance(checks, Checks, "checks")
        self.fork = fork_named(fork)
        self.tier = tier
        self.hooks = hooks
        self.timeout = timeout

    def _start(self) -> None:
        """What neither pickle nor a copy takes along."""
        self._running: dict[int, object] = {}  # whoever runs it

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._fork.label}, {self._tier} tier, {self._state.size} accounts>"

    @property
    def fork(self) -> Fork:
        return self._fork

    @fork.setter
    def fork(self, fork: str | Fork) -> None:
        self._fork = fork_named(fork)
        self._rules = rules_with(rules_of(self._fork), self._checks)
        self._context = self._new_context(ZERO_ADDRESS, 0)  # the last call's; the next is often in the same

    @property
    def rules(self) -> Rules:
        """The fork's, without those that `checks` switches off."""
        return self._rules

    @property
    def checks(self) -> Checks:
        """What is checked before a transaction or a call runs.

        >>> from fusevm import EVM, Checks
        >>> evm = EVM()
        >>> evm.checks = Checks(code_size=False)
        >>> evm.deploy("62010000 5f f3".replace(" ", "")).ok  # a contract of 65,536 bytes
        True
        """
        return self._checks

    @checks.setter
    def checks(self, checks: Checks) -> None:
        self._checks = to_instance(checks, Checks, "checks")
        self.fork = self._fork

    @property
    def tier(self) -> str:
        return self._tier

    @tier.setter
    def tier(self, tier: str) -> None:
        self._execute = executor_for(tier)
        self._direct = direct_call_for(tier, self._execute)
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

    def _new_context(self, origin: bytes, gas_price: int, blob_hashes: tuple[bytes, ...] = ()) -> Context:
        context = Context(self._fork, self._block, origin, gas_price, blob_hashes, rules=self._rules)
        context.memory_limit = self._memory_limit
        return context

    # -- pickled and copied: as it was made, on a state of its own

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE_ANEW}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._start()
        self.fork, self.tier = self._fork, self._tier

    def __copy__(self) -> Self:
        """Independent of this one: state and block are copied. The hooks are the same."""
        twin = object.__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_block": copy(self._block), "_state": self._state.branch()})
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = memo[id(self)] = object.__new__(type(self))
        memo[id(self._hooks)] = self._hooks
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin
