"""Precompiled contracts on native arithmetic: the public vectors, and the same answers as the readable ones."""

from __future__ import annotations

import ctypes
import json
import random
import subprocess
import sys
import tarfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from llvmlite import ir

from fusevm import EVM
from fusevm.chain.outcome import TimeLimit
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.precompiles import TABLE, Precompile, PrecompileFailure, bn254, bn254_pairing
from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as P
from fusevm.native.emit import crypto as library
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.host import callbacks
from fusevm.native.host import modexp as modular
from fusevm.native.host import precompiles as contracts
from fusevm.native.host.precompiles import DIRECT, NATIVE
from fusevm.native.lang import exported, load, ptr, store, u64, u256
from fusevm.native.runtime.crypto.bn254_field import fp_inverse
from programs import HERE
from test_precompiles import BN254_ORDER, OFF_SUBGROUP, REASONS, VECTORS, g2_multiple, g2_words, modexp_input, words

BY_NAME = {contract.name: contract for contract in TABLE}
G1 = words(1, 2)
TWIST_COFACTOR = 2 * P - BN254_ORDER
SMALL_ORDER = 10_069  # the least factor of the cofactor

Answer = bytes | type[PrecompileFailure]


def native(name: str, data: bytes, fork: Fork = Fork.OSAKA) -> Answer:
    return answer(NATIVE[BY_NAME[name].address][1], data, fork)


def readable(name: str, data: bytes, fork: Fork = Fork.OSAKA) -> Answer:
    return answer(BY_NAME[name].run, data, fork)


def answer(run: Any, data: bytes, fork: Fork) -> Answer:
    try:
        output: bytes = run(data, fork)
    except PrecompileFailure:
        return PrecompileFailure
    return output


# -- the public vectors


@pytest.fixture(scope="module")
def vectors(fixtures_dir: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    with tarfile.open(fixtures_dir / "precompiles.tar.xz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                found[Path(member.name).stem] = json.load(file)
    return found


NATIVE_FILES = [file for file, (name, _) in VECTORS.items() if BY_NAME[name].address in NATIVE]


@pytest.mark.parametrize("file", NATIVE_FILES)
def test_public_vectors_have_their_output_natively(file: str, vectors: dict[str, list[dict[str, Any]]]) -> None:
    name, fork = VECTORS[file]
    for vector in vectors[file]:
        data = bytes.fromhex(vector["Input"])
        if "Expected" in vector:
            output = native(name, data, fork)
            assert isinstance(output, bytes)
            assert output.hex() == vector["Expected"], vector["Name"]
        else:
            with pytest.raises(PrecompileFailure, match=REASONS[vector["ExpectedError"]]):
                NATIVE[BY_NAME[name].address][1](data, fork)


# -- bn254


@pytest.mark.parametrize("data", [(1, 1), (1, 2, 1, 1, 1, 1), (P, 0), (1, 2, 0, P, 0, 0)])
def test_what_is_wrong_with_a_point_of_bn254_is_said_in_the_reference_tiers_words(data: tuple[int, ...]) -> None:
    names = ("bn254_add", "bn254_mul", "bn254_pairing") if len(data) == 2 else ("bn254_pairing",)
    for name in names:
        said = []
        for run in (BY_NAME[name].run, NATIVE[BY_NAME[name].address][1]):
            with pytest.raises(PrecompileFailure) as failure:
                run(words(*data).ljust(192, b"\0"), LATEST)
            said.append(str(failure.value))
        assert said[0] == said[1]


@exported
def inverses(numbers: ptr, count: u64) -> None:
    while count != 0:
        store(numbers, 0, fp_inverse(load(u256, numbers)))
        numbers += 32
        count -= 1


def test_native_inverses_are_inverses() -> None:
    rng = random.Random(13)
    numbers = [*range(1, 300), *(P - k for k in range(1, 300)), *(1 << k for k in range(254) if 1 << k < P)]
    numbers += [(1 << k) - 1 for k in range(1, 254)] + [P >> k for k in range(1, 250)]
    numbers += [rng.randrange(1, P) for _ in range(2_000)]
    module = ir.Module()
    inverses.define(module)  # type: ignore[attr-defined]
    room = ctypes.create_string_buffer(b"".join(each.to_bytes(32, "little") for each in numbers), 32 * len(numbers))
    loaded = Loaded(object_code(module))
    loaded.exported(inverses)(room, len(numbers))
    for at, number in enumerate(numbers):  # x = a·2^256, and the answer a^-1·2^256
        inverse = int.from_bytes(room.raw[32 * at : 32 * at + 32], "little")
        assert inverse == pow(number, -1, P) * (1 << 512) % P, number


@cache
def g1_points() -> list[bytes]:
    rng = random.Random(1)
    points = [bn254.mul(G1 + words(rng.randrange(BN254_ORDER)), Fork.OSAKA) for _ in range(12)]
    return [
        G1,
        *points,
        *(point[:32] + words(P - int.from_bytes(point[32:], "big")) for point in points[:3]),
        bytes(64),
    ]


BAD_G1 = [words(1, 1), words(0, 1), words(P, 0), words(0, P), words(1 + P, 2), words(1, 2 + P), words(2**256 - 1, 2)]


def test_native_addition_is_the_readable_one_for_all_pairs_of_points() -> None:
    points = [*g1_points(), *BAD_G1]
    for left in points:
        for right in points:
            assert native("bn254_add", left + right) == readable("bn254_add", left + right), (left.hex(), right.hex())


def test_native_multiplication_is_the_readable_one() -> None:
    rng = random.Random(2)
    near = [0, 1, 2, 3, BN254_ORDER - 1, BN254_ORDER, BN254_ORDER + 1, 2 * BN254_ORDER, P, 2**255, 2**256 - 1]
    for point in [*g1_points(), *BAD_G1]:
        for scalar in [*near, rng.getrandbits(256), rng.getrandbits(128)]:
            data = point + words(scalar)
            assert native("bn254_mul", data) == readable("bn254_mul", data), (point.hex(), scalar)


def test_native_multiplication_agrees_with_another_implementation() -> None:
    from py_ecc import optimized_bn128 as peer

    rng = random.Random(3)
    for _ in range(30):
        scalar = rng.getrandbits(256)
        x, y = peer.normalize(peer.multiply(peer.G1, scalar))
        assert native("bn254_mul", G1 + words(scalar)) == words(int(x), int(y))


@pytest.mark.parametrize("name", ["bn254_add", "bn254_mul"])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 63, 64, 65, 95, 96, 97, 127, 128, 129, 200])
def test_native_additions_read_short_and_long_inputs_alike(name: str, size: int) -> None:
    data = (G1 + G1 + bytes(100))[:size]
    assert native(name, data) == readable(name, data)


def twist_points(seed: int, count: int) -> list[Any]:
    """Points of the whole twist, hardly ever of the subgroup: y² = x³ + 3 / ξ solved for random x."""

    def root(number: int) -> int | None:
        found = pow(number, (P + 1) // 4, P)
        return found if found * found % P == number % P else None

    rng, points = random.Random(seed), []
    while len(points) < count:
        x = rng.randrange(P), rng.randrange(P)
        square = bn254_pairing._mul2(bn254_pairing._mul2(x, x), x)
        a, b = ((s + t) % P for s, t in zip(square, bn254_pairing._TWIST_B, strict=True))
        norm = root(a * a + b * b)
        if norm is None:
            continue
        for half in ((a + norm) * pow(2, -1, P), (a - norm) * pow(2, -1, P)):
            real = root(half % P)
            if real:
                points.append((x, (real, b * pow(2 * real, -1, P) % P)))
                break
    return points


def twist_multiple(point: Any, scalar: int) -> Any:
    total = None
    for bit in bin(scalar)[2:]:
        total = bn254_pairing._sum(total, total)
        if bit == "1":
            total = bn254_pairing._sum(total, point)
    return total


FAR = """
import ctypes, sys
from fusevm.native.emit import crypto
from fusevm.native.emit.jit import Loaded

code = crypto.library(sys.argv[1]).code
libc, size, flags = ctypes.CDLL(None), 8 << 30, 0x4022  # private, anonymous, nothing reserved
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
reserved = libc.mmap(None, size, 0, flags, -1, 0)
while libc.mmap(None, 4096, 0, flags, -1, 0) >= reserved:
    pass  # no other hole is left above
libc.munmap(reserved + size - (1 << 20), int(sys.argv[2]) * 4096)
Loaded(code)
print("loaded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
@pytest.mark.parametrize("family", library.FAMILIES)
def test_native_arithmetic_is_loaded_where_its_sections_lie_far_apart(family: str) -> None:
    for pages in (1, 3, 8):
        done = subprocess.run(
            [sys.executable, "-c", FAR, family, str(pages)], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "loaded\n", done.stderr


def test_native_pairing_agrees_with_the_readable_one_on_random_pairs() -> None:
    rng = random.Random(4)
    for count in (0, 1, 2, 3, 5):
        scalars = [(rng.randrange(1, BN254_ORDER), rng.randrange(1, BN254_ORDER)) for _ in range(count)]
        pairs = [bn254.mul(G1 + words(a), Fork.OSAKA) + g2_multiple(b) for a, b in scalars]
        closing = -sum(a * b for a, b in scalars) % BN254_ORDER
        last = bn254.mul(G1 + words(closing), Fork.OSAKA) + g2_multiple(1)
        for data in (b"".join(pairs), b"".join([*pairs, last])):
            assert native("bn254_pairing", data) == readable("bn254_pairing", data)
        assert native("bn254_pairing", b"".join([*pairs, last])) == words(1)


def test_native_pairing_of_a_multiple_is_one_for_the_groups_order_alone() -> None:
    q = g2_multiple(1)
    assert native("bn254_pairing", bn254.mul(G1 + words(BN254_ORDER), Fork.OSAKA) + q) == words(1)
    for scalar in (1, 2, 3, BN254_ORDER - 1):
        assert native("bn254_pairing", bn254.mul(G1 + words(scalar), Fork.OSAKA) + q) == words(0)


def test_native_pairing_with_infinities_counts_them_as_one() -> None:
    q = g2_multiple(5)
    closing = G1 + q + words(1, P - 2) + q
    for data in (bytes(192), G1 + bytes(128), bytes(64) + q, bytes(64) + q + closing + G1 + bytes(128)):
        assert native("bn254_pairing", data) == readable("bn254_pairing", data) == words(1)
    assert native("bn254_pairing", bytes(192) + G1 + q) == words(0)


def test_native_pairing_of_more_pairs_than_fit_in_one_part() -> None:
    q, minus = g2_multiple(7), words(1, P - 2)
    half = contracts._PAIRS // 2
    for count in (half, half + 1, 3 * half):
        assert native("bn254_pairing", (G1 + q + minus + q) * count) == words(1)
        assert native("bn254_pairing", (G1 + q + minus + q) * count + G1 + q) == words(0)
        assert native("bn254_pairing", (G1 + q + minus + q) * count + words(1, 1) + q) is PrecompileFailure


def test_native_pairing_refuses_what_the_readable_one_refuses() -> None:
    q = g2_multiple(3)
    spoilt = [words(*[int.from_bytes(q[start : start + 32], "big") + P * (start == at) for start in range(0, 128, 32)])
              for at in range(0, 128, 32)]  # fmt: skip
    flipped = [q[:at] + bytes([q[at] ^ 1]) + q[at + 1 :] for at in (31, 63, 95, 127)]
    for g2 in [*spoilt, *flipped, words(0, 0, 0, 1), g2_words(OFF_SUBGROUP)]:
        for g1 in (G1, bytes(64)):
            assert native("bn254_pairing", g1 + g2) is readable("bn254_pairing", g1 + g2) is PrecompileFailure
    for g1 in BAD_G1:
        assert native("bn254_pairing", g1 + q) is readable("bn254_pairing", g1 + q) is PrecompileFailure
    for size in (1, 191, 193):
        assert native("bn254_pairing", bytes(size)) is PrecompileFailure


def test_native_subgroup_check_refuses_points_of_every_other_order() -> None:
    """Among them points of a small order, whose multiples meet infinity and ±Q on the way."""
    assert TWIST_COFACTOR % SMALL_ORDER == 0
    for number, point in enumerate(twist_points(5, 6)):
        candidates = [point]
        if number < 3:
            candidates.append(twist_multiple(point, BN254_ORDER))
            small = twist_multiple(point, BN254_ORDER * (TWIST_COFACTOR // SMALL_ORDER))
            assert small is not None
            assert twist_multiple(small, SMALL_ORDER) is None
            candidates += [twist_multiple(small, k) for k in (1, 2, 3, 5, 17)]
        for candidate in candidates:
            assert native("bn254_pairing", G1 + g2_words(candidate)) is PrecompileFailure
        assert native("bn254_pairing", G1 + g2_words(twist_multiple(point, TWIST_COFACTOR))) == words(0)


# -- modular exponentiation


def number_of(rng: random.Random, size: int) -> bytes:
    """Random, or with long rows of ones and zeros, where carries and quotients go wrong if they do."""
    kind = rng.randrange(8)
    if kind == 0:
        return b"\xff" * size
    if kind == 1:
        return (b"\x80" + bytes(size))[:size]
    if kind == 2:
        return bytes(size - size // 2) + rng.randbytes(size // 2)
    if kind == 3:
        return b"\xff" * (size // 2) + bytes(size - size // 2)
    if kind == 4:
        return (b"\xff" * size + rng.randbytes(1))[1:]
    if kind == 5:
        return (bytes(size) + b"\1\0")[-size:] if size else b""
    return rng.randbytes(size)


def differs(base: bytes, exponent: bytes, modulus: bytes) -> bool:
    b, e, m = (int.from_bytes(part, "big") for part in (base, exponent, modulus))
    expected = (pow(b, e, m) if m else 0).to_bytes(len(modulus), "big")
    return native("modexp", modexp_input(base, exponent, modulus), Fork.BERLIN) != expected


SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 64, 65, 100, 255, 256, 257)


def test_native_modexp_is_pythons_power_on_thousands_of_shapes() -> None:
    rng = random.Random(6)
    for _ in range(6_000):
        size = rng.choice(SIZES)
        parts = rng.choice([0, 1, size, size + 1, 2 * size]), rng.choice([0, 1, 2, 5, 6, 8, 9, 33, 65, 70]), size
        base, exponent, modulus = (number_of(rng, each) for each in parts)
        assert not differs(base, exponent, modulus), (base.hex(), exponent.hex(), modulus.hex())


def test_native_modexp_of_long_moduli_is_pythons_power() -> None:
    rng = random.Random(7)
    for size in (300, 511, 512, 1024, 2048, 6_136, 6_144, 6_152, 10_000):
        for exponent in (b"\3", b"\xff\xfe", number_of(rng, 40 if size < 600 else 7 if size < 6_000 else 3)):
            base, modulus = number_of(rng, size + rng.choice([-9, 0, 100])), rng.randbytes(size)
            assert not differs(base, exponent, modulus), (size, exponent.hex())


@pytest.mark.parametrize(
    "setting", [{"_LARGE": 3}, {"_LARGE": 3, "_PART": 10}, {"_PART": 10}, {"_WINDOW_PART": 3, "_PART": 0}]
)
def test_native_modexp_in_parts_of_any_size_is_pythons_power(
    setting: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in setting.items():
        monkeypatch.setattr(modular, name, value)
    monkeypatch.setattr(modular, "MAX_LIMBS", 0)  # nothing is done in one call
    rng = random.Random(8)
    for _ in range(400):
        size = rng.choice([each for each in SIZES if each])
        base, exponent, modulus = number_of(rng, rng.choice([size, 2 * size])), number_of(rng, 9), number_of(rng, size)
        assert not differs(base, exponent, modulus), (base.hex(), exponent.hex(), modulus.hex())


@pytest.mark.parametrize("cut", [0, 31, 95, 96, 97, 100, 104, 105, 109])
def test_native_modexp_reads_a_short_input_as_zero_padded(cut: int) -> None:
    data = modexp_input(b"\5" * 8, b"\7", b"\x0b" * 5)[:cut]
    assert native("modexp", data) == readable("modexp", data)


def test_native_modexp_fails_past_1024_bytes_from_osaka() -> None:
    data = modexp_input(b"\5", b"\3", b"\7" * 1_025)
    assert native("modexp", data, Fork.OSAKA) is PrecompileFailure
    assert isinstance(native("modexp", data, Fork.PRAGUE), bytes)


# -- BLAKE2


def test_native_compression_is_the_readable_one() -> None:
    rng = random.Random(9)
    for rounds in [*range(25), 100, 999]:
        for flag in (b"\0", b"\1"):
            data = rounds.to_bytes(4, "big") + rng.randbytes(208) + flag
            assert native("blake2f", data) == readable("blake2f", data)


@pytest.mark.parametrize("part", [1, 3, 10, 11])
def test_native_compression_in_parts_is_the_readable_one(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "_ROUNDS", part)
    data = (47).to_bytes(4, "big") + random.Random(10).randbytes(208) + b"\1"
    assert native("blake2f", data) == readable("blake2f", data)


@pytest.mark.parametrize("data", [bytes(212), bytes(214), bytes(212) + b"\2"])
def test_native_compression_refuses_what_the_readable_one_refuses(data: bytes) -> None:
    assert native("blake2f", data) is readable("blake2f", data) is PrecompileFailure


# -- through the engine


@pytest.mark.parametrize("contract", TABLE, ids=lambda each: each.name)
def test_a_contract_reads_no_further_than_it_says(contract: Precompile) -> None:
    rng = random.Random(11)
    inputs = [rng.randbytes(size) for size in (0, 64, 128, 192, 213, 256, 512, 1_000)]
    inputs += [
        G1 + G1 + bytes(1_000),
        modexp_input(b"\5", b"\3", b"\7") + bytes(1_000),
        words(0, 2**200, 0) + bytes(999),
    ]
    for data in inputs:
        read = data[: contract.reads(data)]
        assert contract.gas(read, Fork.OSAKA) == contract.gas(data, Fork.OSAKA)
        if contract.gas(data, Fork.OSAKA) < 1_000_000:
            assert answer(contract.run, read, Fork.OSAKA) == answer(contract.run, data, Fork.OSAKA)


def test_no_more_of_a_long_input_is_copied_than_the_contract_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    string_at = ctypes.string_at
    monkeypatch.setattr(
        callbacks.ctypes, "string_at", lambda place, size: copied.append(size) or string_at(place, size)
    )
    for name, most in (("ecrecover", 128), ("bn254_add", 128), ("blake2f", 214), ("bls12_g1add", 257), ("modexp", 128)):
        evm = EVM(tier="native")
        target = BY_NAME[name].address
        evm.set_code(HERE, assemble(f"PUSH0 PUSH0 PUSH3 0x100000 PUSH0 PUSH2 {target:#06x} GAS STATICCALL STOP"))
        copied.clear()
        evm.call(HERE)
        assert copied or target in DIRECT, name  # which native code may have called itself, where it is
        assert max(copied, default=0) <= most, name


@pytest.mark.parametrize("tier", ["native", "auto", "reference"])
def test_every_tier_answers_alike_through_calls(tier: str) -> None:
    q = g2_multiple(2)
    inputs = {5: modexp_input(b"\5" * 40, b"\3" * 9, b"\7" * 40), 6: G1 + G1, 7: G1 + words(77), 8: G1 + q,
              9: (12).to_bytes(4, "big") + bytes(range(208)) + b"\1"}  # fmt: skip
    for address, data in inputs.items():
        evm = EVM(tier=tier)
        call = f"PUSH1 0x40 PUSH0 CALLDATASIZE PUSH0 PUSH1 {address} GAS STATICCALL"
        evm.set_code(
            HERE, assemble(f"CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY {call} PUSH1 0x40 MSTORE PUSH1 0x60 PUSH0 RETURN")
        )
        expected = BY_NAME[next(each.name for each in TABLE if each.address == address)].run(data, Fork.OSAKA)
        output = evm.call(HERE, data).output
        assert output[:64][: len(expected)] == expected[:64]
        assert output[64:] == words(1)
        assert evm.call(address.to_bytes(20, "big"), data).output == expected
        assert (
            evm.call(address.to_bytes(20, "big"), data[:-1]).ok
            == EVM(tier="reference").call(address.to_bytes(20, "big"), data[:-1]).ok
        )


def test_native_code_that_is_still_being_built_does_not_outlast_the_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    EVM(tier="native").call(bytes(20))  # handlers are there
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path))
    monkeypatch.setattr(contracts, "_prepared", set())
    build, library_of = library.build, library.library.__wrapped__
    monkeypatch.setattr(library, "library", library_of)  # without what it remembers
    monkeypatch.setattr(library, "ready_made", lambda sources: None)  # a wheel may have it
    monkeypatch.setattr(library, "build", lambda family: time.sleep(3) or build(family))
    started = time.monotonic()
    with pytest.raises(TimeLimit):
        EVM(tier="native", timeout=0.2).call((9).to_bytes(20, "big"), bytes(213))
    assert time.monotonic() - started < 2
