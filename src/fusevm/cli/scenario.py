"""Calls of a contract from its artifact, one after the other: what `profile` and `coverage` run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fusevm import EVM, Result
from fusevm.abi import Abi, Artifact, Constructor, Function
from fusevm.cli.abi import arguments_from
from fusevm.cli.inputs import BadInput
from fusevm.tracing.sources.artifacts import read_sources
from fusevm.tracing.sources.contracts import Sources
from fusevm.values import to_address, to_bytes

CALLER = "0x" + "ca11" * 10
PLENTY = 10**30  # wei

Artifacts = Annotated[
    list[Path],
    typer.Argument(help="the contract's artifact (Foundry, Hardhat, solc, Vyper), then those of others that it uses"),
]
Calls = Annotated[
    list[str] | None,
    typer.Option("--call", "-c", help="e.g. 'transfer 0xa1… 5', with types where overloaded; may be given many times"),
]
Root = Annotated[Path | None, typer.Option(help="folder where the paths of sources begin (default: this one)")]
CallerOption = Annotated[str, typer.Option("--caller", help="who deploys and calls")]


@dataclass(slots=True)
class Scenario:
    """A contract that is deployed, and calls to make."""

    evm: EVM
    sources: Sources
    name: str
    creation: bytes
    calls: list[tuple[str, bytes]]  # as typed, and as data
    caller: bytes

    def deploy(self) -> bytes:
        result = self.evm.deploy(self.creation, caller=self.caller)
        if result.address is None:
            raise BadInput(f"{self.name}: the constructor did not deploy it: {result.error}")
        return result.address

    def run(self, address: bytes) -> list[Result]:
        return [self.evm.call(address, data, caller=self.caller) for _, data in self.calls]


def scenario(
    artifacts: Iterable[Path],
    contract: str | None,
    constructor: str | None,
    calls: Iterable[str] | None,
    root: Path | None,
    caller: str,
    fork: str | None,
    tier: str,
) -> Scenario:
    paths = list(artifacts)
    sources = read_sources(paths, root)
    artifact = Artifact.read(_form(paths[0]), contract)
    evm = EVM(fork or "osaka", tier)
    sender = to_address(caller, "--caller")
    evm.set_balance(sender, PLENTY)
    made: Constructor = artifact.abi.constructor
    given = arguments_from(shlex.split(constructor or ""), made.inputs, f"the constructor of {artifact.name}")
    creation = artifact.creation_code(*given)
    asked = [(text, _data(artifact.abi, text)) for text in calls or ()]
    return Scenario(evm, sources, artifact.name.rpartition(":")[2] or paths[0].stem, creation, asked, sender)


def _form(path: Path) -> dict[str, Any]:
    """The file's JSON, which was read once already; of a build info, the compiler's output."""
    form: dict[str, Any] = json.loads(path.read_bytes())
    output = form.get("output")
    return output if isinstance(output, dict) else form


def _data(abi: Abi, text: str) -> bytes:
    name, *arguments = shlex.split(text) or [""]
    if name.startswith("0x"):
        return to_bytes(name, "--call")
    function: Function = abi.functions[name]
    return function.encode(*arguments_from(arguments, function.inputs, function.signature))
