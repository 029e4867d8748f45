"""BLS12-381 (EIP-2537): addition, multi-scalar multiplication, pairing check and maps to the curve.

A field element is 64 bytes of which the first 16 are zero; a point is its x and y, the point at infinity all zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusevm.evm.forks import Fork
from fusevm.evm.gas import BLS12_PAIRING, linear_cost, msm_cost
from fusevm.evm.precompiles.contract import Pause, PrecompileFailure, no_pause, require_length, require_multiple

FIELD_MODULUS = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab", 16
)
_PADDING, _FIELD = 16, 64
_FP2, _G1, _G2 = 2 * _FIELD, 2 * _FIELD, 4 * _FIELD
_SCALAR = 32
_PAIR = _G1 + _G2
_PADDED_MODULUS = FIELD_MODULUS.to_bytes(_FIELD, "big")
_MSM_PART, _PAIRING_PART = 64, 16  # items between two pauses: about ten milliseconds

# EIP-2537: the price of k scalar multiplications at once, in thousandths of k single ones; the last entry serves all
# larger k.
_G1_DISCOUNT = (
    1000,  949,  848,  797,  764,  750,  738,  728,  719,  712,  705,  698,  692,  687,  682,  677,
     673,  669,  665,  661,  658,  654,  651,  648,  645,  642,  640,  637,  635,  632,  630,  627,
     625,  623,  621,  619,  617,  615,  613,  611,  609,  608,  606,  604,  603,  601,  599,  598,
     596,  595,  593,  592,  591,  589,  588,  586,  585,  584,  582,  581,  580,  579,  577,  576,
     575,  574,  573,  572,  570,  569,  568,  567,  566,  565,  564,  563,  562,  561,  560,  559,
     558,  557,  556,  555,  554,  553,  552,  551,  550,  549,  548,  547,  547,  546,  545,  544,
     543,  542,  541,  540,  540,  539,  538,  537,  536,  536,  535,  534,  533,  532,  532,  531,
     530,  529,  528,  528,  527,  526,  525,  525,  524,  523,  522,  522,  521,  520,  520,  519,
)  # fmt: skip
_G2_DISCOUNT = (
    1000, 1000,  923,  884,  855,  832,  812,  796,  782,  770,  759,  749,  740,  732,  724,  717,
     711,  704,  699,  693,  688,  683,  679,  674,  670,  666,  663,  659,  655,  652,  649,  646,
     643,  640,  637,  634,  632,  629,  627,  624,  622,  620,  618,  615,  613,  611,  609,  607,
     606,  604,  602,  600,  598,  597,  595,  593,  592,  590,  589,  587,  586,  584,  583,  582,
     580,  579,  578,  576,  575,  574,  573,  571,  570,  569,  568,  567,  566,  565,  563,  562,
     561,  560,  559,  558,  557,  556,  555,  554,  553,  552,  552,  551,  550,  549,  548,  547,
     546,  545,  545,  544,  543,  542,  541,  541,  540,  539,  538,  537,  537,  536,  535,  535,
     534,  533,  532,  532,  531,  530,  530,  529,  528,  528,  527,  526,  526,  525,  524,  524,
)  # fmt: skip
_G1_MULTIPLICATION = 12_000
_G2_MULTIPLICATION = 22_500


def g1_msm_gas(data: bytes, fork: Fork) -> int:
    return msm_cost(len(data) // (_G1 + _SCALAR), _G1_MULTIPLICATION, _G1_DISCOUNT)


def g2_msm_gas(data: bytes, fork: Fork) -> int:
    return msm_cost(len(data) // (_G2 + _SCALAR), _G2_MULTIPLICATION, _G2_DISCOUNT)


def pairing_gas(data: bytes, fork: Fork) -> int:
    return linear_cost(*BLS12_PAIRING, len(data) // _PAIR)


def _elements(data: bytes) -> bytes:
    """The field elements of the input without their padding, each checked."""
    return b"".join(_element(data[start : start + _FIELD]) for start in range(0, len(data), _FIELD))


def _element(data: bytes) -> bytes:
    if data >= _PADDED_MODULUS:  # bytes of one length compare as the numbers they are
        if any(data[:_PADDING]):
            raise PrecompileFailure("invalid field element: its top 16 bytes are not zero")
        raise PrecompileFailure("invalid field element: not below the field's modulus")
    return data[_PADDING:]


def _padded(elements: bytes) -> bytes:
    size = _FIELD - _PADDING
    return b"".join(bytes(_PADDING) + elements[start : start + size] for start in range(0, len(elements), size))


def _g1(data: bytes, in_subgroup: bool) -> Any:
    from py_arkworks_bls12381 import G1Point

    return _decoded(G1Point.from_xy_bytes_be if in_subgroup else G1Point.from_xy_bytes_unchecked_be, data)


def _g2(data: bytes, in_subgroup: bool) -> Any:
    from py_arkworks_bls12381 import G2Point

    return _decoded(G2Point.from_xy_bytes_be if in_subgroup else G2Point.from_xy_bytes_unchecked_be, data)


def _decoded(decode: Any, data: bytes) -> Any:
    """Both decoders of the library check the curve equation; 'unchecked' leaves out the subgroup only."""
    elements = _elements(data)
    try:
        return decode(elements)
    except ValueError as error:
        raise PrecompileFailure(f"invalid point: {error}") from error


def _encoded(point: Any) -> bytes:
    return _padded(point.to_xy_bytes_be())


def g1_add(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    require_length(data, 2 * _G1)
    return _encoded(_g1(data[:_G1], in_subgroup=False) + _g1(data[_G1:], in_subgroup=False))


def g2_add(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    require_length(data, 2 * _G2)
    return _encoded(_g2(data[:_G2], in_subgroup=False) + _g2(data[_G2:], in_subgroup=False))


def g1_msm(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from py_arkworks_bls12381 import G1Point

    return _encoded(_msm(data, _G1, _g1, G1Point, pause))


def g2_msm(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from py_arkworks_bls12381 import G2Point

    return _encoded(_msm(data, _G2, _g2, G2Point, pause))


def _msm(data: bytes, size: int, decoded: Any, group: Any, pause: Pause) -> Any:
    total = None
    for pairs in _parts(data, size + _SCALAR, _MSM_PART, pause):
        points = [decoded(pair[:size], in_subgroup=True) for pair in pairs]
        part = group.multiexp_unchecked(points, _scalars(pairs))
        total = part if total is None else total + part
    return total


def _parts(data: bytes, size: int, count: int, pause: Pause) -> Iterator[list[bytes]]:
    """The items of that size, in parts, with a pause before each part."""
    require_multiple(data, size)
    step = count * size
    for first in range(0, len(data), step):
        pause()
        yield [data[start : start + size] for start in range(first, min(first + step, len(data)), size)]


def _scalars(pairs: list[bytes]) -> list[Any]:
    """Any 256-bit number is a scalar; in the subgroup only its rest modulo the order counts."""
    from py_arkworks_bls12381 import Scalar

    return [Scalar.from_be_bytes_mod_order(pair[-_SCALAR:]) for pair in pairs]


def pairing_check(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from py_arkworks_bls12381 import GT

    total = None
    for pairs in _parts(data, _PAIR, _PAIRING_PART, pause):
        g1s = [_g1(pair[:_G1], in_subgroup=True) for pair in pairs]
        g2s = [_g2(pair[_G1:], in_subgroup=True) for pair in pairs]
        part = GT.multi_pairing(g1s, g2s)
        total = part if total is None else total * part
    return int(total == GT.one()).to_bytes(32, "big")


def map_fp_to_g1(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from py_arkworks_bls12381 import G1Point

    require_length(data, _FIELD)
    return _encoded(G1Point.map_from_fp_be(_elements(data)))


def map_fp2_to_g2(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    from py_arkworks_bls12381 import G2Point

    require_length(data, _FP2)
    return _encoded(G2Point.map_from_fp2_be(_elements(data)))
