"""The contracts that take any bytes and never fail: SHA-256, RIPEMD-160 and identity."""

from __future__ import annotations

import hashlib

from fusevm.evm.forks import Fork


def sha256(data: bytes, fork: Fork) -> bytes:
    return hashlib.sha256(data).digest()


def ripemd160(data: bytes, fork: Fork) -> bytes:
    # hashlib offers it only where OpenSSL still carries its legacy algorithms.
    from Crypto.Hash import RIPEMD160

    digest: bytes = RIPEMD160.new(data).digest()
    return digest.rjust(32, b"\0")


def identity(data: bytes, fork: Fork) -> bytes:
    return bytes(data)
