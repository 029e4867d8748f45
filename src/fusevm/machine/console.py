"""console.log as Hardhat's console.sol encodes it: a static call to an address without code, whose data is the text.

The call costs what a call to an address without code costs, so that a contract behaves the same whether or not anyone
listens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

from fusevm.evm.keccak import keccak256

CONSOLE = bytes.fromhex("000000000000000000636f6e736f6c652e6c6f67")  # "console.log"
_KINDS = ("uint256", "string", "bool", "address")
_MOST = 4  # arguments
_SINGLE = ("int256", "bytes", *(f"bytes{size}" for size in range(1, 33)))


def readable(data: bytes) -> str:
    """The line that a call of the console stands for; hex where it is not of a form that is known.

    >>> readable(bytes.fromhex("f82c50f1") + (7).to_bytes(32, "big"))  # log(uint256)
    '7'
    """
    kinds = _signatures().get(data[:4])
    if kinds is None:
        return "0x" + data.hex()
    from eth_abi.abi import decode
    from eth_abi.exceptions import DecodingError

    try:
        return _formatted(decode(kinds, data[4:], strict=False), kinds)
    except (DecodingError, OverflowError, UnicodeDecodeError):
        return "0x" + data.hex()


@cache
def _signatures() -> dict[bytes, tuple[str, ...]]:
    """The types of the arguments, by selector. Old versions of console.sol took `uint` as the name of uint256."""
    found: dict[bytes, tuple[str, ...]] = {}
    several = (kinds for count in range(_MOST + 1) for kinds in product(_KINDS, repeat=count))
    for kinds in (*several, *((kind,) for kind in _SINGLE)):
        for text in (",".join(kinds), ",".join(kinds).replace("int256", "int")):
            found[keccak256(f"log({text})".encode())[:4]] = kinds
    return found


def _formatted(values: Sequence[Any], kinds: Sequence[str]) -> str:
    """As console.log of JavaScript: a first text may say where the others go."""
    shown = [_shown(value, kind) for value, kind in zip(values, kinds, strict=True)]
    if not shown or kinds[0] != "string" or "%" not in shown[0]:
        return " ".join(shown)
    rest = iter(shown[1:])
    head = "".join(_filled(shown[0], rest))
    return " ".join((head, *rest))


def _filled(text: str, values: Iterator[str]) -> Iterator[str]:
    at = 0
    while at < len(text):
        mark = text[at : at + 2]
        if mark == "%%":
            yield "%"
            at += 2
        elif len(mark) == 2 and mark[0] == "%" and mark[1] in "sdifoO":
            yield next(values, mark)
            at += 2
        else:
            yield text[at]
            at += 1


def _shown(value: Any, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if kind.startswith("bytes"):
        return "0x" + bytes(value).hex()
    if kind == "address":
        return checksummed(bytes.fromhex(str(value).removeprefix("0x")))
    return str(value)


def checksummed(address: bytes) -> str:
    """EIP-55."""
    digits = address.hex()
    hashed = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(nibble, 16) >= 8 else digit for digit, nibble in zip(digits, hashed, strict=False)
    )
