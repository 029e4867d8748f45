"""Calls of a contract from its artifact, one after the other: what `profile` and `coverage` run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fusevm import DEFAULT_CALLER, EVM, Result
from fusevm.abi import Abi, Constructor, Function
from fusevm.cli import options
from fusevm.cli.abi import arguments_from, words_of
from fusevm.cli.inputs import BadInput, address_from, artifact_from, parse_json, read_file
from fusevm.tracing.sources.artifacts import BadArtifact, read_sources
from fusevm.tracing.sources.contracts import Sources
from fusevm.values import to_bytes

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


def _scenario(
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
    sources = sources_from(paths, root)
    artifact = artifact_from(parse_json(read_file(paths[0]), str(paths[0])), str(paths[0]), contract)
    evm = EVM(fork or "osaka", tier)
    sender = address_from(caller, "--caller")
    evm.set_balance(sender, PLENTY)
    made: Constructor = artifact.abi.constructor
    given = arguments_from(
        words_of(constructor or "", "--constructor"), made.inputs, f"the constructor of {artifact.name}"
    )
    creation = artifact.creation_code(*given)
    asked = [(text, _data(artifact.abi, text)) for text in calls or ()]
    return Scenario(evm, sources, artifact.name.rpartition(":")[2] or paths[0].stem, creation, asked, sender)


takes_scenario = options.takes(
    {
        "artifacts": (Artifacts, options.REQUIRED),
        "contract": (options.ContractName, None),
        "constructor": (options.ConstructorArgs, None),
        "calls": (Calls, None),
        "root": (Root, None),
        "caller": (CallerOption, "0x" + DEFAULT_CALLER.hex()),
        "fork": (options.ForkName, None),
        "tier": (options.Tier, "auto"),
    },
    _scenario,
)


def sources_from(paths: Iterable[Path], root: Path | None = None) -> Sources:
    """As `read_sources`; a file that is not JSON at all is told by what it is."""
    listed = list(paths)
    try:
        return read_sources(listed, root)
    except BadArtifact:
        for path in listed:
            parse_json(read_file(path, "an artifact"), str(path))
        raise


def _data(abi: Abi, text: str) -> bytes:
    name, *arguments = words_of(text, "--call") or [""]
    if name.startswith("0x"):
        return to_bytes(name, "--call")
    function: Function = abi.functions[name]
    return function.encode(*arguments_from(arguments, function.inputs, function.signature))
