"""What each kind of fusion brings at run time: alone, against no fusion at all; and missing, against all of them.

python bench/patterns.py [FOLDER OF BENCH FILES]

The geometric mean over the contracts of 10,000 instructions and more that are neither hash- nor storage-bound.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from fusevm import EVM
from fusevm.lab.peers.bench import LARGE, BenchFile, bench_files, geometric_mean
from fusevm.native.emit.build import library
from fusevm.native.host.engine import NativeEngine
from fusevm.schedule.fusions import SEED, fused_sequences

BOUND = (
    "erc20-mint",
    "erc20-transfer",
    "revmc-erc20_transfer",
    "revmc-hash_10k",
    "ten-thousand-hashes",
    "opcodes-crypto",
)
SECONDS = 0.06  # of runs per file; the best counts
JUMPS = {"JUMP@", "JUMPI@", "JUMP", "JUMPI"}
MEMORY = {"MLOAD", "MSTORE", "MSTORE8", "CALLDATALOAD", "KECCAK256"}

Sequence = tuple[str, ...]
Kind = Callable[[Sequence], bool]

KINDS: dict[str, Kind] = {
    "3-PUSH, 2-PUSH": lambda each: set(each) == {"PUSH"},
    "3-POP, 2-POP": lambda each: set(each) == {"POP"},
    "ISZERO-PUSH-JUMPI": lambda each: each == ("ISZERO", "JUMPI@"),
    "DUP2-MSTORE-PUSH": lambda each: each == ("DUP2", "MSTORE", "PUSH"),
    "all of the seed's": lambda each: each in {info.sequence for info in SEED},
    "a block's header and what follows": lambda each: each[0] in ("SECTION", "GASSECTION"),
    "ending in a jump": lambda each: each[-1] in JUMPS,
    "with memory": lambda each: bool(MEMORY & set(each)),
    "DUP, SWAP, PUSH, POP alone": lambda each: all(name.startswith(("DUP", "SWAP", "PUSH", "POP")) for name in each),
    "any other": lambda each: (
        not (
            each[0] in ("SECTION", "GASSECTION")
            or each[-1] in JUMPS
            or MEMORY & set(each)
            or all(name.startswith(("DUP", "SWAP", "PUSH", "POP")) for name in each)
        )
    ),
}


def seconds(file: BenchFile, engine: NativeEngine) -> float:
    """The best run of a contract."""
    work, tx = file.work, file.work.transaction
    evm = EVM(work.fork, "native", block=work.block, state=work.state())
    evm._execute = lambda message, state, context, hooks: engine.execute(message, state, context)
    assert tx.to is not None
    taken: list[float] = []
    began = perf_counter()
    while perf_counter() - began < SECONDS or len(taken) < 3:  # the first builds the schedule
        with evm.snapshot():
            start = perf_counter()
            evm.call(tx.to, tx.data, value=tx.value, caller=tx.sender, gas=tx.gas_limit)
            taken.append(perf_counter() - start)
    return min(taken)


def main() -> None:
    root = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")
    files = [each for each in bench_files(Path(root) / "bench") if each.ops >= LARGE and each.name not in BOUND]
    every, fused = library().handlers, frozenset(fused_sequences())
    engine = NativeEngine()

    def times(wanted: frozenset[Sequence]) -> list[float]:
        engine.codes.record(every.only(wanted), None, frozenset())
        return [seconds(file, engine) for file in files]

    def faster(before: list[float], after: list[float]) -> float:
        return geometric_mean([one / other for one, other in zip(before, after, strict=True)])

    none, all_of_them = times(frozenset()), times(fused)
    print(f"{len(files)} contracts; all fusions: {faster(none, all_of_them):.2f} times as fast as none\n")
    print(f"{'kind':36} {'sequences':>9} {'alone':>7} {'missing':>8}")
    for name, belongs in KINDS.items():
        group = frozenset(each for each in fused if belongs(each))
        alone = faster(none, times(group))
        missing = faster(all_of_them, times(fused - group))
        print(f"{name:36} {len(group):9} {alone:7.2f} {missing:8.2f}", flush=True)


if __name__ == "__main__":
    main()
