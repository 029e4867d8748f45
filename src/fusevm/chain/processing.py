"""Running a transaction: buy gas, run the message, refund, pay, clear away (Yellow Paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fusevm.chain.addresses import Address, create_address
from fusevm.chain.authorization import apply_authorizations
from fusevm.chain.checks import ALL_CHECKS, Checks, rules_with
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Executor, Failure, Outcome, Status, check_room
from fusevm.chain.result import Result
from fusevm.chain.state import Log, State, delegate_in
from fusevm.chain.transaction import Room, Transaction, floor_gas, intrinsic_gas_of, validate
from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.halts import HaltReason
from fusevm.values import AccessList


@dataclass(slots=True)
class Receipt:
    outcome: Outcome
    gas_used: int
    gas_refunded: int
    logs: Sequence[Log]

    @property
    def result(self) -> Result:
        outcome, used, refunded = self.outcome, self.gas_used, self.gas_refunded
        return Result(
            outcome.status, outcome.output, used, refunded, self.logs, outcome.created, outcome.failure
        )  # fmt: skip


def process(
    tx: Transaction,
    state: State,
    block: Block,
    fork: Fork,
    execute: Executor,
    room: Room | None = None,
    checks: Checks = ALL_CHECKS,
) -> Receipt:
    """Runs a transaction to its end. Raises Rejected, with the state as it was, if it may not run.

    `room` is what earlier transactions have left of the block; without it, all of it.
    """
    context = _context(tx, block, fork, checks)
    return process_in(context, tx, state, execute, room, checks)


def _context(tx: Transaction, block: Block, fork: Fork, checks: Checks) -> Context:
    price = tx.effective_gas_price(block.base_fee)
    rules = rules_of(fork) if checks is ALL_CHECKS else rules_with(rules_of(fork), checks)
    return Context(fork, block, tx.sender, price, tx.blob_hashes or (), rules=rules)


def process_in(
    context: Context,
    tx: Transaction,
    state: State,
    execute: Executor,
    room: Room | None = None,
    checks: Checks = ALL_CHECKS,
) -> Receipt:
    """As `process`, in a given context."""
    validate(tx, state, context.block, context.rules, room, checks)
    return process_valid(context, tx, state, execute, checks)


def process_valid(
    context: Context, tx: Transaction, state: State, execute: Executor, checks: Checks = ALL_CHECKS
) -> Receipt:
    """As `process_in`, for a transaction that is known to be valid, or is to run anyway."""
    state.begin_transaction()
    try:
        return _process(context, tx, state, execute, checks)
    except BaseException:  # Ctrl-C, say: as if it had never begun
        state.abandon()
        raise


def _process(context: Context, tx: Transaction, state: State, execute: Executor, checks: Checks) -> Receipt:
    rules, block, price = context.rules, context.block, context.gas_price

    if not checks.balance:
        lend(state, tx.sender, tx.most_spent(context.blob_base_fee))
    sender = state.account(tx.sender)
    nonce = sender.nonce
    upfront = tx.gas_limit * price + tx.blob_gas * context.blob_base_fee
    state.set_balance(tx.sender, sender.balance - upfront)
    state.set_nonce(tx.sender, nonce + 1)
    address = create_address(tx.sender, nonce) if tx.to is None else tx.to
    if rules.access_sets:
        warm_up(state, context, tx.sender, address)
        warm_listed(state, tx.access_list or ())
    if tx.authorizations is not None:
        apply_authorizations(tx.authorizations, state, block.chain_id, rules)

    if tx.value and address != tx.sender:
        check_room(state, address, tx.value)
    message = top_message(tx.sender, address, tx.data, tx.value, tx.creates, state, rules)
    message.gas = tx.gas_limit - intrinsic_gas_of(tx, rules)
    outcome = run_top(message, state, context, execute)

    used = tx.gas_limit - outcome.gas_left
    refunded = min(state.refund, used // rules.refund_quotient)
    charged = max(used - refunded, floor_gas(rules, tx.data))
    state.add_balance(tx.sender, (tx.gas_limit - charged) * price)
    tip = max(price - block.base_fee, 0) if rules.newest_tx_type >= 2 else price
    state.touch(block.coinbase)
    if tip or not rules.clears_empty_accounts:  # since EIP-161 nothing does not create an account
        check_room(state, block.coinbase, charged * tip)
        state.add_balance(block.coinbase, charged * tip)
    logs = state.logs_so_far()
    clear_away(state, rules)
    return Receipt(outcome, charged, refunded, logs)


def lend(state: State, address: bytes, needed: int) -> None:
    """Gives an account the balance it lacks, if balances are not checked."""
    if state.account(address).balance < needed:
        state.set_balance(address, needed)


def top_message(
    caller: bytes, address: bytes, data: bytes, value: int, creates: bool, state: State, rules: Rules
) -> Message:
    """The first message of a transaction; following a delegation warms its target (EIP-7702)."""
    if creates:
        return Message(caller, address, data, value=value, creates=True, code_address=address)
    code = state.account(address).code
    delegate = delegate_in(code) if rules.delegation else None
    if delegate is not None:
        state.warm_address(delegate)
        code = state.account(delegate).code
    return Message(caller, address, code, data, value, 0, 0, False, False, True, address, delegate is None)


def run_top(message: Message, state: State, context: Context, execute: Executor) -> Outcome:
    if message.creates and state.has_code_or_nonce_or_storage(message.address):
        collision = Failure(HaltReason.ADDRESS_COLLISION, f"0x{message.address.hex()}", 0)
        return Outcome(Status.HALT, 0, failure=collision)
    outcome = execute(message, state, context)
    if outcome.created is not None:
        outcome.created = Address(outcome.created)  # for people to read
    return outcome


def warm_up(state: State, context: Context, sender: bytes, target: bytes) -> None:
    """What is warm from the start: sender, target, precompiles, and the coinbase (EIP-2929, 3651)."""
    state.always_warm = context.always_warm
    with_coinbase = context.rules.warm_coinbase
    state.warm_addresses = {sender, target, context.block.coinbase} if with_coinbase else {sender, target}


def warm_listed(state: State, access_list: AccessList) -> None:
    """EIP-2930."""
    for address, keys in access_list:
        state.warm_address(address)
        for key in keys:
            state.warm_slot(address, key)


def clear_away(state: State, rules: Rules) -> None:
    """Removes accounts that destroyed themselves and, since EIP-161, touched ones left empty."""
    for address in state.destroyed:
        state.delete(address)
    if state.touched and rules.clears_empty_accounts:
        for address in state.touched:
            if state.exists(address) and state.account(address).empty:
                state.delete(address)
