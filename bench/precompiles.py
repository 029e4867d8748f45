"""What a unit of gas costs in every precompile: the worst inputs known, at each price a fork asked for them.

python bench/precompiles.py [--tier T]… [--only NAME] [--direct] [--json]

A contract calls the precompile until its gas is used up, so that calling counts on both sides; `--direct` runs the
precompile by itself. Nanoseconds per gas, the best of several runs, the worst first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import TABLE, Precompile, PrecompileFailure
from fusevm.evm.secp256k1 import sign

BY_NAME = {contract.name: contract for contract in TABLE}
HERE = b"\xc0" * 20
CALLS = 16  # in one turn of the loop
SPARE = 30_000  # gas that is left when the loop ends
LEAST_SECONDS = 0.003  # short enough to be undisturbed once in a while, on a machine that does other work too
# Forks at which a price changed.
FORKS = (Fork.FRONTIER, Fork.BYZANTIUM, Fork.ISTANBUL, Fork.BERLIN, Fork.CANCUN, Fork.PRAGUE, Fork.OSAKA)
rng = random.Random(254)


class Shape(NamedTuple):
    name: str
    shape: str
    data: bytes


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def modexp_input(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    return words(len(base), len(exponent), len(modulus)) + base + exponent + modulus


def number(size: int, factor: int) -> bytes:
    """With its top bit set: odd, or a multiple of two."""
    value = int.from_bytes(rng.randbytes(size), "big") | 1 << 8 * size - 1
    return (value - value % 2 + factor % 2).to_bytes(size, "big")


def modexp_shapes() -> Iterator[Shape]:
    moduli: dict[str, Callable[[int], bytes]] = {
        "odd": lambda size: number(size, 1),
        "even": lambda size: number(size, 2),
        "power of two": lambda size: b"\x80" + bytes(size - 1),
        "half as long": lambda size: bytes(size // 2) + number(size - size // 2, 1),
    }
    for size in (1, 2, 3, 8, 9, 16, 24, 32, 64, 128, 256, 512, 1024):
        for kind, modulus in moduli.items():
            for exponent in (1, 2, 16, 32, 75, 512, 16_384):
                if exponent * size * size <= 1 << 22 and (kind in ("odd", "even") or size in (8, 32, 256)):
                    data = modexp_input(number(size, 2), b"\xff" * exponent, modulus(size))
                    yield Shape("modexp", f"{size} bytes {kind}, exponent {exponent}", data)
    yield Shape("modexp", "nothing", b"")
    yield Shape("modexp", "exponent 3, 256 bytes", modexp_input(number(256, 2), b"\3", number(256, 1)))
    yield Shape("modexp", "exponent 0, 256 bytes", modexp_input(number(256, 2), b"", number(256, 1)))
    yield Shape("modexp", "base of 1024 bytes, modulus of 8", modexp_input(number(1024, 1), b"\3", number(8, 1)))
    yield Shape("modexp", "no modulus, exponent of 64 KiB", words(0, 65_536, 0) + b"\xff" * 65_536)
    yield Shape("modexp", "small, in 256 KiB of input", modexp_input(b"\5", b"\3", b"\7") + bytes(262_144))


def bn254_shapes() -> Iterator[Shape]:
    from fusevm.evm.precompiles import bn254

    def point(scalar: int) -> bytes:
        return bn254.mul(words(1, 2, scalar), Fork.OSAKA)

    p, q, top = point(rng.getrandbits(250)), point(rng.getrandbits(250)), 2**256 - 1
    for shape, data in {
        "random": p + q,
        "double": p + p,
        "infinity": bytes(128),
        "in 256 KiB": p + q + bytes(1 << 18),
    }.items():
        yield Shape("bn254_add", shape, data)
    for shape, data in {
        "random": p + rng.randbytes(32),
        "all ones": p + words(top),
        "infinity": words(0, 0, top),
    }.items():
        yield Shape("bn254_mul", shape, data)
    g2 = words(
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
    )
    yield Shape("bn254_pairing", "no pairs", b"")
    for k in (1, 2, 3, 10, 100):
        yield Shape("bn254_pairing", f"{k} pairs", b"".join(point(rng.getrandbits(250)) + g2 for _ in range(k)))
    yield Shape("bn254_pairing", "infinity in G1", bytes(64) + g2)
    yield Shape("bn254_pairing", "infinity in G2", p + bytes(128))


def bls_shapes() -> Iterator[Shape]:
    from py_arkworks_bls12381 import G1Point, G2Point, Scalar

    def padded(xy: bytes) -> bytes:
        return b"".join(bytes(16) + xy[start : start + 48] for start in range(0, len(xy), 48))

    scalars = [Scalar(rng.getrandbits(250)) for _ in range(128)]
    g1 = [padded((G1Point() * scalar).to_xy_bytes_be()) for scalar in scalars]
    g2 = [padded((G2Point() * scalar).to_xy_bytes_be()) for scalar in scalars]
    yield Shape("bls12_g1add", "random", g1[0] + g1[1])
    yield Shape("bls12_g1add", "too long, 256 KiB", bytes(1 << 18))
    yield Shape("bls12_g2add", "random", g2[0] + g2[1])
    for k in (1, 2, 3, 8, 32, 64, 128):
        numbers = [rng.randbytes(32) for _ in range(k)]
        yield Shape("bls12_g1msm", f"{k} pairs", b"".join(map(bytes.__add__, g1, numbers)))
        yield Shape("bls12_g2msm", f"{k} pairs", b"".join(map(bytes.__add__, g2, numbers)))
    yield Shape("bls12_g1msm", "all ones", g1[0] + b"\xff" * 32)
    yield Shape("bls12_g2msm", "all ones", g2[0] + b"\xff" * 32)
    for k in (1, 2, 3, 10):
        yield Shape("bls12_pairing_check", f"{k} pairs", b"".join(map(bytes.__add__, g1[:k], g2[:k])))
    yield Shape("bls12_map_fp_to_g1", "random", bytes(17) + rng.randbytes(47))
    yield Shape("bls12_map_fp2_to_g2", "random", (bytes(17) + rng.randbytes(47)) * 2)


def signature_shapes() -> Iterator[Shape]:
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    digest = rng.randbytes(32)
    parity, *signature = sign(digest, words(7))
    recoverable = digest + words(27 + parity, *signature)
    yield Shape("ecrecover", "valid", recoverable)
    yield Shape("ecrecover", "no point", digest + words(27, 5, 1))
    yield Shape("ecrecover", "in 256 KiB", recoverable + bytes(1 << 18))
    key = ec.derive_private_key(7, ec.SECP256R1())
    r, s = utils.decode_dss_signature(key.sign(digest, ec.ECDSA(utils.Prehashed(SHA256()))))
    public = key.public_key().public_numbers()
    yield Shape("p256verify", "valid", digest + words(r, s, public.x, public.y))
    yield Shape("p256verify", "invalid", digest + words(r, s ^ 1, public.x, public.y))


def kzg_shapes() -> Iterator[Shape]:
    import hashlib

    from py_arkworks_bls12381 import G1Point

    infinity = b"\xc0" + bytes(47)
    for shape, commitment in {"infinity": infinity, "does not hold": G1Point().to_compressed_bytes()}.items():
        head = b"\1" + hashlib.sha256(commitment).digest()[1:]
        yield Shape("point_evaluation", shape, head + words(rng.getrandbits(250), 0) + commitment + commitment)


def hash_shapes() -> Iterator[Shape]:
    for size in (0, 32, 1_000, 100_000):
        for name in ("sha256", "ripemd160", "identity"):
            yield Shape(name, f"{size:,} bytes", rng.randbytes(size))
    for rounds in (0, 1, 12, 1_000, 1_000_000):
        yield Shape("blake2f", f"{rounds:,} rounds", rounds.to_bytes(4, "big") + rng.randbytes(208) + b"\1")
    yield Shape("blake2f", "too long, 256 KiB", bytes(1 << 18))


def all_shapes() -> Iterator[Shape]:
    for shapes in (hash_shapes, signature_shapes, modexp_shapes, bn254_shapes, bls_shapes, kzg_shapes):
        yield from shapes()


def forks_of(contract: Precompile, data: bytes) -> Iterator[Fork]:
    """Each fork that asks another price, and Berlin, where calling became cheap."""
    last = None
    for fork in FORKS:
        price = contract.gas(data, fork)
        if fork >= contract.since and price < 50_000_000 and (price != last or fork is Fork.BERLIN):
            yield fork
            last = price


def looping(contract: Precompile, price: int, fork: Fork) -> bytes:
    """Calls with its own call data, again and again, while there is gas. One that fails takes its price and no more."""
    value, kind = ("", "STATICCALL") if fork >= Fork.BYZANTIUM else ("PUSH1 0", "CALL")
    target = f"PUSH2 {contract.address:#06x} PUSH4 {price:#010x}"
    call = f"PUSH1 0 PUSH1 0 CALLDATASIZE PUSH1 0 {value} {target} {kind} POP "
    limit = CALLS * (price + 4_000) + SPARE
    copy = "CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY"
    return assemble(f"{copy} JUMPDEST {call * CALLS} PUSH5 {limit:#012x} GAS GT PUSH1 6 JUMPI STOP")


def through_calls(tier: str, fork: Fork, contract: Precompile, data: bytes, repeat: int) -> float:
    """Nanoseconds per gas."""
    price = contract.gas(data, fork)
    evm = EVM(fork=fork, tier=tier)
    evm.set_code(HERE, looping(contract, price, fork))
    memory = len(data) // 32 * 3 + (len(data) // 32) ** 2 // 512
    gas = CALLS * (2 * price + 5_000) + SPARE + memory
    evm.call(HERE, data, gas=gas)  # libraries are loaded, native code is built
    gas += 20 * memory  # so that its price counts for little
    best, turns = float("inf"), 0
    while turns < repeat:
        started = time.perf_counter()
        result = evm.call(HERE, data, gas=gas)
        taken = time.perf_counter() - started
        assert result.ok, result
        if taken < LEAST_SECONDS:
            gas *= 3
            continue
        best = min(best, taken * 1e9 / result.gas_used)
        turns += 1
    return best


def directly(contract: Precompile, fork: Fork, data: bytes, repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        with contextlib.suppress(PrecompileFailure):
            contract.run(data, fork)
        best = min(best, time.perf_counter() - started)
    return best * 1e9 / max(contract.gas(data, fork), 1)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name, shape, data in all_shapes():
        if options.only and options.only not in name:
            continue
        contract = BY_NAME[name]
        for fork in forks_of(contract, data):
            row: dict[str, object] = {
                "name": name,
                "fork": fork.name.lower(),
                "shape": shape,
                "gas": contract.gas(data, fork),
            }
            for tier in options.tier:
                row[tier] = round(through_calls(tier, fork, contract, data, options.repeat), 1)
            if options.direct:
                row["direct"] = round(directly(contract, fork, data, options.repeat), 1)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", action="append", help="auto unless given; may be repeated")
    parser.add_argument("--only", help="contracts whose name contains this")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--above", type=float, default=0, help="only shapes that cost more than so many ns per gas")
    parser.add_argument("--direct", action="store_true", help="also the readable implementation by itself")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.tier = options.tier or ["auto"]
    rows = sorted(measured(options), key=lambda row: row[options.tier[0]], reverse=True)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    columns = [*options.tier, *(["direct"] if options.direct else [])]
    print(f"{'contract':20} {'fork':10} {'shape':44} {'gas':>11} " + " ".join(f"{name:>10}" for name in columns))
    for row in rows:
        if row[options.tier[0]] >= options.above:
            cells = " ".join(f"{row[name]:>10}" for name in columns)
            print(f"{row['name']:20} {row['fork']:10} {row['shape']:44} {row['gas']:>11,} {cells}")


if __name__ == "__main__":
    main()
