"""Is optimised Yul what solc writes, to the letter? Files and random programs, given to both.

`python -m fusevm.lab.yul.exact [FILE…] [--programs N --seed S] [--solc FOLDER]` asks solc's npm package, which the
folder (`FUSEVM_SOLC`) has in `node_modules`, and needs node. Where the texts differ it names the first step that writes
another. Solidity files are read too: the Yul that solc makes of their contracts is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fusevm.lab.yul.generate import random_program
from fusevm.lab.yul.generate_contracts import random_contract
from fusevm.yul.optimise import StepEvent, optimize
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object

# Answers one request a line. What a contract imports is looked for beside the package.
_SCRIPT = """const solc = require('solc'), fs = require('fs');
const found = path => { try { return {contents: fs.readFileSync('node_modules/' + path, 'utf8')} }
                        catch (error) { return {error: String(error)} } };
require('readline').createInterface({input: process.stdin}).on('line', line =>
   console.log(JSON.stringify(JSON.parse(solc.compile(line, {import: found})))));"""
_FORK, _RUNS = "osaka", 200

Json = dict[str, Any]


class TextDifference(NamedTuple):
    """Between what we wrote and what solc wrote."""

    step: str  # the first that writes another text; "the end" where only the whole does
    ours: list[str]
    theirs: list[str]


class SolcFailed(Exception):
    """It refused the program."""


class Solc:
    """A process that compiles, for as long as the `with` block lasts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Solc:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(["node", "-e", _SCRIPT], cwd=self._folder, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def ask(self, request: Json) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SolcFailed("solc ended")
        answer: Json = json.loads(line)
        wrong = [each for each in answer.get("errors", []) if each["severity"] == "error"]
        if wrong:
            raise SolcFailed(wrong[0]["formattedMessage"])
        return answer

    def optimised(self, source: str, steps: str | None = None) -> list[str]:
        """The text that it makes of Yul, without comments."""
        details: Json = {"yul": True, "yulDetails": {} if steps is None else {"optimizerSteps": steps}}
        answer = self.ask(_request("Yul", source, "irOptimized", {"enabled": True, "runs": _RUNS, "details": details}))
        ((contract,),) = (list(each.values()) for each in answer["contracts"].values())
        return _lines(contract["irOptimized"])

    def bytecode(self, source: str, runs: int) -> bytes:
        """The code that its optimiser makes of Yul."""
        optimizer: Json = {"enabled": True, "runs": runs, "details": {"yul": True}}
        answer = self.ask(_request("Yul", source, "evm.bytecode.object", optimizer))
        ((contract, *_),) = (list(each.values()) for each in answer["contracts"].values())
        return bytes.fromhex(contract["evm"]["bytecode"]["object"])

    def yul_of(self, source: str) -> Iterator[tuple[str, str]]:
        """The names of a Solidity source's contracts, and the Yul of each."""
        answer = self.ask(_request("Solidity", source, "ir", {"enabled": False}))
        for name, contract in answer["contracts"]["a"].items():
            if contract["ir"]:
                yield name, contract["ir"]


def _request(language: str, source: str, output: str, optimizer: Json) -> Json:
    outputs = {"*": {"*": [output]}}
    settings: Json = {
        "evmVersion": _FORK,
        "optimizer": optimizer,
        "outputSelection": outputs,
        "debug": {"debugInfo": []},
    }
    if language == "Solidity":
        settings["viaIR"] = True
    return {"language": language, "sources": {"a": {"content": source}}, "settings": settings}


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]


def our_text(obj: Object, steps: str | None = None) -> list[str]:
    return _lines(print_object(optimize(obj, dialect_for(_FORK), _RUNS, steps)))


def difference(source: str, solc: Solc) -> TextDifference | None:
    """None where both texts are the same."""
    obj = parse_object(source, dialect_for(_FORK))
    ours, theirs = our_text(obj), solc.optimised(source)
    if ours == theirs:
        return None
    steps = _steps_taken(obj)

    def differs(count: int) -> bool:
        prefix = steps[: count + 1] + ":"
        return our_text(obj, prefix) != solc.optimised(source, prefix)

    first = bisect_left(range(len(steps)), True, key=differs)
    if first == len(steps):
        return TextDifference("the end", ours, theirs)
    prefix = steps[: first + 1] + ":"
    return TextDifference(f"{first + 1}: {steps[first]}", our_text(obj, prefix), solc.optimised(source, prefix))


def _steps_taken(obj: Object) -> str:
    """The letters of the steps as they ran, repetitions written out, for the object in which most ran."""
    taken: dict[str, str] = {}

    def note(event: StepEvent) -> None:
        taken[event.object_name] = taken.get(event.object_name, "") + (event.step.letter or "")

    optimize(obj, dialect_for(_FORK), _RUNS, on_step=note)
    return max(taken.values(), key=len)


def programs(options: argparse.Namespace, solc: Solc) -> Iterator[tuple[str, str]]:
    """What to compare: names and texts."""
    for path in options.files:
        text = path.read_text()
        if path.suffix == ".sol":
            yield from ((f"{path.name}:{name}", source) for name, source in solc.yul_of(text))
        else:
            yield path.name, text
    for seed in range(options.seed, options.seed + options.programs):
        source = random_program(seed) if seed % 2 else random_contract(seed).source
        yield f"program {seed}", source if source.startswith("object") else f'object "object" {{ code {source} }}'


def shown(found: TextDifference, most: int = 5) -> Iterator[str]:
    """The lines in which they differ."""
    pairs = [pair for pair in zip(found.ours, found.theirs, strict=False) if pair[0] != pair[1]]
    for ours, theirs in pairs[:most]:
        yield f"    fusevm  {ours.strip()}"
        yield f"    solc    {theirs.strip()}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.exact", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="Yul, or Solidity by its suffix .sol")
    parser.add_argument("--programs", type=int, default=0, help="random ones")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument(
        "--solc", type=Path, default=os.environ.get("FUSEVM_SOLC"), help="a folder with the npm package"
    )
    options = parser.parse_args(arguments)
    if options.solc is None:
        parser.error("--solc or FUSEVM_SOLC must name a folder with solc's npm package")
    counts = {"equal": 0, "differ": 0, "refused": 0}
    with Solc(options.solc) as solc:
        for name, source in programs(options, solc):
            try:
                found = difference(source, solc)
            except SolcFailed as failed:
                counts["refused"] += 1
                print(f"{name}: solc refuses it: {str(failed).splitlines()[0]}", flush=True)
                continue
            counts["differ" if found else "equal"] += 1
            if found is not None:
                print(f"{name}: differs at step {found.step}", *shown(found), sep="\n", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
