"""Reading contracts with their sources from what build tools write.

Known are artifacts of Foundry and Hardhat, output of solc (standard JSON, combined JSON) and of Vyper (standard JSON,
`combined_json`). Where a file does not hold the sources, they are read from disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fusevm.tracing.sources.builds import foundry_paths, hardhat_build
from fusevm.tracing.sources.compiled import compiled_code
from fusevm.tracing.sources.contracts import SourceContract, Sources
from fusevm.tracing.sources.files import SourceFile
from fusevm.tracing.sources.maps import Files
from fusevm.values import BadValue

Json = Mapping[str, Any]


class BadArtifact(BadValue):
    """A file that is not what a build tool writes, in one line."""


class Document(NamedTuple):
    """A file of JSON, and where relative paths of sources begin."""

    path: Path
    form: Json
    root: Path

    def file(self, name: str, content: Any = None) -> SourceFile | None:
        """A source by its name: with this content, or from disk; None where it is not there."""
        if isinstance(content, str):
            return SourceFile(name, content.encode())
        for folder in (self.root, *self.path.resolve().parents[:6]):
            for place in (folder / name, folder / "node_modules" / name):
                if place.is_file():
                    return SourceFile(name, place.read_bytes())
        return None


def read_sources(paths: Iterable[str | Path], root: str | Path | None = None) -> Sources:
    """The contracts of some files of JSON. Raises BadArtifact, in one line, where one of them is something else.

    Sources that a file does not hold are looked for in `root` and in the folders around the file.
    """
    found = Sources()
    for each in paths:
        found.add(_contracts_in(_document(Path(each), root)))
    return found


def _document(path: Path, root: str | Path | None) -> Document:
    try:
        form = json.loads(path.read_bytes())
    except OSError as error:
        raise BadArtifact(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadArtifact(f"{path}: not JSON") from None
    if not isinstance(form, dict):
        raise BadArtifact(f"{path}: expected an object, as build tools write it")
    return Document(path, form, Path.cwd() if root is None else Path(root))


def _contracts_in(document: Document) -> list[SourceContract]:
    try:
        for fits, read in _READERS:
            if fits(document.form):
                return read(document)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, BadArtifact):
            raise
        raise BadArtifact(f"{document.path}: malformed: {type(error).__name__}: {error}") from None
    raise BadArtifact(
        f"{document.path}: not an artifact of Foundry or Hardhat, nor output of solc or Vyper in JSON with source maps"
    )


# -- each form


def _standard_json(document: Document) -> list[SourceContract]:
    """solc's and Vyper's output; sources come from the input where the file has it, else from disk."""
    return _from_output(document, document.form, {})


def _build_info(document: Document) -> list[SourceContract]:
    return _from_output(document, document.form["output"], document.form["input"].get("sources", {}))


def _from_output(document: Document, output: Json, inputs: Json) -> list[SourceContract]:
    files: dict[int, SourceFile] = {}
    for name, source in output.get("sources", {}).items():
        given = inputs.get(name) or inputs.get(name.removeprefix("project/")) or {}
        file = document.file(name, given.get("content"))
        if file is not None:
            files[source["id"]] = file
    by_name = {file.path: file for file in files.values()}
    return [
        _contract(name, by_name.get(path), form, files)
        for path, contracts in output.get("contracts", {}).items()
        for name, form in contracts.items()
        if form.get("evm")
    ]


def _contract(name: str, file: SourceFile | None, form: Json, files: Files) -> SourceContract:
    evm = form["evm"]
    creation, runtime = (compiled_code(evm.get(key) or {}, files) for key in ("bytecode", "deployedBytecode"))
    return SourceContract(name, file, creation, runtime, form.get("abi") or ())


def _foundry(document: Document) -> list[SourceContract]:
    form = document.form
    files: dict[int, SourceFile] = {}
    for number, name in foundry_paths(document.path, form).items():
        file = document.file(name)
        if file is not None:
            files[number] = file
    creation, runtime = (compiled_code(form.get(key) or {}, files) for key in ("bytecode", "deployedBytecode"))
    return [SourceContract(document.path.stem, files.get(form.get("id", -1)), creation, runtime, form.get("abi") or ())]


def _hardhat(document: Document) -> list[SourceContract]:
    """The artifact has no maps; its build info does."""
    form = document.form
    build = hardhat_build(document.path, form)
    if build is None:
        raise BadArtifact(f"{document.path}: its build info is missing; give the file in build-info, or compile again")
    contracts = _from_output(document, build["output"], build["input"].get("sources", {}))
    name, source = form["contractName"], form["sourceName"]
    names = (source, f"project/{source}")
    first = [each for each in contracts if each.name == name and each.file is not None and each.file.path in names]
    return [*first, *(each for each in contracts if each not in first)]


def _combined_json(document: Document) -> list[SourceContract]:
    listed = [document.file(name) for name in document.form.get("sourceList", [])]
    files = {number: file for number, file in enumerate(listed) if file is not None}
    by_name = {file.path: file for file in files.values()}
    found = []
    for key, form in document.form["contracts"].items():
        path, _, name = key.rpartition(":")
        creation, runtime = (
            compiled_code({"object": form.get(code, ""), "sourceMap": form.get(text, "")}, files)
            for code, text in (("bin", "srcmap"), ("bin-runtime", "srcmap-runtime"))
        )
        abi = form.get("abi") or ()
        interface = json.loads(abi) if isinstance(abi, str) else abi
        found.append(SourceContract(name, by_name.get(path), creation, runtime, interface))
    return found


def _vyper_combined(document: Document) -> list[SourceContract]:
    found = []
    for path, form in document.form.items():
        if not isinstance(form, dict):
            continue
        file = document.file(path)
        files = {} if file is None else {0: file}
        creation, runtime = (
            compiled_code({"object": form[code], "sourceMap": form.get(table) or {}}, files)
            for code, table in (("bytecode", "source_map"), ("bytecode_runtime", "source_map_runtime"))
        )
        found.append(SourceContract(Path(path).stem, file, creation, runtime, form.get("abi") or ()))
    return found


def _has_contracts_by_file(form: Json) -> bool:
    contracts = form.get("contracts")
    return isinstance(contracts, dict) and "sourceList" not in form


def _is_vyper_combined(form: Json) -> bool:
    return any(isinstance(each, dict) and "bytecode_runtime" in each for each in form.values())


_READERS: tuple[tuple[Callable[[Json], bool], Callable[[Document], list[SourceContract]]], ...] = (
    (lambda form: "input" in form and "output" in form, _build_info),
    (lambda form: str(form.get("_format", "")).startswith("hh") and "contractName" in form, _hardhat),
    (lambda form: isinstance(form.get("bytecode"), dict) and "deployedBytecode" in form, _foundry),
    (lambda form: "contracts" in form and "sourceList" in form, _combined_json),
    (_has_contracts_by_file, _standard_json),
    (_is_vyper_combined, _vyper_combined),
)
