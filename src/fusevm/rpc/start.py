"""How a node's chain begins: with funded accounts, on a state that was saved, or on another node's block."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fusevm.chain.checks import Checks
from fusevm.chain.dumps import document_of, state_from_document
from fusevm.chain.genesis import Genesis
from fusevm.chain.header import Header
from fusevm.chain.networks import NETWORKS
from fusevm.chain.predeploys import add_system_contracts
from fusevm.chain.schedule import Schedule, always
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import State
from fusevm.devchain import DevChain, dev_genesis
from fusevm.evm.forks import Fork
from fusevm.evm.secp256k1 import address_of_key
from fusevm.rpc.mnemonic import TEST_MNEMONIC, keys_of
from fusevm.values import BadValue, to_address, to_bytes, to_hash, to_number

# Impersonated accounts do not sign, and may be contracts; base fee and gas limit are set by hand.
DEV_CHECKS = Checks(eoa=False)
CHAIN_ID = 31337  # anvil's and Hardhat's
BALANCE = 10_000 * 10**18
ACCOUNTS = 10
GAS_LIMIT = 30_000_000
BASE_FEE = 10**9


@dataclass(frozen=True)
class Config:
    """What a chain begins with."""

    chain_id: int | None = None  # 31337, or that of the chain that is forked
    mnemonic: str = TEST_MNEMONIC
    accounts: int = ACCOUNTS
    balance: int = BALANCE  # wei
    hardfork: str = "osaka"
    gas_limit: int = GAS_LIMIT
    base_fee: int = BASE_FEE
    timestamp: int | None = None  # of the genesis; now unless it is given
    tier: str = "auto"
    fork_url: str | None = None
    fork_block: str | int = "latest"


@dataclass
class Started:
    """A chain, and the node to ask about blocks before it."""

    dev: DevChain
    upstream: Upstream | None = None


@dataclass(frozen=True)
class Upstream:
    """The node whose chain was forked."""

    url: str
    number: int  # of the block after which the chains differ
    ask: Callable[..., Any]


def start(config: Config, saved: Mapping[str, Any] | None = None) -> Started:
    """A chain as configured; `saved` is a dump of a state, as anvil or this node writes it."""
    keys = keys_of(config.mnemonic, config.accounts)
    funded = {address_of_key(key): key for key in keys}
    if config.fork_url is not None:
        return _forked(config, funded)
    schedule = always(config.hardfork, CHAIN_ID if config.chain_id is None else config.chain_id)
    timestamp = int(time.time()) if config.timestamp is None else config.timestamp
    header = Header(gas_limit=config.gas_limit, base_fee=config.base_fee, timestamp=timestamp)
    if saved is None:
        genesis = dev_genesis(schedule, funded, header=header, balance=config.balance)
    else:
        genesis = _from_dump(schedule, header, saved)
    return Started(DevChain(genesis, keys=keys, tier=config.tier, checks=DEV_CHECKS))


def _from_dump(schedule: Schedule, header: Header, saved: Mapping[str, Any]) -> Genesis:
    """The saved state, after a block of the saved number and time."""
    given = saved.get("block") or {}
    if not isinstance(given, Mapping):
        raise BadValue("state: 'block' is not an object")
    number = given.get("number", saved.get("best_block_number", 0))
    fields: dict[str, Any] = {"number": to_number(number, "state: block.number", bits=64)}
    for name, ours in (("timestamp", "timestamp"), ("gas_limit", "gas_limit"), ("basefee", "base_fee")):
        if given.get(name) is not None:
            fields[ours] = to_number(given[name], f"state: block.{name}", bits=64)
    if given.get("beneficiary") is not None:
        fields["coinbase"] = to_address(given["beneficiary"], "state: block.beneficiary")
    if given.get("prevrandao") is not None:
        fields["prev_randao"] = to_hash(given["prevrandao"], "state: block.prevrandao")
    blobs = given.get("blob_excess_gas_and_price")
    if isinstance(blobs, Mapping) and blobs.get("excess_blob_gas"):
        fields["excess_blob_gas"] = to_number(blobs["excess_blob_gas"], "state: block.excess_blob_gas", bits=64)
    merged = {"gas_limit": header.gas_limit, "base_fee": header.base_fee, "timestamp": header.timestamp, **fields}
    return dev_genesis(schedule, state=state_from_document(saved), header=Header(**merged))


def saved_document(path: Any) -> Mapping[str, Any]:
    """The dump in a file. Raises BadValue, one line, for a file that does not hold one."""
    found = document_of(path)
    if not isinstance(found, Mapping):
        raise BadValue(f"{path}: not a state: expected an object; delete the file to begin anew")
    state_from_document(found)
    return found


def _forked(config: Config, funded: Mapping[bytes, bytes]) -> Started:
    from fusevm.chain.sources.node import NodeSource

    source = NodeSource.at(config.fork_url or "", config.fork_block)
    chain_id = source.chain_id if config.chain_id is None else config.chain_id
    known = next((each for each in NETWORKS.values() if each.chain_id == source.chain_id), None)
    schedule = always(config.hardfork, chain_id)
    if known is not None:
        schedule = Schedule(known.activations, chain_id, known.dao_block, known.deposit_contract)
    state = State(source=source)
    header = header_from_json(source.header)
    withdrawals = () if header.withdrawals_root is not None else None
    genesis = Genesis(SealedBlock(header, withdrawals=withdrawals), state, schedule)
    dev = DevChain(genesis, keys=funded.values(), tier=config.tier, checks=DEV_CHECKS)
    with dev.chain.edited() as opened:
        for address in funded:
            opened.set_balance(address, config.balance)
        if schedule.at(header.number + 1, header.timestamp + 1).fork >= Fork.CANCUN:
            add_system_contracts(opened)
    return Started(dev, Upstream(config.fork_url or "", source.number, source.rpc.ask))


_HASHES = {
    "parentHash": "parent_hash", "sha3Uncles": "ommers_hash", "stateRoot": "state_root",
    "transactionsRoot": "transactions_root", "receiptsRoot": "receipts_root", "mixHash": "prev_randao",
    "withdrawalsRoot": "withdrawals_root", "parentBeaconBlockRoot": "parent_beacon_root",
    "requestsHash": "requests_hash",
}  # fmt: skip
_NUMBERS = {
    "difficulty": "difficulty", "number": "number", "gasLimit": "gas_limit", "gasUsed": "gas_used",
    "timestamp": "timestamp", "baseFeePerGas": "base_fee", "blobGasUsed": "blob_gas_used",
    "excessBlobGas": "excess_blob_gas",
}  # fmt: skip
_BYTES = {"extraData": "extra_data", "logsBloom": "bloom", "nonce": "nonce"}


def header_from_json(form: Mapping[str, Any]) -> Header:
    """A header as JSON-RPC has it."""
    fields: dict[str, Any] = {ours: to_hash(form[name], name) for name, ours in _HASHES.items() if form.get(name)}
    fields |= {ours: to_number(form[name], name) for name, ours in _NUMBERS.items() if form.get(name) is not None}
    fields |= {ours: to_bytes(form[name], name) for name, ours in _BYTES.items() if form.get(name)}
    return Header(coinbase=to_address(form["miner"], "miner"), **fields)
