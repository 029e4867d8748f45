"""Timing engines on bench files: the best of several runs of one message call, each run's result checked."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter
from types import FrameType
from typing import Any

from fusevm.chain.environment import Block
from fusevm.chain.state import Account
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import UnknownFork, fork_named
from fusevm.lab.official.statetest import address, data, quantity, state_from
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerEngine, PeerWork, Timing, block_hash

GAS = 1_000_000_000  # more than any file needs
LARGE = 10_000  # instructions, below which the fixed cost of a call decides
SYNTHETIC = ("opcodes-*", "*JUMPDEST_n0", "*loop_with_many_jumpdests", "*jump_around")  # written to time one thing
GROUPS = (
    f"contracts of {LARGE:,} instructions and more",
    f"contracts of fewer than {LARGE:,} instructions",
    "synthetic files",
)
TIME_LIMIT = 60.0  # seconds a single run may take
_PATIENCE = 10.0  # seconds after which a file's runs are not repeated further
_SETTLING = (
    0.05  # seconds of runs at least: short ones are at their best only after some, and a disturbance may last as long
)


class BadBench(ValueError):
    """One line naming the file and what is wrong with it."""


class TimeUp(BaseException):
    """Not an Exception, so that no engine takes it for a failure of the code it runs."""


@dataclass(slots=True)
class BenchFile:
    name: str
    work: PeerWork
    status: str
    gas_used: int
    refund: int
    output: bytes
    ops: int

    @property
    def group(self) -> str:
        """Which mean it belongs to. Synthetic files are not like any contract, so they are not averaged with them."""
        if is_synthetic(self.name):
            return GROUPS[2]
        return GROUPS[0] if self.ops >= LARGE else GROUPS[1]

    def fault(self, seen: Timing) -> str | None:
        """What is wrong with a result."""
        for what, got, want in (
            ("status", seen.status, self.status),
            ("gas", seen.gas_used, self.gas_used),
            ("refund", seen.refund, self.refund),
            ("output", "0x" + seen.output.hex(), "0x" + self.output.hex()),
        ):
            if got != want:
                return f"{what} {got}, expected {want}"
        return None


@dataclass(slots=True)
class Measured:
    seconds: float | None = None  # None where a run took longer than the limit
    gas_used: int | None = None
    fault: str | None = None


@dataclass(slots=True)
class Row:
    file: BenchFile
    engines: dict[str, Measured] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return all(measured.fault is None for measured in self.engines.values())

    def as_json(self) -> dict[str, Any]:
        used = [measured.gas_used for measured in self.engines.values() if measured.gas_used is not None]
        return {
            "name": self.file.name,
            "ok": self.ok,
            "gas_used": used[0] if used else None,
            "ops": self.file.ops,
            "group": self.file.group,
            "seconds": {name: measured.seconds for name, measured in self.engines.items()},
            "faults": {name: measured.fault for name, measured in self.engines.items() if measured.fault},
        }


def is_synthetic(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in SYNTHETIC)


def bench_files(folder: Path, names: Sequence[str] = ()) -> list[BenchFile]:
    """Those of that name, or all, in order."""
    if not folder.is_dir():
        raise BadBench(f"no folder of bench files at {folder} (set FUSEVM_FIXTURES or --dir)")
    wanted = [folder / f"{name.removesuffix('.json')}.json" for name in names] or sorted(folder.glob("*.json"))
    if not wanted:
        raise BadBench(f"no bench files in {folder}")
    return [_read(path) for path in wanted]


def read_form(form: Any, name: str) -> BenchFile:
    """What a bench file says."""
    call, expect = form["call"], form["expect"]
    tx = Transaction(
        address(call["caller"]), address(call["to"]), data(call["data"]), quantity(call["value"]), GAS, gas_price=0
    )
    block = Block(hashes=block_hash, gas_limit=GAS)
    work = PeerWork(fork_named(form["fork"]), state_from(form["pre"]).accounts, block, tx)
    return BenchFile(
        name,
        work,
        expect["status"],
        quantity(expect["gas_used"]),
        quantity(expect["refund"]),
        data(expect["output"]),
        quantity(expect.get("ops", 0)),
    )


def _read(path: Path) -> BenchFile:
    try:
        return read_form(json.loads(path.read_text(encoding="utf-8")), path.stem)
    except FileNotFoundError:
        raise BadBench(f"no bench file {path.stem!r} in {path.parent}") from None
    except OSError as error:
        raise BadBench(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError, UnknownFork) as error:
        raise BadBench(f"{path} is not a bench file: {type(error).__name__}: {error}") from None


def measure(engine: PeerEngine, file: BenchFile, repeat: int, limit: float = TIME_LIMIT) -> Measured:
    """The best of `repeat` runs after a first one to warm up; fewer where they take long, more where they take little.

    All of them are checked, but those that only bring a tier to its speed. The limit is that of the first run alone.
    """
    if not engine.supports(file.work.fork):
        return Measured(fault=f"{engine.name} does not know {file.work.fork.label}")
    try:
        with time_limit(limit):
            run = engine.stopwatch(file.work)
            seen = run()
            best, fault = seen.seconds, file.fault(seen)
    except TimeUp:
        return Measured()
    if fault is None and isinstance(engine, OurTier):
        engine.settle(run)
    began, first = perf_counter(), best
    turn = 0
    while fault is None:
        again_for = perf_counter() - began
        if turn >= repeat and again_for > _SETTLING:
            break
        if first + again_for > _PATIENCE and (turn or first > _PATIENCE):
            break
        again = run()
        fault = file.fault(again)
        best = again.seconds if turn == 0 else min(best, again.seconds)
        turn += 1
    return Measured(best, seen.gas_used, fault)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeUp when the time is up, where the system has timers to do so and we are in the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def geometric_mean(ratios: Iterable[float]) -> float:
    """One where there are none."""
    logarithms = list(map(log, ratios))
    return exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0


def ratios(rows: Sequence[Row], one: str, other: str) -> list[float]:
    """How many times as long `one` takes as `other`, for each file that both ended rightly."""
    pairs = [(row.engines.get(one), row.engines.get(other)) for row in rows]
    return [
        a.seconds / b.seconds
        for a, b in pairs
        if a is not None and b is not None and a.seconds and b.seconds and not a.fault and not b.fault
    ]


def stop_seconds(engine: PeerEngine, runs: int = 3_000) -> float:
    """The median time of a call that stops at once: what a call costs in itself."""
    caller, to = b"\x11" * 20, b"\xcc" * 20
    accounts = {caller: Account(balance=10**18), to: Account(nonce=1, code=b"\x00")}
    work = PeerWork(
        fork_named("cancun"), accounts, Block(hashes=block_hash), Transaction(caller, to, gas_limit=100_000)
    )
    run = engine.stopwatch(work)
    return median(run().seconds for _ in range(runs))
