"""The functions of a contract: of its ABI, or by the selectors that its code compares, named by the source's text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fusevm.abi.artifacts import Artifact
from fusevm.abi.entries import Function
from fusevm.abi.interface import Abi
from fusevm.abi.types import BadAbi
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.explanation.inputs import BadSource
from fusevm.values import BadValue

MAX_FUNCTIONS = 512
MAX_SIGNATURES = 20_000  # words of a text that are tried as signatures
_SIGNATURE = re.compile(r"\b([A-Za-z_$][\w$]*\((?:[\w$\[\]]+(?:,[\w$\[\]]+)*)?\))")
_UNTIL_JUMP = 3  # instructions from the comparison to its jump: ISZERO and the target
_COMPARES = ("EQ", "GT", "LT", "SUB", "XOR")


def interface_of(abi: Any, artifact: Artifact | None, text: str, code: bytes, fork: Fork) -> Abi:
    """What was given, else the artifact's, else what the text and the selectors tell."""
    if abi is not None:
        try:
            return Artifact.read(abi).abi
        except BadValue as error:
            raise BadSource(str(error)) from None
    if artifact is not None and len(artifact.abi.functions):
        return artifact.abi
    known = _named_in(text)
    return Abi([known[each] for each in selectors_in(code, fork) if each in known])


def functions_in(abi: Abi, code: bytes, fork: Fork, *, complete: bool = False) -> list[dict[str, Any]]:
    """For the page: what can be called, with the types of its arguments.

    Selectors that the code dispatches on and the ABI lacks come last, unless the ABI is `complete`.
    """
    found = [
        {
            "name": each.name,
            "signature": each.signature,
            "selector": each.selector.hex(),
            "inputs": [{"name": given.name or "", "type": given.type.name} for given in each.inputs],
            "payable": each.mutability == "payable",
        }
        for each in abi.functions
    ]
    known = {each["selector"] for each in found}
    found += [
        {"name": f"0x{each.hex()}", "signature": None, "selector": each.hex(), "inputs": [], "payable": False}
        for each in (() if complete else selectors_in(code, fork))
        if each.hex() not in known
    ]
    return found[:MAX_FUNCTIONS]


@lru_cache(maxsize=8)
def selectors_in(code: bytes, fork: Fork) -> tuple[bytes, ...]:
    """Words of four bytes that are compared soon after they are pushed, to jump by the answer at once."""
    found: dict[bytes, None] = {}
    waiting: list[tuple[int, bytes]] = []
    compared: tuple[int, list[bytes]] = (0, [])  # where, and what is selected if a jump follows
    for number, each in enumerate(instructions(code, fork)):
        if each.name in ("PUSH3", "PUSH4"):
            waiting.append((number, (each.push or 0).to_bytes(4, "big")))
        elif each.name in _COMPARES:
            compared = number, [selector for at, selector in waiting if number - at <= 2]
            waiting.clear()
        elif each.name == "JUMPI":
            if number - compared[0] <= _UNTIL_JUMP:
                found.update(dict.fromkeys(compared[1]))
            waiting.clear()
        if len(found) >= MAX_FUNCTIONS:
            break
    return tuple(found)


def _named_in(text: str) -> dict[bytes, Function]:
    """Everything that looks like a signature in the text, comments included, by selector."""
    found: dict[bytes, Function] = {}
    for signature in _first(dict.fromkeys(match[1] for match in _SIGNATURE.finditer(text))):
        try:
            function = Function.parse(signature)
        except BadAbi:
            continue
        found.setdefault(function.selector, function)
    return found


def _first(words: Iterable[str]) -> list[str]:
    return list(words)[:MAX_SIGNATURES]
