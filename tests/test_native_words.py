"""The native code of every pure opcode, of division and of Keccak-256, against Python's integers and pycryptodome."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from random import Random

import pytest
from Crypto.Hash import keccak

from conftest import WHOLE
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.words import INTEGER_MEANINGS, MEANINGS, meanings_in
from fusevm.lab.fuzz.constants import EDGES, WORD, word

pytest.importorskip("llvmlite")

from llvmlite import ir

from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.emit.llvm_words import I256, LlvmWords, V
from fusevm.native.lang import exported, ptr, store, u64
from fusevm.native.runtime import division
from fusevm.native.runtime.keccak import keccak256, keccak256_word

PTR, I64, VOID = ir.PointerType(), ir.IntType(64), ir.VoidType()
ARITY = {name: BY_NAME[name].pops for name in MEANINGS}
SHARE = 1 if WHOLE else 4  # of the random words
PAIRS = 20_000 // SHARE
DIVISORS = (0, 1, 3, 10**6, 1 << 63, 10**18, (1 << 64) - 1, 1 << 64, (1 << 96) + 1, WORD)
CONSTANTS = (0, 1, 31, 255, 10**18, 1 << 64, WORD - 1, 1 << 255)

Row = tuple[int, ...]


def define_loop(module: ir.Module, symbol: str, name: str, fixed: dict[int, int] | None = None) -> None:
    """A function (arrays of operands, array of results, count) that applies an opcode's meaning to each row.

    Operands that are `fixed` are constants of the code and have no array.
    """
    fixed = fixed or {}
    free = [position for position in range(ARITY[name]) if position not in fixed]
    function = ir.Function(module, ir.FunctionType(VOID, [PTR] * (len(free) + 1) + [I64]), symbol)
    build = ir.IRBuilder(function.append_basic_block())
    entry, turn, after = build.block, function.append_basic_block(), function.append_basic_block()
    build.branch(turn)
    build.position_at_end(turn)
    index = build.phi(I64)
    words = LlvmWords(build, module)
    places = [build.gep(array, [index], source_etype=I256) for array in function.args[:-1]]
    operands: dict[int, V] = {position: words.const(value) for position, value in fixed.items()}
    for position, place in zip(free, places, strict=False):
        operands[position] = V(words, build.load(place, typ=I256, align=8))
    result = meanings_in(words)[name](*(operands[position] for position in range(ARITY[name])))
    build.store(result.value, places[-1], align=8)
    following = build.add(index, ir.Constant(I64, 1))
    index.add_incoming(ir.Constant(I64, 0), entry)
    index.add_incoming(following, build.block)
    build.cbranch(build.icmp_unsigned("<", following, function.args[-1]), turn, after)
    build.position_at_end(after)
    build.ret_void()


def packed(words: Iterable[int]) -> ctypes.Array[ctypes.c_char]:
    data = b"".join(each.to_bytes(32, "little") for each in words)
    return ctypes.create_string_buffer(data, len(data))


def apply(code: Loaded, symbol: str, rows: list[Row]) -> list[int]:
    columns = [packed(column) for column in zip(*rows, strict=True)]
    results = ctypes.create_string_buffer(32 * len(rows))
    pointers = [ctypes.c_void_p] * (len(columns) + 1)
    ctypes.CFUNCTYPE(None, *pointers, ctypes.c_uint64)(code.address(symbol))(*columns, results, len(rows))
    raw = results.raw
    return [int.from_bytes(raw[at : at + 32], "little") for at in range(0, len(raw), 32)]


def expect_meaning(code: Loaded, symbol: str, name: str, rows: list[Row], fixed: dict[int, int] | None = None) -> None:
    meaning, fixed = INTEGER_MEANINGS[name], fixed or {}
    for row, result in zip(rows, apply(code, symbol, rows), strict=True):
        free = iter(row)
        operands = [fixed[position] if position in fixed else next(free) for position in range(ARITY[name])]
        assert result == meaning(*operands), f"{name} {' '.join(map(hex, operands))}"


# -- values


LIMBS = (0, 1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, (1 << 64) - 1)


def limbs(rng: Random) -> int:
    """A word of one to four limbs, most of them where quotient estimates go wrong."""
    value = 0
    for _ in range(rng.randint(1, 4)):
        value = value << 64 | (rng.choice(LIMBS) if rng.random() < 0.8 else rng.getrandbits(rng.choice((16, 63, 64))))
    return value


def divisions(rng: Random, count: int) -> list[Row]:
    """Dividends and divisors; many dividends are a multiple of the divisor or next to one."""
    rows = []
    for _ in range(count):
        x, y = limbs(rng), limbs(rng)
        if y and rng.random() < 0.5:
            x = (x // y * y + rng.choice((-1, 0, 1, y - 1))) & WORD
        rows.append((x, y))
    return rows


def rows_of(name: str) -> list[Row]:
    rng = Random(f"words {name}")
    arity = ARITY[name]
    rows: list[Row] = [tuple(word(rng) for _ in range(arity)) for _ in range(PAIRS // 2)]
    rows += [tuple(limbs(rng) for _ in range(arity)) for _ in range(PAIRS // 2)]
    if arity == 2:
        rows += [(x, y) for x in EDGES for y in EDGES]
    return rows


@pytest.fixture(scope="module")
def opcodes() -> Loaded:
    module = ir.Module()
    for name in MEANINGS:
        define_loop(module, name, name)
    return Loaded(object_code(module))


def skip_unless(wanted: bool, has: bool, what: str) -> None:
    if wanted and not has:
        pytest.skip(f"needs a processor that {what}")


@pytest.fixture(scope="module", params=[True, False], ids=["two-carries", "plain-rows"])
def rows_by(request: pytest.FixtureRequest) -> bool:
    """For processors that add along two flags, and for others."""
    skip_unless(request.param, division.TWO_CARRIES, "adds along two flags")
    return bool(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["hardware-divider", "reciprocals"])
def dividers(request: pytest.FixtureRequest) -> Loaded:
    """The code that divides, by any divisor and by constants, for processors with and without a fast divider."""
    skip_unless(request.param, division.FAST_DIVIDER, "divides 128 by 64 bits quickly")
    module = ir.Module()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "FAST_DIVIDER", request.param)
        patch.setattr(division, "TWO_CARRIES", request.param and division.TWO_CARRIES)
        for name in ("DIV", "MOD", "ADDMOD", "MULMOD"):
            define_loop(module, name, name)
        for name in ("DIV", "SDIV", "MOD", "SMOD"):
            for divisor in DIVISORS:
                define_loop(module, f"{name} {divisor}", name, {1: divisor})
    return Loaded(object_code(module))


# -- opcodes


@pytest.mark.parametrize("name", MEANINGS)
def test_native_code_of_an_opcode_means_what_integers_mean(opcodes: Loaded, name: str) -> None:
    expect_meaning(opcodes, name, name, rows_of(name))


@pytest.mark.parametrize(("name", "most"), [("SHL", 257), ("SHR", 257), ("SAR", 257), ("BYTE", 33), ("SIGNEXTEND", 33)])
def test_every_count_finds_its_limb(opcodes: Loaded, name: str, most: int) -> None:
    rng = Random(f"limbs {name}")
    words = [0, WORD, 1, 1 << 255, int.from_bytes(range(1, 33), "big"), WORD ^ int.from_bytes(range(32), "big")]
    words += [rng.getrandbits(256) for _ in range(20)]
    counts = [*range(most + 1), *(1 << bit for bit in range(6, 256)), *((1 << bit) + 3 for bit in range(6, 256))]
    expect_meaning(opcodes, name, name, [(count, each) for count in counts for each in words])


def test_native_code_with_a_constant_operand_means_what_integers_mean() -> None:
    module = ir.Module()
    cases = [
        (f"{name}.{position}.{value}", name, {position: value})
        for name in MEANINGS
        if ARITY[name] > 1
        for position in range(ARITY[name])
        for value in Random(f"{name} {position}").sample(CONSTANTS, 2)
    ]
    for symbol, name, fixed in cases:
        define_loop(module, symbol, name, fixed)
    code = Loaded(object_code(module))
    rng = Random("constants")
    for symbol, name, fixed in cases:
        rows = [tuple(word(rng) for _ in range(ARITY[name] - 1)) for _ in range(500)]
        expect_meaning(code, symbol, name, rows, fixed)


@pytest.mark.parametrize("name", MEANINGS)
def test_constant_operands_fold_without_emitting_code(name: str) -> None:
    function = ir.Function(ir.Module(), ir.FunctionType(VOID, []), "f")
    build = ir.IRBuilder(function.append_basic_block())
    words = LlvmWords(build, function.module)
    rng = Random(f"folding {name}")
    for _ in range(200):
        operands = [word(rng) for _ in range(ARITY[name])]
        folded = meanings_in(words)[name](*map(words.const, operands))
        assert folded.known == INTEGER_MEANINGS[name](*operands)
    assert not build.block.instructions


def test_wrapping_emits_one_instruction() -> None:
    function = ir.Function(ir.Module(), ir.FunctionType(VOID, [I256, I256]), "f")
    build = ir.IRBuilder(function.append_basic_block())
    words = LlvmWords(build, function.module)
    meanings_in(words)["ADD"](*(V(words, argument) for argument in function.args))
    assert [instruction.opname for instruction in build.block.instructions] == ["add"]


# -- moduli that are literals


MODULI = (  # of curves; the least and the greatest of four limbs; reciprocals that are nothing but ones, or next to it
    # (by 2^255 + 3, the product of that less one and of 2^256 - 2 has an estimate that is too low by two)
    2**256 - 2**32 - 977, 2**256 - 2**224 + 2**192 + 2**96 - 1, 2**255 - 19,
    0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47,
    1 << 192, (1 << 192) + 1, (1 << 193) - 1, 1 << 255, (1 << 255) + 1, (1 << 255) + 3,
    WORD, WORD - 1,
    # next to a power of two by one limb, and by the first number that has two
    2**256 - 2**64 + 1, 2**256 - 2**64, 2**256 - 2**64 - 1, 2**255 - 2**63 + 1, 2**255 - 2**63, 2**193 - 2, 2**193 - 3,
)  # fmt: skip


SHORT = (0, 1, 2, 1 << 32, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, 1 << 64)  # and the first number that is longer


def test_products_modulo_a_literal_mean_what_integers_mean(rows_by: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ir.Module()
    monkeypatch.setattr(division, "TWO_CARRIES", rows_by)
    for m in MODULI:
        define_loop(module, f"product {m}", "MULMOD", {2: m})
    code, rng = Loaded(object_code(module)), Random("literal moduli")
    for m in MODULI:
        near = [(m * k + by) & WORD for k in (0, 1, 2) for by in (-2, -1, 0, 1, 2)]
        rows = [(x, y) for x in (*near, WORD, WORD - 1) for y in (*near, WORD, WORD - 1)]
        rows += [(limbs(rng), limbs(rng)) for _ in range(2_000)]
        rows += [(rng.getrandbits(256) % m, rng.getrandbits(256) % m) for _ in range(2_000)]
        rows += [(m - below & WORD, y) for below in (1, 2, 1 << 64, 1 << 128, 1 << 191) for y in SHORT]
        rows += [(y, rng.getrandbits(256)) for y in SHORT for _ in range(200)]
        expect_meaning(code, f"product {m}", "MULMOD", rows, {2: m})


def test_a_literal_modulus_has_one_function_in_a_module() -> None:
    module = ir.Module()
    for number in range(3):
        define_loop(module, f"loop {number}", "MULMOD", {2: MODULI[0]})
    assert sum(each.name.startswith("mulmod_") and not each.is_declaration for each in module.functions) == 1


# -- division


@pytest.mark.parametrize("name", ["DIV", "MOD"])
def test_division_is_exact_at_normalisation_and_estimate_edges(dividers: Loaded, name: str) -> None:
    expect_meaning(dividers, name, name, divisions(Random("division"), 30_000 // SHARE))


@pytest.mark.parametrize("name", ["ADDMOD", "MULMOD"])
def test_modular_sums_and_products_do_not_wrap(dividers: Loaded, name: str) -> None:
    rng = Random("modular")
    rows: list[Row] = [(limbs(rng), limbs(rng), limbs(rng)) for _ in range(15_000 // SHARE)]
    rows += [(x % m if m else x, y % m if m else y, m) for x, y, m in rows]
    rows += [(x, y, m) for m in (1, 3, 1 << 64, (1 << 128) + 1, WORD) for x in EDGES for y in EDGES]
    rows += [(x, y, limbs(rng) >> rng.choice((128, 192)) or 1) for x, y, _ in rows[: 15_000 // SHARE]]
    expect_meaning(dividers, name, name, rows)


def test_every_divisor_of_one_limb_has_an_exact_reciprocal(dividers: Loaded) -> None:
    rng = Random("reciprocals")
    divisors = [1 << bit for bit in range(64)] + [(1 << bit) - 1 for bit in range(1, 65)]
    divisors += [rng.getrandbits(64) | 1 for _ in range(2_000)]
    rows = [(x, d) for d in divisors for x in (WORD, (d << 64) - 1, d << 64, (d << 128) - 1, rng.getrandbits(128))]
    expect_meaning(dividers, "DIV", "DIV", rows)
    expect_meaning(dividers, "MOD", "MOD", rows)


@pytest.mark.parametrize("name", ["DIV", "SDIV", "MOD", "SMOD"])
def test_division_by_a_constant_is_exact(dividers: Loaded, name: str) -> None:
    rng = Random("constant divisors")
    for divisor in DIVISORS:
        near = [(limbs(rng) * divisor + rng.choice((-1, 0, 1))) & WORD for _ in range(500)]
        rows = [(x,) for x in (*EDGES, *near, *(limbs(rng) for _ in range(1_000)))]
        expect_meaning(dividers, f"{name} {divisor}", name, rows, {1: divisor})


def test_powers_of_long_exponents_and_even_bases(opcodes: Loaded) -> None:
    rng = Random("powers")
    bases = [2, 10, 256, 1 << 128, 1 << 255, 3 << 200, WORD, rng.getrandbits(256) | 1]
    exponents = [0, 1, 2, 31, 32, 127, 128, 255, 256, 257, 1 << 64, 1 << 255, WORD, rng.getrandbits(256)]
    expect_meaning(opcodes, "EXP", "EXP", [(x, n) for x in bases for n in exponents])


# -- Keccak-256


@exported
def hash_to_word(data: ptr, size: u64, out: ptr) -> None:
    store(out, 0, keccak256_word(data, size))


@pytest.fixture(scope="module")
def hashes() -> Loaded:
    module = ir.Module()
    for function in (keccak256, hash_to_word):
        function.define(module)  # type: ignore[attr-defined]
    return Loaded(object_code(module))


def native_hash(code: Loaded, data: bytes, function: Callable[..., None] = keccak256) -> bytes:
    out = ctypes.create_string_buffer(32)
    code.exported(function)(data, len(data), out)
    return out.raw


@pytest.mark.parametrize("sizes", [range(301), (1_087, 1_088, 1_089, 4_096, 100_000)], ids=["short", "long"])
def test_keccak_agrees_with_pycryptodome(hashes: Loaded, sizes: Iterable[int]) -> None:
    rng = Random("keccak")
    for size in sizes:
        data = rng.randbytes(size)
        assert native_hash(hashes, data) == keccak.new(data=data, digest_bits=256).digest(), size


def test_keccak_reads_from_any_alignment(hashes: Loaded) -> None:
    data = bytes(range(200))
    room = ctypes.create_string_buffer(data, len(data))
    call = hashes.exported(keccak256)
    for start in range(8):
        out = ctypes.create_string_buffer(32)
        call(ctypes.addressof(room) + start, 150, out)
        assert out.raw == keccak.new(data=data[start : start + 150], digest_bits=256).digest()


def test_keccak_as_a_word_has_the_first_byte_highest(hashes: Loaded) -> None:
    assert native_hash(hashes, b"abc", hash_to_word) == native_hash(hashes, b"abc")[::-1]
