"""What build tools keep beside their artifacts: the numbers of sources (Foundry), whole builds (Hardhat)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]


def foundry_paths(path: Path, form: Json) -> dict[int, str]:
    """Paths of sources by the numbers that maps use: from the build info, else from the artifacts in the same folder.

    An artifact itself says only its own number.
    """
    found: dict[int, str] = {}
    for build in _builds_near(path):
        numbered = build.get("source_id_to_path")
        if isinstance(numbered, dict):
            found |= {int(number): name for number, name in numbered.items()}
        elif isinstance(build.get("output"), dict):
            found |= {source["id"]: name for name, source in build["output"].get("sources", {}).items()}
    for other in (form, *_artifacts_near(path)) if not found else (form,):
        name = _own_path(other)
        if name is not None and isinstance(other.get("id"), int):
            found[other["id"]] = name
    return found


def hardhat_build(path: Path, form: Json) -> dict[str, Any] | None:
    """The build info of an artifact: named by a `.dbg.json` (Hardhat 2) or by its `buildInfoId` (Hardhat 3)."""
    debug = _read(path.with_suffix(".dbg.json"))
    if debug is not None and isinstance(debug.get("buildInfo"), str):
        return _read(path.parent / debug["buildInfo"])
    name = form.get("buildInfoId")
    for folder in path.resolve().parents:
        given = _read(folder / "build-info" / f"{name}.json")
        if given is not None:
            output = _read(folder / "build-info" / f"{name}.output.json")
            return given if output is None else {**given, **output}
    return None


def _own_path(form: Json) -> str | None:
    tree = form.get("ast")
    if isinstance(tree, dict) and isinstance(tree.get("absolutePath"), str):
        return str(tree["absolutePath"])
    metadata = form.get("metadata")
    if isinstance(metadata, dict):
        target = metadata.get("settings", {}).get("compilationTarget", {})
        return next(iter(target), None)
    return None


def _builds_near(path: Path) -> Iterator[dict[str, Any]]:
    for folder in path.resolve().parents[:3]:
        for file in sorted((folder / "build-info").glob("*.json")):
            build = _read(file)
            if build is not None:
                yield build


def _artifacts_near(path: Path) -> Iterator[dict[str, Any]]:
    """`out/File.sol/Contract.json` has its neighbours in `out/*/`."""
    for file in sorted(path.resolve().parent.parent.glob("*/*.json")):
        form = _read(file)
        if form is not None and "bytecode" in form:
            yield form


def _read(path: Path) -> dict[str, Any] | None:
    try:
        form = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return form if isinstance(form, dict) else None
