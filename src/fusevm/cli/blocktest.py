"""`fusevm blocktest`: Ethereum's blockchain tests, from folders, JSON files or archives, on any tier."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fusevm.cli import options, suites
from fusevm.lab.official.blocktest import BlockCase, block_cases_in, run_block_case
from fusevm.lab.official.statetest import CaseVerdict
from fusevm.lab.official.transitions import run_transitions
from fusevm.tiers import executor_for


def blocktest(
    paths: suites.Paths,
    tier: options.Tier = "auto",
    network: Annotated[
        str | None, typer.Option("--network", "-n", "--fork", "-f", help="only these, e.g. Osaka")
    ] = None,
    t8n: Annotated[bool, typer.Option("--t8n", help="run the valid blocks through t8n instead")] = False,
    trace: suites.Trace = False,
    sample: suites.Sample = None,
    jobs: suites.Jobs = suites.PROCESSES,
    as_json: options.AsJson = False,
) -> None:
    """Run Ethereum blockchain tests: valid blocks must give the header's roots, others be refused for the reason given.

    Exits 1 on a failure.
    """
    if trace:
        tier, jobs = "reference", 1
    executor_for(tier)
    run = partial(run_file, tier=tier, network=network, t8n=t8n, trace=trace)
    suites.run_suite("blockchain tests", paths, run, sample, jobs, as_json)


def run_file(
    name: str,
    text: bytes,
    *,
    tier: str,
    network: str | None,
    t8n: bool = False,
    trace: bool = False,
    most: int | None = None,
) -> suites.Tally:
    hooks = suites.trace_hooks(trace)
    root = suites.echo_state_root if trace else None

    def judge(case: BlockCase) -> CaseVerdict:
        return run_transitions(case, tier) if t8n else run_block_case(case, tier, hooks, root)

    cases = partial(block_cases_in, network=network)
    return suites.judge_file(name, text, cases, judge, lambda case: case.name, most)
