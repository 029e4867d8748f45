"""Random programs and mutated contracts, optimised and run beside what they were made from.

Most mutated contracts are pieces, as `lab/optimize_pieces.py` cuts them.

python -m fusevm.lab.optimize --programs 2000 --seed 1
python -m fusevm.lab.optimize --programs 500 --seed 1 --kind mutated
python -m fusevm.lab.optimize --programs 500 --seed 1 --kind transactions
python -m fusevm.lab.optimize --kind corpus
python -m fusevm.lab.optimize --kind files --hex FOLDER

`files` are runtime codes of other packages, a line each in files `*.hex`, called by their selectors with random words.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.codegen.bytecode import optimize
from fusevm.evm.bytecode import decode, instructions
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.halts import HaltReason
from fusevm.lab.contracts import contracts, run_contract
from fusevm.lab.ir.campaign import CALLER, OWN, Sight, context, seen_state, world
from fusevm.lab.ir.generate import ProgramMaker
from fusevm.lab.optimize_corpus import measured_corpus, print_table
from fusevm.lab.optimize_pieces import piece, places_run
from fusevm.lab.optimize_transactions import transaction_problem
from fusevm.lab.real_code import RealCode, hex_code
from fusevm.reference.interpreter import execute

GAS = 3_000_000
FORKS = (LATEST, LATEST, Fork.CANCUN, Fork.SHANGHAI, Fork.LONDON, Fork.ISTANBUL, Fork.BYZANTIUM)
LOOKS_AT_ITSELF = frozenset({"PC", "CODESIZE", "CODECOPY", "GAS"})
SOME_GAS = 400_000  # for pieces: loops that a mutation made endless end sooner
LARGE, FEW_LARGE = 700, 0.25  # bytes of a piece; how many of those that are larger are taken
ATTEMPTS = 300  # to make a failing program smaller


class Input(NamedTuple):
    data: bytes
    value: int = 0
    caller: bytes = CALLER
    static: bool = False


@dataclass(slots=True)
class OptimizeCase:
    name: str
    code: bytes
    fork: Fork
    inputs: list[Input]
    storage: dict[int, int] = field(default_factory=dict)
    runs: int = 200
    gas: int = GAS


class PlainProgramMaker(ProgramMaker):
    """Programs that rarely read their own code, so that most of them can be optimised."""

    def allowed(self, name: str) -> bool:
        return super().allowed(name) and (name not in LOOKS_AT_ITSELF or self.rng.random() < 0.02)


def random_case(seed: int, number: int) -> OptimizeCase:
    rng = random.Random(f"optimize/{seed}/{number}")
    fork = rng.choice(FORKS)
    code = PlainProgramMaker(rng, fork, gas_matters=rng.random() < 0.2).program()
    inputs = [Input(rng.randbytes(size), rng.choice((0, 0, 5))) for size in (0, 4, 36, 100)]
    inputs.append(Input(bytes(64), static=True))
    return OptimizeCase(f"random {seed}/{number}", code, fork, inputs, runs=rng.choice((1, 200, 200, 100_000)))


def file_case(seed: int, each: RealCode) -> OptimizeCase:
    """Two calls of each selector that the code compares with, and one of none."""
    rng = random.Random(f"files/{seed}/{each.code.hex()}")
    pushed = dict.fromkeys(found.push for found in instructions(each.code, LATEST) if found.push is not None)
    words = (0, 1, 2, 64, 2**256 - 1, int.from_bytes(OWN, "big"), int.from_bytes(CALLER, "big"), *pushed)
    inputs = [Input(b"")]
    for selector in (word for word in pushed if 2**16 <= word < 2**32):
        for count in (rng.randrange(4), rng.randrange(2, 7)):
            given = [rng.choice((*words, rng.randrange(300))) for _ in range(count)]
            data = b"".join(word.to_bytes(32, "big") for word in given)
            inputs.append(
                Input(selector.to_bytes(4, "big") + data, rng.choice((0, 0, 0, 1)), static=rng.random() < 0.1)
            )
    storage = {slot: rng.choice((0, 1, *words)) for slot in range(8)}
    return OptimizeCase(f"{each.source} ({len(each.code)} bytes)", each.code, LATEST, inputs, storage)


def _fixtures() -> Path:
    return Path(os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures"))


class Original(NamedTuple):
    """The runtime code of a contract, calls to it, and its storage after them."""

    name: str
    code: bytes
    inputs: tuple[Input, ...]
    storage: dict[int, int]
    fork: Fork


@cache
def _originals() -> tuple[Original, ...]:
    from fusevm.evm.forks import fork_named

    folder = _fixtures()
    found = []
    for name, facts in (*contracts(folder / "corpus"), *contracts(folder / "corpus_new")):
        for kind in ("via_ir_opt", "legacy_opt"):
            deployed = run_contract(bytes.fromhex(facts["solc"][kind]["creation"][2:]), facts)
            inputs = tuple(
                Input(bytes.fromhex(call["data"][2:]), call.get("value", 0), bytes.fromhex(call["caller"][2:]))
                for call in facts["calls"]
            )
            fork = fork_named(facts.get("fork", "cancun"))
            found.append(Original(f"{name} {kind}", deployed.runtime, inputs, dict(deployed.storage), fork))
    if not found:
        raise SystemExit(f"no corpus at {folder}: set FUSEVM_FIXTURES")
    return tuple(found)


@cache
def _run_by(number: int, call: int) -> frozenset[int]:
    """Which instructions of an original one of its calls runs."""
    original = _originals()[number]
    return places_run(*_asked(original.code, original.inputs[call], original.storage, original.fork, GAS))


def mutated_case(seed: int, number: int, attempt: int = 0) -> OptimizeCase:
    """A piece of a contract, now and then a whole one, with a few instructions changed."""
    rng = random.Random(f"mutated/{seed}/{number}/{attempt}")
    chosen = rng.randrange(len(_originals()))
    name, runtime, inputs, storage, fork = _originals()[chosen]
    kind = rng.random()
    if kind < 0.99:
        calls = rng.sample(range(len(inputs)), min(len(inputs), rng.choice((1, 1, 1, 2))))
        runtime = piece(runtime, frozenset().union(*[_run_by(chosen, call) for call in calls]), rng)
        if len(runtime) > LARGE and rng.random() > FEW_LARGE:
            return mutated_case(seed, number, attempt + 1)
        inputs = tuple([inputs[call] for call in calls])
        inputs += tuple([_varied(rng.choice(inputs), rng) for _ in range(2)])
    code = bytearray(runtime)
    if 0.99 <= kind < 0.995:
        _cut(code, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _mutate(code, rng)
    gas = SOME_GAS if kind < 0.99 else GAS
    return OptimizeCase(f"mutated {seed}/{number}: {name}", bytes(code), fork, list(inputs), dict(storage), gas=gas)


def _varied(given: Input, rng: random.Random) -> Input:
    """With other words, a word more or less, or from somebody else."""
    data = bytearray(given.data)
    if len(data) > 4 and rng.random() < 0.7:
        at = 4 + 32 * rng.randrange((len(data) + 27) // 32)
        word = rng.choice((0, 1, 2, 31, 32, 2**64, 2**160 - 1, 2**255, 2**256 - 1, rng.getrandbits(256)))
        data[at : at + 32] = word.to_bytes(32, "big")
    elif rng.random() < 0.5:
        data = data[: rng.choice((0, 3, 4, 35, 36, len(data) - 1))]
    return Input(bytes(data), rng.choice((given.value, 0, 1)), rng.choice((given.caller, CALLER)), rng.random() < 0.1)


def _cut(code: bytearray, rng: random.Random) -> None:
    """Takes most comparisons out of a dispatcher: what they lead to is there, but not reached any more."""
    cases = list(_dispatched(bytes(code)))
    kept = set(rng.sample(range(len(cases)), min(len(cases), rng.choice((1, 1, 2, 3)))))
    for place, (start, end) in enumerate(cases):
        if place not in kept:
            code[start:end] = b"\x5b" * (end - start)  # JUMPDEST


def _dispatched(code: bytes) -> Iterator[tuple[int, int]]:
    """DUP, PUSH4, EQ, PUSH, JUMPI, the first two in either order: they leave the stack as it is."""
    instructions = decode(code)
    for at in range(len(instructions) - 4):
        first, second, compares, _, jumps = instructions[at : at + 5]
        one, other = sorted((first.name, second.name))
        if one.startswith("DUP") and (other, compares.name, jumps.name) == ("PUSH4", "EQ", "JUMPI"):
            yield first.pc, jumps.next_pc


def _mutate(code: bytearray, rng: random.Random) -> None:
    """Changes a byte, or one instruction into another that may well work."""
    instructions = [each for each in decode(bytes(code)) if each.op is not None]
    each = rng.choice(instructions)
    kind = rng.random()
    if kind < 0.15:
        code[rng.randrange(len(code))] = rng.randrange(256)
    elif kind < 0.4 and each.size > 1:
        code[each.pc + 1 + rng.randrange(each.size - 1)] ^= 1 << rng.randrange(8)
    else:
        assert each.op is not None
        like = [
            other.byte
            for other in instructions
            if other.op is not None
            and (other.op.pops, other.op.pushes, other.size) == (each.op.pops, each.op.pushes, each.size)
        ]
        code[each.pc] = rng.choice(like)


def _asked(code: bytes, given: Input, storage: dict[int, int], fork: Fork, gas: int) -> tuple[Message, State, Context]:
    state = world()
    state.accounts[OWN].storage.update(storage)
    message = Message(given.caller, OWN, code, given.data, given.value, gas, static=given.static, code_address=OWN)
    return message, state, context(fork)


def seen(code: bytes, case: OptimizeCase, given: Input) -> tuple[Sight, Outcome]:
    """What a caller sees but gas."""
    message, state, around = _asked(code, given, case.storage, case.fork, case.gas)
    outcome = execute(message, state, around)
    reverted = outcome.status is Status.REVERT
    sight = Sight(outcome.status is Status.HALT, True, reverted, output=outcome.output, state=seen_state(state))
    return sight.without_gas(), outcome


@dataclass(slots=True)
class OptimizeTally:
    cases: int = 0
    refused: int = 0
    runs: int = 0
    starved: int = 0
    dearer: list[str] = field(default_factory=list)  # runs of what users would get
    bytes_before: int = 0
    bytes_after: int = 0
    done: Counter[str] = field(default_factory=Counter)  # how runs ended, and what the optimiser did
    rules: set[str] = field(default_factory=set)  # all that were used
    failures: list[str] = field(default_factory=list)


def check(case: OptimizeCase, tally: OptimizeTally | None = None) -> str | None:
    """The difference, if there is one. Code that is not better, and so not used, must be equivalent too."""
    tally = tally if tally is not None else OptimizeTally()
    tally.cases += 1
    made = optimize(case.code, case.fork, case.runs)
    is_better = made.code != case.code
    if not is_better:
        made = optimize(case.code, case.fork, case.runs, always=True)
    if made.code == case.code:
        tally.refused += 1
        return None
    tally.bytes_before += len(case.code)
    tally.bytes_after += len(made.code)
    tally.done.update(made.report.steps)
    tally.rules |= made.report.rules.keys()
    for number, given in enumerate(case.inputs):
        wanted, before = seen(case.code, case, given)
        tally.runs += 1
        if before.failure is not None and before.failure.reason is HaltReason.OUT_OF_GAS:
            tally.starved += 1
            continue
        tally.done[before.status.value] += 1
        found, after = seen(made.code, case, given)
        if is_better and after.gas_left < before.gas_left:
            more = before.gas_left - after.gas_left
            tally.dearer.append(f"{case.name}, {case.runs} runs, input {number}: {more} more gas")
        if found != wanted:
            return f"{case.name} at {case.fork.label}, data {given.data.hex()}:\n{found.differs_from(wanted)}"
    return None


def shrunk(case: OptimizeCase, attempts: int = ATTEMPTS) -> OptimizeCase:
    """A case with fewer instructions that still fails; jumps stay where they are, so code is replaced, not cut."""
    best, left, width = case, attempts, 32
    while width and left > 0:
        improved = False
        for each in decode(best.code)[::width]:
            if left <= 0:
                break
            left -= 1
            tried = bytearray(best.code)
            tried[each.pc : each.pc + width] = b"\x5b" * len(tried[each.pc : each.pc + width])
            smaller = replace(best, code=bytes(tried))
            if tried != best.code and _fails(smaller):
                best, improved = smaller, True
        width = width if improved else width // 2
    return best


def _fails(case: OptimizeCase) -> bool:
    try:
        return check(case) is not None
    except Exception:
        return True


def campaign(
    cases: Iterable[OptimizeCase], most: int = 3, progress: Callable[[OptimizeTally], None] | None = None
) -> OptimizeTally:
    tally = OptimizeTally()
    for case in cases:
        try:
            problem = check(case, tally)
        except Exception as error:
            problem = f"{case.name}: {type(error).__name__}: {error}"
        if problem is not None:
            smaller = shrunk(case)
            tally.failures.append(f"{problem}\ncode {case.code.hex()}\nsmaller {smaller.code.hex()}")
            if len(tally.failures) >= most:
                break
        if progress is not None:
            progress(tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.optimize", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1_000, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--kind", choices=["random", "mutated", "transactions", "corpus", "files", "all"], default="all"
    )
    parser.add_argument("--json", action="store_true", help="the corpus as data")
    parser.add_argument("--hex", type=Path, help="the folder of the files")
    parser.add_argument("--most", type=int, default=3, help="stop after so many failures")
    chosen = parser.parse_args()
    if chosen.kind == "corpus":
        rows = list(measured_corpus(_fixtures()))
        if chosen.json:
            print(json.dumps([asdict(row) for row in rows]))
        else:
            print_table(rows)
        return int(any(row.wrong for row in rows))
    numbers = range(chosen.first, chosen.first + chosen.programs)
    makers: dict[str, Iterable[OptimizeCase]] = {
        "random": (random_case(chosen.seed, number) for number in numbers),
        "mutated": (mutated_case(chosen.seed, number) for number in numbers),
    }
    if chosen.hex is not None:
        makers["files"] = (file_case(chosen.seed, each) for each in islice(hex_code(chosen.hex), chosen.programs))
    elif chosen.kind == "files":
        parser.error("--hex must name the folder of the files")
    failed = False
    for kind, cases in makers.items():
        if chosen.kind not in (kind, "all"):
            continue
        began = time.perf_counter()
        tally = campaign(cases, chosen.most)
        for failure in (*tally.dearer, *tally.failures):
            print(f"--- {failure}")
        print(
            f"{tally.cases} {kind} programs, seed {chosen.seed}: {tally.refused} left as they are, {tally.runs} runs "
            f"({tally.starved} out of gas before and so not compared), {len(tally.dearer)} took more gas, "
            f"{tally.bytes_before} bytes became {tally.bytes_after} by {len(tally.rules)} rules; "
            f"{', '.join(f'{count} {name}' for name, count in sorted(tally.done.items()))}; "
            f"{len(tally.failures)} failures, "
            f"{time.perf_counter() - began:.0f} s"
        )
        failed |= bool(tally.failures)
    if chosen.kind in ("transactions", "all"):
        failed |= transactions(chosen.seed, chosen.first, chosen.programs, chosen.most)
    return 1 if failed else 0


def transactions(seed: int, first: int, count: int, most: int) -> bool:
    """Whether any went wrong."""
    began, compared, codes, failures = time.perf_counter(), 0, 0, 0
    for number in range(first, first + count):
        problem, was_compared, optimised = transaction_problem(seed, number)
        compared += was_compared
        codes += optimised
        if problem is not None:
            failures += 1
            print(f"--- {problem}")
            if failures == most:
                break
    print(
        f"{count} transactions, seed {seed}: {codes} codes optimised, {compared} transactions compared, "
        f"{failures} failures, {time.perf_counter() - began:.0f} s"
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
