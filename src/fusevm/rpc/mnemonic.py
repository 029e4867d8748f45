"""Keys of a mnemonic: BIP-39's seed, and BIP-32's derivation along Ethereum's path."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata

from fusevm.evm.secp256k1 import ORDER, public_key
from fusevm.values import BadValue

TEST_MNEMONIC = "test test test test test test test test test test test junk"  # anvil's and Hardhat's
ETHEREUM_PATH = "m/44'/60'/0'/0/"
HARDENED = 1 << 31


def keys_of(mnemonic: str, count: int, path: str = ETHEREUM_PATH) -> list[bytes]:
    """The first keys of a mnemonic. The words are not held against BIP-39's list.

    >>> keys_of(TEST_MNEMONIC, 1)[0].hex()[:16]
    'ac0974bec39a17e3'
    """
    words = unicodedata.normalize("NFKD", " ".join(mnemonic.split())).encode()
    seed = hashlib.pbkdf2_hmac("sha512", words, b"mnemonic", 2048)
    key, chain = _split(hmac.digest(b"Bitcoin seed", seed, "sha512"))
    for part in path.strip("/").split("/")[1:]:
        key, chain = _child(key, chain, _index(part))
    return [_child(key, chain, place)[0].to_bytes(32, "big") for place in range(count)]


def _index(part: str) -> int:
    hardened = part.endswith("'")
    if not part.removesuffix("'").isdigit():
        raise BadValue(f"derivation path: {part!r} is not a number, or one with a '")
    return int(part.removesuffix("'")) + (HARDENED if hardened else 0)


def _split(digest: bytes) -> tuple[int, bytes]:
    return int.from_bytes(digest[:32], "big"), digest[32:]


def _child(key: int, chain: bytes, index: int) -> tuple[int, bytes]:
    secret = key.to_bytes(32, "big")
    start = b"\0" + secret if index >= HARDENED else _compressed(public_key(secret))
    tweak, below = _split(hmac.digest(chain, start + index.to_bytes(4, "big"), "sha512"))
    return (tweak + key) % ORDER, below


def _compressed(key: bytes) -> bytes:
    """x, after a byte that tells the parity of y."""
    return bytes((2 + key[63] % 2,)) + key[:32]
