"""Inputs on which precompiles do their work, and spoilt ones on which they refuse."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random

from fusevm.lab.fuzz.constants import octets, word


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(32, "big") for value in values)


def _fields(*values: int) -> bytes:
    """EIP-2537: field elements of 48 bytes, padded to 64."""
    return b"".join(value.to_bytes(64, "big") for value in values)


ECRECOVER = bytes.fromhex(
    "cc258b9bd4fe38c8eb4547066144ac8e49d09b4e0228a2b3039582d1011ad25c000000000000000000000000000000000000000000000000"
    "000000000000001cbbe1b005c2a513a3f6df7c99e7121b1d761378f6efc6be8cee0068a20eeceabb32b77ea896e5dee3f6311e3288092a75"
    "058be32e4040f3aeab24a633b90d794d"
)
P256 = bytes.fromhex(
    "cc258b9bd4fe38c8eb4547066144ac8e49d09b4e0228a2b3039582d1011ad25c97abcfe3021b062b5b83e09461e86dbc7faa3fad05f39c39"
    "8c3713c583e386c882c462355274e5ba839c2dddf1bc16aebf9df01632fffc65e077bdb0e8858d413f55f710695f6a501048beb5df9b793e"
    "f2cd4870b3c4752b2ba837f6a3036d73af99ee74133a895d0cf47bfe010f62da2b016a2e3c85e85e4f16a38364aac85a"
)
BN254_PRIME = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
BN254_G2 = _words(
    0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
    0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
    0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
    0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
)
BLS_G1 = _fields(
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
)
BLS_G2 = _fields(
    0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
    0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
    0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
)


def _modexp(rng: Random) -> bytes:
    sizes = [rng.choice((0, 1, 2, 31, 32, 33)) for _ in range(3)]
    numbers = b"".join(word(rng).to_bytes(33, "big")[-size:] if size else b"" for size in sizes)
    if rng.random() < 0.1:
        sizes[rng.randrange(3)] = word(rng)
    return _words(*sizes) + numbers


def _bn254_point(rng: Random) -> bytes:
    return rng.choice((_words(1, 2), _words(1, BN254_PRIME - 2), _words(0, 0), _words(1, 3)))


def _bn254_pairing(rng: Random) -> bytes:
    """Mostly with the point at infinity: a real pairing takes the specification half a second."""
    if rng.random() < 0.01:
        return _words(1, 2) + BN254_G2 + _words(1, BN254_PRIME - 2) + BN254_G2
    return rng.choice((b"", _words(0, 0) + BN254_G2, _words(1, 2) + bytes(128), bytes(192 * 2), bytes(191)))


def _blake2f(rng: Random) -> bytes:
    rounds = rng.choice((0, 1, 2, 12, 12, 64, 0xFFFFFFFF))
    return rounds.to_bytes(4, "big") + rng.randbytes(208) + bytes((rng.choice((0, 1, 1, 2)),))


def _point_evaluation(rng: Random) -> bytes:
    """The zero polynomial: at any point its value is zero, and commitment and proof are the point at infinity."""
    infinity = b"\xc0" + bytes(47)
    versioned = b"\x01" + sha256(infinity).digest()[1:]
    return versioned + _words(rng.randrange(100), rng.choice((0, 0, 0, 1))) + infinity + infinity


def _msm(point: bytes) -> Callable[[Random], bytes]:
    def make(rng: Random) -> bytes:
        return b"".join(point + word(rng).to_bytes(32, "big") for _ in range(rng.choice((0, 1, 1, 2))))

    return make


INPUTS: dict[int, Callable[[Random], bytes]] = {
    0x01: lambda rng: ECRECOVER,
    0x05: _modexp,
    0x06: lambda rng: _bn254_point(rng) + _bn254_point(rng),
    0x07: lambda rng: _bn254_point(rng) + word(rng).to_bytes(32, "big"),
    0x08: _bn254_pairing,
    0x09: _blake2f,
    0x0A: _point_evaluation,
    0x0B: lambda rng: BLS_G1 + rng.choice((BLS_G1, bytes(128))),
    0x0C: _msm(BLS_G1),
    0x0D: lambda rng: BLS_G2 + rng.choice((BLS_G2, bytes(256))),
    0x0E: _msm(BLS_G2),
    0x0F: lambda rng: rng.choice((bytes(384), BLS_G1 + bytes(256), bytes(128) + BLS_G2)),
    0x10: lambda rng: _fields(word(rng)),
    0x11: lambda rng: _fields(word(rng), word(rng)),
    0x100: lambda rng: P256,
}


def precompile_input(rng: Random, address: int) -> bytes:
    """Good input for the precompile at that address; one in five is cut, lengthened or has a byte changed."""
    data = INPUTS.get(address, octets)(rng)
    if rng.random() < 0.8 or not data:
        return data
    place = rng.randrange(len(data))
    return rng.choice((data[:place], data + bytes(rng.randrange(1, 40)), data[:place] + b"\xff" + data[place + 1 :]))
