"""The library's front door: an `EVM` that holds a state and runs calls and transactions on it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy, deepcopy
from typing import Any

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import MEMORY_LIMIT, ZERO_ADDRESS, Block, Context, Message
from fusevm.chain.outcome import Executor, Failure, Outcome, Status
from fusevm.chain.processing import clear_away, process, run_top, top_message, warm_up
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import Authorization, Transaction, intrinsic_gas, to_authorizations
from fusevm.evm.forks import Fork, Rules, fork_named, rules_of
from fusevm.evm.halts import HaltReason
from fusevm.evm.limits import MAX_NONCE
from fusevm.reference.hooks import Hooks
from fusevm.tiers import direct_call_for, executor_for, recorded_call_for
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.session import Session, recording_on
from fusevm.values import (
    WORD_BITS,
    AccessListLike,
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    Word,
    to_access_list,
    to_address,
    to_bytes,
    to_flag,
    to_hashes,
    to_instance,
    to_number,
    to_seconds,
    to_word,
)

DEFAULT_GAS = 30_000_000
GAS_BITS = NONCE_BITS = 64
MAX_GAS = (1 << GAS_BITS) - 1
LIMIT_BITS = 62
# Made from the rest when a machine is unpickled.
_MADE_ANEW = ("_running", "_rules", "_execute", "_direct", "_recorded", "_context", "_session")
_ZERO = 0  # the default: compared by identity, which is quick
BUSY = "this EVM is running already; give each thread (and each hook) an EVM of its own"


class WrongThread(RuntimeError):
    """An EVM is used by one thread at a time."""


class EVM:
    """An Ethereum Virtual Machine with a state of its own.

    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")  # return 1 + 2
    >>> result = evm.call("0x" + "c0" * 20)
    >>> int.from_bytes(result.output, "big"), result.gas_used
    (3, 24)
    """

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
        self._session: Session | None = None  # the recording that is under way
        self._block = Block() if block is None else to_instance(block, Block, "block")
        self._state = State() if state is None else to_instance(state, State, "state")
        self._memory_limit = to_number(memory_limit, "memory_limit", bits=LIMIT_BITS)
        self.fork = fork_named(fork)
        self.tier = tier
        self.hooks = hooks
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"<EVM {self._fork.label}, {self._tier} tier, {self._state.size} accounts>"

    # -- what it was made with: assigning takes effect with the next call

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
        self._running, self._session = {}, None
        self.fork, self.tier = self._fork, self._tier

    def __copy__(self) -> EVM:
        """Independent of this one: state and block are copied. The hooks are the same."""
        twin = object.__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_block": copy(self._block), "_state": copy(self._state)})
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> EVM:
        twin = memo[id(self)] = object.__new__(type(self))
        memo[id(self._hooks)] = self._hooks
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin

    # -- running

    def call(
        self,
        to: AddressLike,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        static: bool = False,
        origin: AddressLike | None = None,
    ) -> Result:
        """A message call: no intrinsic cost, no nonce, no fee; what it changes is kept if it succeeds.

        `gas_used` is what the code itself used.
        """
        sender = caller if type(caller) is bytes and len(caller) == 20 else to_address(caller, "caller")
        target = to if type(to) is bytes and len(to) == 20 else to_address(to, "to")
        payload = data if type(data) is bytes else to_bytes(data)
        if static is not False:
            static = to_flag(static, "static")
        if value is _ZERO and gas_price is _ZERO and origin is None:
            result = self._call_directly(sender, target, payload, gas, static, True)
            if result is not None:
                return result
        return self._message(sender, target, payload, value, gas, gas_price, static, origin, creates=False)

    def deploy(
        self,
        initcode: BytesLike,
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        salt: Word | None = None,
        origin: AddressLike | None = None,
    ) -> Result:
        """Runs init code and keeps the contract it returns; its address is the result's `address`.

        The address follows from the caller's nonce as CREATE's does, or from `salt` as CREATE2's. A caller whose nonce
        is 2^64 - 1 can create nothing (EIP-2681): the result is a halt that has used no gas, and nothing has changed.
        """
        sender, payload = to_address(caller, "caller"), to_bytes(initcode, "initcode")
        nonce = self._state.account(sender).nonce
        if salt is None:
            target = create_address(sender, nonce)
        else:
            target = create2_address(sender, to_word(salt, "salt"), payload)
        return self._message(sender, target, payload, value, gas, gas_price, False, origin, creates=True)

    def simulate(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
    ) -> Result:
        """As `call` (or `deploy`, where `to` is None), and nothing is kept."""
        if to is not None and value is _ZERO and gas_price is _ZERO and type(data) is bytes:
            sender, target = to_address(caller, "caller"), to_address(to, "to")
            result = self._call_directly(sender, target, data, gas, False, False)
            if result is not None:
                return result
        with self.snapshot():
            if to is None:
                return self.deploy(data, value=value, caller=caller, gas=gas, gas_price=gas_price)
            return self.call(to, data, value=value, caller=caller, gas=gas, gas_price=gas_price)

    def transact(
        self,
        sender: AddressLike,
        to: AddressLike | None = None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        gas: Number | None = None,
        nonce: Number | None = None,
        gas_price: Number | None = None,
        max_fee: Number | None = None,
        max_priority_fee: Number | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        max_blob_fee: Number = 0,
        authorizations: Iterable[Authorization | Mapping[str, Any]] | None = None,
    ) -> Result:
        """A whole transaction: validated, paid for, its nonce counted. Raises `Rejected` if it is invalid.

        Without a fee it pays the block's base fee; without `gas` it may use all that a transaction of this fork may.
        """
        if gas_price is not None and not (max_fee is None and max_priority_fee is None):
            raise BadValue("gas_price: give it or the fees of EIP-1559 (max_fee, max_priority_fee), not both")
        if max_priority_fee is not None and max_fee is None:
            raise BadValue("max_priority_fee: needs a max_fee")
        if gas is None:
            gas = min(self._block.gas_limit, self._rules.tx_gas_cap, MAX_GAS)
        if gas_price is None and max_fee is None:
            gas_price = self._block.base_fee
        tx = Transaction(
            to_address(sender, "sender"),
            None if to is None else to_address(to, "to"),
            data if type(data) is bytes else to_bytes(data),
            0 if value is _ZERO else to_number(value, "value"),
            to_number(gas, "gas", bits=GAS_BITS),
            None if nonce is None else to_number(nonce, "nonce", bits=NONCE_BITS),
            None if gas_price is None else to_number(gas_price, "gas_price"),
            None if max_fee is None else to_number(max_fee, "max_fee"),
            None if max_priority_fee is None else to_number(max_priority_fee, "max_priority_fee"),
            None if access_list is None else to_access_list(access_list),
            None if blob_hashes is None else to_hashes(blob_hashes, "blob_hashes"),
            0 if max_blob_fee is _ZERO else to_number(max_blob_fee, "max_blob_fee"),
            None if authorizations is None else to_authorizations(authorizations),
        )
        if tx.max_blob_fee and tx.blob_hashes is None:
            raise BadValue("max_blob_fee: needs blob_hashes")
        ticket = object()
        try:
            try:
                if self._running.setdefault(0, ticket) is not ticket:
                    raise WrongThread(BUSY)
                receipt = process(tx, self._state, self._block, self._fork, self._run_transaction)
            finally:
                self._release(ticket)
        finally:
            self._release(ticket)  # once more: Ctrl-C may have come in the middle of the first
        outcome = receipt.outcome
        return Result(
            outcome.status,
            outcome.output,
            receipt.gas_used,
            receipt.gas_refunded,
            receipt.logs,
            outcome.created,
            outcome.failure,
        )

    def _call_directly(
        self, caller: bytes, address: bytes, data: bytes, gas: Number, static: bool, keep: bool
    ) -> Result | None:
        """A call without value on the tier's straight path; None where it is not for that path, and has not begun."""
        direct, state, context = self._direct, self._state, self._context
        if direct is None or self._hooks is not None or self._timeout is not None or state.ledger is not None:
            return None
        if self._session is not None:
            direct = self._session.direct_with(self._recorded)
        if type(gas) is not int or gas >> GAS_BITS:
            return None
        if context.gas_price or context.block is not self._block:
            context = self._context = self._new_context(caller, 0)
        running, ticket = self._running, object()
        try:
            try:
                if running.setdefault(0, ticket) is not ticket:
                    raise WrongThread(BUSY)
                found = direct(state, context, caller, address, data, gas, static, keep)
                if type(found) is Result or found is None:
                    running.clear()
                    return found
                return self._go_on(found, caller, address, data, gas, static, keep)  # type: ignore[arg-type]
            finally:
                if running:
                    self._leave(ticket, state)
        finally:
            if running:
                self._leave(ticket, state)  # once more: Ctrl-C may have come in the middle of the first

    def _go_on(
        self, resume: Executor, caller: bytes, address: bytes, data: bytes, gas: int, static: bool, keep: bool
    ) -> Result:
        """With a call that has begun on the straight path and did not end there."""
        with nullcontext() if keep else self.snapshot():
            return self._run_message(caller, address, data, 0, gas, 0, static, caller, False, resume)

    def _leave(self, ticket: object, state: State) -> None:
        if self._running.get(0) is ticket:
            if state.ledger is not None:  # the call never was
                state.ledger.end(state)
            self._running.clear()

    def _message(
        self,
        caller: bytes,
        address: bytes,
        data: bytes,
        value: Number,
        gas: Number,
        gas_price: Number,
        static: bool,
        origin: AddressLike | None,
        *,
        creates: bool,
    ) -> Result:
        if type(gas) is not int or gas >> GAS_BITS:
            gas = to_number(gas, "gas", bits=GAS_BITS)
        if value is not _ZERO:
            value = to_number(value, "value")
        if gas_price is not _ZERO:
            gas_price = to_number(gas_price, "gas_price")
        begins = caller if origin is None else to_address(origin, "origin")
        ticket = object()  # whose call it is: Ctrl-C may come anywhere, and must not leave this EVM occupied
        try:
            try:
                if self._running.setdefault(0, ticket) is not ticket:
                    raise WrongThread(BUSY)
                if value:
                    self._check_value(caller, address, value)
                if creates and self._state.account(caller).nonce >= MAX_NONCE:
                    return _out_of_nonces(caller)
                return self._run_message(caller, address, data, value, gas, gas_price, static, begins, creates)
            finally:
                self._release(ticket)
        finally:
            self._release(ticket)  # once more: Ctrl-C may have come in the middle of the first

    def _run_message(
        self,
        caller: bytes,
        address: bytes,
        data: bytes,
        value: int,
        gas: int,
        gas_price: int,
        static: bool,
        origin: bytes,
        creates: bool,
        resume: Executor | None = None,
    ) -> Result:
        """Runs a message in a transaction of its own; `resume` goes on with one that has begun."""
        state, rules, context = self._state, self._rules, self._context
        if context.gas_price != gas_price or context.origin != origin or context.block is not self._block:
            context = self._context = self._new_context(origin, gas_price)
        state.begin_transaction(resumed=resume is not None)
        try:
            if rules.access_sets:
                warm_up(state, context, caller, address)
            if creates:
                state.set_nonce(caller, state.account(caller).nonce + 1)
            message = top_message(caller, address, data, value, creates, state, rules)
            message.gas, message.static = gas, static
            run = resume or self._run
            outcome = run_top(message, state, context, run) if creates else run(message, state, context)
            used = gas - outcome.gas_left
            refund = state.refund
            if refund:
                refund = min(refund, (used + intrinsic_gas(rules, data, creates)) // rules.refund_quotient)
            logs = state.logs_so_far()
            clear_away(state, rules)
        except BaseException:
            state.abandon()
            raise
        return Result(outcome.status, outcome.output, used, refund, logs, outcome.created, outcome.failure)

    def _check_value(self, caller: bytes, to: bytes, value: int) -> None:
        balance = self._state.account(caller).balance
        if value > balance:
            raise BadValue(f"value: caller 0x{caller.hex()} has {balance} wei, not {value}")
        if to != caller and (self._state.account(to).balance + value) >> WORD_BITS:
            raise BadValue(f"value: 0x{to.hex()} would have more than 2^256 - 1 wei")

    def _release(self, ticket: object) -> None:
        if self._running.get(0) is ticket:
            self._running.clear()

    def _run_transaction(self, message: Message, state: State, context: Context) -> Outcome:
        context.memory_limit = self._memory_limit
        return self._run(message, state, context)

    def _run(self, message: Message, state: State, context: Context) -> Outcome:
        try:
            timeout = self._timeout
            context.deadline = None if timeout is None else time.monotonic() + timeout
            hooks = self._hooks if self._session is None else self._session.hooks(self._hooks)
            return self._execute(message, state, context, hooks)
        except BaseException:  # a hook's own error, or Ctrl-C: as if the call or transaction had never begun
            state.abandon()
            raise

    # -- recordings

    def record(
        self,
        *,
        calls: bool = True,
        logs: bool = True,
        storage: bool = False,
        keccak: bool = False,
        coverage: bool = False,
        gas: bool = False,
    ) -> AbstractContextManager[Recording]:
        """Records what calls, deployments, simulations and transactions in the `with` block do.

        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x6007600055")  # storage[0] = 7
        >>> with evm.record(storage=True) as recording:
        ...     result = evm.call("0x" + "c0" * 20, gas=100_000)
        >>> print(recording)
        CALL 0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0 () → () [22106 gas]
        └─ SSTORE 0x0 = 0x7 (was 0x0)
        """
        return recording_on(self, Wanted(calls, logs, storage, keccak, coverage, gas))

    # -- snapshots

    @contextmanager
    def snapshot(self) -> Iterator[State]:
        """Whatever happens inside the `with` block is undone at its end: to the state, and to `block` and its fields.

        Hooks, fork, tier and timeout stay as they were set.

        >>> evm = EVM()
        >>> with evm.snapshot():
        ...     evm.set_balance("0x" + "11" * 20, 5)
        >>> evm.get_balance("0x" + "11" * 20)
        0
        """
        state, restore_block = self._state, self._block.keep()
        opened = state.open_marks
        mark = state.mark()
        try:
            try:
                state.open_mark(mark)
                yield state
            finally:
                state.close_mark(mark, keep=opened)
                self._state, self._block = state, restore_block()
        finally:  # once more: Ctrl-C may have come in the middle of the first
            state.close_mark(mark, keep=opened)
            self._state, self._block = state, restore_block()

    # -- the state

    def get_code(self, address: AddressLike) -> bytes:
        return self._state.account(to_address(address)).code

    def set_code(self, address: AddressLike, code: BytesLike) -> None:
        self._state.set_code(to_address(address), to_bytes(code, "code"))

    def get_balance(self, address: AddressLike) -> int:
        return self._state.account(to_address(address)).balance

    def set_balance(self, address: AddressLike, balance: Number) -> None:
        self._state.set_balance(to_address(address), to_number(balance, "balance"))

    def get_nonce(self, address: AddressLike) -> int:
        return self._state.account(to_address(address)).nonce

    def set_nonce(self, address: AddressLike, nonce: Number) -> None:
        self._state.set_nonce(to_address(address), to_number(nonce, "nonce", bits=NONCE_BITS))

    def get_storage(self, address: AddressLike, key: Word) -> int:
        return self._state.storage(to_address(address), to_word(key, "key"))

    def set_storage(self, address: AddressLike, key: Word, value: Word) -> None:
        self._state.set_storage(to_address(address), to_word(key, "key"), to_word(value, "value"))

    @property
    def state_root(self) -> bytes:
        return self._state.root()


def _out_of_nonces(caller: bytes) -> Result:
    """EIP-2681: as CREATE, which fails before it has taken the gas for the new frame."""
    failure = Failure(HaltReason.NONCE_OVERFLOW, f"0x{caller.hex()} is at 2^64 - 1", 0)
    return Result(Status.HALT, b"", 0, 0, failure=failure)
