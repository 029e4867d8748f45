"""Choosing what to fuse by counting what occurs in real contracts, and the table of what was chosen.

    python -m fusevm.lab.fusions FIXTURES FOLDER [--choose N]

counts how often schedules of real code have each sequence of `schedule/chosen.tsv`, and rewrites the table, without
those that hardly any has. With `--choose`, sequences are first added to it: streams of tokens, each with a weight, are
merged like byte pairs; the two neighbouring units that meet most often become one, over and over. Each source of
streams weighs the same, so that one long-running loop does not decide alone. FIXTURES has the corpus; FOLDER has files
of other contracts' code in hex, one source per file (`lab.real_code`). Code that the bench runs is never counted:
fusions are not chosen on what they are measured on.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.lab.real_code import RealCode, corpus_code, hex_code, own_code, unmeasured
from fusevm.native.emit.build import single_sequences
from fusevm.schedule.build import Handlers, build_schedule, with_header
from fusevm.schedule.fusions import SEED, TABLE, ChosenFusion, Sequence, chosen
from fusevm.schedule.sections import OUTWARD, sections_of
from fusevm.schedule.threading import HOPPING, threaded

LEAST = 15  # occurrences in real code that a sequence needs: every handler slows the first start
LONGEST = 8
MAX_WORDS = 2_000  # maximum number of units of a stream
NEVER_FUSED = frozenset(("SYNC", *OUTWARD))


class Stream(NamedTuple):
    units: tuple[Sequence, ...]
    weight: float


def streams_of(
    code: bytes, fork: Fork, native: frozenset[str], runs: Mapping[int, int] | None = None, share: float = 1.0
) -> list[Stream]:
    """A stream per section; `runs` says how often each pc ran, `share` what all weigh."""
    dests = jumpdests(code)
    found: list[Stream] = []
    for section in threaded(sections_of(code, fork, native, dests), dests):
        weight = 1 if runs is None else runs.get(section.pc, 0)
        if weight:
            units = tuple((token.name,) for token in with_header(section)[:MAX_WORDS])
            found.append(Stream(units, float(weight)))
    total = sum(each.weight * len(each.units) for each in found)
    return [each._replace(weight=each.weight * share / total) for each in found] if total else []


def choose(streams: Iterable[Stream], count: int) -> list[Sequence]:
    """The `count` merges that save most, in the order they were found."""
    return _Merging(streams).run(count)


class _Merging:
    """Streams while their units are merged: which have which pair, and its weight."""

    def __init__(self, streams: Iterable[Stream]) -> None:
        weights: Counter[tuple[Sequence, ...]] = Counter()
        for units, weight in streams:
            weights[units] += weight  # type: ignore[assignment]
        self.work = [(list(units), float(weight)) for units, weight in weights.items()]
        self.pairs: defaultdict[tuple[Sequence, Sequence], float] = defaultdict(float)
        self.where: defaultdict[tuple[Sequence, Sequence], set[int]] = defaultdict(set)
        for number in range(len(self.work)):
            self._count(number, 1)
        self.queue = [(-weight, pair) for pair, weight in self.pairs.items()]
        heapify(self.queue)

    def run(self, count: int) -> list[Sequence]:
        found: list[Sequence] = []
        while len(found) < count and self.queue:
            weight, pair = heappop(self.queue)
            if -weight != self.pairs.get(pair):  # has changed since
                continue
            fused = pair[0] + pair[1]
            if fused not in found:
                found.append(fused)
            self._merge(pair, fused)
        return found

    def _count(self, number: int, sign: int) -> set[tuple[Sequence, Sequence]]:
        units, weight = self.work[number]
        seen = set()
        for pair in pairwise(units):
            left, right = pair
            allowed = len(left) + len(right) <= LONGEST and not {left[0], right[0]} & NEVER_FUSED
            if allowed:
                self.pairs[pair] += sign * weight
                self.where[pair].add(number)
                seen.add(pair)
        return seen

    def _merge(self, pair: tuple[Sequence, Sequence], fused: Sequence) -> None:
        changed = set()
        for number in sorted(self.where.pop(pair)):
            changed |= self._count(number, -1)
            units = self.work[number][0]
            at = 0
            while at < len(units) - 1:
                if (units[at], units[at + 1]) == pair:
                    units[at : at + 2] = [fused]
                at += 1
            changed |= self._count(number, 1)
        self.pairs.pop(pair, None)
        for each in changed:
            if self.pairs.get(each, 0) > 0:
                heappush(self.queue, (-self.pairs[each], each))


def handlers_of(sequences: Iterable[Sequence]) -> Handlers:
    """Handlers of these sequences and of every opcode, at imagined addresses: enough to lay out schedules."""
    every = dict.fromkeys([*single_sequences(), *sequences])
    return Handlers({sequence: number for number, sequence in enumerate(every, 1)})


def picked(codes: Iterable[RealCode], handlers: Handlers) -> Counter[Sequence]:
    """How often each sequence occurs in the schedules of some code."""
    found: Counter[Sequence] = Counter()
    for each in codes:
        units = build_schedule(each.code, LATEST, handlers, keep_units=True).units
        found.update(unit.sequence for unit in units if len(unit.sequence) > 1)
    return found


def candidates(codes: list[RealCode], watched: list[RealCode], count: int) -> list[Sequence]:
    """The best sequences by text, and by what the corpus's calls run: neither may outweigh the other."""
    native = frozenset(sequence[0] for sequence in single_sequences())
    text, calls = list(_weighted(codes, native)), list(_weighted(watched, native))
    found = [sequence for streams in (text, calls) for sequence in choose(streams, count)]
    return found + [(*each[:-1], HOPPING) for each in found if each[-1] == "JUMPI@"]


def _weighted(codes: list[RealCode], native: frozenset[str]) -> Iterator[Stream]:
    sources: Counter[str] = Counter()
    for each in codes:
        sources[each.source] += len(each.code)
    for each in codes:
        share = len(each.code) / sources[each.source] / len(sources) if each.code else 0
        yield from streams_of(each.code, LATEST, native, each.runs, share)


def counted(sequences: Iterable[Sequence], corpus: list[RealCode], elsewhere: list[RealCode]) -> list[ChosenFusion]:
    """What of the sequences real code picks, with counts. What is dropped changes what is picked: so until all are."""
    seed = [fusion.sequence for fusion in SEED]
    kept = list(dict.fromkeys([*seed, *sequences]))
    while True:
        handlers = handlers_of(kept)
        one, other = picked(corpus, handlers), picked(elsewhere, handlers)
        before, kept = kept, [each for each in kept if one[each] + other[each] >= LEAST or each in seed]
        if len(kept) == len(before):
            return [ChosenFusion(each, one[each], other[each]) for each in kept]


def written(table: list[ChosenFusion]) -> str:
    ordered = sorted(table, key=lambda each: (-(len(each.sequence) - 1) * (each.corpus + each.elsewhere), each))
    lines = [f"{' '.join(each.sequence)}\t{each.corpus}\t{each.elsewhere}" for each in ordered]
    return "\n".join(["sequence\tcorpus\telsewhere", *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.fusions", description="count, and write chosen.tsv")
    parser.add_argument("fixtures", type=Path, help="the folder of the corpus")
    parser.add_argument("more", type=Path, help="a folder of *.hex: other contracts' code, one per line")
    parser.add_argument("--choose", type=int, default=0, metavar="N", help="add N by text, N by calls")
    given = parser.parse_args()
    if not any(given.more.glob("*.hex")):  # what only other contracts use would be dropped
        parser.error(f"{given.more} holds no *.hex files: give a folder with other contracts' code")
    watched = list(corpus_code(given.fixtures, watched=bool(given.choose)))
    corpus = [each._replace(runs=None) for each in watched]
    elsewhere = [*own_code(given.fixtures), *unmeasured(hex_code(given.more), given.fixtures / "bench")]
    sequences = [each.sequence for each in chosen()]
    if given.choose:
        sequences += candidates([*corpus, *elsewhere], [each for each in watched if each.runs], given.choose)
    table = counted(sequences, corpus, elsewhere)
    Path(str(files("fusevm.schedule") / TABLE)).write_text(written(table), "ascii")
    print(f"{len(table)} sequences, {sum(not each.corpus for each in table)} of them picked elsewhere alone")


if __name__ == "__main__":
    main()
