"""EIP-3155 traces compared with those of the executable specification, line by line and field by field.

python -m fusevm.lab.peers.traces --programs 200 --contracts ../shared/fixtures/corpus
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ethereum_spec_tools.evm_tools.t8n.evm_trace.eip3155 import Eip3155Tracer

from fusevm.api import EVM
from fusevm.chain.environment import Block
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork, rules_of
from fusevm.lab.fuzz.generator import program
from fusevm.lab.fuzz.starve import random_gas
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.spec import MODULES, Spec
from fusevm.lab.peers.work import PeerWork, block_hash
from fusevm.reference.hooks import Hooks, Step
from fusevm.reference.tracer import eip3155_step
from fusevm.values import to_address, to_bytes

Line = dict[str, Any]
FIELDS = (
    "pc",
    "op",
    "opName",
    "gas",
    "gasCost",
    "memSize",
    "memory",
    "stack",
    "depth",
    "returnData",
    "refund",
    "error",
)
ERRORS = {
    "StackUnderflowError": "stack underflow",
    "StackOverflowError": "stack overflow",
    "OutOfGasError": "out of gas",
    "InvalidOpcode": "invalid opcode",
    "InvalidJumpDestError": "invalid jump",
    "WriteInStaticContext": "state change in a static call",
    "OutOfBoundsRead": "read past the end of return data",
}
MAX_MEMORY = 1 << 22  # bytes, over all lines of a trace
NAMES = {"KECCAK": "KECCAK256"}  # the specification's own names of opcodes


class TraceDifference(NamedTuple):
    line: int
    name: str  # of the opcode
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        where = f"line {self.line}, {self.name}, {self.field}"
        return f"{where}: fusevm {self.ours!r}, the specification {self.theirs!r}"


@dataclass(slots=True)
class TraceTally:
    agreed: int = 0
    with_memory: int = 0  # traces whose memory was compared too
    lines: int = 0
    excused: Counter[str] = field(default_factory=Counter)  # fields of lines, by reason
    differed: list[tuple[str, list[TraceDifference]]] = field(default_factory=list)

    def add(self, name: str, work: PeerWork) -> None:
        ours = trace_of(work, memory=False)
        with_memory = sum(line["memSize"] for line in ours) < MAX_MEMORY
        if with_memory:
            ours = trace_of(work)
            self.with_memory += 1
        theirs = spec_trace_of(work, memory=with_memory)
        self.lines += len(ours)
        if work.transaction.authorizations:
            _without_delegations(ours, theirs, self.excused)
        differences = list(compare(ours, theirs, work.fork, self.excused))
        if differences:
            self.differed.append((name, differences))
        else:
            self.agreed += 1


def trace_of(work: PeerWork, *, memory: bool = True) -> list[Line]:
    """Our own, on the reference tier, as every run with hooks is."""
    lines: list[Line] = []

    def note(step: Step) -> None:
        lines.append(eip3155_step(step))

    OurTier("reference", Hooks(on_opcode=note, memory=memory)).run(work)
    return lines


def spec_trace_of(work: PeerWork, *, memory: bool = True) -> list[Line]:
    written = io.StringIO()
    seen = Spec().run(work, Eip3155Tracer(trace_memory=memory, trace_return_data=True, output_basedir=written))
    if seen.status == "rejected":
        return []
    return [json.loads(line) for line in written.getvalue().splitlines()][:-1]  # the last sums up


def compare(ours: list[Line], theirs: list[Line], fork: Fork, excused: Counter[str]) -> Iterator[TraceDifference]:
    if len(ours) != len(theirs):
        yield TraceDifference(min(len(ours), len(theirs)), "", "number of lines", len(ours), len(theirs))
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        mine, other = _comparable_ours(mine), _comparable_theirs(other)
        for name in FIELDS:
            if mine.get(name) != other.get(name):
                reason = excuse(name, mine, other, fork)
                if reason is None:
                    yield TraceDifference(number, mine["opName"], name, mine.get(name), other.get(name))
                    return  # what follows from it says nothing new
                excused[reason] += 1


def _without_delegations(ours: list[Line], theirs: list[Line], excused: Counter[str]) -> None:
    """EIP-7702: as in geth, the counter begins with what the authorizations give back."""
    given = rules_of(Fork.PRAGUE).authorization_refund
    extra = ours[0]["refund"] - theirs[0]["refund"] if ours and theirs else 0
    if extra > 0 and extra % given == 0:
        excused["the specification adds the refund of authorizations at the end, geth before the first step"] += len(
            ours
        )
        for line in ours:
            line["refund"] -= extra


def _comparable_ours(line: Line) -> Line:
    """Errors without their details; opcodes that do not exist under one name."""
    line = dict(line)
    if "error" in line:
        line["error"] = line["error"].partition(":")[0]
        if line["error"] == "invalid opcode":
            line["opName"] = "InvalidOpcode"
        if line["error"] == "init code too large":
            line["error"] = "out of gas"
    return line


def _comparable_theirs(line: Line) -> Line:
    line = dict(line)
    if "error" in line:
        line["error"] = ERRORS.get(line["error"], line["error"])
    line["opName"] = NAMES.get(line["opName"], line["opName"])
    return line


def excuse(name: str, ours: Line, theirs: Line, fork: Fork) -> str | None:
    """Why a field may differ; None where it may not."""
    if name == "gasCost" and name not in theirs:
        return "the specification leaves out a cost of more than 64 bits"
    if name == "returnData" and name not in theirs and fork < Fork.BYZANTIUM:
        return "before Byzantium the specification has no return data to show"
    if name == "opName" and ours[name] == "PREVRANDAO" and theirs[name] == "DIFFICULTY":
        return "PREVRANDAO is named so at every fork"
    if name == "error" and theirs.get(name) == "Revert" and ours["opName"] == "REVERT" and name not in ours:
        return "the specification calls REVERT an error of its line, geth does not"
    return None


# -- what is traced


def random_works(count: int, seed: int, limits: int = 1) -> Iterator[tuple[str, PeerWork]]:
    """Programs of the generator on the specification's forks in turn, each as it is and at random gas limits."""
    forks = sorted(MODULES)
    for index in range(count):
        made = program(f"traces {seed}.{index}", forks[index % len(forks)])
        work = made.work()
        if Spec().excuse(work) is not None:
            continue
        yield made.seed, work
        for gas in random_gas(work, Random(made.seed), limits):
            yield f"{made.seed} at {gas} gas", work.with_gas(gas)


def contract_works(path: Path) -> Iterator[tuple[str, PeerWork]]:
    """A compiled contract of the corpus: its deployment and its calls, each on the state that the last one left."""
    form = json.loads(path.read_text(encoding="utf-8"))
    block = Block(number=1_000, timestamp=1_700_000_000, hashes=block_hash)
    evm = EVM(form["fork"], "reference", block=block)
    creation = to_bytes(form["solc"]["via_ir_opt"]["creation"])
    sent = [
        ("deployment", form["deployer"], creation),
        *((each["sig"], each["caller"], each["data"]) for each in form["calls"]),
    ]
    to: bytes | None = None
    for name, caller, data in sent:
        sender = to_address(caller)
        evm.set_balance(sender, 10**24)
        tx = Transaction(sender, to, to_bytes(data), gas_limit=10_000_000, gas_price=0)
        yield f"{path.stem}, {name}", PeerWork(evm.fork, evm.state.copy().accounts, block, tx)
        result = evm.transact(tx.sender, tx.to, tx.data, gas=tx.gas_limit, gas_price=0)
        to = to or result.check().address


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.peers.traces", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200, help="random programs, each also at a random gas limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--contracts", type=Path, help="a folder of compiled contracts")
    parser.add_argument("--show", type=int, default=5, help="how many differences to print")
    options = parser.parse_args(arguments)
    tally = TraceTally()
    for name, work in random_works(options.programs, options.seed):
        tally.add(name, work)
    _report(f"{options.programs} programs", tally, options.show)
    failed = bool(tally.differed)
    if options.contracts is not None:
        paths, tally = sorted(options.contracts.glob("*.json")), TraceTally()
        for path in paths:
            for name, work in contract_works(path):
                tally.add(name, work)
        _report(f"{len(paths)} contracts", tally, options.show)
        failed = failed or bool(tally.differed) or not paths
    return 1 if failed else 0


def _report(what: str, tally: TraceTally, show: int) -> None:
    print(f"{what}: {tally.agreed} traces agreed, {len(tally.differed)} differed")
    print(f"  {tally.lines} lines; memory compared in {tally.with_memory} traces")
    for reason, count in tally.excused.most_common():
        print(f"  excused {count} times: {reason}")
    for name, differences in tally.differed[:show]:
        print(f"  {name}: {'; '.join(map(str, differences))}")


if __name__ == "__main__":
    sys.exit(main())
