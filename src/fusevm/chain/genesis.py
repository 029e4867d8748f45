"""Where a chain begins: the first block, its state and the rules; also from geth's genesis.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fusevm.chain.alloc import state_from_alloc
from fusevm.chain.fees import FIRST_BASE_FEE
from fusevm.chain.header import NO_REQUESTS, ZERO_HASH, Header
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.schedule import ForkSchedule, always, schedule_from_config
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import State
from fusevm.chain.trie import EMPTY_ROOT
from fusevm.evm.forks import Fork
from fusevm.values import BadValue, to_address, to_bytes, to_hash, to_number

DEFAULT_GAS_LIMIT = 30_000_000


@dataclass(frozen=True)
class Genesis:
    """The first block, the state after it, and the chain's schedule."""

    block: SealedBlock
    state: State
    schedule: ForkSchedule

    def __post_init__(self) -> None:
        if self.state.source is not None:  # a fork of a node's chain: the root is the node's word
            return
        root = self.state.root()
        if root != self.block.header.state_root:
            detail = f"genesis: 0x{self.block.header.state_root.hex()}, not 0x{root.hex()}"
            raise InvalidBlock(BlockReason.INVALID_STATE_ROOT, detail)


def genesis_at(fork: str, state: State | None = None, chain_id: int = 1, **fields: Any) -> Genesis:
    """A chain that has one fork's rules throughout; `fields` are the first header's."""
    header = Header(**{"gas_limit": DEFAULT_GAS_LIMIT, **fields})
    return genesis_on(always(fork, chain_id), header, State() if state is None else state)


def genesis_from_json(document: Mapping[str, Any]) -> Genesis:
    """The contents of genesis.json: `config`, `alloc` and the header's fields."""
    for part in ("config", "alloc"):
        if not isinstance(document.get(part), Mapping):
            raise BadValue(f"genesis: no '{part}' section")
    given = {
        name: read(document[key], f"genesis {key}")
        for key, (name, read) in _HEADER_KEYS.items()
        if document.get(key) is not None
    }
    header = Header(**{"gas_limit": DEFAULT_GAS_LIMIT, "difficulty": 0, **given})
    return genesis_on(schedule_from_config(document["config"]), header, state_from_alloc(document["alloc"]))


def genesis_on(schedule: ForkSchedule, header: Header, state: State) -> Genesis:
    """A header and a state, with the header fields that the fork at its time has (EIP-1559, 4895, 4844, 4788, 7685)."""
    fork = schedule.at(header.number, header.timestamp, header.difficulty).fork
    fields: dict[str, Any] = {"state_root": state.root()}
    if fork >= Fork.LONDON and header.base_fee is None:
        fields["base_fee"] = FIRST_BASE_FEE
    if fork >= Fork.SHANGHAI:
        fields["withdrawals_root"] = EMPTY_ROOT
    if fork >= Fork.CANCUN:
        fields["blob_gas_used"] = header.blob_gas_used or 0
        fields["excess_blob_gas"] = header.excess_blob_gas or 0
        fields["parent_beacon_root"] = header.parent_beacon_root or ZERO_HASH
    if fork >= Fork.PRAGUE:
        fields["requests_hash"] = NO_REQUESTS
    withdrawals = () if fork >= Fork.SHANGHAI else None
    return Genesis(SealedBlock(replace(header, **fields), withdrawals=withdrawals), state, schedule)


def _uint64(value: Any, what: str) -> int:
    return to_number(value, what, bits=64)


_HEADER_KEYS: dict[str, tuple[str, Any]] = {
    "number": ("number", _uint64),
    "timestamp": ("timestamp", _uint64),
    "gasLimit": ("gas_limit", _uint64),
    "gasUsed": ("gas_used", _uint64),
    "difficulty": ("difficulty", to_number),
    "nonce": ("nonce", lambda value, what: _uint64(value, what).to_bytes(8, "big")),
    "extraData": ("extra_data", to_bytes),
    "mixHash": ("prev_randao", to_hash),
    "parentHash": ("parent_hash", to_hash),
    "coinbase": ("coinbase", to_address),
    "baseFeePerGas": ("base_fee", to_number),
    "blobGasUsed": ("blob_gas_used", _uint64),
    "excessBlobGas": ("excess_blob_gas", _uint64),
    "parentBeaconBlockRoot": ("parent_beacon_root", to_hash),
}
