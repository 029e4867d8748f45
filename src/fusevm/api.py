"""The library's front door: an `EVM` that holds a state and runs calls and transactions on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import MEMORY_LIMIT, ZERO_ADDRESS, Block, Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.processing import clear_away, process, run_top, top_message, warm_up
from fusevm.chain.state import State
from fusevm.chain.transaction import Authorization, Transaction, intrinsic_gas
from fusevm.evm.forks import Fork, fork_named, rules_of
from fusevm.reference.hooks import Hooks
from fusevm.result import Result
from fusevm.tiers import executor_for
from fusevm.values import AddressLike, BytesLike, to_address, to_bytes, to_number

DEFAULT_GAS = 30_000_000
GAS_BITS = 64
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
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self.fork = fork_named(fork)
        self.rules = rules_of(self.fork)
        self.block = block if block is not None else Block()
        self.state = state if state is not None else State()
        self.hooks = hooks
        self.timeout = timeout  # seconds a call or transaction may take; past them it ends in TimeLimit
        self.tier = tier
        self._execute = executor_for(tier)
        self.memory_limit = memory_limit
        self._running: dict[int, object] = {}  # whoever runs it

    def __repr__(self) -> str:
        return f"<EVM {self.fork.label}, {self.tier} tier, {len(self.state.accounts)} accounts>"

    @property
    def memory_limit(self) -> int:
        """Bytes of EVM memory that all frames of a call may have together; more ends it in `EngineLimit`.

        The default is more than 1,000,000,000 gas can buy.
        """
        return self._memory_limit

    @memory_limit.setter
    def memory_limit(self, limit: int) -> None:
        self._memory_limit = to_number(limit, "memory limit", bits=62)
        self._context = Context(self.fork, self.block)  # the last call's; the next is often in the same
        self._context.memory_limit = self._memory_limit

    # -- running

    def call(
        self,
        to: AddressLike,
        data: BytesLike = b"",
        *,
        value: int = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: int = DEFAULT_GAS,
        gas_price: int = 0,
        static: bool = False,
        origin: AddressLike | None = None,
    ) -> Result:
        """A message call: no intrinsic cost, no nonce, no fee; what it changes is kept if it succeeds.

        `gas_used` is what the code itself used.
        """
        sender = caller if type(caller) is bytes and len(caller) == 20 else to_address(caller, "caller")
        target = to if type(to) is bytes and len(to) == 20 else to_address(to, "to")
        payload = data if type(data) is bytes else to_bytes(data)
        return self._message(sender, target, payload, value, gas, gas_price, static, origin, creates=False)

    def deploy(
        self,
        initcode: BytesLike,
        *,
        value: int = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: int = DEFAULT_GAS,
        gas_price: int = 0,
        salt: int | None = None,
        origin: AddressLike | None = None,
    ) -> Result:
        """Runs init code and keeps the contract it returns; its address is the result's `address`.

        The address follows from the caller's nonce as CREATE's does, or from `salt` as CREATE2's.
        """
        sender, payload = to_address(caller, "caller"), to_bytes(initcode, "init code")
        nonce = self.state.account(sender).nonce
        target = create_address(sender, nonce) if salt is None else create2_address(sender, salt, payload)
        return self._message(sender, target, payload, value, gas, gas_price, False, origin, creates=True)

    def simulate(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: int = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: int = DEFAULT_GAS,
        gas_price: int = 0,
    ) -> Result:
        """As `call` (or `deploy`, where `to` is None), and nothing is kept."""
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
        value: int = 0,
        gas: int | None = None,
        nonce: int | None = None,
        gas_price: int | None = None,
        max_fee: int | None = None,
        max_priority_fee: int | None = None,
        access_list: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None,
        blob_hashes: tuple[bytes, ...] | None = None,
        max_blob_fee: int = 0,
        authorizations: tuple[Authorization, ...] | None = None,
    ) -> Result:
        """A whole transaction: validated, paid for, its nonce counted. Raises `Rejected` if it is invalid."""
        cap = self.rules.tx_gas_cap
        default_gas = self.block.gas_limit if cap is None else min(cap, self.block.gas_limit)
        if gas_price is None and max_fee is None:
            gas_price = self.block.base_fee
        tx = Transaction(
            to_address(sender, "sender"),
            None if to is None else to_address(to, "to"),
            to_bytes(data),
            to_number(value, "value"),
            default_gas if gas is None else to_number(gas, "gas"),
            nonce,
            gas_price,
            max_fee,
            max_priority_fee,
            access_list,
            blob_hashes,
            max_blob_fee,
            authorizations,
        )
        ticket = object()
        try:
            if self._running.setdefault(0, ticket) is not ticket:
                raise WrongThread(BUSY)
            receipt = process(tx, self.state, self.block, self.fork, self._run_transaction)
        finally:
            if self._running.get(0) is ticket:
                self._running.clear()
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

    def _message(
        self,
        caller: bytes,
        address: bytes,
        data: bytes,
        value: int,
        gas: int,
        gas_price: int,
        static: bool,
        origin: AddressLike | None,
        *,
        creates: bool,
    ) -> Result:
        if type(gas) is not int or gas >> GAS_BITS:
            to_number(gas, "gas", bits=GAS_BITS)
        state, rules, running = self.state, self.rules, self._running
        ticket = object()  # whose call it is: Ctrl-C may come anywhere, and must not leave this EVM occupied
        try:
            if running.setdefault(0, ticket) is not ticket:
                raise WrongThread(BUSY)
            if value:
                self._check_value(caller, to_number(value, "value"))
            if gas_price:
                to_number(gas_price, "gas price")
            begins = caller if origin is None else to_address(origin, "origin")
            context = self._context
            if context.gas_price != gas_price or context.origin != begins or context.block is not self.block:
                context = self._context = Context(self.fork, self.block, begins, gas_price)
                context.memory_limit = self._memory_limit
            state.begin_transaction()
            try:
                if rules.access_sets:
                    warm_up(state, context, caller, address)
                if creates:
                    state.set_nonce(caller, state.account(caller).nonce + 1)
                message = top_message(caller, address, data, value, creates, state, rules)
                message.gas, message.static = gas, static
                outcome = run_top(message, state, context, self._run) if creates else self._run(message, state, context)
                used = gas - outcome.gas_left
                refund = state.refund
                if refund:
                    refund = min(refund, (used + intrinsic_gas(rules, data, creates)) // rules.refund_quotient)
                logs = state.logs_so_far()
                clear_away(state, rules)
            except BaseException:
                state.abandon()
                raise
        finally:
            if running.get(0) is ticket:
                running.clear()
        return Result(outcome.status, outcome.output, used, refund, logs, outcome.created, outcome.failure)

    def _check_value(self, caller: bytes, value: int) -> None:
        balance = self.state.account(caller).balance
        if value > balance:
            raise ValueError(f"caller 0x{caller.hex()} has {balance} wei, not {value}")

    def _run_transaction(self, message: Message, state: State, context: Context) -> Outcome:
        context.memory_limit = self._memory_limit
        return self._run(message, state, context)

    def _run(self, message: Message, state: State, context: Context) -> Outcome:
        try:
            timeout = self.timeout
            context.deadline = None if timeout is None else time.monotonic() + timeout
            return self._execute(message, state, context, self.hooks)
        except BaseException:  # a hook's own error, or Ctrl-C: as if the call or transaction had never begun
            state.abandon()
            raise

    # -- snapshots

    @contextmanager
    def snapshot(self) -> Iterator[State]:
        """Whatever happens inside the `with` block is undone at its end.

        >>> evm = EVM()
        >>> with evm.snapshot():
        ...     evm.set_balance("0x" + "11" * 20, 5)
        >>> evm.get_balance("0x" + "11" * 20)
        0
        """
        state = self.state
        opened = state.open_marks
        mark = state.open_mark()
        try:
            try:
                yield state
            finally:
                state.close_mark(mark, keep=opened)
        finally:
            state.close_mark(mark, keep=opened)  # once more: Ctrl-C may have come in the middle of the first

    # -- the state

    def get_code(self, address: AddressLike) -> bytes:
        return self.state.account(to_address(address)).code

    def set_code(self, address: AddressLike, code: BytesLike) -> None:
        self.state.set_code(to_address(address), to_bytes(code, "code"))

    def get_balance(self, address: AddressLike) -> int:
        return self.state.account(to_address(address)).balance

    def set_balance(self, address: AddressLike, balance: int) -> None:
        self.state.set_balance(to_address(address), to_number(balance, "balance"))

    def get_nonce(self, address: AddressLike) -> int:
        return self.state.account(to_address(address)).nonce

    def set_nonce(self, address: AddressLike, nonce: int) -> None:
        self.state.set_nonce(to_address(address), to_number(nonce, "nonce", bits=64))

    def get_storage(self, address: AddressLike, key: int) -> int:
        return self.state.storage(to_address(address), key)

    def set_storage(self, address: AddressLike, key: int, value: int) -> None:
        self.state.set_storage(to_address(address), to_number(key, "key"), to_number(value, "value"))

    @property
    def state_root(self) -> bytes:
        return self.state.root()
