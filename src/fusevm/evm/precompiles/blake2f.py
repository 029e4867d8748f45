"""The compression function of BLAKE2b (EIP-152): rounds, state, block, offsets and final flag in 213 bytes."""

from __future__ import annotations

from fusevm.evm.forks import Fork
from fusevm.evm.precompiles.contract import PrecompileFailure, require_length

_LENGTH = 213
_FLAGS = (0, 1)


def gas(data: bytes, fork: Fork) -> int:
    """One a round; nothing for an input of the wrong length, which fails in any case."""
    return int.from_bytes(data[:4], "big") if len(data) == _LENGTH else 0


def run(data: bytes, fork: Fork) -> bytes:
    require_length(data, _LENGTH)
    if data[-1] not in _FLAGS:
        raise PrecompileFailure(f"invalid final flag: {data[-1]}, neither 0 nor 1")
    from blake2b import decode_and_compress

    state: bytes = decode_and_compress(bytes(data))
    return state
