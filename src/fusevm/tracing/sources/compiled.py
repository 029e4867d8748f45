"""The parts of an artifact that describe code: bytes, maps, places to fill, and the names of functions and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fusevm.evm.keccak import keccak256
from fusevm.tracing.sources.contracts import CompiledCode, Range
from fusevm.tracing.sources.maps import CodeMap, Files, from_solc, from_vyper

_PLACEHOLDER = re.compile(r"__.{36}__")


def compiled_code(form: Mapping[str, Any], files: Files) -> CompiledCode:
    """Of an object with `object` and `sourceMap`, as solc, Vyper and Foundry write it."""
    digits = (form.get("object") or "").removeprefix("0x")
    holes: list[Range] = [(match.start() // 2, 20) for match in _PLACEHOLDER.finditer(digits)]
    for references in (form.get("immutableReferences") or {}).values():
        holes += [(reference["start"], reference["length"]) for reference in references]
    code = bytes.fromhex(_PLACEHOLDER.sub("0" * 40, digits))
    return CompiledCode(code, _map_of(form.get("sourceMap"), code, files), tuple(holes))


def _map_of(source_map: Any, code: bytes, files: Files) -> CodeMap:
    if isinstance(source_map, Mapping):
        return from_vyper(code, source_map, files)
    return from_solc(code, source_map or "", files)


def selectors_of(methods: Mapping[str, str] | None, abi: Any) -> dict[bytes, str]:
    """Signatures by their first four bytes: of functions as the compiler lists them, and of what the ABI has."""
    found = {keccak256(text.encode())[:4]: text for text in _signatures(abi)}
    for text, selector in (methods or {}).items():
        found[int(selector, 16).to_bytes(4, "big")] = text
    return found


def _signatures(abi: Any) -> Iterator[str]:
    for entry in abi if isinstance(abi, list) else ():
        if entry.get("type") in ("function", "error"):
            yield f"{entry['name']}({','.join(map(_type_of, entry.get('inputs', [])))})"


def _type_of(parameter: Mapping[str, Any]) -> str:
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(map(_type_of, parameter['components']))}){kind.removeprefix('tuple')}"
