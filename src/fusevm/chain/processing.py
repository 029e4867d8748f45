"""Running a transaction: buy gas, run the message, refund, pay, clear away (Yellow Paper, section 6)."""

from __future__ import annotations

from fusevm.chain.addresses import Address, create_address
from fusevm.chain.authorization import apply_authorizations
from fusevm.chain.checks import ALL_CHECKS, Checks, rules_with
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Executor, Failure, Outcome, Status, check_room
from fusevm.chain.result import Result
from fusevm.chain.state import State, delegate_in
from fusevm.chain.transaction import BlockSpace, Transaction, floor_gas, intrinsic_gas_of, validate
from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.halts import HaltReason
from fusevm.values import AccessList


def process(
    tx: Transaction,
    state: State,
    block: Block,
    fork: Fork,
    execute: Executor,
    room: BlockSpace | None = None,
    checks: Checks = ALL_CHECKS,
) -> Result:
    """Runs a transaction to its end. Raises Rejected, with the state as it was, if it may not run.

    `room` is what earlier transactions have left of the block; without it, all of it.
    """
    rules = rules_of(fork) if checks is ALL_CHECKS else rules_with(rules_of(fork), checks)
    validate(tx, state, block, rules, room, checks)
    price = tx.effective_gas_price(block.base_fee)
    context = Context(fork, block, tx.sender, price, tx.blob_hashes or (), rules=rules)
    return process_valid(context, tx, state, execute, checks)


def process_valid(
    context: Context, tx: Transaction, state: State, execute: Executor, checks: Checks = ALL_CHECKS
) -> Result:
    """As `process`, in a given context, for a transaction that is known to be valid, or is to run anyway."""
    state.begin_transaction()
    try:
        return _process(context, tx, state, execute, checks)
    except BaseException:  # Ctrl-C, say: as if it had never begun
        state.abandon()
        raise


def _process(context: Context, tx: Transaction, state: State, execute: Executor, checks: Checks) -> Result:
    rules, block, price = context.rules, context.block, context.gas_price

    if not checks.balance:
        lend(state, tx.sender, tx.most_spent(context.blob_base_fee))
    sender = state.account(tx.sender)
    nonce = sender.nonce
    upfront = tx.gas_limit * price
    if tx.blob_hashes:
        upfront += tx.blob_gas * context.blob_base_fee
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
    gas = tx.gas_limit - intrinsic_gas_of(tx, rules)
    message = top_message(tx.sender, address, tx.data, tx.value, gas, creates=tx.creates)
    load_code(message, state, rules)
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
    return Result(outcome.status, outcome.output, charged, refunded, logs, outcome.created, outcome.failure)


def lend(state: State, address: bytes, needed: int) -> None:
    """Gives an account the balance it lacks, if balances are not checked."""
    if state.account(address).balance < needed:
        state.set_balance(address, needed)


def top_message(
    caller: bytes,
    address: bytes,
    data: bytes,
    value: int = 0,
    gas: int = 0,
    *,
    creates: bool = False,
    static: bool = False,
) -> Message:
    """The first message of a transaction, without the code that it calls: `load_code`."""
    if creates:
        return Message(caller, address, data, b"", value, gas, creates=True, code_address=address)
    return Message(caller, address, b"", data, value, gas, static=static, code_address=address)


def load_code(message: Message, state: State, rules: Rules) -> None:
    """Gives a top message the code that it calls; following a delegation warms its target (EIP-7702)."""
    if message.creates:
        return
    code = state.account(message.address).code
    delegate = delegate_in(code) if rules.delegation else None
    if delegate is not None:
        state.warm_address(delegate)
        code = state.account(delegate).code
    message.code, message.runs_precompile = code, delegate is None


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
