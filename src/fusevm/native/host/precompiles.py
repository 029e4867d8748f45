"""Precompiled contracts whose arithmetic is native: each answers as the one of `evm/precompiles` at its address."""

from __future__ import annotations

import ctypes
from functools import cache

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import Precompile, blake2f, bn254
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, Run, no_pause, padded
from fusevm.native.emit.crypto import functions, prepare
from fusevm.reference import apart

_PAIRS = 32  # of a pairing, between two pauses: 6 ms
_ROUNDS = 500_000  # of BLAKE2b: 8 ms

# What native code finds wrong with a point, by its number in `bn254_curve`.
_FAULTS = (
    "",
    "invalid coordinate: not below the field's modulus",
    "invalid point: not on the curve",
    "invalid G2 point: not in the subgroup",
)


_prepared: set[str] = set()


def run_precompile(contract: Precompile, data: bytes, fork: Fork, price: int, deadline: float | None) -> bytes:
    """The contract's output, its price being paid. As the reference tier's, and natively where that is known."""
    native = NATIVE.get(contract.address)
    if native is None:
        if contract.seconds is None and deadline is None:
            return contract.run(data, fork)
        return apart.run_precompile(contract, data, fork, price, deadline)
    family, run = native
    pause = no_pause if deadline is None else apart.pause_until(deadline)
    if family not in _prepared:
        prepare(family, pause)
        _prepared.add(family)
    return run(data, fork, pause)


def _require_valid(status: int) -> None:
    if status:
        raise PrecompileFailure(_FAULTS[status])


@cache
def _modular() -> Run:
    from fusevm.native.host.modexp import modexp  # loaded when used

    return modexp


def modexp(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    return _modular()(data, fork, pause)


def bn254_add(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    out = ctypes.create_string_buffer(64)
    _require_valid(functions("bn254")["bn254_add"](padded(data, 0, 128), out))
    return out.raw


def bn254_mul(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    out = ctypes.create_string_buffer(64)
    _require_valid(functions("bn254")["bn254_mul"](padded(data, 0, 96), out))
    return out.raw


def bn254_pairing(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from fusevm.native.runtime.crypto.bn254_pairing import PAIR, PAIR_SIZE
    from fusevm.native.runtime.crypto.bn254_tower import FP12

    native = functions("bn254")
    miller, is_one = native["bn254_miller"], native["bn254_is_one"]
    bn254.require_pairs(data)
    total = ctypes.create_string_buffer(FP12)
    work = ctypes.create_string_buffer(PAIR_SIZE * min(_PAIRS, len(data) // PAIR))
    step = _PAIRS * PAIR
    for start in range(0, len(data) or 1, step):
        pause()
        part = data[start : start + step]
        _require_valid(miller(part, len(part) // PAIR, work, total, start == 0))
    return is_one(total).to_bytes(32, "big")


def blake2(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    blake2f.require_valid(data)
    out, rounds = ctypes.create_string_buffer(64), int.from_bytes(data[:4], "big")
    native = functions("blake2")
    if rounds <= _ROUNDS:
        native["blake2_compress"](data, out)
        return out.raw
    state = ctypes.create_string_buffer(128)
    native["blake2_begin"](data, state)
    for start in range(0, rounds, _ROUNDS):
        pause()
        native["blake2_rounds"](data, state, start, min(_ROUNDS, rounds - start))
    native["blake2_end"](data, state, out)
    return out.raw


# By address: the family of native code, and what runs on it.
NATIVE: dict[int, tuple[str, Run]] = {
    0x05: ("modexp", modexp),
    0x06: ("bn254", bn254_add),
    0x07: ("bn254", bn254_mul),
    0x08: ("bn254", bn254_pairing),
    0x09: ("blake2", blake2),
}
