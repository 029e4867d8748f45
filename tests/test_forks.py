"""Forks: their order, their names in any spelling, and what each one changed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fusevm.evm.forks import ALIASES, LATEST, NO_LIMIT, Fork, Rules, UnknownFork, fork_named, rules_of


def test_forks_are_ordered_by_activation() -> None:
    assert [fork.label for fork in sorted(Fork)] == [
        "frontier", "homestead", "tangerine-whistle", "spurious-dragon", "byzantium", "constantinople", "petersburg",
        "istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague", "osaka",
    ]  # fmt: skip
    assert LATEST is Fork.OSAKA


@pytest.mark.parametrize(
    "spelling", ["spurious-dragon", "SpuriousDragon", "SPURIOUS_DRAGON", "spurious dragon", "EIP158", "spurious"]
)
def test_spelling_does_not_matter(spelling: str) -> None:
    assert fork_named(spelling) is Fork.SPURIOUS_DRAGON


@pytest.mark.parametrize("fork", Fork)
def test_a_fork_is_found_by_its_name_its_label_and_itself(fork: Fork) -> None:
    assert fork_named(fork.name) is fork_named(fork.label) is fork_named(fork) is fork


@pytest.mark.parametrize(
    ("alias", "fork"),
    [
        ("EIP150", Fork.TANGERINE_WHISTLE),
        ("DAO", Fork.HOMESTEAD),
        ("ConstantinopleFix", Fork.PETERSBURG),
        ("MuirGlacier", Fork.ISTANBUL),
        ("ArrowGlacier", Fork.LONDON),
        ("GrayGlacier", Fork.LONDON),
        ("Merge", Fork.PARIS),
        ("latest", Fork.OSAKA),
    ],
)
def test_other_tools_names_are_understood(alias: str, fork: Fork) -> None:
    assert fork_named(alias) is fork


def test_no_alias_hides_a_fork() -> None:
    assert not set(ALIASES) & {fork.name.lower().replace("_", "") for fork in Fork}


@pytest.mark.parametrize("name", ["", "atlantis", "osaka2", "13", 13])
def test_an_unknown_fork_is_named_together_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownFork) as caught:
        fork_named(name)
    message = str(caught.value)
    assert message.startswith(f"unknown fork {name!r}; known: frontier, homestead, ")
    assert message.endswith("prague, osaka")
    assert "\n" not in message


# The numbers each fork changed, from its EIPs: (before, after).
CHANGES = {
    Fork.FRONTIER: {},
    Fork.HOMESTEAD: {"tx_create": (0, 32_000), "creation_needs_deposit": (False, True)},  # EIP-2
    Fork.TANGERINE_WHISTLE: {"all_but_64th": (False, True), "selfdestruct_new_account": (False, True)},  # EIP-150
    Fork.SPURIOUS_DRAGON: {  # EIP-160, 170, 161
        "exp_byte": (10, 50),
        "max_code_size": (NO_LIMIT, 24_576),
        "create_nonce": (0, 1),
        "call_new_account_if_dead": (False, True),
        "clears_empty_accounts": (False, True),
    },
    Fork.BYZANTIUM: {},
    Fork.CONSTANTINOPLE: {"net_sstore": (False, True), "sstore_noop": (5_000, 200)},  # EIP-1283
    Fork.PETERSBURG: {"net_sstore": (True, False), "sstore_noop": (200, 5_000)},  # EIP-1716 takes it back
    Fork.ISTANBUL: {  # EIP-1108, 2028, 2200
        "calldata_nonzero": (68, 16),
        "net_sstore": (False, True),
        "sstore_sentry": (False, True),
        "sstore_noop": (5_000, 800),
        "bn254_add": (500, 150),
        "bn254_mul": (40_000, 6_000),
        "bn254_pairing": (100_000, 45_000),
        "bn254_pair": (80_000, 34_000),
    },
    Fork.BERLIN: {  # EIP-2565, 2718, 2929, 2930
        "newest_tx_type": (0, 1),
        "access_sets": (False, True),
        "cold_sload": (0, 2_100),
        "cold_account": (0, 2_600),
        "warm_access": (0, 100),
        "sstore_reset": (5_000, 2_900),
        "sstore_noop": (800, 100),
        "modexp_least": (0, 200),
        "modexp_word": (0, 1),
        "modexp_divisor": (20, 3),
    },
    Fork.LONDON: {  # EIP-1559, 3529, 3541
        "newest_tx_type": (1, 2),
        "refund_quotient": (2, 5),
        "rejects_ef_code": (False, True),
        "sstore_clear_refund": (15_000, 4_800),
        "selfdestruct_refund": (24_000, 0),
    },
    Fork.PARIS: {},
    Fork.SHANGHAI: {  # EIP-3651, 3860
        "warm_coinbase": (False, True),
        "max_initcode_size": (NO_LIMIT, 49_152),
        "initcode_word": (0, 2),
    },
    Fork.CANCUN: {  # EIP-4844, 6780
        "newest_tx_type": (2, 3),
        "selfdestruct_only_new": (False, True),
        "blob_max": (0, 6),
        "blob_base_fee_fraction": (0, 3_338_477),
    },
    Fork.PRAGUE: {  # EIP-7623, 7691, 7702
        "newest_tx_type": (3, 4),
        "delegation": (False, True),
        "calldata_floor_token": (0, 10),
        "blob_max": (6, 9),
        "blob_base_fee_fraction": (3_338_477, 5_007_716),
    },
    Fork.OSAKA: {  # EIP-7594, 7823, 7825, 7883
        "tx_gas_cap": (NO_LIMIT, 16_777_216),
        "blob_max_per_tx": (NO_LIMIT, 6),
        "modexp_least": (200, 500),
        "modexp_word": (1, 2),
        "modexp_short": (0, 32),
        "modexp_short_complexity": (0, 16),
        "modexp_exponent_byte": (8, 16),
        "modexp_divisor": (3, 1),
        "modexp_bound": (NO_LIMIT, 1_024),
    },
}


def changed_by(fork: Fork) -> dict[str, tuple[Any, Any]]:
    """What the fork changed: rule name to (before, after)."""
    if fork == Fork.FRONTIER:
        return {}
    before, after = rules_of(Fork(fork - 1)), rules_of(fork)
    names = [field.name for field in fields(Rules) if field.name != "fork"]
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("fork", Fork)
def test_what_a_fork_changed(fork: Fork) -> None:
    assert changed_by(fork) == CHANGES[fork]


def test_rules_know_their_fork_and_begin_as_frontiers() -> None:
    assert rules_of(Fork.FRONTIER) == Rules()
    assert all(rules_of(fork).fork is fork for fork in Fork)


def test_petersburg_is_byzantium_again() -> None:
    names = ("net_sstore", "sstore_noop", "sstore_reset", "sstore_sentry")
    byzantium, petersburg = rules_of(Fork.BYZANTIUM), rules_of(Fork.PETERSBURG)
    assert [getattr(petersburg, name) for name in names] == [getattr(byzantium, name) for name in names]


def test_rules_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        rules_of(Fork.OSAKA).tx_base = 0  # type: ignore[misc]
