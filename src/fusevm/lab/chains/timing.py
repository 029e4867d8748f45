"""Official blockchain cases, timed here and by the executable specification, each from decoding to the last root."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from fusevm.chain.reasons import InvalidBlock
from fusevm.lab.chains.spec import SpecChain, module_of
from fusevm.lab.official.blocktest import BlockCase, block_cases_in, chain_of
from fusevm.lab.official.statetest import data


@dataclass
class Timed:
    cases: int = 0
    blocks: int = 0
    ours: float = 0.0  # seconds
    theirs: float = 0.0
    disagreed: list[str] = field(default_factory=list)


def sample_of(path: str, most: int) -> list[BlockCase]:
    """Some cases of an archive, evenly spaced; one fork each, and one that the specification has."""
    found = []
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith(".json") else None
            if content is not None:
                found += [case for case in block_cases_in(json.load(content)) if "To" not in case.network]
    return [found[place * len(found) // most] for place in range(min(most, len(found)))]


def time_both(cases: Sequence[BlockCase], tier: str) -> Timed:
    total = Timed()
    for case in cases:
        chain = chain_of(case, tier)
        if module_of(chain.schedule.at(0, 0)) is None:
            continue
        spec = SpecChain(chain.genesis)
        total.cases += 1
        for place, entry in enumerate(case.test["blocks"]):
            raw, valid = data(entry["rlp"]), "expectException" not in entry
            total.blocks += 1
            started = perf_counter()
            try:
                chain.import_block(raw)
                accepted = True
            except InvalidBlock:
                accepted = False
            total.ours += perf_counter() - started
            started = perf_counter()
            try:
                spec.import_block(raw)
                theirs = True
            except Exception:  # its exceptions for what it refuses have no common base
                theirs = False
            total.theirs += perf_counter() - started
            if not accepted == theirs == valid:
                total.disagreed.append(f"{case.name}, block {place}: here {accepted}, the specification {theirs}")
    return total
