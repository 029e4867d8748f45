"""Many calls of a token: a loop in Python, the native loop, pyrevm, processes, threads, Dask; sending a state; memory.

python bench/many.py [--calls N] [--loop N] [--workers N] [--rounds N] [--times N] [--kind NAME] [--matrix]
                     [--skip NAME]…

On one core the processor time of this process counts, which other work on the machine does not change much. Of pools
the processor time of all processes and the clock are printed. pyrevm and Dask are measured where they are installed.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy

from fusevm import EVM, Batch
from fusevm.batch import Pool, Threads
from fusevm.batch.tables import open_table
from fusevm.chain.packed import Common, Pieces
from fusevm.codegen.yul import compile_object
from fusevm.machine.messages import DEFAULT_GAS
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from many_pools import Work, with_pools

TOKEN, ALICE = b"\xc0" * 20, b"\xa1" * 20
HOLDERS = [bytes([1]) * 16 + number.to_bytes(4, "big") for number in range(1_000)]
SOURCE = """
object "Token" {
    code { datacopy(0, dataoffset("run"), datasize("run")) return(0, datasize("run")) }
    object "run" {
        code {
            if callvalue() { revert(0, 0) }
            switch shr(224, calldataload(0))
            case 0x70a08231 /* balanceOf(address) */ { word(sload(slot(calldataload(4)))) }
            case 0xa9059cbb /* transfer(address,uint256) */ {
                let to := calldataload(4)
                let amount := calldataload(36)
                let from_slot := slot(caller())
                let balance_from := sload(from_slot)
                if lt(balance_from, amount) { revert(0, 0) }
                sstore(from_slot, sub(balance_from, amount))
                let to_slot := slot(to)
                sstore(to_slot, add(sload(to_slot), amount))
                mstore(0, amount)
                log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, caller(), to)
                word(1)
            }
            default { revert(0, 0) }
            function word(value) { mstore(0, value) return(0, 32) }
            function slot(who) -> place { mstore(0, who) mstore(32, 0) place := keccak256(0, 64) }
        }
    }
}
"""


def machine(tier: str = "auto") -> EVM:
    dialect = dialect_for("osaka")
    creation = compile_object(optimize(parse_object(SOURCE, dialect), dialect), dialect).code
    evm = EVM(tier=tier)
    evm.set_code(TOKEN, evm.simulate(None, creation).output)
    for holder in (ALICE, *HOLDERS):
        evm.set_storage(TOKEN, slot_of(holder), 10**24)
    return evm


def slot_of(holder: bytes) -> int:
    from fusevm.evm.keccak import keccak256

    return int.from_bytes(keccak256(holder.rjust(32, b"\0") + bytes(32)), "big")


def balance_of(number: int) -> bytes:
    return bytes.fromhex("70a08231") + HOLDERS[number % len(HOLDERS)].rjust(32, b"\0")


def transfer(number: int) -> bytes:
    to = HOLDERS[number % len(HOLDERS)].rjust(32, b"\0")
    return bytes.fromhex("a9059cbb") + to + (number + 1).to_bytes(32, "big")


KINDS: dict[str, Callable[[int], bytes]] = {"balanceOf": balance_of, "transfer": transfer}


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time of this process and of children that have ended."""
    started, spent = time.perf_counter(), sum(os.times()[:4])
    run()
    return time.perf_counter() - started, sum(os.times()[:4]) - spent


def show(what: str, calls: int, clock: float, spent: float) -> None:
    print(f"{what:44} {calls / spent:12,.0f} {calls / clock:12,.0f}", flush=True)


def one_core(kind: str, datas: list[bytes], loop: int) -> None:
    evm = machine()
    warm = datas[: loop // 10]
    evm.simulate_many(datas, to=TOKEN, caller=ALICE)
    simulate = evm.simulate
    for _ in range(3):
        [simulate(TOKEN, data, caller=ALICE) for data in warm]
    show(
        f"{kind}, a loop over evm.simulate",
        loop,
        *timed(lambda: [simulate(TOKEN, data, caller=ALICE) for data in datas[:loop]]),
    )
    show(f"{kind}, simulate_many", len(datas), *timed(lambda: evm.simulate_many(datas, to=TOKEN, caller=ALICE)))
    show(f"{kind}, call_many", len(datas), *timed(lambda: evm.call_many(datas, to=TOKEN, caller=ALICE)))


def with_pyrevm(kind: str, datas: list[bytes]) -> None:
    try:
        import pyrevm
    except ImportError:
        print("pyrevm is not installed")
        return
    ours = machine()
    peer: Any = pyrevm.EVM()
    code = ours.get_code(TOKEN)
    peer.insert_account_info("0x" + TOKEN.hex(), pyrevm.AccountInfo(code=code))
    for holder in (ALICE, *HOLDERS):
        peer.insert_account_storage("0x" + TOKEN.hex(), slot_of(holder), 10**24)
    caller, to = "0x" + ALICE.hex(), "0x" + TOKEN.hex()

    def run() -> None:
        for data in datas:
            peer.message_call(caller=caller, to=to, calldata=data, is_static=False)

    show(f"{kind}, a loop over pyrevm's message_call", len(datas), *timed(run))


def in_pools(kind: str, datas: list[bytes], workers: int, rounds: int, times: int, *, matrix: bool) -> None:
    """All of them, so many times over, as a stream: no pool is measured by the memory that results take."""
    evm = machine()
    first = evm.simulate_many(datas[:1000], to=TOKEN, caller=ALICE)
    given: Any = datas if times == 1 else None
    if matrix:
        given = numpy.frombuffer(b"".join(datas * times), "u1").reshape(times * len(datas), -1)

    def stream(pool: Pool) -> Iterator[Batch]:
        calls = chain.from_iterable(repeat(datas, times)) if given is None else given
        return pool.stream(calls, to=TOKEN, caller=ALICE)

    def check(pool: Pool) -> bool:
        return pool.simulate_many(datas[:1000], to=TOKEN, caller=ALICE) == first

    packed = Pieces(datas, Common.read(TOKEN, ALICE, 0, DEFAULT_GAS)).take(len(datas))
    assert packed is not None
    print(f"{kind}: calls given as {'a NumPy matrix, data row by row' if matrix else 'Python objects of bytes'}")
    with_pools(Work(kind, evm, stream, check, times * len(datas), packed), workers, rounds)


def sending() -> None:
    """A state of 100,000 slots to a worker."""
    evm = machine()
    for number in range(100_000):
        evm.set_storage(TOKEN, number << 200, number + 1)
    clock, spent = timed(lambda: pickle.loads(pickle.dumps(evm, pickle.HIGHEST_PROTOCOL)))
    print(f"{'a state of 100,000 slots, pickled and back':44} {spent:.3f} s of processor, {clock:.3f} s by the clock")


def memory(calls: int) -> None:
    """How much memory a stream of calls to a Parquet file takes, in a process of its own, and one ten times as long."""
    for count in (calls, 10 * calls):
        run = [sys.executable, __file__, "--stream", str(count)]
        print(subprocess.run(run, capture_output=True, text=True, check=True).stdout, end="", flush=True)


def stream(calls: int) -> None:
    """So many calls to a file; the most memory that this process ever had, and had when the first tenth was done."""
    path = Path(tempfile.gettempdir()) / f"fusevm-many-{os.getpid()}{'.parquet' if find_spec('pyarrow') else '.csv'}"
    early, done = 0, 0
    with Threads(machine(), 1) as pool, open_table(path) as table:
        for batch in pool.stream((balance_of(number) for number in range(calls)), to=TOKEN, caller=ALICE):
            table.add({"status": batch.status.tolist(), "gas_used": batch.gas_used.tolist(), "word": batch.words()})
            done += len(batch)
            if done <= calls // 10:
                early = peak()
    print(f"{calls:,} calls to a {path.suffix} file of {path.stat().st_size >> 10:,} KiB: ", end="")
    print(f"peak memory {early} MiB at a tenth, {peak()} MiB at the end")
    path.unlink()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--loop", type=int, default=100_000, help="calls of the loops in Python")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15, help="of the pools, in turns; the best counts")
    parser.add_argument("--times", type=int, default=1, help="pools make all calls so many times over")
    parser.add_argument("--kind", choices=list(KINDS), help="of the calls that pools make; default: all")
    parser.add_argument(
        "--matrix", action="store_true", help="pools get calls as a NumPy array, not as a list of bytes"
    )
    parser.add_argument("--stream", type=int, help="only so many calls to a file, and the memory it takes")
    parser.add_argument("--skip", action="append", default=[], choices=["loops", "pools", "state", "memory"])
    options = parser.parse_args()
    if options.stream:
        stream(options.stream)
        return
    print(f"{'calls per second':44} {'processor':>12} {'clock':>12}")
    if "loops" not in options.skip:
        for kind, make in KINDS.items():
            datas = [make(number) for number in range(options.calls)]
            one_core(kind, datas, options.loop)
            with_pyrevm(kind, datas[: options.loop])
    if "pools" not in options.skip:
        for kind, make in KINDS.items():
            if options.kind in (None, kind):
                datas = [make(number) for number in range(options.calls)]
                in_pools(kind, datas, options.workers, options.rounds, options.times, matrix=options.matrix)
    if "state" not in options.skip:
        sending()
    if "memory" not in options.skip:
        memory(options.calls)


if __name__ == "__main__":
    main()
