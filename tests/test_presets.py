"""Machines as public networks are: fork, chain id and block by name."""

from __future__ import annotations

import pytest

from fusevm import EVM, BadValue
from fusevm.chain.networks import NETWORKS
from fusevm.evm.forks import LATEST

CHAIN_ID = "0x465f5260205ff3"  # return CHAINID


@pytest.mark.parametrize("name", [*NETWORKS, "dev"])
def test_a_network_has_its_chain_id_and_the_latest_fork(name: str) -> None:
    evm = EVM.preset(name)
    evm.set_code("0x" + "c0" * 20, CHAIN_ID)
    wanted = NETWORKS[name].chain_id if name in NETWORKS else 31_337
    assert int.from_bytes(evm.call("0x" + "c0" * 20).output, "big") == evm.block.chain_id == wanted
    assert evm.fork is LATEST


@pytest.mark.parametrize(
    ("fields", "fork"),
    [
        ({"number": 1}, "frontier"),
        ({"number": 12_964_999}, "berlin"),
        ({"number": 12_965_000}, "london"),
        ({"timestamp": 1_681_338_454}, "paris"),
        ({"timestamp": 1_681_338_455}, "shanghai"),
        ({"timestamp": 1_710_338_135}, "cancun"),
        ({"number": 24_000_000}, "osaka"),
        ({"number": 17_000_000, "timestamp": 1_681_338_455}, "shanghai"),
    ],
)
def test_number_and_timestamp_tell_the_fork_of_mainnet(fields: dict[str, int], fork: str) -> None:
    assert EVM.preset("mainnet", **fields).fork.label == fork


def test_fields_of_the_block_win() -> None:
    block = EVM.preset("sepolia", base_fee=7, gas_limit="0x10", chain_id=5, blob_max=3).block
    assert (block.base_fee, block.gas_limit, block.chain_id, block.blob_max) == (7, 16, 5, 3)


def test_blob_parameters_are_those_of_the_moment() -> None:
    """EIP-7892 changes them without a fork."""
    osaka, later = EVM.preset("mainnet", timestamp=1_764_798_551), EVM.preset("mainnet")
    assert osaka.fork is later.fork
    assert (osaka.block.blob_max, later.block.blob_max) == (9, 21)


def test_an_unknown_network_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadValue, match="preset: 'moon' is not one of mainnet, sepolia, holesky, hoodi, dev"):
        EVM.preset("moon")
