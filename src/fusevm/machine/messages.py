"""The path of a message: from arguments that were read to a `Result`, on whatever tier."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import nullcontext
from threading import get_ident
from typing import NamedTuple

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.checks import checks_of
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Executor, Failure, Outcome, Status
from fusevm.chain.processing import clear_away, lend, load_code, run_top, top_message, warm_listed, warm_up
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import intrinsic_gas
from fusevm.evm.forks import Rules
from fusevm.evm.gas import access_list_cost
from fusevm.evm.halts import HaltReason
from fusevm.evm.limits import MAX_NONCE
from fusevm.machine.checkpoints import Checkpoints
from fusevm.machine.turns import in_turn, leave, refuse
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


class CallExtras(NamedTuple):
    """What few calls give."""

    access_list: AccessList = ()
    blob_hashes: tuple[bytes, ...] = ()
    code: bytes | None = None
    cost: int = 0  # of the access list, where it is to be charged


NO_EXTRAS = CallExtras()


def read_extras(
    access_list: AccessListLike | None,
    blob_hashes: Iterable[Word] | None,
    code: BytesLike | None = None,
    charged_by: Rules | None = None,
) -> CallExtras:
    listed = () if access_list is None else to_access_list(access_list)
    keys = sum(len(each) for _, each in listed)
    return CallExtras(
        listed,
        () if blob_hashes is None else to_hashes(blob_hashes, "blob_hashes"),
        None if code is None else to_bytes(code, "code"),
        0 if charged_by is None else access_list_cost(charged_by, len(listed), keys),
    )


class Messages(Checkpoints):
    """Runs messages, one at a time; whatever ends one early leaves the state as it was."""

    def _call_directly(
        self, caller: bytes, address: bytes, data: bytes, gas: Number, static: bool, keep: bool
    ) -> Result | None:
        """A call without value on the tier's straight path; None where it is not for that path, and has not begun.

        It takes a turn as `in_turn` does, but here: a function between would be a tenth of a short call.
        """
        direct, state, context = self._direct, self._state, self._context
        if direct is None or state.ledger is not None or type(gas) is not int or gas >> GAS_BITS:
            return None
        if context.gas_price or context.block is not self._block:
            context = self._context = self._new_context(caller, 0)
        if self._timeout is not None:
            context.deadline = time.monotonic() + self._timeout
        running, ticket = self._running, [get_ident()]
        try:
            try:
                if running.setdefault(0, ticket) is not ticket:
                    refuse(running)
                found = direct(state, context, caller, address, data, gas, static, keep)
                if found is None or type(found) is Result:
                    running.clear()
                    return found
                message = top_message(caller, address, data, gas=gas, static=static)
                return self._go_on(found, message, keep=keep)  # type: ignore[arg-type]
            finally:
                if running:
                    leave(running, ticket, state, None)
        finally:
            if running:
                leave(running, ticket, state, None)

    def _go_on(self, resume: Executor, message: Message, *, keep: bool) -> Result:
        """With a call that has begun on the straight path and did not end there."""
        with nullcontext() if keep else self.snapshot():
            return self._run_message(message, 0, message.caller, resume=resume)

    def _message(
        self,
        message: Message,
        value: Number,
        gas: Number,
        gas_price: Number,
        origin: AddressLike | None,
        extras: CallExtras = NO_EXTRAS,
    ) -> Result:
        """Runs a message that was read except for its numbers, as a turn of its own."""
        message.gas = gas if type(gas) is int and not gas >> GAS_BITS else to_number(gas, "gas", bits=GAS_BITS)
        if value is not ZERO:
            message.value = to_number(value, "value")
        if gas_price is not ZERO:
            gas_price = to_number(gas_price, "gas_price")
        begins = message.caller if origin is None else to_address(origin, "origin")
        return in_turn(self, refuse, self._run_message, message, gas_price, begins, extras)

    def _run_message(
        self,
        message: Message,
        gas_price: int,
        origin: bytes,
        extras: CallExtras = NO_EXTRAS,
        resume: Executor | None = None,
    ) -> Result:
        """In a turn: a message in a transaction of its own; `resume` continues one that has begun."""
        state, rules, context = self._state, self._rules, self._context
        gas, creates = message.gas, message.creates
        if message.value:
            self._check_value(message)
        if creates and state.account(message.caller).nonce >= MAX_NONCE:
            return out_of_nonces(message.caller)
        if context.gas_price != gas_price or context.origin != origin or context.block is not self._block:
            deadline = context.deadline  # of a call that has begun
            context = self._context = self._new_context(origin, gas_price)
            context.deadline = deadline
        if extras is not NO_EXTRAS:
            if extras.cost > gas:
                raise BadValue(f"gas: {gas} does not pay for the access list, which costs {extras.cost}")
            message.gas -= extras.cost
            if extras.blob_hashes:
                context = self._new_context(origin, gas_price, extras.blob_hashes)
            state.prefetch((message.address,), [(where, key) for where, keys in extras.access_list for key in keys])
        if state.source is not None and (message.value or creates):
            state.prefetch((message.caller, message.address))  # both are needed: one question
        state.begin_transaction(resumed=resume is not None)
        try:
            if rules.access_sets:
                warm_up(state, context, message.caller, message.address)
                warm_listed(state, extras.access_list)
            outcome = self._run_top(message, context, resume or self._run, extras.code)
            used = gas - outcome.gas_left
            refund = state.refund
            if refund:
                before = intrinsic_gas(rules, message.code if creates else message.data, creates)
                refund = min(refund, (used + before) // rules.refund_quotient)
            logs = state.logs_so_far()
            clear_away(state, rules)
        except BaseException:  # a hook's own error, or Ctrl-C: as if the call had never begun
            state.abandon()
            raise
        return Result(outcome.status, outcome.output, used, refund, logs, outcome.created, outcome.failure)

    def _run_top(self, message: Message, context: Context, run: Executor, code: bytes | None = None) -> Outcome:
        """The message itself, in a transaction that has begun; with `code`, that runs in the place of the account's."""
        state, caller, value = self._state, message.caller, message.value
        owned = self._lent(caller, value) if value else 0
        if message.creates:
            state.set_nonce(caller, state.account(caller).nonce + 1)
        load_code(message, state, context.rules)
        if code is not None:
            message.code, message.runs_precompile = code, False
        outcome = run_top(message, state, context, run)
        if owned < value and outcome.status is not Status.SUCCESS:
            state.set_balance(caller, owned)  # what was lent has not been spent
        return outcome

    def _lent(self, caller: bytes, value: int) -> int:
        """The caller's balance before it was given what it lacks, if its balance is not checked."""
        owned = self._state.account(caller).balance
        if owned < value:
            lend(self._state, caller, value)
        return owned

    def _check_value(self, message: Message) -> None:
        caller, to, value = message.caller, message.address, message.value
        balance = self._state.account(caller).balance
        if value > balance and checks_of(caller, self._checks).balance:
            raise BadValue(f"value: caller 0x{caller.hex()} has {balance} wei, not {value}")
        if to != caller and (self._state.account(to).balance + value) >> WORD_BITS:
            raise BadValue(f"value: 0x{to.hex()} would have more than 2^256 - 1 wei")

    def _run(self, message: Message, state: State, context: Context) -> Outcome:
        """On the machine's tier, with its hooks."""
        timeout = self._timeout
        context.deadline = None if timeout is None else time.monotonic() + timeout
        hooks = self._hooks if self.session is None or context.carries else self.session.hooks(self._hooks)
        return self._execute(message, state, context, hooks)


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
