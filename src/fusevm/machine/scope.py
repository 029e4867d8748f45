"""Several messages in one transaction: warm slots and transient storage are kept between them, and gone at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident

from fusevm.chain.environment import DEFAULT_CALLER, Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.processing import clear_away, top_message, warm_listed, warm_up
from fusevm.chain.result import Result
from fusevm.chain.state import Log, State
from fusevm.evm.limits import MAX_NONCE
from fusevm.machine.messages import DEFAULT_GAS, GAS_BITS, Messages, created_at, out_of_nonces
from fusevm.machine.turns import BUSY, WrongThread, leave, refuse_others
from fusevm.values import (
    AccessListLike,
    AddressLike,
    BytesLike,
    Number,
    Word,
    to_access_list,
    to_address,
    to_bytes,
    to_flag,
    to_hashes,
    to_number,
)

ENDED = "this transaction has ended; begin another with evm.transaction()"


class OpenTransaction:
    """A transaction in progress: messages run in it one after another."""

    def __init__(self, machine: Scopes, state: State, context: Context) -> None:
        self._machine, self._state, self._context = machine, state, context
        self.gas_used = 0  # by all messages, before refunds
        self.refund = 0  # the counter, as the last message left it
        self.logs: list[Log] = []  # of all messages
        self.is_open = True
        self.is_running = False

    @property
    def gas_refunded(self) -> int:
        """What the messages would be paid back: a share of the gas used at most.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_storage(0xC0, 0, 1)
        >>> evm.set_code(0xC0, "5f5f55")  # clears storage[0]
        >>> with evm.transaction() as tx:
        ...     _ = tx.call(0xC0)
        >>> tx.gas_used, tx.gas_refunded
        (5004, 1000)
        """
        return max(0, min(self.refund, self.gas_used // self._context.rules.refund_quotient))

    def call(
        self,
        to: AddressLike,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike | None = None,
        gas: Number = DEFAULT_GAS,
        static: bool = False,
    ) -> Result:
        """A message call; the sender makes it unless another `caller` is given.

        What it changes is kept if it succeeds. The result's `gas_refunded` is what the refund counter has grown by.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_code(0xC0, "5f54")  # reads storage[0]
        >>> with evm.transaction() as tx:
        ...     tx.call(0xC0).gas_used, tx.call(0xC0).gas_used
        (2102, 102)
        """
        target, by, payload = to_address(to, "to"), self._caller(caller), to_bytes(data)
        return self._run(top_message(by, target, payload, static=to_flag(static, "static")), value, gas)

    def deploy(
        self,
        initcode: BytesLike,
        *,
        value: Number = 0,
        caller: AddressLike | None = None,
        gas: Number = DEFAULT_GAS,
        salt: Word | None = None,
        address: AddressLike | None = None,
    ) -> Result:
        """As `EVM.deploy`, in this transaction.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> with evm.transaction() as tx:
        ...     tx.deploy("60015ff3", salt=7).ok
        True
        """
        by, payload = self._caller(caller), to_bytes(initcode, "initcode")
        target = created_at(self._state, by, payload, salt, address)
        return self._run(top_message(by, target, payload, creates=True), value, gas)

    def _caller(self, caller: AddressLike | None) -> bytes:
        return self._context.origin if caller is None else to_address(caller, "caller")

    def _run(self, message: Message, value: Number, gas: Number) -> Result:
        if not self.is_open:
            raise RuntimeError(ENDED)
        refuse_others(self._machine._running)
        if self.is_running:
            raise WrongThread(BUSY)
        state, context = self._state, self._context
        if self._machine.state is not state:
            raise RuntimeError("the state was replaced while this transaction was open; replace it afterwards")
        message.value, message.gas = to_number(value, "value"), to_number(gas, "gas", bits=GAS_BITS)
        if message.creates and state.account(message.caller).nonce >= MAX_NONCE:
            return out_of_nonces(message.caller)
        mark, before, logs = state.mark(), state.refund, len(state.logs)
        self.is_running = True
        try:
            outcome = self._machine._run_in(context, message)
        except BaseException:  # the message never was; those before it were
            state.abandon(mark)
            raise
        finally:
            self.is_running = False
        used, found = message.gas - outcome.gas_left, list(state.logs_so_far())[logs:]
        self.gas_used += used
        self.refund = state.refund
        self.logs += found
        refunded = state.refund - before
        return Result(outcome.status, outcome.output, used, refunded, found, outcome.created, outcome.failure)


class Scopes(Messages):
    """Opens transactions that several messages run in."""

    @contextmanager
    def transaction(
        self,
        sender: AddressLike = DEFAULT_CALLER,
        *,
        gas_price: Number = 0,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
    ) -> Iterator[OpenTransaction]:
        """A transaction for several messages: warm slots and transient storage are kept from one to the next.

        `sender` is the origin of all of them. At the end destroyed and empty accounts are cleared, and what was warm or
        transient is forgotten. An error raised inside the `with` block undoes all of it. No fee is charged and no nonce
        is counted. What `access_list` names is warm from the start.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_code(0xC0, "5f5c8060010160005d60005260206000f3")  # returns transient[0], and adds 1 to it
        >>> with evm.transaction() as tx:
        ...     outputs = [tx.call(0xC0).output[-1] for _ in range(3)]
        >>> outputs, evm.call(0xC0).output[-1]
        ([0, 1, 2], 0)
        """
        origin = to_address(sender, "sender")
        listed = () if access_list is None else to_access_list(access_list)
        hashes = () if blob_hashes is None else to_hashes(blob_hashes, "blob_hashes")
        context = self._new_context(origin, to_number(gas_price, "gas_price"), hashes)
        context.carries = True
        state = self._state
        scope: OpenTransaction = OpenTransaction(self, state, context)
        opened, ticket, ledger = state.open_marks, [get_ident()], state.ledger
        kept = False  # whether it has succeeded

        def end() -> None:
            scope.is_open = False
            if self._running.get(0) is not ticket:
                return  # it never began, or all of this is done
            if kept:
                state.keep_since(keep=opened)
                state.forget_transaction()
            elif state.open_marks > opened:
                state.close_mark(state.began, keep=opened)
            state.warm_addresses = set()
            leave(self._running, ticket, state, ledger)

        try:
            try:
                if self._running.setdefault(0, ticket) is not ticket:
                    raise WrongThread(BUSY)
                state.begin_transaction()
                state.open_mark(state.began)
                state.prefetch(places=[(address, key) for address, keys in listed for key in keys])
                warm_up(state, context, origin, origin)
                warm_listed(state, listed)
                yield scope
                clear_away(state, context.rules)
                kept = True
            finally:
                end()
        finally:
            end()  # again: Ctrl-C may have come in the middle of the first

    def _run_in(self, context: Context, message: Message) -> Outcome:
        """One message of an open transaction."""
        context.block = self._block
        if message.value:
            self._check_value(message)
        if context.rules.access_sets:
            self._state.warm_address(message.address)
        return self._run_top(message, context, self._run)
