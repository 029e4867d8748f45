"""The precompiled contracts: every public vector with its gas, the corners the vectors leave out, and a few laws."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256
from fusevm.evm.precompiles import TABLE, Precompile, PrecompileFailure, precompiles_of
from fusevm.evm.precompiles.blake2f import IV
from fusevm.evm.precompiles.bn254 import FIELD_MODULUS as BN254_FIELD
from fusevm.evm.precompiles.bn254_pairing import U
from fusevm.evm.precompiles.kzg import BLS_MODULUS
from fusevm.evm.precompiles.signatures import P256_ORDER
from fusevm.evm.secp256k1 import ORDER as SECP256K1_ORDER
from fusevm.evm.secp256k1 import address_of_key, sign

BY_NAME = {contract.name: contract for contract in TABLE}

# File of the public vectors -> the contract it is about, and the fork whose gas it states.
VECTORS = {
    "ecRecover": ("ecrecover", Fork.FRONTIER),
    "modexp": ("modexp", Fork.BYZANTIUM),
    "modexp_eip2565": ("modexp", Fork.BERLIN),
    "modexp_eip7883": ("modexp", Fork.OSAKA),
    "bn256Add": ("bn254_add", Fork.ISTANBUL),
    "bn256ScalarMul": ("bn254_mul", Fork.ISTANBUL),
    "bn256Pairing": ("bn254_pairing", Fork.ISTANBUL),
    "blake2F": ("blake2f", Fork.ISTANBUL),
    "fail-blake2f": ("blake2f", Fork.ISTANBUL),
    "pointEvaluation": ("point_evaluation", Fork.CANCUN),
    "blsG1Add": ("bls12_g1add", Fork.PRAGUE),
    "blsG1Mul": ("bls12_g1msm", Fork.PRAGUE),
    "blsG1MultiExp": ("bls12_g1msm", Fork.PRAGUE),
    "blsG2Add": ("bls12_g2add", Fork.PRAGUE),
    "blsG2Mul": ("bls12_g2msm", Fork.PRAGUE),
    "blsG2MultiExp": ("bls12_g2msm", Fork.PRAGUE),
    "blsPairing": ("bls12_pairing_check", Fork.PRAGUE),
    "blsMapG1": ("bls12_map_fp_to_g1", Fork.PRAGUE),
    "blsMapG2": ("bls12_map_fp2_to_g2", Fork.PRAGUE),
    "fail-blsG1Add": ("bls12_g1add", Fork.PRAGUE),
    "fail-blsG1Mul": ("bls12_g1msm", Fork.PRAGUE),
    "fail-blsG1MultiExp": ("bls12_g1msm", Fork.PRAGUE),
    "fail-blsG2Add": ("bls12_g2add", Fork.PRAGUE),
    "fail-blsG2Mul": ("bls12_g2msm", Fork.PRAGUE),
    "fail-blsG2MultiExp": ("bls12_g2msm", Fork.PRAGUE),
    "fail-blsPairing": ("bls12_pairing_check", Fork.PRAGUE),
    "fail-blsMapG1": ("bls12_map_fp_to_g1", Fork.PRAGUE),
    "fail-blsMapG2": ("bls12_map_fp2_to_g2", Fork.PRAGUE),
    "p256Verify": ("p256verify", Fork.OSAKA),
}

MAX_ROUNDS = 100_000  # of BLAKE2b in Python: a second

# What the vectors call an error, and the words of ours that say the same.
REASONS = {
    "invalid input length": "invalid input length",
    "invalid final flag": "invalid final flag",
    "invalid field element top bytes": "top 16 bytes",
    "invalid fp.Element encoding": "not below the field's modulus",
    "invalid point: not on curve": "not on the G[12] curve",
    "g1 point is not on correct subgroup": "not in the correct G1 subgroup",
    "g2 point is not on correct subgroup": "not in the correct G2 subgroup",
}


@pytest.fixture(scope="module")
def vectors(fixtures_dir: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    with tarfile.open(fixtures_dir / "precompiles.tar.xz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                found[Path(member.name).stem] = json.load(file)
    return found


def run(name: str, data: bytes, fork: Fork = Fork.OSAKA) -> bytes:
    return BY_NAME[name].run(data, fork)


def gas(name: str, data: bytes, fork: Fork = Fork.OSAKA) -> int:
    return BY_NAME[name].gas(data, fork)


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def modexp_input(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    return words(len(base), len(exponent), len(modulus)) + base + exponent + modulus


# Public vectors


def test_every_file_of_the_public_vectors_is_used(vectors: dict[str, list[dict[str, Any]]]) -> None:
    assert set(vectors) == set(VECTORS)


@pytest.mark.parametrize("file", [file for file in VECTORS if not file.startswith("fail-")])
def test_public_vectors_give_their_output_and_gas(file: str, vectors: dict[str, list[dict[str, Any]]]) -> None:
    name, fork = VECTORS[file]
    for vector in vectors[file]:
        data = bytes.fromhex(vector["Input"])
        assert gas(name, data, fork) == vector["Gas"], vector["Name"]
        if name == "blake2f" and vector["Gas"] > MAX_ROUNDS:
            continue  # test_native_precompiles.py runs it
        assert run(name, data, fork).hex() == vector["Expected"], vector["Name"]


@pytest.mark.parametrize("file", [file for file in VECTORS if file.startswith("fail-")])
def test_public_failures_fail_for_their_reason(file: str, vectors: dict[str, list[dict[str, Any]]]) -> None:
    name, fork = VECTORS[file]
    for vector in vectors[file]:
        data = bytes.fromhex(vector["Input"])
        assert gas(name, data, fork) >= 0
        with pytest.raises(PrecompileFailure, match=REASONS[vector["ExpectedError"]]):
            run(name, data, fork)


# The table


@pytest.mark.parametrize(
    ("fork", "addresses"),
    [
        (Fork.FRONTIER, range(1, 5)),
        (Fork.SPURIOUS_DRAGON, range(1, 5)),
        (Fork.BYZANTIUM, range(1, 9)),
        (Fork.PETERSBURG, range(1, 9)),
        (Fork.ISTANBUL, range(1, 10)),
        (Fork.SHANGHAI, range(1, 10)),
        (Fork.CANCUN, range(1, 11)),
        (Fork.PRAGUE, range(1, 18)),
        (Fork.OSAKA, [*range(1, 18), 0x100]),
    ],
)
def test_a_fork_has_the_contracts_of_its_time(fork: Fork, addresses: Any) -> None:
    assert list(precompiles_of(fork)) == [address.to_bytes(20, "big") for address in addresses]


def test_the_contracts_of_a_fork_are_computed_once() -> None:
    assert precompiles_of(Fork.OSAKA) is precompiles_of(Fork.OSAKA)


@pytest.mark.parametrize("contract", TABLE, ids=lambda contract: contract.name)
def test_empty_input_gives_bytes_or_a_failure_that_names_its_reason(contract: Precompile) -> None:
    assert contract.gas(b"", Fork.OSAKA) >= 0
    try:
        output = contract.run(b"", Fork.OSAKA)
    except PrecompileFailure as failure:
        assert "invalid input length" in str(failure)  # noqa: PT017  - some fail, some do not
    else:
        assert isinstance(output, bytes)


def test_importing_the_contracts_loads_none_of_their_libraries() -> None:
    heavy = "{'Crypto', 'coincurve', 'cryptography', 'py_ecc', 'py_arkworks_bls12381'}"
    code = f"import sys, fusevm.evm.precompiles; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Keccak


def test_keccak_of_nothing_and_of_a_long_text_are_the_known_hashes() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak256(b"abc").hex() == "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"


@given(st.binary(max_size=300))
@settings(max_examples=50, derandomize=True)
def test_keccak_does_not_depend_on_the_cache_or_the_buffer(data: bytes) -> None:
    from Crypto.Hash import keccak

    expected = keccak.new(digest_bits=256, data=data).digest()
    assert keccak256(data) == keccak256(bytearray(data)) == keccak256(data) == expected


# Hashes and identity


@pytest.mark.parametrize(("name", "base", "word"), [("sha256", 60, 12), ("ripemd160", 600, 120), ("identity", 15, 3)])
@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 1), (32, 1), (33, 2), (1_000, 32)])
def test_hashes_and_identity_cost_a_base_and_each_started_word(
    name: str, base: int, word: int, size: int, count: int
) -> None:
    assert gas(name, bytes(size)) == base + word * count


def test_hashes_and_identity_of_a_text() -> None:
    assert run("sha256", b"abc") == hashlib.sha256(b"abc").digest()
    assert run("ripemd160", b"abc").hex() == "00" * 12 + "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"
    assert run("ripemd160", b"").hex() == "00" * 12 + "9c1185a5c5e9fc54612808977ee8f548b2258d31"
    assert run("identity", b"abc") == b"abc"


# Signatures

MESSAGE = hashlib.sha256(b"message").digest()


def signed_by_secp256k1() -> tuple[int, int, int, bytes]:
    """v, r, s of MESSAGE, and the signer's address as a word."""
    parity, r, s = sign(MESSAGE, words(7))
    return 27 + parity, r, s, bytes(12) + address_of_key(words(7))


def test_ecrecover_finds_the_signer_and_ignores_further_bytes() -> None:
    v, r, s, signer = signed_by_secp256k1()
    assert run("ecrecover", MESSAGE + words(v, r, s)) == signer
    assert run("ecrecover", MESSAGE + words(v, r, s) + b"\xff" * 50) == signer


def test_ecrecover_takes_the_mirrored_signature_too() -> None:
    v, r, s, signer = signed_by_secp256k1()
    assert run("ecrecover", MESSAGE + words(55 - v, r, SECP256K1_ORDER - s)) == signer


def test_ecrecover_reads_a_short_input_as_zero_padded() -> None:
    v, r, _, _ = signed_by_secp256k1()
    s = 0x55 << 248  # ends in zeros, which the input may leave out
    whole = run("ecrecover", MESSAGE + words(v, r, s))
    assert len(whole) == 32
    assert run("ecrecover", (MESSAGE + words(v, r, s))[:97]) == whole
    assert run("ecrecover", b"") == b""


@pytest.mark.parametrize("garbage", [1 << 8, 1 << 64, 1 << 255])
def test_ecrecover_is_empty_for_a_v_with_garbage_in_its_high_bytes(garbage: int) -> None:
    _, r, s, _ = signed_by_secp256k1()
    assert run("ecrecover", MESSAGE + words(0x1B + garbage, r, s)) == b""


@pytest.mark.parametrize("v", [0, 1, 26, 29])
def test_ecrecover_is_empty_for_a_v_other_than_27_and_28(v: int) -> None:
    _, r, s, _ = signed_by_secp256k1()
    assert run("ecrecover", MESSAGE + words(v, r, s)) == b""


@pytest.mark.parametrize("bad", [0, SECP256K1_ORDER, SECP256K1_ORDER + 1, 2**256 - 1])
def test_ecrecover_is_empty_for_r_or_s_out_of_range(bad: int) -> None:
    v, r, s, _ = signed_by_secp256k1()
    assert run("ecrecover", MESSAGE + words(v, bad, s)) == b""
    assert run("ecrecover", MESSAGE + words(v, r, bad)) == b""


def test_ecrecover_is_empty_where_no_point_has_the_abscissa_r() -> None:
    assert run("ecrecover", MESSAGE + words(27, 5, 1)) == b""


def signed_by_p256() -> tuple[int, int, int, int]:
    """r, s of MESSAGE and the key's x, y."""
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    key = ec.derive_private_key(7, ec.SECP256R1())
    r, s = utils.decode_dss_signature(key.sign(MESSAGE, ec.ECDSA(utils.Prehashed(SHA256()))))
    public = key.public_key().public_numbers()
    return r, s, public.x, public.y


def test_p256_accepts_a_signature_and_its_mirror() -> None:
    r, s, x, y = signed_by_p256()
    assert run("p256verify", MESSAGE + words(r, s, x, y)) == words(1)
    assert run("p256verify", MESSAGE + words(r, P256_ORDER - s, x, y)) == words(1)


@pytest.mark.parametrize("bad", [0, P256_ORDER, 2**256 - 1])
def test_p256_is_empty_for_r_or_s_out_of_range(bad: int) -> None:
    r, s, x, y = signed_by_p256()
    assert run("p256verify", MESSAGE + words(bad, s, x, y)) == b""
    assert run("p256verify", MESSAGE + words(r, bad, x, y)) == b""


def test_p256_is_empty_for_no_key_of_the_curve() -> None:
    r, s, x, y = signed_by_p256()
    assert run("p256verify", MESSAGE + words(r, s, 0, 0)) == b""
    assert run("p256verify", MESSAGE + words(r, s, x, y ^ 1)) == b""
    assert run("p256verify", MESSAGE + words(r, s, 2**256 - 1, y)) == b""


def test_p256_is_empty_for_an_input_of_another_length() -> None:
    data = MESSAGE + words(*signed_by_p256())
    assert run("p256verify", data[:-1]) == run("p256verify", data + b"\0") == b""
    assert gas("p256verify", b"") == 6_900


# Modular exponentiation

MODEXP_FORKS = (Fork.BYZANTIUM, Fork.BERLIN, Fork.OSAKA)


@given(st.binary(max_size=80), st.binary(max_size=40), st.binary(max_size=80), st.sampled_from(MODEXP_FORKS))
@settings(max_examples=200, derandomize=True)
def test_modexp_is_the_power_modulo(base: bytes, exponent: bytes, modulus: bytes, fork: Fork) -> None:
    b, e, m = (int.from_bytes(part, "big") for part in (base, exponent, modulus))
    expected = (pow(b, e, m) if m else 0).to_bytes(len(modulus), "big")
    assert run("modexp", modexp_input(base, exponent, modulus), fork) == expected


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 220))
@settings(max_examples=100, derandomize=True)
def test_modexp_reads_a_short_input_as_zero_padded(base: bytes, exponent: bytes, modulus: bytes, cut: int) -> None:
    data = modexp_input(base, exponent, modulus)
    short, long = data[:cut], data[:cut].ljust(len(data), b"\0") + b"junk"
    for fork in MODEXP_FORKS:
        if len(data) >= cut:
            assert gas("modexp", short, fork) == gas("modexp", long, fork)
            assert run("modexp", short, fork) == run("modexp", long, fork)


def test_modexp_of_an_empty_input_is_empty_at_the_least_price() -> None:
    assert [gas("modexp", b"", fork) for fork in MODEXP_FORKS] == [0, 200, 500]
    assert [run("modexp", b"", fork) for fork in MODEXP_FORKS] == [b"", b"", b""]


def test_modexp_with_a_zero_modulus_is_zero() -> None:
    assert run("modexp", modexp_input(b"\5", b"\3", bytes(4))) == bytes(4)


def test_modexp_modulo_one_is_zero_even_with_the_exponent_zero() -> None:
    assert run("modexp", modexp_input(b"\5", b"", b"\1")) == b"\0"


def test_modexp_of_zero_to_the_zero_is_one() -> None:
    assert run("modexp", modexp_input(b"", b"", b"\0\5")) == b"\0\1"


@pytest.mark.parametrize("fork", [Fork.BYZANTIUM, Fork.BERLIN])
def test_modexp_with_an_empty_base_and_modulus_is_empty_however_long_the_exponent(fork: Fork) -> None:
    data = words(0, 2**256 - 1, 0)
    assert gas("modexp", data, fork) == (0 if fork < Fork.BERLIN else 200)
    assert run("modexp", data, fork) == b""


@pytest.mark.parametrize("fork", MODEXP_FORKS)
def test_modexp_prices_the_hugest_lengths(fork: Fork) -> None:
    assert gas("modexp", words(*[2**256 - 1] * 3), fork) > 2**700
    assert gas("modexp", words(2**256 - 1, 0, 0), fork) > 2**400


@pytest.mark.parametrize("place", range(3))
def test_modexp_fails_past_1024_bytes_from_osaka(place: int) -> None:
    sizes = [1, 1, 1]
    sizes[place] = 1_025
    assert isinstance(run("modexp", words(*sizes), Fork.PRAGUE), bytes)
    with pytest.raises(PrecompileFailure, match="1024"):
        run("modexp", words(*sizes), Fork.OSAKA)


@given(st.binary(max_size=4), st.binary(min_size=9, max_size=60), st.integers(1, 2**16 - 1))
@settings(max_examples=200, derandomize=True)
def test_modexp_with_a_small_modulus_and_a_long_exponent_is_the_power(base: bytes, exponent: bytes, small: int) -> None:
    expected = pow(int.from_bytes(base, "big"), int.from_bytes(exponent, "big"), small)
    assert run("modexp", modexp_input(base, exponent, small.to_bytes(2, "big"))) == expected.to_bytes(2, "big")


def test_modexp_with_a_small_modulus_and_zeros_before_a_short_exponent_is_the_power() -> None:
    assert run("modexp", modexp_input(b"\2", bytes(20) + b"\3", b"\x10")) == b"\x08"  # 2^3, not 2^(3 + 8)


def test_modexp_accepts_1024_bytes_in_osaka() -> None:
    assert len(run("modexp", words(1_024, 1, 1_024) + bytes(1_024) + b"\1" + b"\xff" * 1_024)) == 1_024


# BLAKE2


def test_blake2f_costs_its_rounds_and_nothing_at_a_wrong_length() -> None:
    assert gas("blake2f", b"\xff" * 4 + bytes(209)) == 2**32 - 1
    assert gas("blake2f", b"\xff" * 212) == gas("blake2f", b"\xff" * 214) == 0


@pytest.mark.parametrize("flag", [2, 0x80, 0xFF])
def test_blake2f_fails_on_a_final_flag_other_than_0_and_1(flag: int) -> None:
    with pytest.raises(PrecompileFailure, match="invalid final flag"):
        run("blake2f", bytes(212) + bytes([flag]))


@given(st.binary(max_size=128), st.binary(max_size=128), st.integers(1, 64))
@settings(max_examples=50, derandomize=True)
def test_blake2f_over_two_blocks_is_the_hash(first: bytes, second: bytes, size: int) -> None:
    message = first.ljust(128, b"\1") + second
    iv = [word ^ (0x01010000 | size if k == 0 else 0) for k, word in enumerate(IV)]
    chain = struct.pack("<8Q", *iv)
    if second:
        chain = run("blake2f", b"\0\0\0\x0c" + chain + message[:128] + struct.pack("<QQ", 128, 0) + b"\0")
    last = (message[128:] if second else message).ljust(128, b"\0")
    chain = run("blake2f", b"\0\0\0\x0c" + chain + last + struct.pack("<QQ", len(message), 0) + b"\1")
    assert chain[:size] == hashlib.blake2b(message, digest_size=size).digest()


def test_blake2f_with_no_rounds_still_mixes_the_state() -> None:
    assert len(run("blake2f", bytes(213))) == 64


# bn254

G1 = (1, 2)
BN254_ORDER = 36 * U**4 + 36 * U**3 + 18 * U**2 + 6 * U + 1
# On the twist, at x = 1, but not of the group's order.
OFF_SUBGROUP = (
    (1, 0),
    (
        18278151005453108793778860132295291098363647455926340152056652516292830556603,
        5912654199736721486680175016176231956195085055698687135131307249486702594212,
    ),
)


def g2_words(point: Any) -> bytes:
    (x, x_i), (y, y_i) = point
    return words(x_i, x, y_i, y)


def g2_multiple(scalar: int) -> bytes:
    """By another implementation of the curve."""
    from py_ecc import optimized_bn128 as peer

    x, y = peer.normalize(peer.multiply(peer.G2, scalar))
    return g2_words([[int(c) for c in coordinate.coeffs] for coordinate in (x, y)])


def test_bn254_prices_fell_with_istanbul() -> None:
    names = ("bn254_add", "bn254_mul", "bn254_pairing")
    assert [gas(name, bytes(384), Fork.BYZANTIUM) for name in names] == [500, 40_000, 260_000]
    assert [gas(name, bytes(384), Fork.ISTANBUL) for name in names] == [150, 6_000, 113_000]


def test_bn254_infinity_is_neutral_and_all_zeros() -> None:
    assert run("bn254_add", words(*G1, 0, 0)) == run("bn254_add", words(0, 0, *G1)) == words(*G1)
    assert run("bn254_add", b"") == run("bn254_mul", b"") == words(0, 0)
    assert run("bn254_add", words(1, 2, 1, BN254_FIELD - 2)) == words(0, 0)
    assert run("bn254_mul", words(0, 0, 5)) == words(0, 0)


def test_bn254_reads_short_inputs_as_zero_padded_and_ignores_further_bytes() -> None:
    assert run("bn254_add", words(*G1)) == words(*G1)
    assert run("bn254_mul", words(*G1)) == words(0, 0)
    assert run("bn254_mul", words(*G1, 1) + b"junk") == run("bn254_add", words(*G1, 0, 0) + b"junk") == words(*G1)


@pytest.mark.parametrize("point", [(BN254_FIELD, 0), (0, BN254_FIELD), (BN254_FIELD + 1, 2), (1, BN254_FIELD + 2)])
def test_bn254_fails_on_a_coordinate_that_is_not_canonical(point: tuple[int, int]) -> None:
    for name, data in (("bn254_add", words(*point)), ("bn254_mul", words(*point)), ("bn254_pairing", words(*point))):
        with pytest.raises(PrecompileFailure, match="modulus"):
            run(name, data.ljust(192, b"\0"))


def test_bn254_fails_on_a_point_off_the_curve() -> None:
    for name in ("bn254_add", "bn254_mul", "bn254_pairing"):
        with pytest.raises(PrecompileFailure, match="not on the curve"):
            run(name, words(1, 1, 0, 0, 0, 0))
    with pytest.raises(PrecompileFailure, match="G2 point: not on the curve"):
        run("bn254_pairing", words(*G1, 1, 1, 1, 1))


def test_bn254_pairing_fails_on_a_point_off_the_subgroup_even_beside_infinity() -> None:
    for g1 in (G1, (0, 0)):
        with pytest.raises(PrecompileFailure, match="not in the subgroup"):
            run("bn254_pairing", words(*g1) + g2_words(OFF_SUBGROUP))


def test_bn254_pairing_of_nothing_and_of_infinities_is_one() -> None:
    assert run("bn254_pairing", b"") == words(1)
    assert run("bn254_pairing", bytes(192)) == words(1)
    assert run("bn254_pairing", words(*G1) + bytes(128)) == words(1)
    assert run("bn254_pairing", bytes(64) + g2_multiple(1)) == words(1)


@pytest.mark.parametrize("size", [1, 191, 193])
def test_bn254_pairing_fails_on_a_broken_pair(size: int) -> None:
    with pytest.raises(PrecompileFailure, match="invalid input length"):
        run("bn254_pairing", bytes(size))


scalars = st.integers(0, 2**256 - 1)


@given(scalars, scalars)
@settings(max_examples=25, derandomize=True, deadline=None)
def test_bn254_multiplication_is_repeated_addition(a: int, b: int) -> None:
    multiples = [run("bn254_mul", words(*G1, k)) for k in (a, b, (a + b) % BN254_ORDER)]
    assert run("bn254_add", multiples[0] + multiples[1]) == multiples[2]


@pytest.mark.parametrize("scalar", [0, 1, 2, 3, BN254_ORDER - 1, BN254_ORDER, BN254_ORDER + 1, 2**256 - 1])
def test_bn254_multiplication_agrees_with_another_implementation(scalar: int) -> None:
    from py_ecc import optimized_bn128 as peer

    point = peer.multiply(peer.G1, scalar)
    expected = (0, 0) if peer.is_inf(point) else tuple(int(c) for c in peer.normalize(point))
    assert run("bn254_mul", words(*G1, scalar)) == words(*expected)


@given(st.integers(1, BN254_ORDER - 1), st.integers(1, BN254_ORDER - 1))
@settings(max_examples=4, derandomize=True, deadline=None)
def test_bn254_pairing_is_bilinear_and_not_degenerate(a: int, b: int) -> None:
    left = run("bn254_mul", words(*G1, a)) + g2_multiple(b)
    right = run("bn254_mul", words(*G1, -a * b % BN254_ORDER)) + g2_multiple(1)
    assert run("bn254_pairing", left + right) == words(1)
    assert run("bn254_pairing", left) == words(0)


def test_bn254_pairing_itself_agrees_with_another_implementation() -> None:
    from py_ecc import optimized_bn128 as peer

    from fusevm.evm.precompiles import bn254_pairing as ours

    x, y = (tuple(int(c) for c in coordinate.coeffs) for coordinate in peer.normalize(peer.G2))
    value = ours._final_power(ours._miller([(G1, (x, y))]))  # type: ignore[list-item]
    assert list(value) == [int(c) for c in peer.pairing(peer.G2, peer.G1).coeffs]


def test_bn254_subgroup_criterion_admits_no_other_order() -> None:
    p, r, trace = BN254_FIELD, BN254_ORDER, 6 * U**2 + 1
    assert p == r + trace - 1
    # 6u+2 + X - X² + X³ modulo X² - tX + p is a + bX, of norm a² + abt + b²p.
    a, b = 6 * U + 2 - p * (trace - 1), 1 + trace * (trace - 1) - p
    norm = a * a + a * b * trace + b * b * p
    assert norm % r == 0
    assert math.gcd(norm, 2 * p - r) == 1


def test_bn254_final_exponent_is_the_sum_its_comment_states() -> None:
    p, common = BN254_FIELD, 36 * U**3 + 18 * U**2 + 12 * U
    l0, l1, l2 = -common - (12 * U**2 + 6 * U) - 2, 1 - common, 6 * U**2 + 1
    assert (l0 + l1 * p + l2 * p**2 + p**3) * BN254_ORDER == p**4 - p**2 + 1


# BLS12-381 and KZG


def test_bls_scalars_count_modulo_the_order() -> None:
    from py_arkworks_bls12381 import G1Point

    xy = G1Point().to_xy_bytes_be()
    generator = bytes(16) + xy[:48] + bytes(16) + xy[48:]
    assert run("bls12_g1msm", generator + words(BLS_MODULUS + 1)) == generator
    assert run("bls12_g1msm", generator + words(BLS_MODULUS)) == bytes(128)


def test_bls_pairing_of_infinities_is_one() -> None:
    assert run("bls12_pairing_check", bytes(384)) == words(1)


def test_bls_discount_stays_at_its_last_entry_past_128_pairs() -> None:
    assert gas("bls12_g1msm", bytes(160 * 200)) == 200 * 12_000 * 519 // 1_000
    assert gas("bls12_g2msm", bytes(288 * 200)) == 200 * 22_500 * 524 // 1_000
    assert gas("bls12_g1msm", bytes(159)) == gas("bls12_g2msm", b"") == 0


INFINITY = b"\xc0" + bytes(47)


def kzg_input(commitment: bytes, z: int, y: int, proof: bytes) -> bytes:
    return b"\1" + hashlib.sha256(commitment).digest()[1:] + words(z, y) + commitment + proof


def test_kzg_proves_the_zero_polynomial_everywhere() -> None:
    assert run("point_evaluation", kzg_input(INFINITY, 5, 0, INFINITY)) == words(4_096, BLS_MODULUS)


def test_kzg_fails_on_a_wrong_value() -> None:
    with pytest.raises(PrecompileFailure, match="does not hold"):
        run("point_evaluation", kzg_input(INFINITY, 5, 1, INFINITY))


@pytest.mark.parametrize(("z", "y"), [(BLS_MODULUS, 0), (0, BLS_MODULUS), (2**256 - 1, 0)])
def test_kzg_fails_on_a_number_past_the_field(z: int, y: int) -> None:
    with pytest.raises(PrecompileFailure, match="modulus"):
        run("point_evaluation", kzg_input(INFINITY, z, y, INFINITY))


@pytest.mark.parametrize(
    "encoding", [b"\xc0" + bytes(46) + b"\1", b"\xe0" + bytes(47), bytes(48), b"\x80" + bytes(47), b"\xff" * 48]
)
def test_kzg_fails_on_an_encoding_that_is_no_canonical_point_of_g1(encoding: bytes) -> None:
    with pytest.raises(PrecompileFailure, match="commitment"):
        run("point_evaluation", kzg_input(encoding, 0, 0, INFINITY))
    with pytest.raises(PrecompileFailure, match="proof"):
        run("point_evaluation", kzg_input(INFINITY, 0, 0, encoding))


def test_kzg_fails_on_another_versioned_hash_or_length() -> None:
    data = kzg_input(INFINITY, 5, 0, INFINITY)
    with pytest.raises(PrecompileFailure, match="versioned hash"):
        run("point_evaluation", b"\2" + data[1:])
    with pytest.raises(PrecompileFailure, match="invalid input length"):
        run("point_evaluation", data + b"\0")
