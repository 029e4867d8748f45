"""The parts of an artifact that describe code: bytes, maps, and places that are filled later."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
