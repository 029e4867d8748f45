"""`fusevm statetest`: Ethereum's state tests, from folders, JSON files or archives, on any tier."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fusevm.chain.outcome import Executor
from fusevm.cli import options, suites
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab import samples
from fusevm.lab.official.statetest import CaseVerdict, StateCase, cases_in, run_case
from fusevm.tiers import executor_for


def statetest(
    paths: suites.PathsOrSamples = None,
    tier: options.Tier = "auto",
    fork: Annotated[str | None, typer.Option("--fork", "-f", help="only the cases of this fork")] = None,
    no_fuse: Annotated[bool, typer.Option("--no-fuse", help="native tier, one handler per opcode")] = False,
    lockstep: Annotated[bool, typer.Option("--lockstep", help="native tier beside the reference tier")] = False,
    trace: suites.Trace = False,
    sample: suites.Sample = None,
    jobs: suites.Jobs = suites.PROCESSES,
    as_json: options.AsJson = False,
) -> None:
    """Run Ethereum state tests, judged by state root, logs hash and reason of rejection. Exits 1 on a failure."""
    only = None if fork is None else fork_named(fork)
    if no_fuse or lockstep:
        tier = "lockstep" if lockstep else "native-unfused"
    if trace:
        tier, jobs = "reference", 1
    executor_for(tier)
    run = partial(run_file, tier=tier, fork=only, trace=trace)
    if not paths and not as_json:
        typer.echo(f"the project's own state tests; {samples.MORE_STATE_TESTS}", err=True)
    suites.run_suite("state tests", paths or [str(samples.STATE_TESTS)], run, sample, jobs, as_json)


def run_file(
    name: str, text: bytes, *, tier: str, fork: Fork | None, trace: bool = False, most: int | None = None
) -> suites.Tally:
    run, hooks = executor_for(tier), suites.trace_hooks(trace)
    execute: Executor = lambda message, state, context: run(message, state, context, hooks)  # noqa: E731
    root = suites.echo_state_root if trace else None

    def judge(case: StateCase) -> CaseVerdict:
        return run_case(case, execute, root)

    return suites.judge_file(name, text, lambda found: cases_in(found, fork), judge, lambda case: case.name, most)
