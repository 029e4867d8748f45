"""`fusevm.batch.fuzz` and forge's invariant tests on the same contracts, in the same run: calls per second, and seconds
until a planted bug is found and made small.

python bench/fuzzers.py --forge FOLDER --solc FOLDER [--seeds N] [--calls N] [--json]

The folders have the npm packages @foundry-rs/forge and solc installed. What forge takes to start and to compile does
not count. forge looks at the property after each call, `fuzz` after each sequence; both call the contract for it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fusevm import EVM, Batch
from fusevm.batch import fuzz

CONTRACTS = Path(__file__).resolve().parent / "fuzzers"
NAMES = ("Magic", "TwoStep", "Shares")
DEPLOYER = b"\xde" * 20
SENDERS = (0xA1.to_bytes(20, "big"), 0xB0.to_bytes(20, "big"))
DEPTH, MAX_CALLS = 500, 500_000  # calls of a sequence of forge's; before either gives up
PER_SEQUENCE = 3  # calls of `fuzz`, about
TEST = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;
import "../src/{name}.sol";
contract {name}Test {{
    {name} target;
    function setUp() public {{ target = new {name}(); }}
    function targetContracts() public view returns (address[] memory found) {{
        found = new address[](1);
        found[0] = address(target);
    }}
    function targetSenders() public pure returns (address[] memory found) {{
        found = new address[](2);
        (found[0], found[1]) = ({senders});
    }}
    function invariant_holds() public view {{ require(target.ok(), "not ok"); }}
    function invariant_speed() public view {{ target.ok(); }}
}}
"""
SOLC = """#!/bin/sh
cd '{folder}' || exit 1
if [ "$1" = --version ]; then
    echo 'solc, the solidity compiler commandline interface'
    exec node -e "console.log('Version: ' + require('solc').version())"
fi
exec node -e "console.log(require('solc').compile(require('fs').readFileSync(0, 'utf8')))"
"""


@dataclass
class Run:
    """One campaign: whether it found something, after how many calls and seconds."""

    found: bool
    calls: int
    seconds: float


class Forge:
    """A project of forge's with the contracts, their tests, and solc's npm package as its compiler."""

    def __init__(self, forge: Path, solc: Path, folder: Path) -> None:
        self._binary = sorted((forge / "node_modules" / "@foundry-rs").glob("forge-*/bin/forge*"))[0]
        self._folder = folder
        compiler = folder / "solc"
        compiler.write_text(SOLC.format(folder=solc.resolve()))
        compiler.chmod(0o755)
        (folder / "foundry.toml").write_text(f"[profile.default]\nsolc = '{compiler}'\noffline = true\n")
        shutil.copytree(CONTRACTS, folder / "src")
        (folder / "test").mkdir()
        senders = ", ".join(f"address({int.from_bytes(each, 'big')})" for each in SENDERS)
        for name in NAMES:
            (folder / "test" / f"{name}.t.sol").write_text(TEST.format(name=name, senders=senders))
        self._ask("build")

    def _ask(self, *words: str, check: bool = True) -> str:
        command = [str(self._binary), *words]
        return subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=check).stdout

    def artifact(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._folder / "out" / f"{name}.sol" / f"{name}.json").read_text())
        return found

    def run(self, name: str, test: str, seed: int, calls: int) -> Run:
        shutil.rmtree(self._folder / "cache" / "invariant", ignore_errors=True)  # findings that it would try first
        settings = f"[profile.default]\nsolc = '{self._folder / 'solc'}'\noffline = true\n"
        settings += f"[invariant]\nruns = {max(1, calls // DEPTH)}\ndepth = {DEPTH}\n"
        (self._folder / "foundry.toml").write_text(settings)
        match = ("--match-contract", f"^{name}Test$", "--match-test", test)
        said = self._ask("test", *match, "--json", "-j", "1", "--fuzz-seed", str(seed), check=False)
        (suite,) = json.loads(said[said.index('{"test/') :]).values()
        (result,) = suite["test_results"].values()
        made = sum(each["calls"] for each in result["kind"]["Invariant"]["metrics"].values())
        return Run(result["status"] == "Failure", made, seconds_of(suite["duration"]))


def seconds_of(text: str) -> float:
    """Of a duration as forge prints it.

    >>> seconds_of("1m 2s 9ms 888µs 691ns")
    62.009888691
    """
    units = {"m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
    parts = re.findall(r"(\d+)(m|s|ms|µs|us|ns)(?= |$)", text)
    return round(sum(int(number) * units[unit] for number, unit in parts), 9)


class Ours:
    """The same contract on a machine of ours, a call of each function to begin with."""

    def __init__(self, artifact: dict[str, Any]) -> None:
        self._evm = EVM()
        made = self._evm.deploy(artifact["bytecode"]["object"], caller=DEPLOYER)
        assert made.address is not None, made
        self._target = made.address
        interface = [each for each in artifact["abi"] if each["type"] == "function"]
        changing = [each for each in interface if each["stateMutability"] == "nonpayable"]
        selectors = artifact["methodIdentifiers"]
        self._ok = bytes.fromhex(selectors["ok()"])
        self._corpus = []
        for each in changing:
            words = ",".join(argument["type"] for argument in each["inputs"])
            data = bytes.fromhex(selectors[f"{each['name']}({words})"]) + bytes(32 * len(each["inputs"]))
            self._corpus.append([(self._target, data)])

    def run(self, *, property_counts: bool, seed: int, calls: int) -> Run:
        def holds(evm: EVM, batch: Batch) -> bool:
            said = evm.simulate(self._target, self._ok).output
            return bool(int.from_bytes(said, "big")) or not property_counts

        started = time.perf_counter()
        report = fuzz(self._evm, holds, self._corpus, sequences=calls // PER_SEQUENCE, callers=SENDERS, seed=seed)
        return Run(bool(report.findings), report.calls, time.perf_counter() - started)


def shown(rows: dict[str, dict[str, list[Run]]]) -> str:
    return json.dumps(
        {name: {what: list(map(asdict, runs)) for what, runs in kinds.items()} for name, kinds in rows.items()}
    )


def summary(runs: list[Run]) -> str:
    found = [each for each in runs if each.found]
    if not found:
        return f"not found in {statistics.median(each.calls for each in runs):,.0f} calls"
    calls, seconds = (statistics.median(getattr(each, name) for each in found) for name in ("calls", "seconds"))
    return f"{len(found)} of {len(runs)} seeds, median {calls:,.0f} calls, {seconds * 1e3:,.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forge", type=Path, required=True)
    parser.add_argument("--solc", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=50_000, help="for calls per second")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[str, dict[str, list[Run]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        forge = Forge(options.forge, options.solc, Path(folder))
        for name in NAMES:
            ours = Ours(forge.artifact(name))
            rows[name] = {
                "speed of fuzz": [ours.run(property_counts=False, seed=seed, calls=options.calls) for seed in (0, 1)],
                "speed of forge": [forge.run(name, "invariant_speed", seed, options.calls) for seed in (0, 1)],
                "fuzz": [ours.run(property_counts=True, seed=seed, calls=MAX_CALLS) for seed in range(options.seeds)],
                "forge": [forge.run(name, "invariant_holds", seed, MAX_CALLS) for seed in range(options.seeds)],
            }
    if options.json:
        print(shown(rows))
        return
    for name, kinds in rows.items():
        for what in ("fuzz", "forge"):
            rate = max(each.calls / each.seconds for each in kinds[f"speed of {what}"])
            print(f"{name:8} {what:6} {rate:8,.0f} calls per second; the bug: {summary(kinds[what])}")


if __name__ == "__main__":
    main()
