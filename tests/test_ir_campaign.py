"""A fixed sample of the campaigns: random blocks, programs and transactions against the reference tier."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from conftest import first
from fusevm.chain.environment import Block as ChainBlock
from fusevm.chain.environment import Context, Message
from fusevm.chain.state import Account, State
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.ir.block import Mode, Program
from fusevm.ir.evaluate import BrokenPromise, IrTier, run_block
from fusevm.ir.fold.program import fold_program
from fusevm.ir.fold.stages import EVERYTHING
from fusevm.ir.parse import parse
from fusevm.lab.ir.campaign import (
    STAGE_SETS,
    ProgramCase,
    check,
    check_program,
    frame_for,
    outcome_seen,
    random_case,
    random_program_case,
)
from fusevm.lab.ir.hostile import HOSTILE
from fusevm.reference.interpreter import execute


@pytest.mark.parametrize("part", first(2, range(4)))
def test_random_blocks_agree_with_the_reference_tier(part: int) -> None:
    for number in range(part * 250, (part + 1) * 250):
        assert check("blocks", 42, number) is None


@pytest.mark.parametrize("part", range(4))
def test_random_programs_agree_with_the_reference_tier(part: int) -> None:
    for number in range(part * 60, (part + 1) * 60):
        assert check("programs", 42, number) is None


def test_random_transactions_agree_with_the_reference_tier() -> None:
    for number in range(60):
        assert check("transactions", 42, number) is None


def test_the_sample_switches_every_stage_off_and_both_modes_on() -> None:
    blocks = [random_case(random.Random(f"blocks/42/{number}")) for number in range(1000)]
    programs = [random_program_case(random.Random(f"programs/42/{number}")) for number in range(240)]
    for cases in (blocks, programs):
        assert {case.stages for case in cases} >= set(STAGE_SETS)
        assert {case.mode for case in cases} == set(Mode)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_stays_inside_its_budget_and_is_still_right(name: str) -> None:
    code = HOSTILE[name](3_000)
    case = ProgramCase(code, bytes(64), 90_000, False, LATEST, EVERYTHING, Mode.EXECUTION, inline=False)
    assert check_program(case) is None


def test_an_unchecked_access_outside_memory_is_caught() -> None:
    (block,) = parse("dependency block 0:\n$1 = MStore! #0 #1\nStop")
    with pytest.raises(BrokenPromise, match="outside memory"):
        run_block(block, frame_for(b"\0", b"", 100_000, LATEST), [])


def test_a_wrong_gas_section_is_seen() -> None:
    case = ProgramCase(bytes.fromhex("6001600201600055"), b"", 90_000, False, LATEST, None, Mode.EXECUTION, False)

    def cheaper(code: bytes, fork: Fork) -> Program:
        program, _ = fold_program(code, fork)
        program.blocks[0].gas -= 1
        return program

    assert outcome_seen(case, IrTier(cheaper)) != outcome_seen(case, execute)


BENCHES = ("ten-thousand-hashes", "revmc-fibonacci-calldata", "revmc-factorial", "revmc-weth", "revmc-hash_10k")


@pytest.mark.parametrize("name", BENCHES)
def test_bench_contracts_run_folded_with_the_gas_and_output_of_the_bench(name: str, fixtures_dir: Path) -> None:
    document = json.loads((fixtures_dir / "bench" / f"{name}.json").read_text())
    state = State()
    for address, fields in document["pre"].items():
        storage = {int(key, 16): int(word, 16) for key, word in fields["storage"].items()}
        code = bytes.fromhex(fields["code"][2:])
        state.accounts[bytes.fromhex(address[2:])] = Account(
            int(fields["nonce"], 16), int(fields["balance"], 16), code, storage
        )
    asked, expected = document["call"], document["expect"]
    to, caller = bytes.fromhex(asked["to"][2:]), bytes.fromhex(asked["caller"][2:])
    state.begin_transaction()
    state.warm_addresses.update((to, caller))
    gas = int(str(asked.get("gas", 10**9)), 0)
    message = Message(caller, to, state.account(to).code, bytes.fromhex(asked["data"][2:]), gas=gas, code_address=to)
    tier = IrTier(lambda code, fork: fold_program(code, fork)[0])
    outcome = tier(message, state, Context(fork_named(document["fork"]), ChainBlock(), origin=caller))
    assert outcome.status.value == expected["status"]
    assert outcome.output.hex() == expected["output"][2:]
    assert gas - outcome.gas_left == expected["gas_used"]
