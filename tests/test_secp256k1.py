"""secp256k1 three times: coincurve's, the readable one in Python, and native code. They agree on every byte."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from llvmlite import ir

from fusevm.evm import secp256k1
from fusevm.evm.forks import Fork
from fusevm.evm.keccak import keccak256
from fusevm.evm.precompiles import signatures
from fusevm.evm.secp256k1 import FIELD, GENERATOR, ORDER
from fusevm.native.emit import signers
from fusevm.native.emit.crypto import prepare
from fusevm.native.emit.jit import Loaded, object_code
from fusevm.native.host import precompiles
from fusevm.native.lang import exported, load, ptr, store, u64, u256
from fusevm.native.runtime.crypto.secp256k1_field import (
    FOLD,
    fp_add,
    fp_inverse,
    fp_mul,
    fp_root,
    fp_square,
    fp_sub,
    scalar_inverse,
)
from fusevm.native.runtime.crypto.secp256k1_split import BETA, DIGITS, LAMBDA, split, write_digits
from test_precompiles import words

TESTS = Path(__file__).parent
MANY = 20_000
SOME = 600  # of them in Python, which takes milliseconds for each

Signed = tuple[int, int, int, int]  # hash, v, r, s


# -- inputs


@cache
def point_of(scalar: int) -> tuple[int, int]:
    key = secp256k1.public_key((scalar % ORDER).to_bytes(32, "big"))
    return int.from_bytes(key[:32], "big"), int.from_bytes(key[32:], "big")


def combined(u1: int, u2: int, k: int) -> Signed | None:
    """A signature whose key is u1·G + u2·(k·G)."""
    x, y = point_of(k)
    r = x % ORDER
    if x >= ORDER or u2 % ORDER == 0:
        return None
    return -u1 * r % ORDER, 27 + y % 2, r, u2 * r % ORDER


NEAR = [1, 2, 3, 5, 17, 127, 128, 2**64, 2**127, 2**128 - 1, 2**128, 2**129 + 1, LAMBDA, LAMBDA - 1, LAMBDA + 1]
SCALARS = [*NEAR, *(ORDER - each for each in NEAR), ORDER // 2, ORDER // 2 + 1]
POINTS = [1, 2, 3, 5, 15, ORDER - 1, ORDER - 2, LAMBDA, ORDER - LAMBDA, LAMBDA * LAMBDA, pow(2, -1, ORDER), 2**128]
OUT = [0, ORDER, ORDER + 1, FIELD, 2**256 - 1]
HASHES = [0, 1, ORDER - 1, ORDER, ORDER + 1, 2**256 - 1]
ABSCISSAE = [
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    FIELD - ORDER - 1,
    FIELD - ORDER,
    FIELD - ORDER + 1,
    ORDER - 1,
    ORDER - 2,
    GENERATOR[0],
]


def edges() -> Iterator[Signed]:
    """Where r, s, v or the hash are odd, and where points meet that formulas treat apart."""
    for k in POINTS:
        for u1 in (0, *SCALARS):
            for u2 in SCALARS:
                found = combined(u1, u2, k)
                if found is not None:
                    yield found
        for u2 in SCALARS:  # the key would be infinity
            found = combined(-u2 * k % ORDER, u2, k)
            if found is not None:
                yield found
    rng = random.Random(7)
    for digest in (*HASHES, rng.getrandbits(256)):
        for v in (27, 28):
            for r in (*ABSCISSAE, *OUT):
                for s in (1, ORDER // 2, ORDER // 2 + 1, ORDER - 1, *OUT):
                    yield digest, v, r, s
    for v in (0, 1, 2, 26, 29, 30, 27 + 256, 28 + 2**64, 27 + 2**255, 2**256 - 1):
        yield rng.getrandbits(256), v, GENERATOR[0], 5


@cache
def inputs() -> list[Signed]:
    rng = random.Random(256)
    found = list(dict.fromkeys(edges()))
    while len(found) < MANY:
        found.append((rng.getrandbits(256), rng.choice((27, 28)), rng.randrange(1, ORDER), rng.randrange(1, ORDER)))
    rng.shuffle(found)
    return found


def native(given: Signed) -> bytes:
    return precompiles.ecrecover(words(*given), Fork.OSAKA)


def by(recover: object, given: Signed) -> bytes:
    """The contract's answer, where the key is found this way."""
    digest, v, r, s = given
    if v not in (27, 28) or not 0 < r < ORDER or not 0 < s < ORDER:
        return b""
    key = recover(words(digest), r, s, v - 27)  # type: ignore[operator]
    return b"" if key is None else bytes(12) + keccak256(key)[12:]


# -- native code


def test_native_recovery_is_coincurves() -> None:
    pytest.importorskip("coincurve")
    answers = 0
    for given in inputs():
        output = native(given)
        assert output == by(secp256k1.recover, given), given
        answers += len(output) == 32
    assert MANY // 3 < answers < MANY


def test_native_recovery_is_the_readable_one() -> None:
    for given in inputs()[:SOME]:
        assert native(given) == by(secp256k1.recover_plainly, given), given


@pytest.mark.long
def test_native_recovery_is_the_readable_one_on_all_of_them() -> None:
    for given in inputs()[SOME:]:
        assert native(given) == by(secp256k1.recover_plainly, given), given


def test_the_key_at_infinity_is_no_answer() -> None:
    for k in POINTS:
        given = combined(-7 * k % ORDER, 7, k)
        if given is not None:
            assert native(given) == b"", k
            assert secp256k1.recover_plainly(words(given[0]), given[2], given[3], given[1] - 27) is None


@pytest.mark.parametrize("size", [0, 1, 31, 32, 63, 64, 65, 95, 96, 97, 127, 128, 129, 500])
def test_native_recovery_reads_128_bytes_and_zeros_after_the_end(size: int) -> None:
    r = 0x11 << 248  # ends in zeros, as does s: an input may leave them out
    while by(secp256k1.recover, (5, 27, r, 0x55 << 248)) == b"":
        r += 1 << 248
    data = (words(5, 27, r, 0x55 << 248) + b"\xff" * 400)[:size]
    assert precompiles.ecrecover(data, Fork.OSAKA) == signatures.ecrecover(data, Fork.OSAKA)
    assert len(precompiles.ecrecover(data, Fork.OSAKA)) == (32 if size >= 97 else 0)


# -- the arithmetic below it


@exported
def each_field(kind: u64, numbers: ptr, others: ptr, count: u64) -> None:
    while count != 0:
        x = load(u256, numbers)
        y = load(u256, others)
        if kind == 0:
            x = fp_add(x, y)
        elif kind == 1:
            x = fp_sub(x, y)
        elif kind == 2:
            x = fp_mul(x, y)
        elif kind == 3:
            x = fp_square(x)
        elif kind == 4:
            x = fp_inverse(x)
        elif kind == 5:
            x = scalar_inverse(x)
        elif kind == 6:
            x = fp_root(x)
        store(numbers, 0, x)
        numbers += 32
        others += 32
        count -= 1


@exported
def halves_of(k: ptr, out: ptr) -> u64:
    return split(load(u256, k), out)


@exported
def digits_of(half: ptr, width: u64, out: ptr) -> u64:
    return write_digits(load(u256, half), width, out)


@cache
def arithmetic() -> Loaded:
    module = ir.Module()
    for function in (each_field, halves_of, digits_of):
        function.define(module)  # type: ignore[attr-defined]
    return Loaded(object_code(module))


def computed(kind: int, pairs: list[tuple[int, int]]) -> list[int]:
    numbers, others = (b"".join(pair[side].to_bytes(32, "little") for pair in pairs) for side in (0, 1))
    room = ctypes.create_string_buffer(numbers, len(numbers))
    arithmetic().exported(each_field)(kind, room, others, len(pairs))
    return [int.from_bytes(room.raw[at : at + 32], "little") for at in range(0, len(numbers), 32)]


@cache
def pairs() -> list[tuple[int, int]]:
    rng = random.Random(977)
    near = [0, 1, 2, FOLD - 1, FOLD, FOLD + 1, FIELD - 1, FIELD - 2, FIELD - FOLD, FIELD >> 1, (FIELD >> 1) + 1]
    near += [1 << bit for bit in range(0, 256, 8)] + [(1 << bit) - 1 for bit in range(8, 256, 8)]
    found = [(x, y) for x in near for y in near]
    found += [(rng.randrange(FIELD), rng.randrange(FIELD)) for _ in range(5_000)]
    for _ in range(300):  # products that are small, so that what reduction folds back carries once more
        x = rng.randrange(1, FIELD)
        found += [(x, pow(x, -1, FIELD) * k % FIELD) for k in (1, FOLD - 1, FOLD, FOLD + 1, 2 * FOLD, FOLD << 20)]
    for k in (1, FOLD - 1, FOLD, FOLD + 1, 3 * FOLD, FOLD << 9, FOLD << 25):  # squares of that kind
        root = pow(k, (FIELD + 1) // 4, FIELD)
        found += [(root, root), (FIELD - root, FIELD - root)]
    return found


def test_sums_differences_products_and_squares_are_those_of_the_field() -> None:
    given = pairs()
    assert computed(0, given) == [(x + y) % FIELD for x, y in given]
    assert computed(1, given) == [(x - y) % FIELD for x, y in given]
    assert computed(2, given) == [x * y % FIELD for x, y in given]
    assert computed(3, given) == [x * x % FIELD for x, y in given]


def test_inverses_and_roots_are_those_of_field_and_order() -> None:
    given = [(x, 0) for x, _ in pairs()[::3] if x] + [(x, 0) for x in range(1, 200)]
    assert computed(4, given) == [pow(x, -1, FIELD) for x, _ in given]
    assert computed(6, given) == [pow(x, (FIELD + 1) // 4, FIELD) for x, _ in given]
    given = [(x % ORDER or 1, 0) for x, _ in given] + [(ORDER - x, 0) for x in range(1, 200)]
    assert computed(5, given) == [pow(x, -1, ORDER) for x, _ in given]


def test_the_endomorphism_multiplies_by_lambda() -> None:
    x, y = point_of(12_345)
    assert point_of(12_345 * LAMBDA) == (BETA * x % FIELD, y)


def test_halves_are_short_and_add_up() -> None:
    rng = random.Random(128)
    numbers = [0, *SCALARS, *(rng.randrange(ORDER) for _ in range(5_000))]
    room, halves_from = ctypes.create_string_buffer(64), arithmetic().exported(halves_of)
    for number in numbers:
        signs = halves_from(number.to_bytes(32, "little"), room)
        halves = [int.from_bytes(room.raw[at : at + 32], "little") for at in (0, 32)]
        assert max(halves) < 1 << 128, number
        first, second = (-half if signs >> at & 1 else half for at, half in enumerate(halves))
        assert (first + second * LAMBDA - number) % ORDER == 0, number


@pytest.mark.parametrize("width", [5, 8])
def test_digits_are_odd_apart_and_add_up(width: int) -> None:
    rng = random.Random(width)
    numbers = [0, 1, 2, 3, 2**127, 2**128 - 1, 2**128 - 2, *(2**bit - 1 for bit in range(2, 128))]
    numbers += [rng.getrandbits(128) for _ in range(1_000)]
    digits_from = arithmetic().exported(digits_of)
    for number in numbers:
        room = ctypes.create_string_buffer(DIGITS)
        count = digits_from(number.to_bytes(32, "little"), width, room)
        digits = [digit - 256 if digit > 127 else digit for digit in room.raw]
        assert sum(digit << place for place, digit in enumerate(digits)) == number
        assert count <= 129
        assert not any(digits[count:])
        places = [place for place, digit in enumerate(digits) if digit]
        assert all(digits[place] % 2 and abs(digits[place]) < 1 << width - 1 for place in places)
        assert all(after - before >= width for before, after in pairwise(places))


# -- keys and signatures


def test_keys_and_signatures_in_python_are_coincurves() -> None:
    pytest.importorskip("coincurve")
    rng = random.Random(6979)
    keys = [1, 2, ORDER - 1, ORDER // 2, *(rng.randrange(1, ORDER) for _ in range(40))]
    for key in keys:
        secret = words(key)
        assert secp256k1.public_key_plainly(secret) == secp256k1.public_key(secret)
        for digest in (*HASHES, rng.getrandbits(256)):
            signature = secp256k1.sign_plainly(words(digest), secret)
            assert signature == secp256k1.sign(words(digest), secret), (key, digest)
            parity, r, s = signature
            assert s <= ORDER // 2
            assert secp256k1.recover_plainly(words(digest), r, s, parity) == secp256k1.public_key(secret)


@pytest.mark.parametrize("key", [b"", bytes(32), words(ORDER), b"\xff" * 32, b"\1" * 33])
def test_what_is_not_a_key_is_refused_alike(key: bytes) -> None:
    for function in (secp256k1.public_key, secp256k1.public_key_plainly, secp256k1.address_of_key):
        with pytest.raises(ValueError, match=r"(?i)secret"):
            function(key)
    for sign in (secp256k1.sign, secp256k1.sign_plainly):
        with pytest.raises(ValueError, match=r"(?i)secret"):
            sign(bytes(32), key)


# -- senders


def test_senders_are_recovered_alike_with_and_without_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(signers.FAMILY, lambda: None)
    for digest, v, r, s in inputs()[:400]:
        if v in (27, 28) and 0 < r < ORDER and 0 < s < ORDER:
            given = words(digest), r, s, v - 27
            found = signers.recover_address(*given)
            monkeypatch.setattr(secp256k1, "_native", [])
            assert secp256k1.recover_address(*given) == found
            monkeypatch.setattr(secp256k1, "_native", [signers.recover_address])
            assert secp256k1.recover_address(*given) == found


def test_a_sender_is_not_kept_waiting_while_native_code_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signers, "is_ready", lambda family: False)
    parity, r, s = secp256k1.sign(words(5), words(7))
    assert signers.recover_address(words(5), r, s, parity) == secp256k1.address_of_key(words(7))
    assert signers.recover_address(words(5), 5, s, parity) is None  # no point has that abscissa


# -- without coincurve

HIDDEN = """
import sys
sys.modules["coincurve"] = None  # as if it were not installed
import pytest
from fusevm.evm import secp256k1
assert secp256k1._coincurve() is None
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
"""
USERS = ["test_signed.py", "test_authorization.py", "test_precompiles.py", "test_secp256k1.py"]
CHOSEN = (
    "(signed or authorization or ecrecover or secp256k1) and not executable_specification and not without_coincurve"
)


@pytest.mark.long
def test_whatever_signs_or_recovers_works_without_coincurve() -> None:
    command = [sys.executable, "-c", HIDDEN, *USERS, "-k", CHOSEN]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.count(".") > 100
