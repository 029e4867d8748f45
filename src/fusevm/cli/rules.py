"""`fusevm rules`: every rewrite rule with its equation, and with --prove what z3 says of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fusevm.cli import options
from fusevm.cli.inputs import BadInput
from fusevm.evm.forks import Fork, fork_named
from fusevm.rules.families import FAMILIES, RULES
from fusevm.rules.pattern import Rule
from fusevm.rules.prove import FULL, Proof, prove_all

COLOURS = {"proved": "green", "axiom": "cyan", "refuted": "bold red", "undecided": "bold yellow"}


def rules(
    prove: Annotated[bool, typer.Option("--prove", help="prove each with z3, at 256 bits where it can")] = False,
    family: Annotated[str | None, typer.Option(help=f"only this one: {', '.join(FAMILIES)}")] = None,
    fork: Annotated[str, typer.Option("--fork", "-f", help="only those whose opcodes this fork has")] = "latest",
    timeout: Annotated[float, typer.Option(help="seconds for one question to z3")] = 3.0,
    workers: Annotated[int, typer.Option(help="processes to prove in")] = 2,
    as_json: options.AsJson = False,
) -> None:
    """List the rewrite rules, and prove them."""
    newest = fork_named(fork)
    chosen = tuple(rule for rule in _chosen(family) if rule.since <= newest)
    start = time.perf_counter()
    proofs = _proofs(chosen, timeout, workers, quiet=as_json) if prove else {}
    seconds = time.perf_counter() - start
    if as_json:
        summary = {"count": _count(chosen)} | (
            {"proofs": _summary(proofs), "seconds": round(seconds, 1)} if prove else {}
        )
        typer.echo(json.dumps(summary | {"rules": [_record(rule, proofs.get(rule.name)) for rule in chosen]}))
    else:
        _show(chosen, proofs, seconds)
    if not all(proof.holds for proof in proofs.values()):
        raise typer.Exit(1)


def _chosen(family: str | None) -> tuple[Rule, ...]:
    if family is None:
        return RULES
    if family not in FAMILIES:
        raise BadInput(f"unknown family '{family}'; known: {', '.join(FAMILIES)}")
    return FAMILIES[family]


def _proofs(chosen: tuple[Rule, ...], timeout: float, workers: int, quiet: bool) -> dict[str, Proof]:
    try:
        import z3  # noqa: F401
    except ImportError:
        raise BadInput("proofs need z3: pip install 'fusevm[prove]'") from None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[str, Proof] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task("proving", total=len(chosen))
        for rule, proof in prove_all(chosen, timeout, workers):
            found[rule.name] = proof
            progress.update(task, advance=1, description=f"proved {rule.name:32.32}")
    return found


def _count(chosen: tuple[Rule, ...]) -> dict[str, int]:
    return {
        "rules": len(chosen),
        "equations": len({rule.equation_name for rule in chosen}),
        "solc": len({rule.solc for rule in chosen if rule.solc is not None}),
    }


def _summary(proofs: dict[str, Proof]) -> dict[str, int]:
    """How many proved at the full width, proved narrower, taken as axioms, refuted, undecided."""
    kinds = Counter(
        proof.verdict if proof.verdict != "proved" else proof.text if FULL in proof.widths else "proved narrower"
        for proof in proofs.values()
    )
    return {kind: kinds[kind] for kind in (f"proved at {FULL}", "proved narrower", "axiom", "refuted", "undecided")}


def _record(rule: Rule, proof: Proof | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": rule.name,
        "family": rule.family,
        "equation": rule.equation,
        "use": [flag.name.lower() for flag in rule.use if flag.name],
        "solc": rule.solc,
        "since": rule.since.label,
        "axiom": rule.axiom,
    }
    if proof is not None:
        record |= {"verdict": proof.verdict, "widths": proof.widths, "counterexample": proof.counterexample}
        record |= {"domain": proof.how, "seconds": round(proof.seconds, 3)}
    return record


def _show(chosen: tuple[Rule, ...], proofs: dict[str, Proof], seconds: float) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("rule", "equation", "for", "solc", "since", *(("verdict",) if proofs else ("axiom",))):
        table.add_column(name, overflow="fold", justify="right" if name == "solc" else "left")
    for rule in chosen:
        since = "" if rule.since == Fork.FRONTIER else rule.since.label
        uses = " ".join(flag.name.lower() for flag in rule.use if flag.name)
        last = _verdict(rule, proofs[rule.name]) if proofs else Text(rule.axiom or "")
        table.add_row(rule.name, Text(rule.equation), uses, str(rule.solc or ""), since, last)
    console = Console(highlight=False)
    console.print(table)
    count = _count(chosen)
    console.print(f"\n{count['rules']} rules from {count['equations']} equations, {count['solc']} of solc's")
    if proofs:
        parts = [f"{number} {kind}" for kind, number in _summary(proofs).items()]
        console.print(f"{', '.join(parts)} ({seconds:.0f} s)")


def _verdict(rule: Rule, proof: Proof) -> Text:
    words = f"axiom: {rule.axiom}" if proof.verdict == "axiom" else proof.text
    return Text(words, style=COLOURS[proof.verdict])
