"""Solidity and Vyper, by the compilers that are installed: solc's Yul, and Vyper's bytecode with its source map."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fusevm.evm.forks import Fork
from fusevm.explanation.inputs import BadSource
from fusevm.tracing.sources.files import SourceFile
from fusevm.tracing.sources.maps import from_vyper

SECONDS = 60
_WANTED = ["abi", "ir"]
_VYPER_WANTED = ("bytecode", "bytecode_runtime", "source_map_runtime", "abi")


class FromSolc(NamedTuple):
    """A contract as Yul, which says of every part where in the Solidity text it comes from."""

    yul: str
    abi: list[dict[str, Any]]
    source: int  # the number that the Yul text has for the Solidity text


class FromVyper(NamedTuple):
    creation: bytes
    runtime: bytes
    lines_at: dict[int, tuple[int, ...]]
    abi: list[dict[str, Any]]


def compile_solidity(text: str, name: str, fork: Fork, contract: str | None, program: str | None) -> FromSolc:
    """Raises BadSource: solc is missing, too old, or says that the text is wrong."""
    solc = _found("solc", program)
    file = name if name.endswith(".sol") else f"{name or 'source'}.sol"
    settings: dict[str, Any] = {
        "evmVersion": fork.label,
        "optimizer": {"enabled": False},
        "outputSelection": {"*": {"*": _WANTED}},
    }
    request = {"language": "Solidity", "sources": {file: {"content": text}}, "settings": settings}
    answer = _ask_solc(solc, request)
    if any("evm version" in str(error.get("message", "")).lower() for error in answer.get("errors", ())):
        del settings["evmVersion"]  # a fork that this solc does not know: its newest
        answer = _ask_solc(solc, request)
    for error in answer.get("errors", ()):
        if error.get("severity") == "error":
            raise BadSource(f"solc: {_line(error.get('formattedMessage') or error.get('message'))}")
    chosen = _chosen(answer.get("contracts", {}).get(file, {}), contract)
    return FromSolc(str(chosen["ir"]), list(chosen.get("abi", ())), 0)


def _chosen(contracts: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    """The one of that name, else the last that has code: what others are based on is written before them."""
    with_code = {name: each for name, each in contracts.items() if each.get("ir")}
    if wanted is not None and wanted not in with_code:
        raise BadSource(f"solc: no contract {wanted!r} with code; there are {', '.join(with_code) or 'none'}")
    if not with_code:
        raise BadSource("solc: no contract with code, or a solc without Yul output: 0.8.13 or newer is needed")
    found: dict[str, Any] = with_code[wanted or list(with_code)[-1]]
    return found


def _ask_solc(solc: str, request: dict[str, Any]) -> dict[str, Any]:
    output = _run([solc, "--standard-json"], json.dumps(request))
    try:
        answer = json.loads(output)
    except ValueError:
        raise BadSource(f"solc: {solc} did not answer with JSON: {_line(output)}") from None
    if not isinstance(answer, dict):
        raise BadSource(f"solc: {solc} did not answer with an object")
    return answer


def compile_vyper(text: str, name: str, program: str | None) -> FromVyper:
    """Raises BadSource: vyper is missing, or says that the text is wrong."""
    vyper = _found("vyper", program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (Path(name).name if name.endswith(".vy") else "source.vy")
        path.write_text(text, encoding="utf-8")
        output = _run([vyper, "-f", ",".join(_VYPER_WANTED), path.name], "", folder)
    try:
        creation, runtime, table, abi = [line for line in output.splitlines() if line.strip()][-len(_VYPER_WANTED) :]
        code = bytes.fromhex(runtime.removeprefix("0x"))
        file = SourceFile(path.name, text.encode())
        map_ = from_vyper(code, json.loads(table), {0: file})
        lines_at: dict[int, tuple[int, ...]] = {pc: (place.line,) for pc, place in map_.places.items()}
        return FromVyper(bytes.fromhex(creation.removeprefix("0x")), code, lines_at, json.loads(abi))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadSource(f"vyper: {vyper} did not answer as vyper 0.4 does: {_line(output)}") from None


def _found(name: str, program: str | None) -> str:
    path = shutil.which(program or name)
    if path is None:
        hint = "install it, or give a build tool's artifact instead (in Python, compiler=… names another program)"
        raise BadSource(f"{name} is not there: {os.fspath(program)!r}" if program else f"{name} is not on PATH: {hint}")
    return path


def _run(command: Sequence[str], text: str, folder: str | None = None) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, cwd=folder)
    except subprocess.TimeoutExpired:
        raise BadSource(f"{name}: no answer within {SECONDS} seconds") from None
    except OSError as error:
        raise BadSource(f"{name}: cannot be run: {error.strerror}") from None
    if done.returncode and not done.stdout.strip():
        raise BadSource(f"{name}: {_line(done.stderr)}")
    return done.stdout


def _line(text: object) -> str:
    """The first lines that say something, as one."""
    words = " ".join(str(text).split())
    return words if len(words) <= 300 else f"{words[:299]}…"
