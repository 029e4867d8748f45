"""Programs for the campaign on regions, each from a seed: random ones, loops, functions, random Yul that we compile,
real code mutated, and mazes of jumps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from fusevm.chain.environment import Block
from fusevm.chain.transaction import Transaction
from fusevm.codegen.yul import compile_object
from fusevm.evm.bytecode import JUMPDEST, Instruction, instructions
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import opcodes_of
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import raw
from fusevm.lab.fuzz.generator import CONTRACTS, program
from fusevm.lab.fuzz.program import FuzzContract, Program
from fusevm.lab.fuzz.starve import least_gas, traced
from fusevm.lab.fuzz.writer import Surroundings
from fusevm.lab.optimize_pieces import piece
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import block_hash
from fusevm.lab.regions.functions import code_with_functions, code_with_loops
from fusevm.lab.regions.mazes import maze
from fusevm.lab.yul.compiled import random_case
from fusevm.reference.hooks import Hooks
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

KINDS = ("random", "loops", "functions", "functions", "compiled", "mutated", "mazes")
SMALL_KINDS = (
    "random", "random", "loops", "loops", "functions", "functions", "compiled", "compiled", "mutated", "mazes", "mazes"
)  # fmt: skip
FORKS = (LATEST, LATEST, LATEST, Fork.CANCUN, Fork.SHANGHAI, Fork.BERLIN, Fork.BYZANTIUM)
ROOMS = (6, 10, 15, 22, 32, 50, None)  # instructions of a program, about; None: some dozens more
_CHANCES = (20, 22, 22, 16, 12, 6, 2)
_LARGE, _FEW_LARGE = 300, 0.1  # bytes of a piece of real code; how many of those that are larger are taken
_PEOPLE = bytes.fromhex("11" * 20)
_LARGEST = 6_000  # bytes of real code
_MAX_GAS = 400_000  # for a call of it
_SOME_GAS = 80_000  # for most: endless loops end sooner, and what is traced step by step is short
_MUCH_GAS = 0.05  # how many small programs have more
_HIGH = 0.15  # how many programs with functions begin on a stack on which they come to its end, or nearly


@dataclass(frozen=True, slots=True)
class Sample:
    """Real code, and calls that it understands."""

    name: str
    code: bytes
    storage: tuple[tuple[int, int], ...]
    calls: tuple[bytes, ...]


def case(seed: str, fixtures: Path | None, kind: str | None = None, *, small: bool = False) -> Program:
    """`small`: most are, real code in pieces; so that many can be tried in the time."""
    rng = Random(seed)
    chosen = rng.choice(SMALL_KINDS if small else KINDS)
    kind = kind or chosen
    if kind == "compiled":
        return _compiled(seed, rng)
    if kind == "mazes":
        return _maze(seed, rng)
    samples = real_code(fixtures) if fixtures is not None and kind == "mutated" else ()
    size = rng.choices(ROOMS, _CHANCES)[0] if small else None
    if samples and fixtures is not None:
        sample = rng.choice(samples) if size is None else _piece(fixtures, rng)
        return _mutated(seed, rng, sample)
    made = program(seed, rng.choice(FORKS), size)
    made.seed = seed
    writes = kind in ("loops", "functions") and made.initcode is None
    around = Surroundings(made.fork, tuple(int.from_bytes(each, "big") for each in CONTRACTS), (2, 4))
    room, start = size or rng.randint(20, 140), rng.getstate()
    if writes:
        write = code_with_loops if kind == "loops" else code_with_functions
        made.accounts[CONTRACTS[0]].code = write(rng, around, room)
        made.transaction.to = CONTRACTS[0]
    if small and rng.random() >= _MUCH_GAS:
        made.transaction.gas_limit = min(made.transaction.gas_limit, least_gas(made.work()) + _SOME_GAS)
    if writes and kind == "functions" and rng.random() < _HIGH:
        higher = STACK_LIMIT - _highest(made) + rng.choice((-1, 0, 1, 1, 2))
        rng.setstate(start)
        made.accounts[CONTRACTS[0]].code = code_with_functions(rng, around, room, max(higher, 0))
        made.transaction.gas_limit += 40 * STACK_LIMIT
    return made


def _highest(made: Program) -> int:
    """How many words the stack has at most."""
    heights = [0]
    OurTier("reference", Hooks(on_opcode=lambda step: heights.append(len(step.stack)))).run(made.work())
    return max(heights)


def _maze(seed: str, rng: Random) -> Program:
    code, data = maze(rng)
    made = _calling(seed, Sample("maze", b"", (), ()), b"", data, _SOME_GAS)
    made.accounts[CONTRACTS[0]].code = code
    made.transaction.gas_limit = least_gas(made.work()) + rng.choice((400, 2_000, 6_000))
    return made


def _compiled(seed: str, rng: Random) -> Program:
    """A random Yul program, most often without the optimiser, which leaves few functions and few words on the stack."""
    dialect = dialect_for()
    while True:
        number = rng.randrange(1 << 40)
        contract = random_case(number)
        if contract.deploys:
            continue
        try:
            made = compile_object(parse_object(contract.source, dialect), dialect, runs=rng.choice((None, None, 200)))
        except StackTooDeep:
            continue
        sample = Sample(f"yul {number}", made.code, (), tuple([data for data, _ in contract.calls]))
        return _calling(f"{seed} {sample.name}", sample, made.code, rng.choice(sample.calls), _SOME_GAS)


# -- real code ------------------------------------------------------------------------------------------------------


@cache
def real_code(fixtures: Path) -> tuple[Sample, ...]:
    found = [*_bench_codes(fixtures / "bench"), *_compiled_codes(fixtures / "corpus")]
    return tuple(each for each in [*found, *_compiled_codes(fixtures / "corpus_new")] if 0 < len(each.code) <= _LARGEST)


def _bench_codes(folder: Path) -> Iterator[Sample]:
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        call = document["call"]
        account = document["pre"][call["to"]]
        storage = tuple((int(key, 16), int(value, 16)) for key, value in account.get("storage", {}).items())
        yield Sample(path.stem, _octets(account["code"]), storage, (_octets(call["data"]),))


def _compiled_codes(folder: Path) -> Iterator[Sample]:
    from fusevm.lab.contracts import run_contract

    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text())
        calls = tuple(_octets(call["data"]) for call in facts["calls"])
        for name, made in facts["solc"].items():
            deployed = run_contract(_octets(made["creation"]), facts, "native")
            yield Sample(f"{path.stem}-{name}", deployed.runtime, tuple(deployed.storage.items()), calls)


def _piece(fixtures: Path, rng: Random) -> Sample:
    """What a call of some real code runs, and a little more."""
    samples = real_code(fixtures)
    while True:
        number = rng.randrange(len(samples))
        sample = samples[number]
        call = rng.randrange(len(sample.calls))
        code = piece(sample.code, _run_by(fixtures, number, call), rng, more=2)
        if len(code) <= _LARGE or rng.random() < _FEW_LARGE:
            return replace(sample, code=code, calls=(sample.calls[call],))


@cache
def _run_by(fixtures: Path, number: int, call: int) -> frozenset[int]:
    sample = real_code(fixtures)[number]
    made = _calling(sample.name, sample, sample.code, sample.calls[call], _MAX_GAS)
    return traced(made.work())[1]


def _octets(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _mutated(seed: str, rng: Random, sample: Sample) -> Program:
    code = mutated(sample.code, rng) if rng.random() < 0.8 else sample.code
    data = rng.choice(sample.calls)
    if rng.random() < 0.3 and len(data) > 4:
        data = data[:4] + rng.randbytes(len(data) - 4)
    return _calling(f"{seed} {sample.name}", sample, code, data, _MAX_GAS if rng.random() < _MUCH_GAS else _SOME_GAS)


def _calling(seed: str, sample: Sample, code: bytes, data: bytes, gas: int) -> Program:
    accounts = {
        _PEOPLE: FuzzContract(0, 10**21),
        CONTRACTS[0]: FuzzContract(1, 0, raw(code), dict(sample.storage)),
    }
    tx = Transaction(_PEOPLE, CONTRACTS[0], gas_price=0, data=data, gas_limit=gas)
    block = Block(number=20, timestamp=5_000, hashes=block_hash)
    return Program(LATEST, accounts, block, tx, None, seed)


def mutated(code: bytes, rng: Random) -> bytes:
    """A few instructions changed, each for one as long: constants, depths, operations of the same shape, or any."""
    parts = list(instructions(code))
    octets = bytearray(code)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        _mutate(octets, rng.choice(parts), rng)
    return bytes(octets)


def _mutate(octets: bytearray, one: Instruction, rng: Random) -> None:
    op = one.op
    if op is None or (octets[one.pc] == JUMPDEST and rng.random() < 0.8):
        return
    if one.next_pc - one.pc > 1:
        size = one.next_pc - one.pc - 1
        value = int.from_bytes(octets[one.pc + 1 : one.next_pc], "big")
        changed = rng.choice((words.word(rng), value + 1, value - 1, value ^ 1 << rng.randrange(8 * size)))
        octets[one.pc + 1 : one.next_pc] = (changed % (1 << 8 * size)).to_bytes(size, "big")[
            -(len(octets) - one.pc - 1) :
        ]
        return
    known = [each for each in opcodes_of(LATEST) if each is not None and not each.immediate]
    alike = [each for each in known if (each.pops, each.pushes) == (op.pops, op.pushes)]
    if op.is_stack:  # another depth
        alike = [each for each in known if each.is_stack and each.pushes - each.pops == op.pushes - op.pops]
    octets[one.pc] = rng.choice(alike if rng.random() < 0.9 else known).byte


def without_most(code: bytes) -> Iterator[bytes]:
    """For shrinking code that cannot be cut: parts of it overwritten, large ones first."""
    size = len(code) // 2
    while size:
        for start in range(0, len(code), size):
            end = min(start + size, len(code))
            if code[start:end] != bytes(end - start):
                yield code[:start] + bytes(end - start) + code[end:]
        size //= 2


def with_code(made: Program, code: bytes) -> Program:
    changed = made.copy()
    changed.accounts[CONTRACTS[0]].code = raw(code)
    return changed


def with_gas(made: Program, gas: int) -> Program:
    return replace(made, transaction=replace(made.transaction, gas_limit=gas))
