"""The forks of Ethereum and the rules each one changed, as data: a fork is its predecessor plus a few named changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any

from fusevm.values import BadValue, shown


class Fork(IntEnum):
    """Ordered by activation, so that `fork >= Fork.BERLIN` reads as it should.

    >>> Fork.CANCUN < Fork.PRAGUE, Fork.OSAKA.label
    (True, 'osaka')
    """

    FRONTIER = 0
    HOMESTEAD = 1
    TANGERINE_WHISTLE = 2
    SPURIOUS_DRAGON = 3
    BYZANTIUM = 4
    CONSTANTINOPLE = 5
    PETERSBURG = 6
    ISTANBUL = 7
    BERLIN = 8
    LONDON = 9
    PARIS = 10
    SHANGHAI = 11
    CANCUN = 12
    PRAGUE = 13
    OSAKA = 14

    __hash__ = int.__hash__  # Enum's own is written in Python, and forks are part of many keys

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


LATEST = Fork.OSAKA
NO_LIMIT = (1 << 64) - 1

# Names other tools give the same rules. Difficulty-bomb forks change nothing a contract can see.
ALIASES = {
    "eip150": Fork.TANGERINE_WHISTLE,
    "tangerine": Fork.TANGERINE_WHISTLE,
    "eip158": Fork.SPURIOUS_DRAGON,
    "spurious": Fork.SPURIOUS_DRAGON,
    "dao": Fork.HOMESTEAD,
    "constantinoplefix": Fork.PETERSBURG,
    "muirglacier": Fork.ISTANBUL,
    "arrowglacier": Fork.LONDON,
    "grayglacier": Fork.LONDON,
    "merge": Fork.PARIS,
    "latest": LATEST,
}


class UnknownFork(BadValue):
    """A name that no fork has; the message lists those there are.

    >>> try:
    ...     fork_named("moon")
    ... except UnknownFork as error:
    ...     print(str(error)[:32])
    unknown fork 'moon'; known: fron
    """

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"unknown fork {shown(self.name)}; known: {', '.join(fork.label for fork in Fork)}"


def fork_named(name: str | Fork) -> Fork:
    """The fork of that name, whatever its spelling: 'osaka', 'Spurious-Dragon', 'ConstantinopleFix'."""
    if isinstance(name, Fork):
        return name
    if not isinstance(name, str):
        raise UnknownFork(name)
    key = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    for fork in Fork:
        if fork.name.lower().replace("_", "") == key:
            return fork
    if key in ALIASES:
        return ALIASES[key]
    raise UnknownFork(name)


@dataclass(frozen=True)
class Rules:
    """What a fork fixes besides the opcode table. The defaults are Frontier's.

    Native code has the same fields, 64 bits each; so they are numbers and flags, and no limit is `NO_LIMIT`.
    """

    fork: Fork = Fork.FRONTIER

    # transactions
    tx_base: int = 21_000
    tx_create: int = 0
    calldata_zero: int = 4
    calldata_nonzero: int = 68
    calldata_floor_token: int = 0  # EIP-7623: 10 per token, a non-zero byte being four tokens
    access_list_address: int = 2_400
    access_list_slot: int = 1_900
    authorization: int = 25_000  # EIP-7702: PER_EMPTY_ACCOUNT_COST
    authorization_refund: int = 12_500  # EIP-7702: PER_EMPTY_ACCOUNT_COST - PER_AUTH_BASE_COST
    tx_gas_cap: int = NO_LIMIT  # EIP-7825
    refund_quotient: int = 2
    newest_tx_type: int = 0

    # blobs: EIP-4844, 7691, 7594
    blob_max: int = 0
    blob_max_per_tx: int = NO_LIMIT  # EIP-7594; before it, as many as the block has room for
    blob_base_fee_fraction: int = 0

    # code
    max_code_size: int = NO_LIMIT
    max_initcode_size: int = NO_LIMIT
    code_byte: int = 200  # for keeping a contract's code
    create_nonce: int = 0  # EIP-161: contracts start at nonce 1
    creation_needs_deposit: bool = False  # EIP-2: too little gas for the code deposit fails the creation
    rejects_ef_code: bool = False  # EIP-3541
    initcode_word: int = 0  # EIP-3860

    # memory
    keccak_word: int = 6
    copy_word: int = 3
    log_byte: int = 8

    # calls
    call_value: int = 9_000
    call_stipend: int = 2_300
    new_account: int = 25_000
    all_but_64th: bool = False  # EIP-150
    call_new_account_if_dead: bool = False  # EIP-161: an account is new only when value moves to a dead one
    selfdestruct_new_account: bool = False  # EIP-150
    clears_empty_accounts: bool = False  # EIP-161

    # state access
    access_sets: bool = False  # EIP-2929
    cold_sload: int = 0
    cold_account: int = 0
    warm_access: int = 0
    warm_coinbase: bool = False  # EIP-3651
    net_sstore: bool = False  # EIP-1283 (Constantinople only), EIP-2200 and later
    sstore_sentry: bool = False  # EIP-2200: no more than the stipend left is out of gas
    sstore_set: int = 20_000
    sstore_reset: int = 5_000
    sstore_noop: int = 5_000
    sstore_clear_refund: int = 15_000
    selfdestruct_refund: int = 24_000
    selfdestruct_only_new: bool = False  # EIP-6780
    delegation: bool = False  # EIP-7702

    exp_byte: int = 10

    # precompiled contracts
    bn254_add: int = 500
    bn254_mul: int = 40_000
    bn254_pairing: int = 100_000
    bn254_pair: int = 80_000
    modexp_least: int = 0
    modexp_word: int = 0  # complexity of eight bytes squared; 0: EIP-198's own formula
    modexp_short: int = 0  # bytes up to which the complexity is fixed
    modexp_short_complexity: int = 0
    modexp_exponent_byte: int = 8  # iterations for each byte of the exponent past its first 32
    modexp_divisor: int = 20
    modexp_bound: int = NO_LIMIT  # EIP-7823: bytes of base, exponent and modulus


CHANGES: dict[Fork, dict[str, Any]] = {
    Fork.HOMESTEAD: {"tx_create": 32_000, "creation_needs_deposit": True},
    Fork.TANGERINE_WHISTLE: {"all_but_64th": True, "selfdestruct_new_account": True},
    Fork.SPURIOUS_DRAGON: {
        "exp_byte": 50,
        "max_code_size": 24_576,
        "create_nonce": 1,
        "call_new_account_if_dead": True,
        "clears_empty_accounts": True,
    },
    Fork.CONSTANTINOPLE: {"net_sstore": True, "sstore_noop": 200},
    Fork.PETERSBURG: {"net_sstore": False, "sstore_noop": 5_000},
    Fork.ISTANBUL: {
        "calldata_nonzero": 16,
        "net_sstore": True,
        "sstore_sentry": True,
        "sstore_noop": 800,
        "bn254_add": 150,
        "bn254_mul": 6_000,
        "bn254_pairing": 45_000,
        "bn254_pair": 34_000,
    },
    Fork.BERLIN: {
        "newest_tx_type": 1,
        "access_sets": True,
        "cold_sload": 2_100,
        "cold_account": 2_600,
        "warm_access": 100,
        "sstore_reset": 2_900,
        "sstore_noop": 100,
        "modexp_least": 200,
        "modexp_word": 1,
        "modexp_divisor": 3,
    },
    Fork.LONDON: {
        "newest_tx_type": 2,
        "refund_quotient": 5,
        "rejects_ef_code": True,
        "sstore_clear_refund": 4_800,
        "selfdestruct_refund": 0,
    },
    Fork.SHANGHAI: {"warm_coinbase": True, "max_initcode_size": 49_152, "initcode_word": 2},
    Fork.CANCUN: {
        "newest_tx_type": 3,
        "selfdestruct_only_new": True,
        "blob_max": 6,
        "blob_base_fee_fraction": 3_338_477,
    },
    Fork.PRAGUE: {
        "newest_tx_type": 4,
        "delegation": True,
        "calldata_floor_token": 10,
        "blob_max": 9,
        "blob_base_fee_fraction": 5_007_716,
    },
    Fork.OSAKA: {
        "tx_gas_cap": 1 << 24,
        "blob_max_per_tx": 6,
        "modexp_least": 500,
        "modexp_word": 2,
        "modexp_short": 32,
        "modexp_short_complexity": 16,
        "modexp_exponent_byte": 16,
        "modexp_divisor": 1,
        "modexp_bound": 1_024,
    },
}


@cache
def rules_of(fork: Fork) -> Rules:
    rules = Rules()
    for step in Fork:
        if step > fork:
            break
        rules = replace(rules, fork=step, **CHANGES.get(step, {}))
    return rules
