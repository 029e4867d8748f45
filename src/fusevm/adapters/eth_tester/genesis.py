"""How an eth-tester chain begins: accounts by key or mnemonic, genesis parameters and their overrides, forks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from eth_account.hdaccount import HDPath, seed_from_mnemonic
from eth_tester.backends.common import merge_genesis_overrides

from fusevm.chain.genesis import Genesis
from fusevm.chain.header import Header
from fusevm.chain.schedule import Activation, ForkSchedule, step_named
from fusevm.chain.state import Account, State
from fusevm.chain.trie import EMPTY_ROOT
from fusevm.devchain import dev_genesis, dev_keys
from fusevm.evm.forks import Fork
from fusevm.evm.secp256k1 import address_of_key

CHAIN_ID = 131_277_322_940_537  # eth-tester's
GAS_LIMIT = 30_029_122
BALANCE = 10**24
ACCOUNTS = 10
HD_PATH = "m/44'/60'/0'"
WORK_DIFFICULTY, WORK_NONCE = 131_072, (42).to_bytes(8, "big")  # before the merge
DEFAULT_FORKS = ((0, "prague"),)

Forks = Sequence[tuple[int, Any]]  # blocks, and forks by name or as py-evm's VM classes
Params = Mapping[str, Any]


def account_keys(mnemonic: str | None, count: int | None, hd_path: str | None) -> list[bytes]:
    """The keys 1, 2, 3 …, or those of a mnemonic along a path."""
    count = count or ACCOUNTS
    if not mnemonic:
        return dev_keys(count)
    seed = seed_from_mnemonic(mnemonic, "")
    return [bytes(HDPath(f"{hd_path or HD_PATH}/{place}").derive(seed)) for place in range(count)]


def genesis_params(overrides: Params | None = None) -> dict[str, Any]:
    """The genesis block's parameters. Only these can be overridden."""
    defaults = {
        "coinbase": bytes(20),
        "difficulty": 0,
        "extra_data": b"",
        "gas_limit": GAS_LIMIT,
        "mix_hash": bytes(32),
        "nonce": bytes(8),
        "receipt_root": EMPTY_ROOT,
        "timestamp": int(time.time()),
        "transaction_root": EMPTY_ROOT,
    }
    merged: dict[str, Any] = merge_genesis_overrides(defaults, overrides or {})
    return merged


def genesis_state(keys: Sequence[bytes], overrides: Params | None = None) -> dict[bytes, dict[str, Any]]:
    """An account for each key; balance, storage, code and nonce can be overridden."""
    state = {}
    for key in keys:
        defaults: dict[str, Any] = {"balance": BALANCE, "storage": {}, "code": b"", "nonce": 0}
        state[address_of_key(key)] = merge_genesis_overrides(defaults, overrides or {})
    return state


def schedule_of(forks: Forks | None) -> ForkSchedule:
    """eth-tester's `vm_configuration`."""
    activations = (Activation(step_named(_name(fork)), block=block) for block, fork in forks or DEFAULT_FORKS)
    return ForkSchedule(tuple(activations), CHAIN_ID)


def _name(fork: Any) -> str:
    return fork if isinstance(fork, str) else str(fork.fork)


def make_genesis(params: Params | None, accounts: Any, forks: Forks | None) -> Genesis:
    schedule = schedule_of(forks)
    if params is None:
        merged = schedule.activations and schedule.activations[0].step.fork >= Fork.PARIS
        params = genesis_params(None if merged else {"difficulty": WORK_DIFFICULTY, "nonce": WORK_NONCE})
    state = State()
    for address, given in dict(accounts).items():
        storage = {key: value for key, value in (given.get("storage") or {}).items() if value}
        state.accounts[address] = Account(
            given.get("nonce", 0), given.get("balance", 0), bytes(given.get("code", b"")), storage
        )
    header = Header(
        coinbase=params["coinbase"],
        difficulty=params["difficulty"],
        extra_data=params["extra_data"],
        gas_limit=params["gas_limit"],
        prev_randao=params["mix_hash"],
        nonce=params["nonce"],
        timestamp=params["timestamp"],
        receipts_root=params["receipt_root"],
        transactions_root=params["transaction_root"],
    )
    return dev_genesis(schedule, state=state, header=header)
