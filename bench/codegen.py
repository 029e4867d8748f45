"""Bytecode of the corpus against solc's: bytes, gas, reducible gas, deployment, and what each pass brings.

python bench/codegen.py [--runs 200] [--only Token] [--unoptimised] [--without "merge tails" | --leave-one-out] [--json]

Code is compiled from the text that solc's own back end gets (`.opt.yul`), so that only back ends are compared;
`--unoptimised` takes what the front end wrote. *plain* is `compile_object(runs=None)`. Figures are ratios, geometric
means at the end: below 1 is better. Every answer is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fusevm.codegen.backend import LEFT_OUT
from fusevm.codegen.pipeline import NAMES, NEEDED
from fusevm.codegen.yul import compile_object
from fusevm.lab.contracts import contracts, run_contract, wrong_answers
from fusevm.lab.peers.bench import geometric_mean
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

FIXTURES = Path(os.environ.get("FUSEVM_FIXTURES", Path(__file__).resolve().parents[2] / "shared" / "fixtures"))
FOLDERS = ("corpus", "corpus_new")
PASSES = [name for name in NAMES if name not in NEEDED | LEFT_OUT]
FIGURES = ("bytes", "gas", "reducible", "deploy")


@dataclass(slots=True)
class Row:
    contract: str
    code: str  # "plain", "solc via-IR", "solc legacy", or of the back end: the runs, and the pass left out
    bytes: int
    gas: int
    reducible: int
    deploy: int
    seconds: float = 0.0


def solc_rows(name: str, facts: dict[str, Any]) -> Iterator[Row]:
    rows = []
    for key, code in (("via_ir_opt", "solc via-IR"), ("legacy_opt", "solc legacy")):
        found = facts["solc"][key]
        gas, reducible = sum(found["call_gas"]), sum(found["call_reducible_gas"])
        rows.append(Row(name, code, found["runtime_bytes"], gas, reducible, found["deploy_gas"]))
    yield from rows
    yield Row(name, "solc, the better", *[min(getattr(row, figure) for row in rows) for figure in FIGURES])


def compiled_row(name: str, facts: dict[str, Any], text: str, runs: int | None, leaves_out: str = "") -> Row | None:
    """None where the stack is too deep, or where plain code is larger than can be deployed."""
    dialect = dialect_for(facts["fork"])
    obj = parse_object(text, dialect)
    started = perf_counter()
    try:
        creation = compile_object(obj, dialect, runs=runs, without={leaves_out}).code
    except StackTooDeep:
        return None
    seconds = perf_counter() - started
    try:
        found = run_contract(creation, facts)
    except ValueError as error:
        if runs is not None:
            raise
        print(f"plain code is left out: {error}", file=sys.stderr)
        return None
    wrong = wrong_answers(found, facts)
    if wrong:
        sys.exit(f"{name}, {_code(runs, leaves_out)}: wrong answers to {', '.join(wrong)}")
    return Row(name, _code(runs, leaves_out), len(found.runtime), found.gas, found.reducible, found.deploy_gas, seconds)


def _code(runs: int | None, leaves_out: str) -> str:
    if runs is None:
        return "plain"
    return f"{runs:,} runs" + (f" without {leaves_out}" if leaves_out else "")


def measured(options: argparse.Namespace) -> Iterator[Row]:
    for folder in FOLDERS:
        for name, facts in contracts(options.fixtures / folder):
            if options.only and name not in options.only:
                continue
            suffix = ".yul" if options.unoptimised else ".opt.yul"
            text = (options.fixtures / folder / f"{name}{suffix}").read_text()
            yield from solc_rows(name, facts)
            variants = [(None, "")] + [(runs, "") for runs in options.runs]
            variants += [(options.runs[0], each) for each in options.without]
            for runs, leaves_out in variants:
                row = compiled_row(name, facts, text, runs, leaves_out)
                if row is not None:
                    yield row


def ratios(rows: list[Row], code: str, base: str, figure: str) -> dict[str, float]:
    """By contract, where there are both."""
    below = {row.contract: getattr(row, figure) for row in rows if row.code == base}
    return {
        row.contract: getattr(row, figure) / below[row.contract]
        for row in rows
        if row.code == code and row.contract in below
    }


def show(rows: list[Row]) -> None:
    codes = list(dict.fromkeys(row.code for row in rows))
    ours = [code for code in codes if not code.startswith("solc") and "without" not in code]
    for base in ("solc via-IR", "solc legacy", "solc, the better"):
        print(f"\n| against {base}, mean (worst) | {' | '.join(FIGURES)} | compile, s |")
        print("| --- |" + " --- |" * (len(FIGURES) + 1))
        for code in [*ours, *(each for each in codes if each.startswith("solc") and each != base)]:
            cells = []
            for figure in FIGURES:
                found = ratios(rows, code, base, figure)
                worst = max(found, key=found.__getitem__)
                cells.append(f"×{geometric_mean(list(found.values())):.3f} ({found[worst]:.3f} {worst})")
            seconds = sum(row.seconds for row in rows if row.code == code)
            print(f"| {code} | {' | '.join(cells)} | {seconds:.2f} |")
    _show_contracts(rows, ours[-1] if len(ours) == 1 else next(code for code in ours if code != "plain"))
    _show_left_out(rows, [code for code in codes if "without" in code])


def _show_contracts(rows: list[Row], code: str) -> None:
    print(f"\n| {code} against solc via-IR | {' | '.join(FIGURES)} |")
    print("| --- |" + " --- |" * len(FIGURES))
    found = {figure: ratios(rows, code, "solc via-IR", figure) for figure in FIGURES}
    for name in found["bytes"]:
        print(f"| {name} | {' | '.join(f'×{found[figure][name]:.3f}' for figure in FIGURES)} |")


def _show_left_out(rows: list[Row], codes: list[str]) -> None:
    if not codes:
        return
    print("\n| left out | bytes | gas | reducible | deploy |\n| --- | --- | --- | --- | --- |")
    for code in codes:
        base, name = code.split(" without ")
        means = [geometric_mean(list(ratios(rows, code, base, figure).values())) - 1 for figure in FIGURES]
        print(f"| {name} | {' | '.join(f'{100 * mean:+.1f} %' for mean in means)} |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=Path, default=FIXTURES)
    parser.add_argument("--runs", type=int, nargs="*", default=[200, 0, 10_000])
    parser.add_argument("--only", nargs="*", help="the contracts to look at")
    parser.add_argument("--unoptimised", action="store_true", help="from the text before solc's Yul optimiser")
    parser.add_argument("--without", nargs="*", default=[], choices=PASSES, metavar="PASS")
    parser.add_argument("--leave-one-out", action="store_true", help="each pass in turn, at the first of the runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.leave_one_out:
        options.without = PASSES
    rows = list(measured(options))
    if not rows:
        sys.exit(f"no contracts found at {options.fixtures} (set FUSEVM_FIXTURES or --fixtures)")
    if options.json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
    else:
        show(rows)


if __name__ == "__main__":
    main()
