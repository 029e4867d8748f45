"""Schedules, fees and difficulty: the networks as they were, and formulas against the executable specification."""

from __future__ import annotations

from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

import pytest

from fusevm.chain.dao import DRAINED, EXTRA_DATA, REFUND_CONTRACT, apply_dao_fork, check_dao_extra_data
from fusevm.chain.difficulty import difficulty_after
from fusevm.chain.fees import FIRST_BASE_FEE, base_fee_after, next_base_fee, next_excess_blob_gas
from fusevm.chain.genesis import genesis_from_json
from fusevm.chain.header import Header
from fusevm.chain.networks import HOLESKY, HOODI, MAINNET, NETWORKS, SEPOLIA
from fusevm.chain.reasons import BlockReason, InvalidBlock
from fusevm.chain.receipts import bloom_of, union_of
from fusevm.chain.schedule import (
    STEPS,
    BlobSchedule,
    ForkSchedule,
    always,
    blobs_from_config,
    schedule_from_config,
    schedule_named,
    step_named,
)
from fusevm.chain.state import Account, Log, State
from fusevm.evm.forks import Fork
from fusevm.values import BadValue


def spec(fork: str, module: str = "fork") -> ModuleType:
    pytest.importorskip("ethereum.forks.osaka")
    return import_module(f"ethereum.forks.{fork}{'.' + module if module else ''}")


# -- schedules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "number", "time", "step"),
    [
        (MAINNET, 0, 0, "frontier"),
        (MAINNET, 1_149_999, 0, "frontier"),
        (MAINNET, 1_150_000, 0, "homestead"),
        (MAINNET, 7_280_000, 0, "petersburg"),
        (MAINNET, 15_537_393, 0, "gray-glacier"),
        (MAINNET, 15_537_394, 1_663_224_179, "paris"),
        (MAINNET, 17_034_870, 1_681_338_455, "shanghai"),
        (MAINNET, 24_000_000, 1_767_747_671, "bpo2"),
        (SEPOLIA, 0, 0, "london"),
        (SEPOLIA, 1_450_409, 1, "paris"),
        (HOLESKY, 0, 0, "paris"),
        (HOODI, 0, 1_742_212_800, "cancun"),
    ],
)
def test_the_networks_have_their_upgrades_when_they_came(
    network: ForkSchedule, number: int, time: int, step: str
) -> None:
    assert network.at(number, time).name == step


def test_mainnets_upgrades_are_those_of_the_executable_specification() -> None:
    for activation in MAINNET.activations:
        name = "constantinople" if activation.step.name == "petersburg" else activation.step.name.replace("-", "_")
        when = spec(name, "").FORK_CRITERIA
        assert (activation.block, activation.time) in (
            (getattr(when, "block_number", None), None),
            (None, getattr(when, "timestamp", None)),
        ), name


def test_chain_ids_and_deposit_contracts_are_the_networks_own() -> None:
    assert {name: network.chain_id for name, network in NETWORKS.items()} == {
        "mainnet": 1,
        "sepolia": 11_155_111,
        "holesky": 17_000,
        "hoodi": 560_048,
    }
    assert len({network.deposit_contract for network in NETWORKS.values()}) == 3


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("PragueToOsakaAtTime15k", (9, 14_999, 0, "prague"), (9, 15_000, 0, "osaka")),
        ("BerlinToLondonAt5", (4, 99, 0, "berlin"), (5, 99, 0, "london")),
        ("OsakaToBPO1AtTime15k", (9, 14_999, 0, "osaka"), (9, 15_000, 0, "bpo1")),
        ("ArrowGlacierToParisAtDiffC0000", (9, 9, 0xBFFFF, "arrow-glacier"), (9, 9, 0xC0000, "paris")),
    ],
)
def test_transitions_of_official_tests(name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    schedule = schedule_named(name)
    for number, time, difficulty, step in (before, after):
        assert schedule.at(number, time, difficulty).name == step


def test_the_dao_transition_changes_no_rules_but_names_its_block() -> None:
    schedule = schedule_named("HomesteadToDaoAt5")
    assert schedule.dao_block == 5
    assert schedule.at(5, 0).name == "homestead"


@pytest.mark.parametrize("name", ["Moon", "MoonToOsakaAtTime15k", "OsakaToMoonAtTime15k", "PragueToOsaka", "AToB"])
def test_an_unknown_network_gets_one_line(name: str) -> None:
    with pytest.raises(BadValue, match="unknown"):
        schedule_named(name)


def test_other_tools_names_of_upgrades_are_known() -> None:
    assert step_named("ConstantinopleFix") is STEPS["petersburg"]
    assert step_named("EIP158").fork is Fork.SPURIOUS_DRAGON
    assert step_named("MuirGlacier").bomb_delay == 9_000_000


def test_a_configuration_of_geth_is_read() -> None:
    schedule = schedule_from_config(
        {
            "chainId": 1337,
            "homesteadBlock": 0,
            "eip150Block": 0,
            "eip155Block": 0,
            "eip158Block": 0,
            "byzantiumBlock": 3,
            "londonBlock": "0x5",
            "terminalTotalDifficulty": 1000,
            "shanghaiTime": 100,
            "cancunTime": 200,
            "bpo1Time": 300,
            "blobSchedule": {"cancun": {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}},
            "depositContractAddress": "0x" + "42" * 20,
        }
    )
    at = [schedule.at(*when).name for when in ((2, 0), (3, 0), (5, 0), (6, 0, 1000), (6, 150, 1000), (7, 200, 1000))]
    assert at == ["spurious-dragon", "byzantium", "london", "paris", "shanghai", "cancun"]
    assert schedule.at(7, 200, 1000).blobs == BlobSchedule(1, 2, 3)
    assert schedule.at(7, 300, 1000).blobs == STEPS["bpo1"].blobs
    assert (schedule.chain_id, schedule.deposit_contract) == (1337, b"\x42" * 20)


def test_a_wrong_configuration_names_its_field() -> None:
    with pytest.raises(BadValue, match=r"config\.londonBlock"):
        schedule_from_config({"londonBlock": "five"})
    with pytest.raises(BadValue, match=r"blobSchedule\.osaka\.max"):
        blobs_from_config({"osaka": {"target": 1, "max": -2, "baseFeeUpdateFraction": 3}})
    with pytest.raises(BadValue, match=r"blobSchedule\.osaka: no 'max'"):
        blobs_from_config({"osaka": {"target": 1}})


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fork", ["frontier", "homestead", "byzantium", "constantinople", "muir_glacier", "london"])
def test_difficulty_is_that_of_the_executable_specification(fork: str) -> None:
    from ethereum_types.numeric import U256, Uint

    random, theirs = Random(fork), spec(fork).calculate_block_difficulty
    for _ in range(300):
        number, before = random.randrange(1, 16_000_000), random.randrange(10**9)
        after = before + random.choice((1, 8, 9, 10, 12, 13, 17, 18, 20, 900, 1_000, 10_000))
        parent, ommers = random.choice((131_072, random.randrange(131_072, 10**16))), random.random() < 0.5
        more = (ommers,) if fork not in ("frontier", "homestead") else ()
        wanted = theirs(Uint(number), U256(after), U256(before), Uint(parent), *more)
        step = step_named("petersburg" if fork == "constantinople" else fork)
        assert difficulty_after(step, number, after, before, parent, ommers) == wanted


def test_the_base_fee_is_that_of_the_executable_specification() -> None:
    from ethereum_types.numeric import Uint

    random, theirs = Random(1), spec("osaka").calculate_base_fee_per_gas
    for _ in range(500):
        limit = random.randrange(5_000, 60_000_000)
        used = random.choice((0, limit // 2, limit // 2 + 1, limit // 2 - 1, limit, random.randrange(limit)))
        fee = random.choice((0, 1, 7, 8, 10**9, random.randrange(10**12)))
        wanted = theirs(Uint(limit), Uint(limit), Uint(used), Uint(fee))
        assert next_base_fee(fee, used, limit) == wanted


def test_the_first_base_fee_is_fixed() -> None:
    assert base_fee_after(Header(gas_limit=10_000, gas_used=9_000)) == FIRST_BASE_FEE


@pytest.mark.parametrize("fork", ["cancun", "prague", "osaka", "bpo1", "bpo2"])
def test_excess_blob_gas_is_that_of_the_executable_specification(fork: str) -> None:
    from ethereum_types.numeric import U64, Uint

    random, module = Random(fork), spec(fork, "vm.gas")
    blank: Any = object.__new__(spec(fork, "blocks").Header)
    for _ in range(500):
        excess = random.choice((0, random.randrange(1 << 18), random.randrange(1 << 27)))
        used = random.randrange(22) << 17
        fee = random.choice((0, 7, 16, 17, 10**9, random.randrange(10**12)))
        for name, value in (("excess_blob_gas", U64(excess)), ("blob_gas_used", U64(used))):
            object.__setattr__(blank, name, value)
        object.__setattr__(blank, "base_fee_per_gas", Uint(fee))
        wanted = module.calculate_excess_blob_gas(blank)
        assert next_excess_blob_gas(excess, used, fee, STEPS[fork]) == wanted


def test_blooms_are_those_of_the_executable_specification() -> None:
    theirs, types = spec("osaka", "bloom").logs_bloom, spec("osaka", "blocks")
    random = Random(2)
    for _ in range(50):
        logs = [
            Log(random.randbytes(20), tuple(random.getrandbits(256) for _ in range(random.randrange(5))), b"")
            for _ in range(random.randrange(4))
        ]
        listed = [types.Log(each.address, tuple(t.to_bytes(32, "big") for t in each.topics), b"") for each in logs]
        assert bloom_of(logs) == theirs(tuple(listed))
    assert union_of([bloom_of(logs[:1]), bloom_of(logs[1:])]) == bloom_of(logs)


# -- the DAO fork and mainnet's genesis -------------------------------------------------------------------------------


def test_the_dao_fork_moves_the_same_accounts_as_the_executable_specification() -> None:
    assert set(spec("dao_fork", "dao").DAO_ACCOUNTS) == set(DRAINED)
    state = State()
    state.accounts = {address: Account(balance=place) for place, address in enumerate(DRAINED)}
    apply_dao_fork(state)
    assert state.account(REFUND_CONTRACT).balance == sum(range(116))
    assert not any(state.account(address).balance for address in DRAINED)


def test_ten_blocks_from_the_dao_fork_carry_its_name() -> None:
    check_dao_extra_data(b"", 4, 5)
    check_dao_extra_data(b"", 15, 5)
    check_dao_extra_data(b"", 7, None)
    for number in (5, 14):
        check_dao_extra_data(EXTRA_DATA, number, 5)
        with pytest.raises(InvalidBlock) as caught:
            check_dao_extra_data(b"", number, 5)
        assert caught.value.reason is BlockReason.EXTRA_DATA_INVALID_DAO


def test_mainnets_genesis_has_the_hash_everybody_knows() -> None:
    assets = pytest.importorskip("ethereum.genesis")
    given = assets.get_genesis_configuration("mainnet.json")
    genesis = genesis_from_json(
        {
            "config": {"chainId": 1, "homesteadBlock": 1_150_000},
            "alloc": given.initial_accounts,
            "difficulty": int(given.difficulty),
            "gasLimit": 5000,
            "nonce": "0x" + given.nonce.hex(),
            "extraData": given.extra_data,
        }
    )
    assert genesis.block.hash.hex() == "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"


def test_a_genesis_of_one_fork_has_that_forks_header() -> None:
    for fork, fields in (("frontier", 15), ("london", 16), ("shanghai", 17), ("cancun", 20), ("osaka", 21)):
        assert len(always(fork).activations) == 1
        document = {"config": {}, "alloc": {}}
        if fork != "frontier":
            document["config"] = {"londonBlock": 0, "mergeNetsplitBlock": 0} if fork != "london" else {"londonBlock": 0}
            names = ("shanghai", "cancun", "prague", "osaka")
            wanted = names[: names.index(fork) + 1] if fork in names else ()
            document["config"].update({f"{name}Time": 0 for name in wanted})
        assert len(genesis_from_json(document).block.header.layout) == fields
