"""Random chains, built on one tier and imported on another, branches and past states included, and by the spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from fusevm.blockchain import Chain
from fusevm.chain.reasons import InvalidBlock
from fusevm.chain.schedule import STEPS, ForkSchedule, always
from fusevm.chain.sealed import SealedBlock
from fusevm.evm.forks import Fork
from fusevm.lab.chains.generate import random_block, random_genesis, random_schedule

TIERS = (("auto", "reference"), ("reference", "native"), ("native", "reference"))
LENGTH = 8  # blocks of a chain


@dataclass
class Found:
    """What a campaign has seen."""

    blocks: int = 0
    transactions: Counter[int] = field(default_factory=Counter)  # by type
    judged: int = 0  # blocks that the specification has imported
    branches: int = 0
    differences: list[str] = field(default_factory=list)


def run_chains(seeds: range, forks: list[Fork], transactions: int, *, with_spec: bool = False) -> Iterator[Found]:
    """One finding per chain."""
    for seed in seeds:
        fork = forks[seed % len(forks)]
        yield run_chain(f"{seed}/{fork.label}", fork, transactions, with_spec=with_spec)


def run_chain(seed: str, fork: Fork, transactions: int, *, with_spec: bool = False) -> Found:
    rng = Random(f"chain {seed}")
    schedule = _spec_schedule(rng, fork) if with_spec else random_schedule(rng, fork)
    genesis = random_genesis(rng, schedule)
    one, two = rng.choice(TIERS)
    builder, importer = Chain(genesis, tier=one), Chain(genesis, tier=two)
    spec = _spec_chain(builder) if with_spec else None
    found = Found()
    built: list[SealedBlock] = []
    for _ in range(LENGTH):
        if spec is None and len(built) > 1 and rng.random() < 0.2:
            builder.set_head(rng.choice(built).hash)
            found.branches += 1
        block = random_block(rng, builder, transactions)
        built.append(block)
        found.blocks += 1
        found.transactions.update(tx.type for tx in block.transactions)
        difference = _imported(importer, block) or _past(rng, builder, importer, built)
        if not difference and spec is not None:
            difference = _judged(spec, block)
            found.judged += 1
        if difference:
            found.differences.append(f"{seed}: block {block.number}, built on {one}, imported on {two}: {difference}")
            return found
        importer.set_head(builder.head.hash)
    return found


def _imported(importer: Chain, block: SealedBlock) -> str:
    try:
        got = importer.import_block(block.encoded)
    except InvalidBlock as error:
        return str(error)
    return "" if got == block else "decoding gives another block"


def _past(rng: Random, builder: Chain, importer: Chain, built: list[SealedBlock]) -> str:
    """Both chains have the same receipts, and the state of any block, whatever branch it is on."""
    block = rng.choice(built)
    if builder.receipts(block.hash) != importer.receipts(block.hash):
        return f"receipts of block {block.number} differ"
    for chain in (builder, importer):
        with chain.at(block.hash) as state:
            if state.root() != block.header.state_root:
                return f"the state at block {block.number} is not the one its header names"
    if builder.state.root() != builder.head.header.state_root:
        return "the head's state was not put back"
    return ""


def _spec_schedule(rng: Random, fork: Fork) -> ForkSchedule:
    """An upgrade that the specification knows, from the first block on; where it knows none, another of its kind."""
    from fusevm.lab.chains.spec import module_of

    steps = [step for step in STEPS.values() if step.fork is fork]
    return always(rng.choice([step for step in steps if module_of(step)] or steps).name)


def _spec_chain(builder: Chain) -> object | None:
    from fusevm.lab.chains.spec import SpecChain, module_of

    return SpecChain(builder.genesis) if module_of(builder.schedule.at(0, 0)) is not None else None


def _judged(spec: object, block: SealedBlock) -> str:
    from fusevm.lab.chains.spec import SpecChain

    assert isinstance(spec, SpecChain)
    try:
        spec.import_block(block.encoded)
    except Exception as error:  # its own, or a crash of it: both are to be looked at
        return f"the specification refuses it: {error!r}"
    return ""
