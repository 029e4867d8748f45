"""Gas formulas: what the Yellow Paper and the EIPs say, the same natively as in Python, and each price written once."""

from __future__ import annotations

import ast
import ctypes
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from llvmlite import ir

from fusevm.chain.environment import Block, Context
from fusevm.evm import gas
from fusevm.evm.forks import Fork, Rules, rules_of
from fusevm.evm.gas import (
    call_cost,
    copy_cost,
    creation_cost,
    delegation_cost,
    deposit_cost,
    exponent_cost,
    growth_cost,
    identity_cost,
    keccak_cost,
    log_cost,
    most_given,
    selfdestruct_cost,
    sstore_cost,
    sstore_is_starved,
    sstore_refund,
)
from fusevm.evm.opcodes import BY_NAME, OPCODES_TABLE, Immediate, Opcode, arranged_by_immediate, copying
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.host.environment import write_environment
from fusevm.native.host.views import view_at
from fusevm.native.lang import Native, exported, load, ptr, u64, u128, u256
from fusevm.native.layout import Engine

SOURCES = Path(gas.__file__).parents[1]

# -- the same text, natively ------------------------------------------------------------------------------------------


@exported
def native_sstore_cost(engine: Engine, words: ptr, cold: u64) -> u64:
    return sstore_cost(engine, load(u256, words), load(u256, words, 32), load(u256, words, 64), cold)


@exported
def native_sstore_refund(engine: Engine, words: ptr) -> u64:
    return sstore_refund(engine, load(u256, words), load(u256, words, 32), load(u256, words, 64))


@exported
def native_starved(engine: Engine, left: u64) -> u64:
    return u64(sstore_is_starved(engine, left))


@exported
def native_growth(before: u64, after: u64) -> u64:
    return u64(growth_cost(u128(before), u128(after)))


@exported
def native_linear(engine: Engine, kind: u64, size: u64) -> u64:
    if kind == 0:
        return keccak_cost(engine, size)
    if kind == 1:
        return copy_cost(engine, size)
    if kind == 2:
        return log_cost(engine, size)
    if kind == 3:
        return deposit_cost(engine, size)
    if kind == 4:
        return exponent_cost(engine, size)
    if kind == 5:
        return identity_cost(size)
    return most_given(engine, size)


@exported
def native_flagged(engine: Engine, kind: u64, one: u64, other: u64) -> u64:
    if kind == 0:
        return call_cost(engine, one, other)
    if kind == 1:
        return selfdestruct_cost(engine, one, other)
    if kind == 2:
        return delegation_cost(engine, one)
    return creation_cost(engine, one, other)


LINEAR = (
    gas.keccak_cost,
    gas.copy_cost,
    gas.log_cost,
    gas.deposit_cost,
    gas.exponent_cost,
    lambda _, size: gas.identity_cost(size),
    gas.most_given,
)
FLAGGED = (
    gas.call_cost,
    gas.selfdestruct_cost,
    lambda rules, one, _: gas.delegation_cost(rules, one),
    gas.creation_cost,
)
WORDS = (0, 0, 1, 2, 1 << 255, (1 << 256) - 1)
SIZES = (0, 1, 31, 32, 33, 1_000, 1 << 20, 1 << 30)


class Tables:
    """As much of the native tables as the rules need."""

    def __init__(self) -> None:
        self.room = ctypes.create_string_buffer(Engine.byte_size())
        self.address = ctypes.addressof(self.room)
        self.shared = view_at(Engine, self.address)


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    module = ir.Module("gas")
    functions = (
        native_sstore_cost, native_sstore_refund, native_starved, native_growth, native_linear, native_flagged,
    )  # fmt: skip
    for function in functions:
        assert isinstance(function, Native)
        function.define(module)
    return Loaded(object_code(module))


def engine_of(fork: Fork) -> Tables:
    tables = Tables()
    write_environment(tables, Context(fork, Block()))  # type: ignore[arg-type]
    return tables


@pytest.mark.parametrize("fork", Fork)
def test_storage_costs_and_refunds_natively_what_python_says(loaded: Loaded, fork: Fork) -> None:
    rules, tables = rules_of(fork), engine_of(fork)
    cost = loaded.exported(native_sstore_cost)
    refund = loaded.exported(native_sstore_refund)
    starved = loaded.exported(native_starved)
    for original in WORDS:
        for current in WORDS:
            for new in WORDS:
                words = b"".join(each.to_bytes(32, "little") for each in (original, current, new))
                for cold in (0, 1):
                    expected = gas.sstore_cost(rules, original, current, new, cold)
                    assert cost(tables.address, words, cold) == expected
                signed = ctypes.c_int64(refund(tables.address, words)).value
                assert signed == gas.sstore_refund(rules, original, current, new)
    for left in (0, 2_299, 2_300, 2_301):
        assert starved(tables.address, left) == int(gas.sstore_is_starved(rules, left))


@pytest.mark.parametrize("fork", Fork)
def test_sizes_and_flags_cost_natively_what_python_says(loaded: Loaded, fork: Fork) -> None:
    rules, tables, rng = rules_of(fork), engine_of(fork), random.Random(fork)
    linear = loaded.exported(native_linear)
    flagged = loaded.exported(native_flagged)
    for size in (*SIZES, *(rng.randrange(1 << 32) for _ in range(20))):
        for kind, formula in enumerate(LINEAR):
            assert linear(tables.address, kind, size) == formula(rules, size), formula
        for flag in (0, 1):
            for kind, formula in enumerate(FLAGGED):
                other = size if formula is gas.creation_cost else size & 1
                assert flagged(tables.address, kind, flag, other) == formula(rules, flag, other), formula


def test_memory_growth_is_exact_beyond_64_bits_of_squares(loaded: Loaded) -> None:
    growth = loaded.exported(native_growth)
    rng = random.Random(1)
    for _ in range(200):
        before, after = sorted(rng.randrange(1 << rng.choice((4, 12, 24, 36))) for _ in range(2))
        assert growth(before, after) == gas.growth_cost(before, after)


@pytest.mark.parametrize("fork", Fork)
def test_native_code_has_every_rule_of_the_fork(fork: Fork) -> None:
    rules, tables = rules_of(fork), engine_of(fork)
    assert {name: getattr(tables.shared, name) for name in vars(rules)} == {
        name: int(value) for name, value in vars(rules).items()
    }


# -- what they say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "cost"), [(0, 0), (1, 3), (22, 66), (23, 70), (724, 3_195), (32 << 10, 2_195_456)])
def test_memory_is_linear_then_quadratic(words: int, cost: int) -> None:
    assert gas.memory_cost(words) == cost


def test_all_but_one_64th_can_be_given_since_tangerine_whistle() -> None:
    assert gas.most_given(rules_of(Fork.HOMESTEAD), 6_400) == 6_400
    assert gas.most_given(rules_of(Fork.TANGERINE_WHISTLE), 6_400) == 6_300
    assert gas.most_given(rules_of(Fork.OSAKA), 63) == 63


@pytest.mark.parametrize(
    ("fork", "size", "iterations", "cost"),
    [
        (Fork.BYZANTIUM, 64, 255, 52_224),  # EIP-198
        (Fork.BERLIN, 64, 255, 5_440),  # EIP-2565
        (Fork.BERLIN, 1, 1, 200),
        (Fork.OSAKA, 32, 255, 4_080),  # EIP-7883
        (Fork.OSAKA, 64, 255, 32_640),
        (Fork.OSAKA, 1, 1, 500),
    ],
)
def test_modexp_by_fork(fork: Fork, size: int, iterations: int, cost: int) -> None:
    assert gas.modexp_cost(rules_of(fork), size, iterations) == cost


# -- the table --------------------------------------------------------------------------------------------------------


def test_every_price_per_unit_names_a_rule_and_an_operand() -> None:
    for op in OPCODES_TABLE:
        for price in op.prices:
            assert isinstance(getattr(Rules(), price.rule), int)
            assert price.operand < op.pops
            assert op.dynamic


def test_what_touches_memory_says_where() -> None:
    """The effects and the places of an opcode agree."""
    for op in OPCODES_TABLE:
        assert bool(op.reads_at) == bool(op.reads & BY_NAME["MLOAD"].reads), op.name
        assert bool(op.writes_at) == bool(op.writes & BY_NAME["MSTORE8"].writes & ~BY_NAME["MLOAD"].writes), op.name
        for span in op.touches:
            assert span.offset < op.pops
            assert span.size < op.pops


def test_warm_access_is_the_price_of_opcodes_that_look_at_accounts() -> None:
    for name in ("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH", "SLOAD", "CALL", "STATICCALL"):
        assert BY_NAME[name].gas_at(Fork.BERLIN) == rules_of(Fork.BERLIN).warm_access


def test_only_pushes_carry_words() -> None:
    assert {op.name for op in OPCODES_TABLE if op.carries is Immediate.WORD} == {f"PUSH{n}" for n in range(33)}
    assert all(op.immediate == 0 for op in OPCODES_TABLE if op.carries is Immediate.NONE)


def test_an_immediate_that_would_hide_a_jumpdest_is_refused() -> None:
    with pytest.raises(ValueError, match="DEEP: 0x5b cannot be an immediate"):
        arranged_by_immediate(Opcode(0xE6, "DEEP", 0, 1, 3), lambda op, byte: copying(op, byte + 1))


# -- written once -----------------------------------------------------------------------------------------------------

PRICES = {2_100, 2_300, 2_600, 2_900, 4_800, 9_000, 15_000, 20_000, 21_000, 24_000, 25_000, 32_000}
TABLES = {"evm/forks.py", "evm/opcodes.py", "evm/gas.py"}
# Limits of work; a code of JSON-RPC.
NOT_PRICES = {
    ("explanation/folds.py", 20_000),
    ("explanation/interface.py", 20_000),
    ("explanation/machine.py", 20_000),
    ("rpc/errors.py", 32_000),
}


@cache
def numbers_and_names() -> tuple[list[tuple[str, int]], list[str]]:
    """Every integer with its file, and every name that is assigned; trees, millions of objects, are not kept."""
    numbers: list[tuple[str, int]] = []
    names: list[str] = []
    for path in sorted(SOURCES.rglob("*.py")):
        file = path.relative_to(SOURCES).as_posix()
        if not file.startswith("lab/"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and type(node.value) is int:
                    numbers.append((file, node.value))
                elif isinstance(node, ast.Assign):
                    names += [each.id for each in node.targets if isinstance(each, ast.Name)]
    return numbers, names


def test_no_price_stands_outside_the_tables() -> None:
    numbers, _ = numbers_and_names()
    assert {(file, number) for file, number in numbers if file not in TABLES and number in PRICES} == NOT_PRICES


def test_a_limit_is_defined_once() -> None:
    limits = ("STACK_LIMIT", "CALL_DEPTH_LIMIT", "MAX_NONCE", "BLOB_GAS")
    _, names = numbers_and_names()
    assert Counter(name for name in names if name in limits) == dict.fromkeys(limits, 1)
