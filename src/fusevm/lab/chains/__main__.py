"""Campaigns over random chains.

python -m fusevm.lab.chains build --chains 250 --transactions 50     # built on one tier, imported on another
python -m fusevm.lab.chains build --chains 30 --transactions 8 --spec # and by the executable specification
python -m fusevm.lab.chains damage --inputs 100000                   # damaged transactions and blocks
python -m fusevm.lab.chains time PATH --sample 200                   # official cases, here and by the specification
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.chains.campaign import Found, run_chains
from fusevm.lab.chains.mutate import Damage, run_damages

PER_CHAIN = 1_000  # damaged inputs


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.chains", description="campaigns over random chains")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="chains built on one tier and imported on another")
    build.add_argument("--chains", type=int, default=100)
    build.add_argument("--transactions", type=int, default=50, help="at most so many in a block")
    build.add_argument("--spec", action="store_true", help="also by the executable specification")
    damage = commands.add_parser("damage", help="damaged encodings of transactions and blocks")
    damage.add_argument("--inputs", type=int, default=10_000)
    timed = commands.add_parser("time", help="official blockchain tests, here and by the executable specification")
    timed.add_argument("path")
    timed.add_argument("--sample", type=int, default=200)
    timed.add_argument("--tier", default="auto")
    for each in (build, damage):
        each.add_argument("--seed", type=int, default=0)
        each.add_argument("--fork", action="append", help="only these; all of them by default")
    given = parser.parse_args(arguments)
    if given.command == "time":
        return _time(given)
    forks = [fork_named(name) for name in given.fork] if given.fork else list(Fork)
    started = time.perf_counter()
    problems = _build(given, forks) if given.command == "build" else _damage(given, forks)
    for problem in problems:
        print(f"DIFFERENT {problem}")
    print(f"{time.perf_counter() - started:.0f} s, {len(problems)} problems")
    return 1 if problems else 0


def _build(given: argparse.Namespace, forks: list[Fork]) -> list[str]:
    total = Found()
    seeds = range(given.seed, given.seed + given.chains)
    for found in run_chains(seeds, forks, given.transactions, with_spec=given.spec):
        total.blocks += found.blocks
        total.judged += found.judged
        total.branches += found.branches
        total.transactions += found.transactions
        total.differences += found.differences
    kinds = ", ".join(f"type {kind}: {count}" for kind, count in sorted(total.transactions.items()))
    print(f"{given.chains} chains, {total.blocks} blocks, {total.branches} branches, {total.judged} judged by the spec")
    print(f"transactions: {kinds}")
    return total.differences


def _damage(given: argparse.Namespace, forks: list[Fork]) -> list[str]:
    total = Damage()
    seeds = range(given.seed, given.seed + -(-given.inputs // PER_CHAIN))
    for found in run_damages(seeds, forks, min(PER_CHAIN, given.inputs)):
        total.inputs += found.inputs
        total.accepted += found.accepted
        total.reasons += found.reasons
        total.crashes += found.crashes
    reasons: Counter[str] = total.reasons
    refused = sum(reasons.values())
    print(f"{total.inputs} inputs, {total.accepted} still valid, {refused} refused for {len(reasons)} reasons")
    for reason, count in reasons.most_common():
        print(f"{count:8} {reason}")
    return total.crashes


def _time(given: argparse.Namespace) -> int:
    from fusevm.lab.chains.timing import sample_of, time_both

    found = time_both(sample_of(given.path, given.sample), given.tier)
    print(f"{found.cases} cases, {found.blocks} blocks")
    print(f"{found.ours:.2f} s on {given.tier}, {found.theirs:.2f} s by the specification")
    print(f"ratio {found.theirs / found.ours:.1f}")
    for case in found.disagreed:
        print(f"DIFFERENT {case}")
    return 1 if found.disagreed else 0


if __name__ == "__main__":
    sys.exit(main())
