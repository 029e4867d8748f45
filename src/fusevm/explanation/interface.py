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

MOST_FUNCTIONS = 512
MOST_SIGNATURES = 20_000  # words of a text that are tried as signatures
_SIGNATURE = re.compile(r"\b([A-Za-z_$][\w$]*\((?:[\w$\[\]]+(?:,[\w$\[\]]+)*)?\))")
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


def functions_in(abi: Abi, code: bytes, fork: Fork) -> list[dict[str, Any]]:
    """For the page: what can be called, with the types of its arguments; unknown selectors come last."""
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
        for each in selectors_in(code, fork)
        if each.hex() not in known
    ]
    return found[:MOST_FUNCTIONS]


@lru_cache(maxsize=8)
def selectors_in(code: bytes, fork: Fork) -> tuple[bytes, ...]:
    """Words of four bytes that are compared with something soon after they are pushed."""
    found: dict[bytes, None] = {}
    waiting: list[tuple[int, bytes]] = []
    for number, each in enumerate(instructions(code, fork)):
        if each.name in ("PUSH3", "PUSH4"):
            waiting.append((number, (each.push or 0).to_bytes(4, "big")))
        elif each.name in _COMPARES:
            found.update((selector, None) for at, selector in waiting if number - at <= 2)
            waiting.clear()
        if len(found) >= MOST_FUNCTIONS:
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
    return list(words)[:MOST_SIGNATURES]
