"""solc's own code of every contract of the corpus, optimised: how much smaller and cheaper, and what went wrong.

`python -m fusevm.lab.optimize --kind corpus` prints the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fusevm.codegen.bytecode import optimize
from fusevm.lab.contracts import contracts, run_contract, wrong_answers
from fusevm.lab.peers.bench import geometric_mean

FOLDERS = ("corpus", "corpus_new")
KINDS = ("via_ir_opt", "legacy_opt")


@dataclass(slots=True)
class CorpusRow:
    """Of one contract: bytes and reducible gas of all calls against the input's, and what is wrong."""

    name: str
    kind: str
    size: float
    reducible: float
    left_alone: list[str]
    wrong: list[str] = field(default_factory=list)


def measured_corpus(fixtures: Path, runs: int = 200, only: Collection[str] = ()) -> Iterator[CorpusRow]:
    """Of all contracts, or of those named."""
    for folder in FOLDERS:
        for name, facts in contracts(fixtures / folder):
            for kind in KINDS if not only or name in only else ():
                yield _measured(name, kind, facts, runs)


def _measured(name: str, kind: str, facts: dict[str, Any], runs: int) -> CorpusRow:
    code = bytes.fromhex(facts["solc"][kind]["creation"][2:])
    made = optimize(code, runs=runs)
    old, new = run_contract(code, facts), run_contract(made.code, facts)
    found = CorpusRow(name, kind, len(new.runtime) / len(old.runtime), new.reducible / old.reducible, [])
    found.left_alone = made.report.left_alone + (made.report.runtime.left_alone if made.report.runtime else [])
    found.wrong = wrong_answers(new, facts)
    for call, before, after in zip(facts["calls"], old.answers, new.answers, strict=True):
        if (before.ok, before.output, before.logs) != (after.ok, after.output, after.logs):
            found.wrong.append(f"{call['sig']}: another answer")
        if after.gas > before.gas:
            found.wrong.append(f"{call['sig']}: {after.gas - before.gas} more gas")
    if old.storage != new.storage:
        found.wrong.append("another storage")
    if new.deploy_gas > old.deploy_gas:
        found.wrong.append("a dearer deployment")
    return found


def print_table(rows: list[CorpusRow]) -> None:
    print("| contract | code | bytes | reducible gas | |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        note = "; ".join([*row.wrong, *row.left_alone])
        print(f"| {row.name} | {row.kind} | ×{row.size:.3f} | ×{row.reducible:.3f} | {note} |")
    means = [geometric_mean(ratios) for ratios in zip(*[(r.size, r.reducible) for r in rows], strict=True)]
    print(f"| geometric mean | | ×{means[0]:.3f} | ×{means[1]:.3f} | |")
