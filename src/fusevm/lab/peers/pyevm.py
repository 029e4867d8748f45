"""py-evm, to Prague: a yardstick of speed, and the one peer that knows Constantinople as it was (EIP-1283)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import Any

from eth.constants import BLANK_ROOT_HASH, CREATE_CONTRACT_ADDRESS
from eth.db.atomic import AtomicDB
from eth.exceptions import Revert
from eth.vm.execution_context import ExecutionContext
from eth.vm.message import Message as PyEvmMessage
from eth.vm.spoof import SpoofTransaction
from eth_utils.exceptions import ValidationError

from fusevm.chain.environment import Message
from fusevm.chain.state import Log
from fusevm.chain.transaction import intrinsic_gas
from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.precompiles import precompiles_of
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import Observation, PeerWork, Stopwatch, Timing, block_hash, deep_recursion
from fusevm.reference.hooks import Hooks

_NEWEST = Fork.PRAGUE
_MODEXP = (5).to_bytes(20, "big")


class PyEvm:
    name = "py-evm"

    def supports(self, fork: Fork) -> bool:
        return fork <= _NEWEST

    def fit(self, work: PeerWork) -> PeerWork:
        """Plain transactions only: no access list, blobs or authorizations."""
        tx = work.transaction
        price = tx.effective_gas_price(work.block.base_fee)
        return replace(
            work,
            transaction=replace(
                tx,
                gas_price=price,
                max_fee=None,
                max_priority_fee=None,
                access_list=None,
                blob_hashes=None,
                authorizations=None,
            ),
        )

    def excuse(self, work: PeerWork) -> str | None:
        bases: list[bytes] = []

        def note(message: Message) -> None:
            if message.code_address == _MODEXP:
                bases.append(message.data[:32].ljust(32, b"\0"))

        OurTier("reference", Hooks(on_call=note)).run(work)
        return "its MODEXP answers 0 to an empty base even where the exponent is 0" if bytes(32) in bases else None

    def run(self, work: PeerWork) -> Observation:
        state, tx = _state(work), work.transaction
        unsigned = _vm(work.fork).create_unsigned_transaction(
            nonce=work.accounts[tx.sender].nonce if tx.nonce is None else tx.nonce,
            gas_price=tx.gas_price or 0,
            gas=tx.gas_limit,
            to=CREATE_CONTRACT_ADDRESS if tx.to is None else tx.to,
            value=tx.value,
            data=tx.data,
        )
        try:
            unsigned.validate()
            if tx.gas_limit < unsigned.intrinsic_gas:  # which it asks of signed transactions only
                raise ValidationError(f"intrinsic gas: {unsigned.intrinsic_gas}")
            with deep_recursion(), _no_warnings():
                done = state.apply_transaction(SpoofTransaction(unsigned, from_=tx.sender))
        except ValidationError as error:
            return Observation("rejected", root=state.make_state_root(), reason=str(error))
        refund = min(
            done.get_gas_refund(), (tx.gas_limit - done.get_gas_remaining()) // rules_of(work.fork).refund_quotient
        )
        used = tx.gas_limit - done.get_gas_remaining() - refund + getattr(done, "data_floor_gas", 0)
        logs = [Log(address, tuple(topics), data) for address, topics, data in done.get_log_entries()]
        reason = repr(done._error) if done.is_error else ""
        return Observation(_status(done), used, refund, done.output, logs, root=state.make_state_root(), reason=reason)

    def stopwatch(self, work: PeerWork) -> Stopwatch:
        """Only the building and running of the computation is timed; the state's snapshot is reverted off the clock."""
        state, tx, rules = _state(work), work.transaction, rules_of(work.fork)
        assert tx.to is not None
        code = work.accounts[tx.to].code if tx.to in work.accounts else b""
        computation, context_class = state.computation_class, state.transaction_context_class
        to, sender, value, data, gas = tx.to, tx.sender, tx.value, tx.data, tx.gas_limit
        intrinsic = intrinsic_gas(rules, data)

        def measure() -> Timing:
            mark = state.snapshot()
            if rules.access_sets:
                _warm_up(state, work)
            with deep_recursion(), _no_warnings():
                start = perf_counter()
                message = PyEvmMessage(gas, to, sender, value, data, code)
                done = computation.apply_message(state, message, context_class(gas_price=0, origin=sender))
                seconds = perf_counter() - start
            state.revert(mark)
            used = gas - done.get_gas_remaining()
            refund = 0 if done.is_error else min(done.get_gas_refund(), (used + intrinsic) // rules.refund_quotient)
            return Timing(seconds, _status(done), used, refund, bytes(done.output))

        return measure


@contextmanager
def _no_warnings() -> Iterator[None]:
    """It warns of every SELFDESTRUCT."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _vm(fork: Fork) -> Any:
    module = import_module(f"eth.vm.forks.{fork.name.lower()}")
    return getattr(module, fork.name.title().replace("_", "") + "VM")


def _state(work: PeerWork) -> Any:
    block = work.block
    context = ExecutionContext(
        coinbase=block.coinbase,
        timestamp=block.timestamp,
        block_number=block.number,
        difficulty=block.difficulty,
        mix_hash=block.prev_randao.to_bytes(32, "big"),
        gas_limit=block.gas_limit,
        prev_hashes=[block_hash(n) for n in range(block.number - 1, max(-1, block.number - 257), -1)],
        chain_id=block.chain_id,
        base_fee_per_gas=block.base_fee,
        excess_blob_gas=block.excess_blob_gas,
    )
    state = _vm(work.fork).get_state_class()(AtomicDB(), context, BLANK_ROOT_HASH)
    for address, account in work.accounts.items():
        state.set_balance(address, account.balance)
        state.set_nonce(address, account.nonce)
        state.set_code(address, account.code)
        for key, value in account.storage.items():
            state.set_storage(address, key, value)
    state.persist()  # what the storage was as the transaction began is asked of the trie
    return state


def _warm_up(state: Any, work: PeerWork) -> None:
    for address in (work.transaction.sender, work.transaction.to, work.block.coinbase, *precompiles_of(work.fork)):
        state.mark_address_warm(address)


def _status(done: Any) -> str:
    if not done.is_error:
        return "success"
    return "revert" if isinstance(done._error, Revert) else "halt"
