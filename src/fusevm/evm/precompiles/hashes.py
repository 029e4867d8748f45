"""The contracts that take any bytes and never fail: SHA-256, RIPEMD-160 and identity."""

from __future__ import annotations

import hashlib
from typing import Any

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import Pause, no_pause

_PART = 1 << 20  # bytes hashed without a pause: RIPEMD-160 takes some milliseconds for them


def sha256(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    digest: bytes = _hashed(hashlib.sha256(), data, pause).digest()
    return digest


def ripemd160(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    # hashlib offers it only where OpenSSL still carries its legacy algorithms.
    from Crypto.Hash import RIPEMD160

    digest: bytes = _hashed(RIPEMD160.new(), data, pause).digest()
    return digest.rjust(32, b"\0")


def _hashed(state: Any, data: bytes, pause: Pause) -> Any:
    if len(data) <= _PART:
        state.update(data)
        return state
    view = memoryview(data)
    for start in range(0, len(data), _PART):
        pause()
        state.update(view[start : start + _PART])
    return state


def identity(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    return bytes(data)
