"""Artifacts of Foundry and Hardhat: JSON with a contract's creation and runtime code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusevm.cli.inputs import BadInput, parse_hex, parse_json, read_file
from fusevm.codegen.bytecode import Optimized

_UNLINKED = re.compile(r"__.{36}__")


@dataclass(slots=True)
class ArtifactFile:
    source: str
    form: dict[str, Any]
    creation: bytes
    runtime: bytes

    def with_code(self, made: Optimized) -> dict[str, Any]:
        """The artifact with the new code. Source maps do not fit it and are emptied."""
        form = dict(self.form)
        if not made.report.changed:
            return form
        form["bytecode"] = _replaced(form["bytecode"], made.code)
        if made.deployed is not None and made.deployed[0] == self.runtime:
            places = made.report.runtime.immutables if made.report.runtime is not None else {}
            form["deployedBytecode"] = _replaced(form["deployedBytecode"], made.deployed[1])
            _move_immutables(form["deployedBytecode"], made, places)
        return form

    def warning(self, made: Optimized) -> str | None:
        if made.report.changed and made.deployed is not None and made.deployed[0] != self.runtime:
            return "deployedBytecode is not what bytecode deploys, and is left as it is"
        return None


def read_artifact(path: Path) -> ArtifactFile:
    """Raises BadInput, in one line, where the file is not an artifact of a linked contract."""
    form = parse_json(read_file(path, "an artifact"), str(path))
    if not isinstance(form, dict) or "bytecode" not in form:
        raise BadInput(f"{path} is not an artifact of Foundry or Hardhat: it has no 'bytecode'")
    creation = _code(form, "bytecode", path)
    if not creation:
        raise BadInput(f"{path} has no code: an interface, or an abstract contract")
    return ArtifactFile(str(path), form, creation, _code(form, "deployedBytecode", path))


def _code(form: dict[str, Any], name: str, path: Path) -> bytes:
    found = form.get(name, "0x")
    if isinstance(found, dict):
        found = found.get("object", "0x")
    if not isinstance(found, str):
        raise BadInput(f"{path}: {name!r} is not hex")
    place = _UNLINKED.search(found)
    if place is not None:
        raise BadInput(f"{path}: {name!r} needs a library at digit {place.start()}: link the artifact first")
    return parse_hex(found, f"{path}: {name!r}")


def _replaced(old: Any, code: bytes) -> Any:
    if not isinstance(old, dict):
        return "0x" + code.hex()
    new = dict(old)
    new["object"] = "0x" + code.hex()
    if "sourceMap" in new:
        new["sourceMap"] = ""
    return new


def _move_immutables(form: Any, made: Optimized, places: dict[str, list[int]]) -> None:
    if not isinstance(form, dict) or not form.get("immutableReferences"):
        return
    if made.report.runtime is None or not made.report.runtime.changed:
        return
    form["immutableReferences"] = {
        name: [
            {"start": start, "length": 32}
            for reference in references
            for start in places.get(str(reference["start"]), [])
        ]
        for name, references in form["immutableReferences"].items()
    }
