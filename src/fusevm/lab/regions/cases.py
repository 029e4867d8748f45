"""The programs of the campaign on regions, each from a seed: random ones, loops, functions, and real code mutated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from fusevm.chain.environment import Block
from fusevm.chain.transaction import Transaction
from fusevm.evm.bytecode import JUMPDEST, Instruction, instructions
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import opcodes_of
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import raw
from fusevm.lab.fuzz.generator import CONTRACTS, program
from fusevm.lab.fuzz.program import Contract, Program
from fusevm.lab.fuzz.writer import Surroundings
from fusevm.lab.peers.work import block_hash
from fusevm.lab.regions.functions import code_with_functions, code_with_loops

KINDS = ("random", "loops", "functions", "functions", "mutated")
FORKS = (LATEST, LATEST, LATEST, Fork.CANCUN, Fork.SHANGHAI, Fork.BERLIN, Fork.BYZANTIUM)
_PEOPLE = bytes.fromhex("11" * 20)
_LARGEST = 6_000  # bytes of real code


@dataclass(frozen=True, slots=True)
class Sample:
    """Real code, and calls that it understands."""

    name: str
    code: bytes
    storage: tuple[tuple[int, int], ...]
    calls: tuple[bytes, ...]


def case(seed: str, fixtures: Path | None, kind: str | None = None) -> Program:
    rng = Random(seed)
    chosen = rng.choice(KINDS)
    kind = kind or chosen
    samples = real_code(fixtures) if fixtures is not None and kind == "mutated" else ()
    if kind == "mutated" and samples:
        return _mutated(seed, rng, rng.choice(samples))
    made = program(seed, rng.choice(FORKS))
    made.seed = seed
    if kind in ("loops", "functions") and made.initcode is None:
        around = Surroundings(made.fork, tuple(int.from_bytes(each, "big") for each in CONTRACTS), (2, 4))
        write = code_with_loops if kind == "loops" else code_with_functions
        made.accounts[CONTRACTS[0]].code = write(rng, around, rng.randint(20, 140))
        made.transaction.to = CONTRACTS[0]
    return made


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


def _octets(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _mutated(seed: str, rng: Random, sample: Sample) -> Program:
    code = mutated(sample.code, rng) if rng.random() < 0.8 else sample.code
    data = rng.choice(sample.calls)
    if rng.random() < 0.3 and len(data) > 4:
        data = data[:4] + rng.randbytes(len(data) - 4)
    accounts = {
        _PEOPLE: Contract(0, 10**21),
        CONTRACTS[0]: Contract(1, 0, raw(code), dict(sample.storage)),
    }
    tx = Transaction(_PEOPLE, CONTRACTS[0], gas_price=0, data=data, gas_limit=rng.choice((100_000, 400_000)))
    block = Block(number=20, timestamp=5_000, hashes=block_hash)
    return Program(LATEST, accounts, block, tx, None, f"{seed} {sample.name}")


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
