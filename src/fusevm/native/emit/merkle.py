"""Tries by native code, as `chain/patricia.py` asks for them; loaded, or built, when first asked."""

from __future__ import annotations

import ctypes
import threading
from array import array

from fusevm.chain.patricia import NativeTries, Packed, use_native
from fusevm.evm import keccak
from fusevm.native.emit.crypto import functions
from fusevm.native.runtime.crypto.merkle import CELL, SCRATCH


class _Scratch(threading.local):
    """Room to work in, for each thread its own: making it takes longer than a small trie."""

    def __init__(self) -> None:
        self.room = ctypes.create_string_buffer(SCRATCH)


_scratch = _Scratch()


def references(packed: Packed, counts: list[int], depths: list[int]) -> list[bytes]:
    out = ctypes.create_string_buffer(CELL * len(counts))
    functions("merkle")["merkle_references"](
        packed.keys,
        packed.sizes,
        packed.values,
        array("Q", counts).tobytes(),
        array("Q", depths).tobytes(),
        len(counts),
        _scratch.room,
        out,
    )
    raw = out.raw
    return [raw[at + 8 : at + 8 + raw[at]] for at in range(0, len(raw), CELL)]


def hashes(data: bytes, size: int) -> bytes:
    out = ctypes.create_string_buffer(32 * (len(data) // size))
    functions("merkle")["keccak256_each"](data, size, len(data) // size, out)
    return out.raw


def _hash(data: bytes) -> bytes:
    out = ctypes.create_string_buffer(32)
    functions("merkle")["keccak256_each"](data, len(data), 1, out)
    return out.raw


def load() -> None:
    """As `quicken`, once it is sure that native code can be had."""
    functions("merkle")
    quicken()


def quicken() -> None:
    """Has states hashed by native code from now on."""
    use_native(NativeTries(references, hashes))
    if not keccak.is_native():
        keccak.use_native(_hash)
