"""No precompile outlasts a time limit or Ctrl-C, on any tier, whatever its input and however much gas there is."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fusevm import EVM
from fusevm.chain.outcome import TimeLimit
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import TABLE, bn254
from test_precompiles import g2_multiple, modexp_input, words

BY_NAME = {contract.name: contract for contract in TABLE}
TIERS = ("reference", "native", "auto")
LIMIT = 0.1
MARGIN = 0.5  # generous: the machine may do other work; alone it takes some milliseconds
TRIES = 3  # one of which must be in time: what outlasts its limit by itself does so every time
PLENTY = 1 << 62

rng = random.Random(12)
PAIR = bn254.mul(words(1, 2, 12_345), Fork.OSAKA) + g2_multiple(7)


def bls(size: int) -> bytes:
    """A point of G1 or G2, by the size of its encoding."""
    from py_arkworks_bls12381 import G1Point, G2Point

    xy = (G1Point() if size == 128 else G2Point()).to_xy_bytes_be()
    return b"".join(bytes(16) + xy[start : start + 48] for start in range(0, len(xy), 48))


def modexp(size: int, exponent: bytes) -> bytes:
    return modexp_input(rng.randbytes(size), exponent, b"\xf1" + rng.randbytes(size - 1))


# What takes longest, for up to 10^9 gas; up to 128 MiB each, made when asked for.
LONG: dict[str, tuple[str, Callable[[], bytes], Fork]] = {
    "pairing of 292 pairs": ("bn254_pairing", lambda: PAIR * 292, Fork.OSAKA),
    "pairing of 29,000 pairs": ("bn254_pairing", lambda: PAIR * 29_000, Fork.OSAKA),
    "blake2f of 10^9 rounds": ("blake2f", lambda: (10**9).to_bytes(4, "big") + bytes(208) + b"\1", Fork.OSAKA),
    "g1msm of 100,000": ("bls12_g1msm", lambda: (bls(128) + rng.randbytes(32)) * 100_000, Fork.OSAKA),
    "g2msm of 50,000": ("bls12_g2msm", lambda: (bls(256) + rng.randbytes(32)) * 50_000, Fork.OSAKA),
    "bls pairing of 20,000 pairs": ("bls12_pairing_check", lambda: (bls(128) + bls(256)) * 20_000, Fork.OSAKA),
    "sha256 of 128 MiB": ("sha256", lambda: bytes(1 << 27), Fork.OSAKA),
    "ripemd160 of 128 MiB": ("ripemd160", lambda: bytes(1 << 27), Fork.OSAKA),
    "modexp of 430,000 bytes": ("modexp", lambda: modexp(430_000, b"\3"), Fork.BERLIN),
    "modexp of 30,000 bytes": ("modexp", lambda: modexp(30_000, b"\xff" * 8), Fork.BERLIN),
    "modexp of 6,000 bytes": ("modexp", lambda: modexp(6_000, b"\xff" * 600), Fork.BERLIN),
    "modexp of 256 bytes": ("modexp", lambda: modexp(256, b"\xff" * 300_000), Fork.BERLIN),
    "modexp of 16 bytes": ("modexp", lambda: modexp(16, b"\xff" * 10_000_000), Fork.BERLIN),
    "modexp of 8 bytes": ("modexp", lambda: modexp(8, b"\xff" * 40_000_000), Fork.BERLIN),
    "modexp of 560,000 bytes, EIP-198": ("modexp", lambda: modexp(560_000, b"\3"), Fork.BYZANTIUM),
    "modexp of 1 byte, EIP-198": ("modexp", lambda: modexp(1, b"\xff" * 100_000_000), Fork.BYZANTIUM),
    "modexp of 1,024 bytes, EIP-7883": ("modexp", lambda: modexp(1_024, b"\xff" * 1_024), Fork.OSAKA),
}


def long_one(what: str) -> tuple[str, bytes, Fork]:
    name, made, fork = LONG[what]
    return name, made(), fork


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("what", LONG)
def test_a_time_limit_is_kept_in_every_precompile(what: str, tier: str) -> None:
    name, data, fork = long_one(what)
    assert BY_NAME[name].gas(data, fork) <= 10**9
    evm = EVM(tier=tier, fork=fork, timeout=LIMIT)
    taken = []
    while len(taken) < TRIES and min(taken, default=PLENTY) > LIMIT + MARGIN:
        started = time.monotonic()
        with contextlib.suppress(TimeLimit):  # or it is fast enough
            assert evm.call(BY_NAME[name].address.to_bytes(20, "big"), data, gas=PLENTY).ok
        taken.append(time.monotonic() - started)
    assert min(taken) < LIMIT + MARGIN


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process started."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return started


def test_a_limit_leaves_no_process_of_a_precompile(children: list[subprocess.Popen[bytes]]) -> None:
    name, data, fork = long_one("modexp of 430,000 bytes")
    with pytest.raises(TimeLimit):
        EVM(tier="reference", fork=fork, timeout=LIMIT).call(
            BY_NAME[name].address.to_bytes(20, "big"), data, gas=PLENTY
        )
    assert [each.returncode is not None for each in children] == [True]


def test_native_tiers_need_no_process(children: list[subprocess.Popen[bytes]]) -> None:
    name, data, fork = long_one("modexp of 6,000 bytes")
    with pytest.raises(TimeLimit):
        EVM(tier="native", fork=fork, timeout=LIMIT).call(BY_NAME[name].address.to_bytes(20, "big"), data, gas=PLENTY)
    assert children == []


def test_a_short_exponentiation_needs_no_process(children: list[subprocess.Popen[bytes]]) -> None:
    assert EVM(tier="reference", timeout=60).call((5).to_bytes(20, "big"), modexp(64, b"\xff" * 32)).ok
    assert children == []


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "what", ["pairing of 29,000 pairs", "blake2f of 10^9 rounds", "g2msm of 50,000", "modexp of 430,000 bytes",
             "modexp of 6,000 bytes", "modexp of 16 bytes"]
)  # fmt: skip
@pytest.mark.long
def test_ctrl_c_ends_every_precompile(what: str, tier: str, children: list[subprocess.Popen[bytes]]) -> None:
    name, data, fork = long_one(what)
    evm = EVM(tier=tier, fork=fork)
    before = evm.state_root
    alarm = threading.Timer(LIMIT, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        evm.call(BY_NAME[name].address.to_bytes(20, "big"), data, gas=PLENTY)
    alarm.cancel()
    assert time.monotonic() - started < LIMIT + MARGIN
    assert all(each.returncode is not None for each in children)
    assert evm.state_root == before
