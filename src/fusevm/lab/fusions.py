"""Choosing what to fuse by counting what really occurs.

Streams of tokens, each with a weight (how often it ran, or one where only the text is known), are merged like byte
pairs: the two neighbouring units that meet most often become one, over and over. Each source of streams weighs the
same, so that one long-running loop does not decide alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

from fusevm.evm.forks import Fork
from fusevm.schedule.build import with_header
from fusevm.schedule.sections import OUTWARD, sections_of

Unit = tuple[str, ...]
Stream = tuple[list[Unit], float]

LONGEST = 8
NEVER_FUSED = frozenset(("SYNC", *OUTWARD))


def streams_of(
    code: bytes, fork: Fork, native: frozenset[str], runs: Mapping[int, int] | None = None, share: float = 1.0
) -> list[Stream]:
    """A stream a section; `runs` says how often each pc ran, `share` what all of them weigh together."""
    found: list[Stream] = []
    for section in sections_of(code, fork, native):
        weight = 1 if runs is None else runs.get(section.pc, 0)
        if weight:
            found.append(([(token.name,) for token in with_header(section)], float(weight)))
    total = sum(weight * len(units) for units, weight in found)
    return [(units, weight * share / total) for units, weight in found] if total else []


def choose(streams: Iterable[Stream], count: int) -> list[Unit]:
    """The `count` merges that save most, in the order they were found."""
    merged: Counter[tuple[Unit, ...]] = Counter()
    for units, weight in streams:
        merged[tuple(units)] += weight  # type: ignore[assignment]
    work = [(list(units), weight) for units, weight in merged.items()]
    chosen: list[Unit] = []
    while len(chosen) < count:
        pairs: defaultdict[tuple[Unit, Unit], float] = defaultdict(float)
        for units, weight in work:
            for left, right in pairwise(units):
                pairs[left, right] += weight
        best, best_weight = None, 0.0
        for (left, right), weight in pairs.items():
            allowed = len(left) + len(right) <= LONGEST and not {left[0], right[0]} & NEVER_FUSED
            if allowed and weight > best_weight:
                best, best_weight = (left, right), weight
        if best is None:
            break
        fused = best[0] + best[1]
        if fused not in chosen:
            chosen.append(fused)
        for units, _ in work:
            _merge(units, best, fused)
    return chosen


def _merge(units: list[Unit], pair: tuple[Unit, Unit], fused: Unit) -> None:
    at = 0
    while at < len(units) - 1:
        if units[at] == pair[0] and units[at + 1] == pair[1]:
            units[at : at + 2] = [fused]
        at += 1
