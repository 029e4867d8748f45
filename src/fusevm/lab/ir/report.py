"""Tables for the documentation: what folding does to real contracts, and what it costs.

python -m fusevm.lab.ir.report contracts ../shared/fixtures
python -m fusevm.lab.ir.report growth ../shared/fixtures
python -m fusevm.lab.ir.report hostile
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.state import Account, State
from fusevm.evm.forks import LATEST, fork_named
from fusevm.ir.block import Mode
from fusevm.ir.fold.program import fold_program
from fusevm.ir.measure import Measurement, measure
from fusevm.ir.ordering import schedule
from fusevm.lab.ir.hostile import HOSTILE
from fusevm.reference.interpreter import execute

DEPLOYER, DEPLOYED = b"\x11" * 20, b"\x22" * 20
MOST = 24_576  # bytes of a deployed contract
SIZES = (1024, 2048, 4096, 8192, 16_384, MOST)


def deployed(creation: bytes, fork: str) -> bytes:
    """The code a contract's creation code leaves on chain."""
    state = State()
    state.accounts[DEPLOYER] = Account(0, 10**20)
    message = Message(DEPLOYER, DEPLOYED, creation, gas=10**9, creates=True, code_address=DEPLOYED)
    execute(message, state, Context(fork_named(fork), Block()))
    return state.account(DEPLOYED).code


def contracts(fixtures: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted((fixtures / "corpus").glob("*.json")):
        document = json.loads(path.read_text())
        for kind, built in document["solc"].items():
            yield f"{document['name']} ({kind})", deployed(bytes.fromhex(built["creation"][2:]), document["fork"])
    for path in sorted((fixtures / "bench").glob("*.json")):
        document = json.loads(path.read_text())
        codes = {account["code"] for account in document["pre"].values()} - {"0x"}
        for number, code in enumerate(sorted(codes, key=len, reverse=True)):
            data = bytes.fromhex(code[2:])
            if len(data) <= MOST:
                yield document["name"] + (f" ({number + 1})" if number else ""), data


HEADER = (
    "contract", "bytes", "opcodes", "stack opcodes", "lift", "fold", "cse", "fwd", "dse",
    "loads forwarded", "stores dropped", "checks", "dropped", "merged", "hoisted", "PHIs", "spills",
)  # fmt: skip


def row_of(name: str, code: bytes, found: Measurement) -> list[object]:
    stats = found.last.stats
    return [
        name, len(code), found.opcodes, found.stack_opcodes, *(row.instructions for row in found.rows),
        stats.forwarded, stats.stores_dropped, stats.checks, stats.checks_dropped - stats.checks_merged,
        stats.checks_merged, stats.hoisted, found.last.phis, found.last.spills,
    ]  # fmt: skip


def show(header: tuple[str, ...], rows: Iterator[list[object]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header), flush=True)
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def contract_rows(fixtures: Path, mode: Mode) -> Iterator[list[object]]:
    total: list[int] = []
    for name, code in contracts(fixtures):
        row = row_of(name, code, measure(code, LATEST, mode))
        numbers = [int(str(cell)) for cell in row[1:]]
        total = [a + b for a, b in zip(total, numbers, strict=True)] if total else numbers
        yield row
    yield ["**all**", *total]


def seconds_for(code: bytes) -> tuple[float, int]:
    """Of processor time to lift, fold and schedule; and the number of steps left."""
    began = time.process_time()
    program, _ = fold_program(code)
    steps = sum(len(schedule(block, program.unseen).steps) for block in program.blocks.values())
    return time.process_time() - began, steps


def growth_rows(fixtures: Path) -> Iterator[list[object]]:
    codes = [(name, HOSTILE[name](size)) for name in ("branches, loops and calls", "straight line") for size in SIZES]
    real = [(name, code) for name, code in contracts(fixtures) if len(code) > SIZES[0] and "opcodes" not in name]
    for name, code in codes + sorted(real, key=lambda pair: len(pair[1])):
        seconds, steps = seconds_for(code)
        yield [name, len(code), steps, f"{seconds:.2f}", f"{1e6 * seconds / len(code):.0f}"]


def hostile_rows() -> Iterator[list[object]]:
    for name, make in HOSTILE.items():
        code = make(MOST)
        seconds, steps = seconds_for(code)
        yield [name, len(code), steps, f"{seconds:.2f}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.ir.report")
    parser.add_argument("table", choices=["contracts", "growth", "hostile"])
    parser.add_argument("fixtures", nargs="?", type=Path, default=Path("../shared/fixtures"))
    parser.add_argument("--mode", type=Mode, default=Mode.EXECUTION)
    chosen = parser.parse_args()
    if chosen.table == "contracts":
        show(HEADER, contract_rows(chosen.fixtures, chosen.mode))
    elif chosen.table == "growth":
        show(("code", "bytes", "steps left", "seconds", "µs a byte"), growth_rows(chosen.fixtures))
    else:
        show(("code", "bytes", "steps left", "seconds"), hostile_rows())
    return 0


if __name__ == "__main__":
    sys.exit(main())
