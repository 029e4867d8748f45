"""Precompiled contracts whose arithmetic is native: each answers as the one of `evm/precompiles` at its address.

Some are functions that native code calls itself, once they are loaded (`native/runtime/precompiles.py`).
"""

from __future__ import annotations

import ctypes
from functools import cache

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.evm.precompiles import Precompile, blake2f, bn254, precompiles_of
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, PrecompileRun, no_pause, padded
from fusevm.native.emit.crypto import functions, is_ready, library, prepare
from fusevm.reference import apart
from fusevm.reference.frame import Frame
from fusevm.reference.trampoline import begin, begin_payment, end, outcome_of

_PAIRS = 32  # of a pairing, between two pauses: 6 ms
_ROUNDS = 500_000  # of BLAKE2b: 8 ms

# What native code finds wrong with a point, by its number in `bn254_curve`.
_FAULTS = (
    "",
    "invalid coordinate: not below the field's modulus",
    "invalid G1 point: not on the curve",
    "invalid G2 point: not on the curve",
    "invalid G2 point: not in the subgroup",
)


_prepared: set[str] = set()


def run_precompile(contract: Precompile, data: bytes, fork: Fork, price: int, deadline: float | None) -> bytes:
    """The contract's output, its price being paid. As the reference tier's, and natively where that is known."""
    native = NATIVE.get(contract.address)
    if native is None or (contract.address in DIRECT and not _is_at_hand(native[0], deadline)):
        if contract.seconds is None and deadline is None:
            return contract.run(data, fork)
        return apart.run_precompile(contract, data, fork, price, deadline)
    family, run = native
    pause = no_pause if deadline is None else apart.pause_until(deadline)
    if family not in _prepared:
        prepare(family, pause)
        _prepared.add(family)
    return run(data, fork, pause)


def _is_at_hand(family: str, deadline: float | None) -> bool:
    """Whether a family that has an alternative can be used: with a time limit it is not waited for."""
    if family not in _prepared:
        if deadline is not None and not is_ready(family):
            return False
        prepare(family, no_pause)
        _prepared.add(family)
    return True


def loaded_entry(contract: Precompile, where: bytes) -> int:
    """Where native code finds a contract that it calls itself; 0 where Python must be asked for it."""
    direct = DIRECT.get(contract.address)
    if direct is None or direct[0] not in _prepared or _STANDARD.get(where) is not contract:
        return 0
    return library(direct[0]).address(f"fusevm_{direct[1]}")


def load_entry(contract: Precompile, deadline: float | None) -> None:
    """Loads what native code will call itself from now on: a contract of DIRECT is used."""
    _is_at_hand(DIRECT[contract.address][0], deadline)


def _require_valid(status: int) -> None:
    if status:
        raise PrecompileFailure(_FAULTS[status])


@cache
def _modular() -> PrecompileRun:
    from fusevm.native.host.modexp import modexp  # loaded when used

    return modexp


def modexp(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    return _modular()(data, fork, pause)


def ecrecover(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    out = ctypes.create_string_buffer(32)
    size = functions("secp256k1")["ecrecover"](data, len(data), out)
    return out.raw[:size]


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
NATIVE: dict[int, tuple[str, PrecompileRun]] = {
    0x01: ("secp256k1", ecrecover),
    0x05: ("modexp", modexp),
    0x06: ("bn254", bn254_add),
    0x07: ("bn254", bn254_mul),
    0x08: ("bn254", bn254_pairing),
    0x09: ("blake2", blake2),
}

# By address: the family and the function that native code calls itself, with an input, its size, and where to answer.
DIRECT = {0x01: ("secp256k1", "ecrecover"), 0x02: ("hashes", "sha256"), 0x03: ("hashes", "ripemd160")}
_STANDARD = precompiles_of(Fork.FRONTIER)


def execute_without_code(message: Message, state: State, context: Context) -> Outcome:
    """A payment, or a precompile."""
    if not message.creates and message.code_address not in context.precompiles and context.rules.clears_empty_accounts:
        state.settle()
        begin_payment(message, state)
        return Outcome(Status.SUCCESS, message.gas)
    frame = Frame(message, state, context)
    begin(frame, run_precompile)
    end(frame)
    return outcome_of(frame)
