"""The path of a message: from arguments that were read to a `Result`, on whatever tier."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import NamedTuple

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Failure, Outcome, Status
from fusevm.chain.processing import clear_away, lend, run_top, top_message, warm_listed, warm_up
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import intrinsic_gas
from fusevm.evm.forks import Rules
from fusevm.evm.gas import access_list_cost
from fusevm.evm.halts import HaltReason
from fusevm.evm.limits import MAX_NONCE
from fusevm.machine.checkpoints import Checkpoints
from fusevm.machine.settings import BUSY, WrongThread
from fusevm.values import (
    WORD_BITS,
    AccessList,
    AccessListLike,
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    Word,
    to_access_list,
    to_address,
    to_bytes,
    to_hashes,
    to_number,
    to_word,
)

GAS_BITS = 64
DEFAULT_GAS = 30_000_000
ZERO = 0  # the default of value and gas_price: compared by identity, which is quick


class More(NamedTuple):
    """What few calls give."""

    access_list: AccessList = ()
    blob_hashes: tuple[bytes, ...] = ()
    code: bytes | None = None
    cost: int = 0  # of the access list, where it is to be charged


NO_MORE = More()


def read_more(
    access_list: AccessListLike | None,
    blob_hashes: Iterable[Word] | None,
    code: BytesLike | None = None,
    charged_by: Rules | None = None,
) -> More:
    listed = () if access_list is None else to_access_list(access_list)
    keys = sum(len(each) for _, each in listed)
    return More(
        listed,
        () if blob_hashes is None else to_hashes(blob_hashes, "blob_hashes"),
        None if code is None else to_bytes(code, "code"),
        0 if charged_by is None else access_list_cost(charged_by, len(listed), keys),
    )


SHORT_TIMEOUT = 0.1  # seconds: on the straight path the clock is first looked at after a slice of gas


class Messages(Checkpoints):
    """Runs messages, one at a time; whatever ends one early leaves the state as it was."""

    def _call_directly(
        self, caller: bytes, address: bytes, data: bytes, gas: Number, static: bool, keep: bool
    ) -> Result | None:
        """A call without value on the tier's straight path; None where it is not for that path, and has not begun."""
        direct, state, context, timeout = self._direct, self._state, self._context, self._timeout
        if direct is None or self._hooks is not None or state.ledger is not None:
            return None
        if timeout is not None and timeout < SHORT_TIMEOUT:
            return None
        if type(gas) is not int or gas >> GAS_BITS:
            return None
        if context.gas_price or context.block is not self._block:
            context = self._context = self._new_context(caller, 0)
        if timeout is not None:
            context.deadline = time.monotonic() + timeout
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
        more: More = NO_MORE,
    ) -> Result:
        if type(gas) is not int or gas >> GAS_BITS:
            gas = to_number(gas, "gas", bits=GAS_BITS)
        if value is not ZERO:
            value = to_number(value, "value")
        if gas_price is not ZERO:
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
                    return out_of_nonces(caller)
                return self._run_message(
                    caller, address, data, value, gas, gas_price, static, begins, creates, more=more
                )
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
        more: More = NO_MORE,
    ) -> Result:
        """Runs a message in a transaction of its own; `resume` continues one that has begun."""
        state, rules, context = self._state, self._rules, self._context
        if context.gas_price != gas_price or context.origin != origin or context.block is not self._block:
            context = self._context = self._new_context(origin, gas_price)
        if more is not NO_MORE:
            if more.cost > gas:
                raise BadValue(f"gas: {gas} does not pay for the access list, which costs {more.cost}")
            if more.blob_hashes:
                context = self._new_context(origin, gas_price, more.blob_hashes)
            state.prefetch((address,), [(where, key) for where, keys in more.access_list for key in keys])
        if state.source is not None and (value or creates):
            state.prefetch((caller, address))  # both are needed: one question
        state.begin_transaction(resumed=resume is not None)
        try:
            if rules.access_sets:
                warm_up(state, context, caller, address)
                warm_listed(state, more.access_list)
            owned = self._lent(caller, value) if value else 0
            if creates:
                state.set_nonce(caller, state.account(caller).nonce + 1)
            message = top_message(caller, address, data, value, creates, state, rules)
            message.gas, message.static = gas - more.cost, static
            if more.code is not None:
                message.code, message.runs_precompile = more.code, False
            run = resume or self._run
            outcome = run_top(message, state, context, run) if creates else run(message, state, context)
            if owned < value and outcome.status is not Status.SUCCESS:
                state.set_balance(caller, owned)  # what was lent has not been spent
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

    def _lent(self, caller: bytes, value: int) -> int:
        """The caller's balance before it was given what it lacks, if balances are not checked."""
        owned = self._state.account(caller).balance
        if owned < value:
            lend(self._state, caller, value)
        return owned

    def _check_value(self, caller: bytes, to: bytes, value: int) -> None:
        balance = self._state.account(caller).balance
        if value > balance and self._checks.balance:
            raise BadValue(f"value: caller 0x{caller.hex()} has {balance} wei, not {value}")
        if to != caller and (self._state.account(to).balance + value) >> WORD_BITS:
            raise BadValue(f"value: 0x{to.hex()} would have more than 2^256 - 1 wei")

    def _release(self, ticket: object) -> None:
        if self._running.get(0) is ticket:
            self._running.clear()

    def _run(self, message: Message, state: State, context: Context) -> Outcome:
        try:
            timeout = self._timeout
            context.deadline = None if timeout is None else time.monotonic() + timeout
            hooks = self._hooks if self.session is None else self.session.hooks(self._hooks)
            return self._execute(message, state, context, hooks)
        except BaseException:  # a hook's own error, or Ctrl-C: as if the call or transaction had never begun
            state.abandon()
            raise


def created_at(state: State, caller: bytes, initcode: bytes, salt: Word | None, address: AddressLike | None) -> bytes:
    """The address of a new contract: by CREATE or CREATE2, or as requested."""
    if address is not None:
        if salt is not None:
            raise BadValue("address: give it or a salt, not both")
        return to_address(address, "address")
    if salt is not None:
        return create2_address(caller, to_word(salt, "salt"), initcode)
    return create_address(caller, state.account(caller).nonce)


def out_of_nonces(caller: bytes) -> Result:
    """EIP-2681: as CREATE, which fails before it has taken the gas for the new frame."""
    failure = Failure(HaltReason.NONCE_OVERFLOW, f"0x{caller.hex()} is at 2^64 - 1", 0)
    return Result(Status.HALT, b"", 0, 0, failure=failure)
