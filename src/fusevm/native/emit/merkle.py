"""Tries by native code, as `chain/patricia.py` asks for them; loaded, or built, when first asked."""

from __future__ import annotations

import ctypes

from fusevm.chain.patricia import NativeTries, use_native
from fusevm.evm import keccak
from fusevm.native.emit.crypto import functions
from fusevm.native.emit.tries import trie_of


def hashes(data: bytes, size: int) -> bytes:
    out = ctypes.create_string_buffer(32 * (len(data) // size))
    functions("merkle")["keccak256_each"](data, size, len(data) // size, out)
    return out.raw


def _hash(data: bytes) -> bytes:
    out = ctypes.create_string_buffer(32)
    functions("merkle")["keccak256_each"](data, len(data), 1, out)
    return out.raw


def load() -> None:
    """As `install`, once it is sure that native code can be had."""
    functions("merkle")
    install()


def install() -> None:
    """Has states hashed by native code from now on."""
    use_native(NativeTries(trie_of, hashes))
    if not keccak.is_native():
        keccak.use_native(_hash)
