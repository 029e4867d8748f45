"""What a machine was made with, and how it is pickled and copied."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any, Self

from fusevm.chain.checks import ALL_CHECKS, Checks, rules_with
from fusevm.chain.environment import DEFAULT_CALLER, MEMORY_LIMIT, Block, Context
from fusevm.chain.state import State
from fusevm.evm.forks import Fork, Rules, fork_named, rules_of
from fusevm.evm.precompiles import precompiles_of
from fusevm.machine.extensions import UserOpcodes, UserPrecompiles, contracts_at
from fusevm.machine.turns import Running, alone, refuse_others
from fusevm.reference.hooks import Hooks
from fusevm.tiers import direct_call_for, executor_for, recorded_call_for
from fusevm.tracing.session import RecordingSession
from fusevm.values import BadValue, Number, shown, to_instance, to_number, to_seconds

LIMIT_BITS = 62
SHORT_TIMEOUT = 0.1  # seconds: on the straight path the clock is first looked at after a slice of gas
_IDENTITY = (4).to_bytes(20, "big")
_TRANSIENT_FIELDS = (  # when a machine is unpickled: from the rest, or empty
    "_running", "_rules", "_execute", "_direct", "_unrecorded", "_context", "_checkpoints", "_snapshot_floor",
    "_checkpoint_ids", "_session", "_precompiles", "_always_warm", "_opcodes", "_own_precompiles", "_own_opcodes",
)  # fmt: skip


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
        self._own_precompiles = UserPrecompiles(self._extend)
        self._own_opcodes = UserOpcodes(self._extend)
        self._console: Callable[[str], Any] | None = None
        self._hooks: Hooks | None = None
        self._timeout: float | None = None
        self._tier = tier
        self.fork = fork_named(fork)
        self.tier = tier
        self.hooks = hooks
        self.timeout = timeout

    def _start(self) -> None:
        """What neither pickle nor a copy takes along."""
        self._running: Running = {}  # whoever runs it
        self._session: RecordingSession | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._fork.label}, {self._tier} tier, {self._state.size} accounts>"

    @property
    def fork(self) -> Fork:
        """Whose rules hold; assigned by name or as a `Fork`.

        >>> from fusevm import EVM
        >>> evm = EVM("cancun")
        >>> evm.fork = "osaka"
        >>> evm.fork
        <Fork.OSAKA: ...>
        """
        return self._fork

    @fork.setter
    @alone
    def fork(self, fork: str | Fork) -> None:
        self._fork = fork_named(fork)
        self._rules = rules_with(rules_of(self._fork), self._checks)
        self._precompiles, self._always_warm = contracts_at(self._fork, self._own_precompiles, self._console)
        self._opcodes = self._own_opcodes.entries(self._fork)
        self._context = self._new_context(DEFAULT_CALLER, 0)  # the last call's; the next is often in the same

    @property
    def rules(self) -> Rules:
        """The fork's, without those that `checks` switches off.

        >>> from fusevm import EVM
        >>> EVM("london").rules.refund_quotient
        5
        """
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
    @alone
    def checks(self, checks: Checks) -> None:
        self._checks = to_instance(checks, Checks, "checks")
        self.fork = self._fork

    @property
    def tier(self) -> str:
        """What runs calls, by name: see `fusevm.tiers.TIERS`. All tiers answer alike.

        >>> from fusevm import EVM
        >>> evm = EVM(tier="reference")
        >>> evm.tier = "native"
        """
        return self._tier

    @tier.setter
    @alone
    def tier(self, tier: str) -> None:
        executor_for(tier)  # or UnknownTier
        self._tier = tier
        self._choose_executor()

    def _choose_executor(self) -> None:
        """The tier's, unless a user's own opcodes or precompiles need another."""
        tier, standard = self._tier, precompiles_of(self._fork)
        if self._opcodes or self._precompiles.get(_IDENTITY) is not standard[_IDENTITY]:
            tier = "reference"  # native code has an identity of its own
        self._execute = executor_for(tier)
        if tier == "auto" and self._precompiles is not standard and self._execute is not executor_for("reference"):
            tier = "native-tiered"  # where no run is tried and undone: a user's function would be asked twice
            self._execute = executor_for(tier)
        # The direct path keeps native tables between calls, with all precompiles warm; the console's address is not.
        warm = self._precompiles is self._always_warm
        self._unrecorded = direct_call_for(tier, self._execute) if warm else None
        self._choose_direct()

    def _choose_direct(self) -> None:
        """The direct path of native calls: another one while calls are recorded, none while they are watched."""
        direct, session, timeout = self._unrecorded, self._session, self._timeout
        if self._hooks is not None or (timeout is not None and timeout < SHORT_TIMEOUT):
            direct = None
        self._direct = direct if direct is None or session is None else recorded_call_for(self._tier, session)

    @property
    def session(self) -> RecordingSession | None:
        """The recording in progress.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> with evm.record(calls=True):
        ...     evm.session is None
        False
        >>> evm.session is None
        True
        """
        return self._session

    @session.setter
    @alone
    def session(self, session: RecordingSession | None) -> None:
        self._session = to_instance(session, RecordingSession, "session", optional=True)
        self._choose_direct()

    @alone
    def _extend(self, change: Callable[[], object]) -> None:
        """Something is added or taken out."""
        change()
        self.fork = self._fork
        self._choose_executor()

    @property
    def precompiles(self) -> UserPrecompiles:
        """Precompiled contracts of this machine's own, by address: functions of input and gas.

        A function returns its output, or its output and the gas it used. Where it uses more than it was given, or
        raises `PrecompileFailure`, the call fails and its gas is gone. Where a call is run again, so is the function.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.precompiles[0x1234] = lambda data, gas: (data[::-1], 10)
        >>> result = evm.call(0x1234, b"abc")
        >>> result.output, result.gas_used
        (b'cba', 10)
        """
        return self._own_precompiles

    @property
    def opcodes(self) -> UserOpcodes:
        """Opcodes of this machine's own, by byte or name: functions of the frame. Calls run on the reference tier.

        Static gas and stack bounds are those of the opcode that is replaced; a new one has none. The program counter
        stands after the opcode.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.opcodes[0x0C] = lambda frame: frame.stack.append(42)
        >>> evm.set_code(0xC0, "0c5f5260205ff3")  # returns what 0x0c pushes
        >>> int.from_bytes(evm.call(0xC0).output, "big")
        42
        """
        return self._own_opcodes

    @property
    def console(self) -> Callable[[str], Any] | None:
        """Who is told what contracts write with Hardhat's console.log: `print`, or the `append` of a list.

        >>> from fusevm import EVM
        >>> evm, lines = EVM(), []
        >>> evm.console = lines.append
        >>> data = bytes.fromhex("f82c50f1") + (7).to_bytes(32, "big")  # log(uint256)
        >>> evm.call("0x000000000000000000636F6e736F6c652e6c6f67", data).ok, lines
        (True, ['7'])
        """
        return self._console

    @console.setter
    @alone
    def console(self, listener: Callable[[str], Any] | None) -> None:
        if listener is not None and not callable(listener):
            raise BadValue(f"console: expected a function of a line or None, got {shown(listener)}")
        self._extend(lambda: setattr(self, "_console", listener))

    @property
    def block(self) -> Block:
        """The block that calls run in. Its fields can be assigned too.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.block.timestamp = 1_700_000_000
        """
        if self._running:
            refuse_others(self._running)
        return self._block

    @block.setter
    @alone
    def block(self, block: Block) -> None:
        self._block = to_instance(block, Block, "block")

    @property
    def state(self) -> State:
        """The accounts, and where they come from (`State(source=…)`).

        >>> from fusevm import EVM, State
        >>> evm = EVM()
        >>> evm.state = State()
        >>> evm.state.size
        0
        """
        if self._running:
            refuse_others(self._running)
        return self._state

    @state.setter
    @alone
    def state(self, state: State) -> None:
        self._state = to_instance(state, State, "state")

    @property
    def hooks(self) -> Hooks | None:
        """Functions that are told what a call does. With hooks, calls run on the reference tier.

        >>> from fusevm import EVM, Hooks
        >>> evm, seen = EVM(), []
        >>> evm.hooks = Hooks(on_opcode=lambda step: seen.append(step.name))
        >>> evm.call(0xC0, code="5f00").ok, seen
        (True, ['PUSH0', 'STOP'])
        """
        return self._hooks

    @hooks.setter
    @alone
    def hooks(self, hooks: Hooks | None) -> None:
        self._hooks = to_instance(hooks, Hooks, "hooks", optional=True)
        self._choose_direct()

    @property
    def timeout(self) -> float | None:
        """Seconds a call or transaction may take; past them it ends in TimeLimit.

        >>> from fusevm import EVM
        >>> evm = EVM(timeout=0.05)
        >>> evm.call(0xC0, code="5b5f56", gas=10**12)
        Traceback (most recent call last):
        fusevm.chain.outcome.TimeLimit: the time limit is reached
        """
        return self._timeout

    @timeout.setter
    @alone
    def timeout(self, timeout: float | None) -> None:
        self._timeout = to_seconds(timeout, "timeout")
        self._choose_direct()
        self._context = self._new_context(DEFAULT_CALLER, 0)  # without the last call's deadline

    @property
    def memory_limit(self) -> int:
        """Bytes of EVM memory that all frames of a call may have together; more ends it in `EngineLimit`.

        The default, 1 GiB, is more than 1,000,000,000 gas can buy.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.memory_limit = 1 << 26
        """
        return self._memory_limit

    @memory_limit.setter
    @alone
    def memory_limit(self, limit: Number) -> None:
        self._memory_limit = to_number(limit, "memory_limit", bits=LIMIT_BITS)
        self._context = self._new_context(DEFAULT_CALLER, 0)

    def _new_context(self, origin: bytes, gas_price: int, blob_hashes: tuple[bytes, ...] = ()) -> Context:
        return Context(
            self._fork, self._block, origin, gas_price, blob_hashes, None, 0, self._memory_limit, 0,
            self._rules, self._precompiles, self._always_warm, False, self._opcodes,
        )  # fmt: skip

    # -- pickled and copied: as it was made, on a state of its own

    @alone
    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _TRANSIENT_FIELDS}
        return kept | {"own": (dict(self._own_precompiles), dict(self._own_opcodes))}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        precompiles, opcodes = kept["own"]
        vars(self).update({name: value for name, value in kept.items() if name != "own"})
        self._own_precompiles = UserPrecompiles(self._extend, precompiles)
        self._own_opcodes = UserOpcodes(self._extend, opcodes)
        self._start()
        self.fork, self.tier = self._fork, self._tier

    @alone
    def __copy__(self) -> Self:
        """Independent of this one: state and block are copied. The hooks are the same."""
        twin = object.__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_block": copy(self._block), "_state": self._state.branch()})
        return twin

    @alone
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = memo[id(self)] = object.__new__(type(self))
        memo[id(self._hooks)] = self._hooks
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin
