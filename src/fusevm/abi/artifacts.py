"""Contracts as build tools leave them: an ABI with creation and runtime code.

Read are the artifacts of Foundry, Hardhat, Truffle and Ape (EthPM), and the output of solc and Vyper: standard JSON and
combined JSON.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from fusevm.abi.entries import Entry
from fusevm.abi.interface import Abi
from fusevm.abi.types import BadAbi
from fusevm.values import AddressLike, BadValue, shown, shown_path, to_address, to_bytes

_PLACEHOLDER = re.compile(r"__.{36}__")
_CREATION = ("bytecode", "deploymentBytecode", "bin")
_RUNTIME = ("deployedBytecode", "runtimeBytecode", "bytecode_runtime", "bin-runtime")
_MAX_LISTED = 20
_HINT = "an artifact of Foundry, Hardhat or Ape, or the JSON output of solc or Vyper"


class SeveralContracts(BadAbi):
    """An output with several contracts, where one of them must be named.

    >>> try:
    ...     Artifact.read({"contracts": {"a.sol": {"A": {"bin": "00"}, "B": {"bin": "00"}, "I": {"abi": []}}}})
    ... except SeveralContracts as error:
    ...     print(error)
    the artifact: 2 contracts with code; name the one that is meant: a.sol:A, a.sol:B
    """

    def __init__(self, where: str, names: Iterable[str]) -> None:
        self.names = sorted(names)
        listed = ", ".join(self.names[:_MAX_LISTED]) + (", …" if len(self.names) > _MAX_LISTED else "")
        super().__init__(f"{where}: {len(self.names)} contracts with code; name the one that is meant: {listed}")


@dataclass(slots=True)
class Artifact:
    """A contract's interface and code.

    >>> artifact = Artifact.read({"abi": [], "bytecode": "0x60fe60005360016000f3"})
    >>> artifact.creation_code().hex()
    '60fe60005360016000f3'
    """

    name: str
    abi: Abi
    creation: str = ""  # hex digits, with placeholders where libraries must be linked
    runtime: str = ""
    links: dict[str, list[int]] = field(default_factory=dict)  # "file:Library" to places in bytes of the creation code

    @classmethod
    def read(cls, source: ArtifactLike, contract: str | None = None) -> Artifact:
        """From a path, JSON text, what JSON text parses to, an ABI, or signatures.

        `contract` says which one, as `Token` or `src/Token.sol:Token`, where there are several.
        """
        if isinstance(source, Artifact):
            return source
        if isinstance(source, Abi):
            return cls("", source)
        where = "the artifact"
        if isinstance(source, str | os.PathLike):
            source, where = _parsed(source)
        if isinstance(source, Mapping):
            return _chosen(source, contract, where)
        entries: Any = source
        return cls("", Abi(entries))

    def creation_code(self, *arguments: Any, libraries: Mapping[str, AddressLike] | None = None) -> bytes:
        """The creation code, linked, with the constructor's arguments encoded after it."""
        if not self.creation:
            raise BadAbi(f"{self.name or 'this ABI'} has no creation code: an interface, or an abstract contract?")
        code = to_bytes(
            self._linked({} if libraries is None else libraries), f"the creation code of {self.name or 'the artifact'}"
        )
        return code + self.abi.constructor.encode(*arguments)

    def runtime_code(self) -> bytes:
        """The code that the constructor leaves, immutables zero; empty where the artifact has none."""
        return to_bytes(_without_places(self.runtime, self.name), f"the runtime code of {self.name or 'the artifact'}")

    def _linked(self, libraries: Mapping[str, AddressLike]) -> str:
        if not isinstance(libraries, Mapping):
            raise BadValue(f"libraries: expected addresses by name, got {shown(libraries)}")
        digits = self.creation
        places = dict(self.links)
        for given, address in libraries.items():
            names = [name for name in places if given in (name, name.rpartition(":")[2])]
            if not names:
                known = ", ".join(places) or "none"
                raise BadValue(f"libraries: {self.name or 'the artifact'} needs no {shown(given)}; it needs {known}")
            hexed = to_address(address, f"libraries[{shown(given)}]").hex()
            for name in names:
                for place in places.pop(name):
                    digits = digits[: 2 * place] + hexed + digits[2 * place + 40 :]
        if places:
            listed = ", ".join(f"{name!r}: address" for name in places)
            raise BadValue(f"{self.name or 'the artifact'} needs libraries: give libraries={{{listed}}}")
        return _without_places(digits, self.name)


ArtifactLike: TypeAlias = (
    "str | os.PathLike[str] | Artifact | Abi | Mapping[str, Any] | Iterable[str | Mapping[str, Any] | Entry]"
)


DEEPEST = 900  # levels of JSON
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def _parsed(source: str | os.PathLike[str]) -> tuple[Any, str]:
    text, where = os.fspath(source), "the JSON text"
    if not (isinstance(source, str) and source.lstrip()[:1] in ("{", "[")):
        where = text
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadAbi(f"cannot read {shown_path(text)}: {getattr(error, 'strerror', None) or error}") from None
    if is_deep(text):
        raise BadAbi(f"{where}: nested too deeply")
    try:
        return json.loads(text), where
    except json.JSONDecodeError as error:
        raise BadAbi(f"{where}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise BadAbi(f"{where}: nested too deeply") from None
    except ValueError:
        raise BadAbi(f"{where}: an integer has more digits than Python reads") from None


def is_deep(text: str) -> bool:
    """Whether JSON nests too deeply to be read. Where a library has raised Python's limit of recursion, deep text would
    take `json` past the end of the machine's stack."""
    if text.count("[") + text.count("{") < DEEPEST:
        return False
    depth = deepest = 0
    for token in _NESTING.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        deepest = max(deepest, depth)
    return deepest > DEEPEST


def _chosen(form: Mapping[str, Any], contract: str | None, where: str) -> Artifact:
    found = dict(_contracts(form, ""))
    if not found:
        raise BadAbi(f"{where}: not {_HINT}: it has no 'abi' and no code")
    if contract is not None:
        wanted = [name for name in found if contract in (name, name.rpartition(":")[2])]
        if not wanted:
            raise BadAbi(f"{where}: no contract {shown(contract)}; it has {_listed(found) or 'one without a name'}")
    else:
        wanted = [name for name in found if len(found) == 1 or _code(found[name], _CREATION)]
    if len(wanted) != 1:
        raise SeveralContracts(where, wanted or list(found))
    return _artifact(found[wanted[0]], wanted[0], where)


def _contracts(form: Mapping[str, Any], prefix: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All contracts of a compiler's output by `file:Name`, or the one that an artifact is."""
    if "abi" in form or any(key in form for key in _CREATION):
        yield prefix or str(form.get("contractName", "")), form
        return
    inner = form.get("contracts", form) if depth == 0 else form
    if depth < 3 and isinstance(inner, Mapping):
        for key, value in inner.items():
            if isinstance(value, Mapping):
                yield from _contracts(value, f"{prefix}:{key}" if prefix else str(key), depth + 1)


def _artifact(form: Mapping[str, Any], name: str, where: str) -> Artifact:
    entries = form.get("abi", [])
    if isinstance(entries, str):  # solc before 0.8 in combined JSON
        entries, _ = _parsed(entries)
    if not isinstance(entries, list | tuple):
        raise BadAbi(f"{where}: 'abi' is not a list")
    creation = _digits(_code(form, _CREATION), f"{where}: bytecode")
    try:
        links = _links(form, creation)
    except (AttributeError, TypeError, KeyError):
        raise BadAbi(f"{where}: 'linkReferences' are not as build tools write them") from None
    return Artifact(name, Abi(entries), creation, _digits(_code(form, _RUNTIME), f"{where}: runtime code"), links)


def _code(form: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Hex text, wherever the tool puts it."""
    evm = form.get("evm")
    for holder in (form, evm) if isinstance(evm, Mapping) else (form,):
        for name in names:
            found = holder.get(name)
            if isinstance(found, Mapping):
                found = found.get("object", found.get("bytecode"))
            if found:
                return found
    return ""


def _digits(found: Any, what: str) -> str:
    if not isinstance(found, str):
        raise BadAbi(f"{what} is not hex text")
    return found.strip().removeprefix("0x")


def _links(form: Mapping[str, Any], creation: str) -> dict[str, list[int]]:
    """Where libraries belong, as `linkReferences` say; where nothing says it, by the placeholder's own text."""
    links: dict[str, list[int]] = {}
    evm = form.get("evm")
    for holder in (form, evm if isinstance(evm, Mapping) else {}):
        code = holder.get("bytecode")
        listed = code.get("linkReferences") if isinstance(code, Mapping) else holder.get("linkReferences")
        for file, libraries in (listed or {}).items():
            for library, places in libraries.items():
                links[f"{file}:{library}"] = [place["start"] for place in places]
    known = {place for places in links.values() for place in places}
    for found in _PLACEHOLDER.finditer(creation):
        if found.start() // 2 not in known:
            links.setdefault(found[0].strip("_$"), []).append(found.start() // 2)
    return links


def _without_places(digits: str, name: str) -> str:
    found = _PLACEHOLDER.search(digits)
    if found is not None:
        raise BadAbi(f"{name or 'the artifact'} needs a library at digit {found.start()}: {found[0]}")
    return digits


def _listed(found: Mapping[str, Any]) -> str:
    return ", ".join(sorted(found)[:_MAX_LISTED])
