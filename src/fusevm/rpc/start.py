"""How a node's chain begins: with funded accounts, on a state that was saved, or on another node's block."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fusevm.chain.checks import Checks
from fusevm.chain.dumps import document_of, state_from_document
from fusevm.chain.forms import header_from_json
from fusevm.chain.genesis import Genesis
from fusevm.chain.header import Header
from fusevm.chain.networks import NETWORKS
from fusevm.chain.predeploys import add_system_contracts
from fusevm.chain.schedule import ForkSchedule, always
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import Account, State
from fusevm.devchain import DevChain, dev_genesis
from fusevm.evm.forks import Fork
from fusevm.evm.secp256k1 import address_of_key
from fusevm.rpc.mnemonic import ETHEREUM_PATH, TEST_MNEMONIC, keys_of
from fusevm.values import BadValue, to_address, to_hash, to_number

# Impersonated accounts do not sign, and may be contracts; base fee and gas limit are set by hand. As in anvil, the gas
# limit of one transaction (EIP-7825) is left to `Config.checks`.
DEV_CHECKS = Checks(eoa=False, tx_gas_cap=False)
CHAIN_ID = 31337  # anvil's and Hardhat's
BALANCE = 10_000 * 10**18
ACCOUNTS = 10
GAS_LIMIT = 30_000_000
BASE_FEE = 10**9
SLOTS_IN_AN_EPOCH = 32
# Arachnid's deterministic deployer, at which anvil has it from the start: CREATE2 of what follows the salt.
CREATE2_DEPLOYER = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
CREATE2_DEPLOYER_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f580151560395781"
    "82fd5b8082525050506014600cf3"
)


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
    slots_in_an_epoch: int = SLOTS_IN_AN_EPOCH  # blocks until one is safe
    path: str = ETHEREUM_PATH  # of the accounts' keys
    timestamp: int | None = None  # of the genesis; now unless it is given
    number: int = 0  # of the genesis
    alloc: Mapping[str, Any] | None = None  # accounts of the genesis beside the funded ones, in any form of a state
    tip: int = 10**9  # that is suggested
    tier: str = "auto"
    create2_deployer: bool = True
    checks: Checks = DEV_CHECKS
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
    keys = keys_of(config.mnemonic, config.accounts, config.path)
    funded = {address_of_key(key): key for key in keys}
    if config.fork_url is not None:
        return _forked(config, funded)
    schedule = always(config.hardfork, CHAIN_ID if config.chain_id is None else config.chain_id)
    timestamp = int(time.time()) if config.timestamp is None else config.timestamp
    header = Header(number=config.number, gas_limit=config.gas_limit, base_fee=config.base_fee, timestamp=timestamp)
    if saved is not None:
        return Started(DevChain(_from_dump(schedule, header, saved), keys=keys, tier=config.tier, checks=config.checks))
    state = State() if config.alloc is None else state_from_document(config.alloc)
    if config.create2_deployer:
        state.accounts[CREATE2_DEPLOYER] = Account(code=CREATE2_DEPLOYER_CODE)
    genesis = dev_genesis(schedule, funded, state=state, header=header, balance=config.balance)
    dev = DevChain(genesis, keys=keys, tier=config.tier, checks=config.checks)
    if dev.chain.step_of(dev.head.hash).fork >= Fork.LONDON:
        dev.next_base_fee = config.base_fee  # the genesis is empty, which would lower it already
    return Started(dev)


def _from_dump(schedule: ForkSchedule, header: Header, saved: Mapping[str, Any]) -> Genesis:
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
        schedule = ForkSchedule(known.activations, chain_id, known.dao_block, known.deposit_contract)
    state = State(source=source)
    header = header_from_json(source.header)
    withdrawals = () if header.withdrawals_root is not None else None
    genesis = Genesis(SealedBlock(header, withdrawals=withdrawals), state, schedule)
    dev = DevChain(genesis, keys=funded.values(), tier=config.tier, checks=config.checks)
    with dev.chain.edited() as opened:
        for address in funded:
            opened.set_balance(address, config.balance)
        if schedule.at(header.number + 1, header.timestamp + 1).fork >= Fork.CANCUN:
            add_system_contracts(opened)
    return Started(dev, Upstream(config.fork_url or "", source.number, source.rpc.ask))
