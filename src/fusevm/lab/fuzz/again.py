"""The same transaction again and again on one machine: what a tier has learnt of code must not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Protocol, runtime_checkable

from fusevm.lab.fuzz.differential import EngineDifference, differences
from fusevm.lab.fuzz.starve import random_gas
from fusevm.lab.peers.work import Observation, PeerEngine, PeerWork


@runtime_checkable
class Repeating(Protocol):
    """An engine that keeps a machine from one transaction to the next: our tiers do."""

    name: str

    def run_again(self, work: PeerWork, limits: Iterable[int]) -> Iterator[Observation]: ...


def compare_again(work: PeerWork, engines: Sequence[PeerEngine], rng: Random, times: int) -> EngineDifference | None:
    """The first engine against the others, after each of several runs; most have the work's own gas limit."""
    repeating = [engine for engine in engines if isinstance(engine, Repeating)]
    if len(repeating) < 2 or repeating[0] is not engines[0]:
        return None
    full = work.transaction.gas_limit
    limits = [random_gas(work, rng, 1)[0] if rng.random() < 0.25 else full for _ in range(times)]
    first, *others = repeating
    runs = zip(*(engine.run_again(work, limits) for engine in repeating), strict=True)
    for number, (expected, *seen) in enumerate(runs):
        for engine, each in zip(others, seen, strict=True):
            fields = list(differences(expected, each))
            if fields:
                run = f"in run {number + 1} on one machine"
                reasons = (f"{expected.reason} ({run})", f"{each.reason} ({run})")
                return EngineDifference(first.name, engine.name, fields, reasons)
    return None
