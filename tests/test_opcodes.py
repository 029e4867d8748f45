"""The opcode table: the stack, gas, first fork and effects that the Yellow Paper and the EIPs give each opcode."""

from __future__ import annotations

import pytest

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import (
    ACCESS,
    ACCOUNTS,
    BY_BYTE,
    BY_NAME,
    CODE,
    GAS,
    LOGS,
    MEMORY,
    MSIZE,
    NONE,
    OPCODES_TABLE,
    OUTSIDE,
    REFUND,
    RETURNDATA,
    STORAGE,
    TRANSIENT,
    Effect,
    Opcode,
    opcodes_of,
)
from fusevm.evm.words import MEANINGS

NAMES = {op.name for op in OPCODES_TABLE}
CALLS = {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"}
CREATES = {"CREATE", "CREATE2"}
LOOKS_AT_ACCOUNTS = {"BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"}


def named(condition: object) -> set[str]:
    return {op.name for op in OPCODES_TABLE if condition(op)}  # type: ignore[operator]


# -- shape ------------------------------------------------------------------------------------------------------------


def test_bytes_and_names_are_unique() -> None:
    assert len(BY_BYTE) == len(OPCODES_TABLE) == len(NAMES)


def test_the_table_has_every_opcode_up_to_osaka() -> None:
    assert len(OPCODES_TABLE) == 150
    missing = set(range(256)) - set(BY_BYTE)
    ranges = [(0x0C, 0x0F), (0x1F, 0x1F), (0x21, 0x2F), (0x4B, 0x4F), (0xA5, 0xEF), (0xF6, 0xF9), (0xFB, 0xFC)]
    assert missing == {byte for first, last in ranges for byte in range(first, last + 1)}


def test_old_names_still_find_their_opcode() -> None:
    old = {"SHA3": 0x20, "DIFFICULTY": 0x44, "RANDOM": 0x44, "SUICIDE": 0xFF}
    assert {name: BY_NAME[name].byte for name in old} == old


@pytest.mark.parametrize("n", range(33))
def test_push_carries_its_number_of_bytes_and_leaves_one_word(n: int) -> None:
    op = BY_NAME[f"PUSH{n}"]
    assert (op.byte, op.immediate, op.pops, op.pushes, op.is_push) == (0x5F + n, n, 0, 1, True)
    assert op.gas == (2 if n == 0 else 3)


@pytest.mark.parametrize("n", range(1, 17))
def test_dup_looks_n_deep_and_adds_one_word(n: int) -> None:
    op = BY_NAME[f"DUP{n}"]
    assert (op.byte, op.pops, op.pushes, op.gas, op.is_dup) == (0x7F + n, n, n + 1, 3, True)


@pytest.mark.parametrize("n", range(1, 17))
def test_swap_looks_one_deeper_than_n_and_adds_nothing(n: int) -> None:
    op = BY_NAME[f"SWAP{n}"]
    assert (op.byte, op.pops, op.pushes, op.gas, op.is_swap) == (0x8F + n, n + 1, n + 1, 3, True)


@pytest.mark.parametrize("n", range(5))
def test_log_takes_a_memory_range_and_n_topics(n: int) -> None:
    op = BY_NAME[f"LOG{n}"]
    assert (op.byte, op.pops, op.pushes, op.gas, op.is_log) == (0xA0 + n, n + 2, 0, 375 * (n + 1), True)


def test_only_pushes_have_bytes_behind_them() -> None:
    assert named(lambda op: op.immediate) == {f"PUSH{n}" for n in range(1, 33)}


STACK_EFFECTS = {
    "STOP": (0, 0), "EXP": (2, 1), "ADDMOD": (3, 1), "MULMOD": (3, 1), "ISZERO": (1, 1), "NOT": (1, 1), "CLZ": (1, 1),
    "KECCAK256": (2, 1), "BALANCE": (1, 1), "CALLDATALOAD": (1, 1), "CALLDATACOPY": (3, 0), "CODECOPY": (3, 0),
    "EXTCODESIZE": (1, 1), "EXTCODECOPY": (4, 0), "RETURNDATASIZE": (0, 1), "RETURNDATACOPY": (3, 0),
    "EXTCODEHASH": (1, 1), "BLOCKHASH": (1, 1), "BLOBHASH": (1, 1), "BLOBBASEFEE": (0, 1), "POP": (1, 0),
    "MLOAD": (1, 1), "MSTORE": (2, 0), "MSTORE8": (2, 0), "SLOAD": (1, 1), "SSTORE": (2, 0), "JUMP": (1, 0),
    "JUMPI": (2, 0), "PC": (0, 1), "MSIZE": (0, 1), "GAS": (0, 1), "JUMPDEST": (0, 0), "TLOAD": (1, 1),
    "TSTORE": (2, 0), "MCOPY": (3, 0), "CREATE": (3, 1), "CALL": (7, 1), "CALLCODE": (7, 1), "RETURN": (2, 0),
    "DELEGATECALL": (6, 1), "CREATE2": (4, 1), "STATICCALL": (6, 1), "REVERT": (2, 0), "SELFDESTRUCT": (1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", STACK_EFFECTS)
def test_stack_in_and_out(name: str) -> None:
    assert (BY_NAME[name].pops, BY_NAME[name].pushes) == STACK_EFFECTS[name]


# -- forks and gas ----------------------------------------------------------------------------------------------------

FIRST_FORK = {
    Fork.HOMESTEAD: {"DELEGATECALL"},  # EIP-7
    Fork.BYZANTIUM: {"REVERT", "RETURNDATASIZE", "RETURNDATACOPY", "STATICCALL"},  # EIP-140, 211, 214
    Fork.CONSTANTINOPLE: {"SHL", "SHR", "SAR", "EXTCODEHASH", "CREATE2"},  # EIP-145, 1052, 1014
    Fork.ISTANBUL: {"CHAINID", "SELFBALANCE"},  # EIP-1344, 1884
    Fork.LONDON: {"BASEFEE"},  # EIP-3198
    Fork.SHANGHAI: {"PUSH0"},  # EIP-3855
    Fork.CANCUN: {"TLOAD", "TSTORE", "MCOPY", "BLOBHASH", "BLOBBASEFEE"},  # EIP-1153, 5656, 4844, 7516
    Fork.OSAKA: {"CLZ"},  # EIP-7939
}


@pytest.mark.parametrize("fork", Fork)
def test_each_fork_brought_just_these_opcodes(fork: Fork) -> None:
    if fork == Fork.FRONTIER:
        later = {name for names in FIRST_FORK.values() for name in names}
        assert named(lambda op: op.since == fork) == NAMES - later
    else:
        assert named(lambda op: op.since == fork) == FIRST_FORK.get(fork, set())


@pytest.mark.parametrize("fork", Fork)
def test_a_fork_knows_the_opcodes_up_to_it_and_no_later_ones(fork: Fork) -> None:
    table = opcodes_of(fork)
    assert len(table) == 256
    assert {op.name for op in table if op} == named(lambda op: op.since <= fork)
    assert all(op is None or op.byte == byte for byte, op in enumerate(table))


# Static gas by fork, as the EIPs state it; since Berlin the warm price stands here and the cold surcharge is dynamic.
REPRICED = {
    "BALANCE": {"frontier": 20, "tangerine-whistle": 400, "istanbul": 700, "berlin": 100},
    "EXTCODESIZE": {"frontier": 20, "tangerine-whistle": 700, "berlin": 100},
    "EXTCODECOPY": {"frontier": 20, "tangerine-whistle": 700, "berlin": 100},
    "EXTCODEHASH": {"constantinople": 400, "istanbul": 700, "berlin": 100},
    "SLOAD": {"frontier": 50, "tangerine-whistle": 200, "istanbul": 800, "berlin": 100},
    "CALL": {"frontier": 40, "tangerine-whistle": 700, "berlin": 100},
    "CALLCODE": {"frontier": 40, "tangerine-whistle": 700, "berlin": 100},
    "DELEGATECALL": {"homestead": 40, "tangerine-whistle": 700, "berlin": 100},
    "STATICCALL": {"byzantium": 700, "berlin": 100},
    "SELFDESTRUCT": {"frontier": 0, "tangerine-whistle": 5_000},
}


@pytest.mark.parametrize("name", REPRICED)
def test_the_eips_repriced_it_fork_by_fork(name: str) -> None:
    op, steps = BY_NAME[name], REPRICED[name]
    price = None
    for fork in Fork:
        price = steps.get(fork.label, price)
        if price is not None:
            assert op.gas_at(fork) == price, fork.label


def test_nothing_else_was_ever_repriced() -> None:
    assert named(lambda op: op.repriced) == set(REPRICED)


TIERS = {  # the Yellow Paper's gas tiers, appendix G
    2: "ADDRESS ORIGIN CALLER CALLVALUE CALLDATASIZE CODESIZE GASPRICE COINBASE TIMESTAMP NUMBER PREVRANDAO GASLIMIT "
       "CHAINID BASEFEE BLOBBASEFEE RETURNDATASIZE POP PC MSIZE GAS PUSH0",
    3: "ADD SUB NOT LT GT SLT SGT EQ ISZERO AND OR XOR BYTE SHL SHR SAR CALLDATALOAD CALLDATACOPY CODECOPY "
       "RETURNDATACOPY MLOAD MSTORE MSTORE8 MCOPY BLOBHASH",
    5: "MUL DIV SDIV MOD SMOD SIGNEXTEND SELFBALANCE CLZ",
    8: "ADDMOD MULMOD JUMP",
    10: "JUMPI EXP",
    0: "STOP RETURN REVERT INVALID SSTORE",
    1: "JUMPDEST",
    20: "BLOCKHASH",
    30: "KECCAK256",
    100: "TLOAD TSTORE",
    32_000: "CREATE CREATE2",
}  # fmt: skip


@pytest.mark.parametrize("gas", TIERS)
def test_gas_tier(gas: int) -> None:
    for name in TIERS[gas].split():
        assert {BY_NAME[name].gas_at(fork) for fork in Fork} == {gas}, name


def test_every_opcode_has_its_price_checked_here() -> None:
    checked = {name for names in TIERS.values() for name in names.split()} | set(REPRICED)
    regular = named(lambda op: op.is_push or op.is_dup or op.is_swap or op.is_log)
    assert checked | regular == NAMES


def test_just_these_have_gas_that_depends_on_operands_or_state() -> None:
    memory = named(lambda op: MSIZE in op.writes)
    state = {"BALANCE", "EXTCODESIZE", "EXTCODEHASH", "SLOAD", "SSTORE", "SELFDESTRUCT"}
    assert named(lambda op: op.dynamic) == memory | state | {"EXP"}


# -- effects ----------------------------------------------------------------------------------------------------------


def test_pure_are_the_word_operations_and_what_is_fixed_for_the_frame() -> None:
    fixed = {
        "ADDRESS", "ORIGIN", "CALLER", "CALLVALUE", "CALLDATALOAD", "CALLDATASIZE", "CODESIZE", "GASPRICE",
        "BLOCKHASH", "COINBASE", "TIMESTAMP", "NUMBER", "PREVRANDAO", "GASLIMIT", "CHAINID", "BASEFEE", "BLOBHASH",
        "BLOBBASEFEE", "PC",
    }  # fmt: skip
    assert named(lambda op: op.pure) == set(MEANINGS) | fixed


def test_whoever_reads_or_writes_memory_may_grow_it() -> None:
    for op in OPCODES_TABLE:
        if (op.reads | op.writes) & MEMORY:
            assert MSIZE in op.writes, op.name


def test_growing_memory_costs_gas() -> None:
    assert all(op.dynamic for op in OPCODES_TABLE if MSIZE in op.writes)


WRITERS = {
    MEMORY: {"CALLDATACOPY", "CODECOPY", "EXTCODECOPY", "RETURNDATACOPY", "MSTORE", "MSTORE8", "MCOPY"} | CALLS,
    STORAGE: {"SSTORE"} | CREATES | (CALLS - {"STATICCALL"}),
    TRANSIENT: {"TSTORE"} | CREATES | (CALLS - {"STATICCALL"}),
    ACCOUNTS: {"SELFDESTRUCT"} | CREATES | (CALLS - {"STATICCALL"}),
    CODE: {"SELFDESTRUCT"} | CREATES | (CALLS - {"STATICCALL"}),
    ACCESS: LOOKS_AT_ACCOUNTS | {"SLOAD", "SSTORE", "SELFDESTRUCT"} | CREATES | CALLS,
    REFUND: {"SSTORE", "SELFDESTRUCT"} | CREATES | (CALLS - {"STATICCALL"}),
    LOGS: {f"LOG{n}" for n in range(5)} | CREATES | (CALLS - {"STATICCALL"}),
    RETURNDATA: CREATES | CALLS,
    OUTSIDE: CREATES | CALLS,
    GAS: set(),
}  # fmt: skip

READERS = {
    MEMORY: {"KECCAK256", "MLOAD", "MCOPY", "RETURN", "REVERT"} | {f"LOG{n}" for n in range(5)} | CREATES | CALLS,
    MSIZE: {"MSIZE"},
    STORAGE: {"SLOAD", "SSTORE"} | CREATES | CALLS,
    TRANSIENT: {"TLOAD"} | CREATES | CALLS,
    RETURNDATA: {"RETURNDATASIZE", "RETURNDATACOPY"},
    GAS: {"GAS", "SSTORE"} | CREATES | CALLS,
}


@pytest.mark.parametrize("effect", WRITERS, ids=lambda effect: str(effect.name))
def test_written_by_just_these(effect: Effect) -> None:
    assert named(lambda op: effect in op.writes) == WRITERS[effect]


@pytest.mark.parametrize("effect", READERS, ids=lambda effect: str(effect.name))
def test_read_by_just_these(effect: Effect) -> None:
    assert named(lambda op: effect in op.reads) == READERS[effect]


def test_the_gas_counter_is_seen_by_gas_the_sstore_sentry_and_the_63_64ths_rule() -> None:
    assert named(lambda op: op.observes_gas) == {"GAS", "SSTORE"} | CREATES | CALLS


def test_control_never_falls_through_these() -> None:
    assert named(lambda op: op.ends) == {"STOP", "JUMP", "RETURN", "REVERT", "INVALID", "SELFDESTRUCT"}


def test_just_these_may_halt_for_more_than_gas_and_stack() -> None:
    forbidden_when_static = {"SSTORE", "TSTORE", "SELFDESTRUCT", "CALL"} | {f"LOG{n}" for n in range(5)} | CREATES
    assert named(lambda op: op.halts) == forbidden_when_static | {"JUMP", "JUMPI", "RETURNDATACOPY", "INVALID"}


def test_stack_opcodes_touch_nothing_but_the_stack() -> None:
    for op in OPCODES_TABLE:
        if op.is_stack:
            assert op.reads == op.writes == NONE
            assert not any((op.halts, op.ends, op.dynamic, op.pure))


def test_an_entry_cannot_be_changed() -> None:
    op: Opcode = BY_NAME["ADD"]
    with pytest.raises(AttributeError):
        op.gas = 0  # type: ignore[misc]
