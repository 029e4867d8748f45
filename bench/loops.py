"""What regions bring to loops: small ones on a schedule and in a region in turn, and what holds of the corpus's loops.

python bench/loops.py [FIXTURES]
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.lab.real_code import corpus_code
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.region.loops import loops_in

HERE = bytes.fromhex("c0de" * 10)
ROUNDS = 9
COUNT = 20_000
WHILE = "PUSH0 PUSH0 loop: JUMPDEST {bound} DUP2 LT ISZERO PUSH1 @end JUMPI {body} PUSH1 1 ADD PUSH1 @loop JUMP"
SUM = "DUP1 DUP3 ADD SWAP2 POP"
LOOPS = {
    "empty, `while`": WHILE.format(bound=f"PUSH2 {COUNT}", body=""),
    "sum, `while`": WHILE.format(bound=f"PUSH2 {COUNT}", body=SUM),
    "sum, tested at the bottom": (
        f"PUSH0 PUSH0 loop: JUMPDEST {SUM} PUSH1 1 ADD PUSH2 {COUNT} DUP2 LT PUSH1 @loop JUMPI"
    ),
    "counting down to zero": f"PUSH2 {COUNT} loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI",
    "a branch inside": WHILE.format(
        bound=f"PUSH2 {COUNT}", body=f"DUP1 PUSH1 1 AND PUSH1 @odd JUMPI {SUM} odd: JUMPDEST"
    ),
    "storing to memory": WHILE.format(bound="PUSH2 2000", body="DUP1 DUP2 PUSH1 5 SHL MSTORE"),
}


def seconds(engine: NativeEngine, code: bytes) -> float:
    state = State()
    state.set_code(HERE, code)
    message = Message(HERE, HERE, code, b"", gas=5_900_000)
    start = perf_counter()
    outcome = engine.execute(message, state, Context(LATEST, Block()))
    taken = perf_counter() - start
    assert outcome.failure is None
    return taken


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))
    off, on = (NativeEngine(regions=regions) for regions in (None, Regions()))
    for name, text in LOOPS.items():
        code = assemble(f"{text} end: JUMPDEST STOP")
        times = [(seconds(off, code), seconds(on, code)) for _ in range(ROUNDS)]
        before, after = map(min, zip(*times, strict=True))
        print(f"{name:28} {before / after:5.2f}")
    loops = [loop for each in corpus_code(root) for loop in loops_in(each.code, LATEST)]
    refused = [re.sub("0x[0-9a-f]+", "…", loop.reason) for loop in loops if not loop.fused]
    uncounted = [loop.uncounted for loop in loops if loop.comparison is None]
    print(f"\ncorpus: {len(loops)} loops, {len(loops) - len(refused)} fused, {len(loops) - len(uncounted)} counted")
    for title, reasons in (("not fused", refused), ("not counted", uncounted)):
        print(title)
        for reason, given in Counter(reasons).most_common():
            print(f"{given:5}  {reason}")


if __name__ == "__main__":
    main()
