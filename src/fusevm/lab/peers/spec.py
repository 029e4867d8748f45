"""ethereum-execution, the executable specification: the last word, Frontier to Osaka.

Its own `process_transaction` is run. What it does not return is intercepted: the refund where it calls
`process_message_call`, the output from its trace. The sender is given instead of being recovered from a signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any

from ethereum.exceptions import EthereumException
from ethereum.trace import EvmTracer, TransactionEnd, set_evm_trace
from ethereum_types.bytes import Bytes0, Bytes20, Bytes32
from ethereum_types.numeric import U8, U64, U256, Uint

from fusevm.chain.environment import Message
from fusevm.chain.state import Account, Log
from fusevm.chain.transaction import Transaction, intrinsic_gas
from fusevm.evm.forks import Fork, rules_of
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import Observation, PeerWork, Stopwatch, Timing, block_hash, deep_recursion
from fusevm.reference.hooks import Hooks

# The specification has no Constantinople: that fork went live together with the one that took EIP-1283 back.
MODULES: dict[Fork, str] = {
    fork: fork.name.lower() for fork in Fork if fork not in (Fork.CONSTANTINOPLE, Fork.PETERSBURG)
}
MODULES[Fork.PETERSBURG] = "constantinople"
_MODEXP = (5).to_bytes(20, "big")


class Spec:
    name = "spec"

    def supports(self, fork: Fork) -> bool:
        return fork in MODULES

    def fit(self, work: PeerWork) -> PeerWork:
        return work

    def excuse(self, work: PeerWork) -> str | None:
        inputs: list[bytes] = []

        def note(message: Message) -> None:
            if message.code_address == _MODEXP:
                inputs.append(message.data)

        OurTier("reference", Hooks(on_call=note)).run(work)
        if any(96 + _lengths(data) >> 256 for data in inputs):
            return "its MODEXP adds up the three lengths in 256 bits and crashes where they do not fit"
        return None

    def run(self, work: PeerWork, tracer: EvmTracer | None = None) -> Observation:
        """As every engine does; a tracer is told of every step."""
        vm, fork = _module(work.fork, "vm"), _module(work.fork, "fork")
        state = _state(work)
        produced = vm.BlockOutput()
        transaction = _transaction(work)
        with _caught(work, tracer) as caught:
            try:
                fork.process_transaction(_block(work, state), produced, transaction, Uint(0))
            except EthereumException as error:
                return Observation("rejected", accounts=_accounts(state), reason=repr(error))
        inner = caught["message"]
        used = work.transaction.gas_limit - int(inner.gas_left)
        status = _status(inner.error)
        # Before Byzantium it leaves the code of a creation that could not pay for it lying about.
        output = b"" if status == "halt" else bytes(caught["output"])
        return Observation(
            status,
            int(produced.block_gas_used),
            min(int(inner.refund_counter), used // rules_of(work.fork).refund_quotient),
            output,
            [_log(log) for log in produced.block_logs],
            _accounts(state),
            reason=repr(inner.error) if inner.error else "",
        )

    def stopwatch(self, work: PeerWork) -> Stopwatch:
        """Only `process_message` is timed; the state is put back by its own transactions, off the clock."""
        storage, interpreter = _module(work.fork, "state"), _module(work.fork, "vm.interpreter")
        state = _state(work)
        rules = rules_of(work.fork)
        intrinsic = intrinsic_gas(rules, work.transaction.data)

        def measure() -> Timing:
            message = _message(work, state)
            extra = [message.tx_env.transient_storage] if hasattr(message.tx_env, "transient_storage") else []
            storage.begin_transaction(state, *extra)
            with deep_recursion():
                start = perf_counter()
                evm = interpreter.process_message(message)
                seconds = perf_counter() - start
            storage.rollback_transaction(state, *extra)
            used = work.transaction.gas_limit - int(evm.gas_left)
            refund = 0 if evm.error else min(int(evm.refund_counter), (used + intrinsic) // rules.refund_quotient)
            return Timing(seconds, _status(evm.error), used, refund, bytes(evm.output))

        return measure


def _lengths(data: bytes) -> int:
    return sum(int.from_bytes(data[start : start + 32].ljust(32, b"\0"), "big") for start in (0, 32, 64))


@cache
def _module(fork: Fork, name: str) -> ModuleType:
    return import_module(f"ethereum.forks.{MODULES[fork]}.{name}")


@contextmanager
def _caught(work: PeerWork, tracer: EvmTracer | None = None) -> Iterator[dict[str, Any]]:
    """Fills a dict with the `message` output and the `output` bytes of the transaction that is run inside."""
    fork: Any = _module(work.fork, "fork")
    inner, recover = fork.process_message_call, fork.recover_sender
    caught: dict[str, Any] = {}

    def process_message_call(message: Any) -> Any:
        caught["message"] = inner(message)
        return caught["message"]

    def trace(evm: object, event: Any, *_: object, **__: object) -> None:
        if tracer is not None:
            tracer(evm, event)
        if type(event) is TransactionEnd:
            caught["output"] = event.output

    fork.process_message_call = process_message_call
    fork.recover_sender = lambda *_: Bytes20(work.transaction.sender)
    before = set_evm_trace(trace)
    try:
        with deep_recursion():
            yield caught
    finally:
        set_evm_trace(before)
        fork.process_message_call, fork.recover_sender = inner, recover


def _state(work: PeerWork) -> Any:
    storage, types = _module(work.fork, "state"), _module(work.fork, "fork_types")
    state = storage.State()
    for where, account in work.accounts.items():
        address = Bytes20(where)
        storage.set_account(
            state, address, types.Account(Uint(account.nonce), U256(account.balance), account.code)
        )  # fmt: skip
        for key, value in account.storage.items():
            storage.set_storage(state, address, Bytes32(key.to_bytes(32, "big")), U256(value))
    return state


def _block(work: PeerWork, state: Any) -> Any:
    block = work.block
    known = {
        "chain_id": U64(block.chain_id),
        "state": state,
        "block_gas_limit": Uint(block.gas_limit),
        "block_hashes": [Bytes32(block_hash(n)) for n in range(max(0, block.number - 256), block.number)],
        "coinbase": Bytes20(block.coinbase),
        "number": Uint(block.number),
        "base_fee_per_gas": Uint(block.base_fee),
        "time": U256(block.timestamp),
        "difficulty": Uint(block.difficulty),
        "prev_randao": Bytes32(block.prev_randao.to_bytes(32, "big")),
        "excess_blob_gas": U64(block.excess_blob_gas),
        "parent_beacon_block_root": Bytes32(bytes(32)),
    }
    return _filled(_module(work.fork, "vm").BlockEnvironment, known)


def _transaction(work: PeerWork) -> Any:
    tx, transactions = work.transaction, _module(work.fork, "transactions")
    nonce = work.accounts[tx.sender].nonce if tx.nonce is None else tx.nonce
    known = {
        "chain_id": U64(work.block.chain_id),
        "nonce": U64(nonce) if tx.type == 4 else U256(nonce),
        "gas": Uint(tx.gas_limit),
        "gas_price": Uint(tx.gas_price or 0),
        "max_fee_per_gas": Uint(tx.max_fee if tx.max_fee is not None else tx.gas_price or 0),
        "max_priority_fee_per_gas": Uint((tx.max_priority_fee or 0) if tx.max_fee is not None else tx.gas_price or 0),
        "to": Bytes0() if tx.to is None else Bytes20(tx.to),
        "value": U256(tx.value),
        "data": tx.data,
        "access_list": _access_list(tx, transactions),
        "max_fee_per_blob_gas": U256(tx.max_blob_fee),
        "blob_versioned_hashes": tuple(map(Bytes32, tx.blob_hashes or ())),
        "authorizations": _authorizations(work),
        "v": U256(27),
        "y_parity": U256(0),
        "r": U256(1),
        "s": U256(1),
    }
    names = (
        "LegacyTransaction",
        "AccessListTransaction",
        "FeeMarketTransaction",
        "BlobTransaction",
        "SetCodeTransaction",
    )
    legacy = getattr(transactions, "LegacyTransaction", None) or transactions.Transaction
    return _filled(getattr(transactions, names[tx.type]) if tx.type else legacy, known)


def _access_list(tx: Transaction, transactions: ModuleType) -> tuple[Any, ...]:
    return tuple(
        transactions.Access(Bytes20(address), tuple(Bytes32(key.to_bytes(32, "big")) for key in keys))
        for address, keys in tx.access_list or ()
    )


def _authorizations(work: PeerWork) -> tuple[Any, ...]:
    listed = work.transaction.authorizations or ()
    make = getattr(_module(work.fork, "fork_types"), "Authorization", None)
    return tuple(
        make(U256(a.chain_id), Bytes20(a.address), U64(a.nonce), U8(a.y_parity), U256(a.r), U256(a.s))
        for a in listed
        if make is not None
    )


def _message(work: PeerWork, state: Any) -> Any:
    """The transaction's message as `process_message_call` would make it, without going through the transaction."""
    vm, tx = _module(work.fork, "vm"), work.transaction
    assert tx.to is not None
    sender, to = Bytes20(tx.sender), Bytes20(tx.to)
    precompiles = _module(work.fork, "vm.precompiled_contracts.mapping").PRE_COMPILED_CONTRACTS
    storage = _module(work.fork, "state")
    known: dict[str, Any] = {
        "origin": sender,
        "gas_price": Uint(0),
        "gas": Uint(tx.gas_limit),
        "access_list_addresses": set(),
        "access_list_storage_keys": set(),
        "transient_storage": storage.TransientStorage() if hasattr(storage, "TransientStorage") else None,
        "blob_versioned_hashes": (),
        "authorizations": (),
        "index_in_block": Uint(0),
        "tx_hash": None,
    }
    known |= {
        "block_env": _block(work, state),
        "tx_env": _filled(vm.TransactionEnvironment, known),
        "caller": sender,
        "target": to,
        "current_target": to,
        "value": U256(tx.value),
        "data": tx.data,
        "code_address": to,
        "code": work.accounts[tx.to].code if tx.to in work.accounts else b"",
        "depth": Uint(0),
        "should_transfer_value": True,
        "is_static": False,
        "accessed_addresses": {sender, to, *precompiles, Bytes20(work.block.coinbase)},
        "accessed_storage_keys": set(),
        "disable_precompiles": False,
        "parent_evm": None,
    }
    return _filled(vm.Message, known)


def _filled(record: Any, known: dict[str, Any]) -> Any:
    """A record of this fork: each takes the fields it has."""
    return record(**{field.name: known[field.name] for field in fields(record)})


def _status(error: Exception | None) -> str:
    if error is None:
        return "success"
    return "revert" if type(error).__name__ == "Revert" else "halt"


def _log(log: Any) -> Log:
    return Log(bytes(log.address), tuple(int.from_bytes(topic, "big") for topic in log.topics), bytes(log.data))


def _accounts(state: Any) -> dict[bytes, Account]:
    accounts = {
        bytes(address): Account(int(each.nonce), int(each.balance), bytes(each.code))
        for address, each in state._main_trie._data.items()
        if each is not None
    }
    for address, trie in state._storage_tries.items():
        if bytes(address) in accounts:
            slots = {int.from_bytes(key, "big"): int(value) for key, value in trie._data.items()}
            accounts[bytes(address)].storage = {key: value for key, value in slots.items() if value}
    return accounts
