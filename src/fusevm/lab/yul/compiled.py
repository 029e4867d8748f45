"""Does compiled code do what the program says? Random programs are compiled at several runs and run beside plain code.

`python -m fusevm.lab.yul.compiled --programs N --seed S [-j N]` runs a campaign. Each program is compiled by the back
end at 0, 200 and 10,000 runs, its plain code is optimised as bytecode, and all are called several times; status,
output, logs, storage, transient storage and balances must be those of the plain code and of the interpreter, and the
gas of all calls together not above the plain code's, but for a little that saves bytes.
Where the back end gives up, plain code is compiled, which is right: more than a few such programs are a finding too.
Most programs are small: many of those find more in the same time than few large ones.
A finding is shrunken, and names the seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.codegen import spilling, writing
from fusevm.codegen import yul as objects
from fusevm.codegen.bytecode import optimize
from fusevm.codegen.yul import CompiledObject, compile_object
from fusevm.evm.forks import LATEST, rules_of
from fusevm.evm.gas import deposit_cost
from fusevm.evm.halts import HaltReason
from fusevm.lab.yul.generate import random_program
from fusevm.lab.yul.generate_bounds import BoundsGenerator
from fusevm.lab.yul.generate_contracts import YulContract, random_contract, without_own_code
from fusevm.lab.yul.generate_statements import CALLER_BACK, ECHO, REVERTER, STORER
from fusevm.lab.yul.shrink import shrunken
from fusevm.reference.interpreter import execute
from fusevm.yul.execution.evm import run_message
from fusevm.yul.execution.host import LimitReached, Limits
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.parser import parse_object

RUNS = (0, 200, 10_000)
CALLER, ADDRESS, GAS = bytes(19) + b"\xca", bytes(18) + b"\xc0\xde", 20_000_000
_STEPS = 20_000
LITTLE = 0.001  # of the gas
MOVES = 12  # gas of a call: some moves of the stack, or a jump, which an order that is best elsewhere may cost
GIVEN_UP, ENOUGH = 0.1, 150  # the share of programs that may be too deep for the back end, asked of so many
SIZES = (2, 3, 4, 6, 8, 12, None)  # statements; None: some dozens
_CHANCES = (20, 20, 18, 14, 11, 9, 8)
PARTS = {  # what programs have in them, by the text that tells
    "loops": "for {", "switches": "switch ", "functions": "function ", "guarded": "memoryguard(",
    "immutables": "loadimmutable(", "outside calls": "call(gas()", "creations": "create", "logs": "log",
}  # fmt: skip
_WORLD = {  # contracts that programs may call
    ECHO: "365f5f37365ff3",  # returns its calldata
    REVERTER: "365f5f37365ffd",  # reverts with it
    STORER: "5f35545f35015f5560205fa05f545f5260205ff3",  # counts in storage, logs, answers
    CALLER_BACK: "60045f5f3760205f60045f5f335af15f5260205ff3",  # calls back with four bytes
}


class Effects(NamedTuple):
    """What a call leaves: everything observable except gas."""

    status: Status
    output: bytes
    logs: tuple[tuple[bytes, tuple[int, ...], bytes], ...]
    accounts: dict[bytes, tuple[int, int, dict[int, int]]]  # balance, nonce, storage
    transient: dict[object, int]


@dataclass(frozen=True, slots=True)
class CompiledRun:
    effects: Effects
    gas: int
    conclusive: bool  # not ended by a lack of gas or by a limit of ours


@dataclass(frozen=True, slots=True)
class CompiledFinding:
    seed: int
    reason: str
    source: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.reason}\n{self.source}\n"


@dataclass(slots=True)
class CompiledTally:
    done: Counter[str] = field(default_factory=Counter)  # programs, runs, and what they exercised
    findings: list[CompiledFinding] = field(default_factory=list)
    dearer: list[str] = field(default_factory=list)  # calls that optimised bytecode made dearer

    def add(self, other: CompiledTally) -> None:
        self.done += other.done
        self.findings += other.findings
        self.dearer += other.dearer


# -- running ----------------------------------------------------------------------------------------------------------


def world() -> State:
    state = State()
    for number, code in _WORLD.items():
        state.set_code(number.to_bytes(20, "big"), bytes.fromhex(code))
    for address in (CALLER, ADDRESS):
        state.set_balance(address, 10**20)
    return state


def effects_of(outcome: Outcome, state: State) -> Effects:
    accounts = {
        address: (account.balance, account.nonce, {key: word for key, word in account.storage.items() if word})
        for address, account in state.accounts.items()
        if not account.empty or account.storage
    }
    logs = tuple([(log.address, log.topics, log.data) for log in state.logs])
    transient: dict[object, int] = {key: word for key, word in state.transient.items() if word}
    return Effects(outcome.status, outcome.output, logs, accounts, transient)


def _message(code: bytes, data: bytes, value: int, static: bool = False) -> Message:
    return Message(CALLER, ADDRESS, code, data, value, GAS, static=static, code_address=ADDRESS)


def run_code(code: bytes, contract: YulContract, dialect: Dialect, *, static: bool = False) -> list[CompiledRun]:
    """The code deployed, where it is creation code, and every call made to it; `static`: then as a static call too."""
    state, context = world(), Context(dialect.fork, Block(number=7, timestamp=99), CALLER)
    state.begin_transaction()
    runs: list[CompiledRun] = []
    if contract.deploys:
        outcome = execute(_message(code, b"", 0), state, context)
        code = outcome.output
        if outcome.status is not Status.SUCCESS:
            return [CompiledRun(effects_of(outcome, state), 0, True)]
    state.set_code(ADDRESS, code)
    messages = [_message(code, data, value) for data, value in contract.calls]
    if static:
        messages += [_message(code, data, 0, static=True) for data, _ in contract.calls]
    for message in messages:
        state.begin_transaction()
        outcome = execute(message, state, context)
        starved = outcome.failure is not None and outcome.failure.reason is HaltReason.OUT_OF_GAS
        runs.append(CompiledRun(effects_of(outcome, state), GAS - outcome.gas_left, not starved))
    return runs


def run_interpreted(
    obj: Object, compiled: CompiledObject, contract: YulContract, dialect: Dialect
) -> list[CompiledRun]:
    """Every call interpreted; the contract's own code, for calls that come back to it, is the compiled one."""
    state, context = world(), Context(dialect.fork, Block(number=7, timestamp=99), CALLER)
    state.set_code(ADDRESS, compiled.code)
    runs: list[CompiledRun] = []
    for data, value in contract.calls:
        state.begin_transaction()
        message = _message(compiled.code, data, value)
        try:
            outcome = run_message(obj, message, state, context, compiled.places, Limits(steps=_STEPS, calls=200))
        except LimitReached:
            return runs
        starved = outcome.failure is not None and outcome.failure.reason is HaltReason.OUT_OF_GAS
        runs.append(CompiledRun(effects_of(outcome, state), 0, not starved))
    return runs


# -- comparing --------------------------------------------------------------------------------------------------------


def difference(expected: list[CompiledRun], found: list[CompiledRun]) -> str | None:
    """What differs first; after a call that proves nothing the states may differ, so no more is compared."""
    for number, (one, other) in enumerate(zip(expected, found, strict=False)):
        if not one.conclusive:
            return None
        for name, wanted, got in zip(Effects._fields, one.effects, other.effects, strict=True):
            if wanted != got:
                return f"call {number}: {name} was {_short(wanted)}, is {_short(got)}"
    return None


def _short(thing: object) -> str:
    text = repr(thing)
    return text if len(text) < 400 else text[:400] + "…"


def check(
    contract: YulContract, tally: CompiledTally, runs: tuple[int, ...] = RUNS, without: Set[str] = frozenset()
) -> str | None:
    """What is wrong with the compiled code of a program; None where nothing is. `without`: passes left out."""
    dialect, done = dialect_for(), tally.done
    obj = parse_object(contract.source, dialect)
    try:
        plain = _compiled(obj, dialect, None)
    except Exception as error:
        return f"plain code: {type(error).__name__}: {error}"
    expected = None if plain is None else run_code(plain.code, contract, dialect, static=True)
    done["programs"] += 1
    done["too deep"] += plain is None
    for name, text in PARTS.items():
        done[name] += text in contract.source
    for run in expected or ():
        done["inconclusive"] += not run.conclusive
        done[run.effects.status.value] += 1
    for number in runs:
        try:
            spilled = -done["spills"]
            with _counted(done):
                compiled = compile_object(obj, dialect, runs=number, without=without)
        except StackTooDeep:
            if plain is not None:
                return f"{number} runs: the stack is too deep, but not for plain code"
            continue
        except Exception as error:
            return f"{number} runs: {type(error).__name__}: {error}"
        found = run_code(compiled.code, contract, dialect, static=True)
        if expected is None and not contract.deploys:
            expected = run_interpreted(obj, compiled, contract, dialect)
            done["interpreted"] += len(expected)
        reason = difference(expected or [], found)
        if reason is None and plain is not None and expected is not None:
            spilled += done["spills"]
            reason = _gas(expected, found, plain, compiled, number, done, spills=spilled > 0)
        if reason is not None:
            return f"{number} runs: {reason}"
        done["runs"] += len(found)
    if plain is None or expected is None:
        return None
    reason = _optimised(plain.code, contract, dialect, expected, tally)
    if reason is None and not contract.deploys:
        interpreted = run_interpreted(obj, plain, contract, dialect)
        done["interpreted"] += len(interpreted)
        starved = next(
            (at for at, run in enumerate(expected) if not run.conclusive), None
        )  # the interpreter asks no gas
        reason = difference(interpreted[:starved], expected)
        return reason and f"plain code against the interpreter: {reason}"
    return reason


def _optimised(
    code: bytes, contract: YulContract, dialect: Dialect, expected: list[CompiledRun], tally: CompiledTally
) -> str | None:
    """The plain code as `fusevm optimize` makes it: no call may do another thing; those that cost more are noted."""
    try:
        made = optimize(code, dialect.fork)
        is_better = made.code != code
        if not is_better:  # code that is not used must be equivalent too
            made = optimize(code, dialect.fork, always=True)
    except Exception as error:
        return f"optimised bytecode: {type(error).__name__}: {error}"
    if made.code == code:
        tally.done["left as they are"] += 1
        return None
    found = run_code(made.code, contract, dialect, static=True)
    reason = difference(expected, found)
    if reason is not None:
        return f"optimised bytecode: {reason}"
    tally.done["runs of optimised bytecode"] += len(found)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if is_better and one.conclusive and one.effects.status is not Status.HALT and other.gas > one.gas:
            tally.dearer.append(f"call {number} of optimised bytecode: gas was {one.gas}, is {other.gas}")
    return None


@contextmanager
def _counted(done: Counter[str]) -> Iterator[None]:
    """Counts the values that are spilled, and the objects that are compiled plainly."""

    def kept(*arguments: Any) -> None:
        done["spills"] += 1
        keep(*arguments)

    def translated(*arguments: Any) -> Any:
        done["given up"] += 1
        return plainly(*arguments)

    keep, plainly = spilling.keep_in_memory, objects._plainly
    with patch.object(writing, "keep_in_memory", kept), patch.object(objects, "_plainly", translated):
        yield


def gives_up_too_often(tally: CompiledTally) -> bool:
    """Whether more programs than on sound code are too deep for the back end: its errors may hide there."""
    done = tally.done
    return done["programs"] >= ENOUGH and done["given up"] > GIVEN_UP * len(RUNS) * done["programs"]


def _compiled(obj: Object, dialect: Dialect, runs: int | None) -> CompiledObject | None:
    try:
        return compile_object(obj, dialect, runs=runs)
    except StackTooDeep:
        return None


def _gas(
    expected: list[CompiledRun],
    found: list[CompiledRun],
    plain: CompiledObject,
    compiled: CompiledObject,
    runs: int,
    done: Counter[str],
    *,
    spills: bool,
) -> str | None:
    """Frames that halt cost what they were given, and say nothing; at no runs at all bytes are worth any gas.

    At other runs a little of it may be spent to save bytes: a constant that is computed, by the cost model's price.
    Some moves more per call show in small programs alone, and which values are spilled is a guess: those are counted.
    """
    pairs = [
        (one.gas, other.gas)
        for one, other in zip(expected, found, strict=True)
        if one.conclusive and one.effects.status is not Status.HALT and one.gas < GAS // 8
    ]
    before, after = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    done.update({"plain gas": before, "gas": after, "plain bytes": len(plain.code), "bytes": len(compiled.code)})
    spent, saved = after - before, len(plain.code) - len(compiled.code)
    is_little = spent <= max(before * LITTLE, 2 * MOVES * len(pairs)) or not runs
    is_worth_it = spent * runs <= deposit_cost(rules_of(LATEST), saved) * len(pairs) and is_little
    if spent <= 0 or is_worth_it:
        return None
    if spent <= MOVES * len(pairs) or (spills and spent <= before * LITTLE):
        done["some moves dearer"] += 1
        return None
    return f"gas was {before}, is {after}"


# -- campaigns --------------------------------------------------------------------------------------------------------


def random_case(seed: int) -> YulContract:
    """In turns: what Yul's steps are tried on, contracts, beliefs at their bounds, contracts."""
    random = Random(f"calls {seed}")
    (size,) = random.choices(SIZES, _CHANCES)
    if seed % 4 == 2:
        made = BoundsGenerator(random)
        return YulContract(made.text(), tuple([(made.calldata(), random.choice((0, 0, 0, 1))) for _ in range(12)]))
    if seed % 4:
        return random_contract(seed, size)
    calls = [(b"", 0)] + [(_words(random), random.choice((0, 0, 1))) for _ in range(3)]
    return YulContract(without_own_code(random_program(seed, statements=size)), tuple(calls))


def _words(random: Random) -> bytes:
    head = random.randbytes(random.choice((0, 4)))
    return head + b"".join(
        random.choice((random.getrandbits(256), random.randrange(5), random.randrange(300))).to_bytes(32, "big")
        for _ in range(random.randrange(4))
    )


def one_program(seed: int, shrinks: bool = True) -> CompiledTally:
    tally = CompiledTally()
    contract = random_case(seed)
    reason = check(contract, tally)
    if reason is not None:
        source = contract.source
        if shrinks:
            source = shrunken(source, partial(_still, contract, _kind(reason)))
        tally.findings.append(CompiledFinding(seed, reason, source))
    tally.dearer = [f"seed {seed}: {each}" for each in tally.dearer]
    return tally


def _kind(reason: str) -> str:
    """What a smaller program must show too: the same wrong thing, at any runs and in any call."""
    words = reason.split(": ", 1)[-1]
    return "gas" if words.startswith("gas was") else words.split(" was ")[0] if " was " in words else words[:20]


def _still(contract: YulContract, kind: str, source: str) -> bool:
    try:
        reason = check(YulContract(source, contract.calls, contract.deploys), CompiledTally())
    except YulError:
        return False
    return reason is not None and ("gas was" in reason) == (kind == "gas")


def campaign(programs: int, seed: int, jobs: int = 1, shrinks: bool = True) -> Iterator[CompiledTally]:
    seeds = range(seed, seed + programs)
    if jobs == 1:
        yield from (one_program(each, shrinks) for each in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(one_program, shrinks=shrinks), seeds, chunksize=16)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.compiled", description=__doc__)
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--no-shrink", action="store_true", help="show findings as they are")
    parser.add_argument("--stop", type=int, default=0, help="after so many findings; 0: never")
    options = parser.parse_args(arguments)
    started = perf_counter()
    total = CompiledTally()
    for tally in campaign(options.programs, options.seed, options.jobs, not options.no_shrink):
        total.add(tally)
        for finding in tally.findings:
            print(finding, flush=True)
        if total.done["programs"] % 500 == 0:
            print(f"{total.done['programs']:,} of {options.programs:,}", file=sys.stderr, flush=True)
        if options.stop and (len(total.findings) >= options.stop or gives_up_too_often(total)):
            break
    for each in total.dearer:
        print(each)
    if gives_up_too_often(total):
        print(
            f"seed {options.seed}: {total.done['given up']} compilations gave up, of {total.done['programs']} programs"
        )
    print(summary(total, options.seed, perf_counter() - started))
    return int(bool(total.findings) or gives_up_too_often(total))


def summary(total: CompiledTally, seed: int, seconds: float) -> str:
    """One line: what was compared, and what the programs exercised, so that a campaign of nothing shows."""
    done = total.done
    exercised = ", ".join(f"{done[name]} {name}" for name in (*PARTS, "spills", "success", "revert", "halt"))
    return (
        f"{done['programs']} programs from seed {seed}: {done['runs']} calls of compiled code and "
        f"{done['runs of optimised bytecode']} of optimised bytecode compared with plain code, {done['interpreted']} "
        f"with the interpreter ({done['inconclusive']} inconclusive, {done['too deep']} programs too deep for plain "
        f"code, {done['given up']} compilations for the back end, {done['left as they are']} not optimised, "
        f"{len(total.dearer)} calls of them dearer, "
        f"{done['some moves dearer']} compilations a few gas dearer); {exercised}; gas "
        f"×{done['gas'] / max(done['plain gas'], 1):.3f}, bytes ×{done['bytes'] / max(done['plain bytes'], 1):.3f}, "
        f"{len(total.findings)} findings, {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
