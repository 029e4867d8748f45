"""A fixed sample of the campaigns: random blocks, programs and transactions against the reference tier."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import first
from fusevm.chain.environment import Block as ChainBlock
from fusevm.chain.environment import Context, Message
from fusevm.chain.state import Account, State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.ir.fold.stages import EVERYTHING, Mode
from fusevm.ir.functions import End
from fusevm.ir.parse import parse
from fusevm.ir.regions.build import FAIL, RegionUnit
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
from fusevm.lab.ir.evaluate import BrokenPromise, run_block
from fusevm.lab.ir.functions import functions_of
from fusevm.lab.ir.hostile import HOSTILE
from fusevm.lab.ir.region_tier import RegionTier
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
    assert {case.stages for case in blocks} >= set(STAGE_SETS)
    assert {case.mode for case in blocks} == set(Mode)
    assert {case.stages for case in programs} >= {*STAGE_SETS, None}
    assert len({case.choose for case in programs}) == 2


def test_most_of_the_sample_runs_in_functions() -> None:
    entered = 0
    for number in range(60):
        case = random_program_case(random.Random(f"programs/42/{number}"))
        tier = case.tier()
        outcome_seen(case, tier)
        entered += tier.entered > 0
    assert entered > 50


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_stays_inside_its_budget_and_is_still_right(name: str) -> None:
    code = HOSTILE[name](3_000)
    case = ProgramCase(code, bytes(64), 90_000, False, LATEST, EVERYTHING)
    assert check_program(case) is None


def test_an_unchecked_access_outside_memory_is_caught() -> None:
    (block,) = parse("dependency block 0:\n$1 = MStore! #0 #1\nStop")
    with pytest.raises(BrokenPromise, match="outside memory"):
        run_block(block, frame_for(b"\0", b"", 100_000, LATEST), [])


ADDS = ProgramCase(bytes.fromhex("60015f350160005500"), b"", 90_000, False, LATEST, EVERYTHING)
STORES = "PUSH 5 loop: JUMPDEST DUP1 PUSH 0 MSTORE PUSH 1 SWAP1 SUB DUP1 PUSH @loop JUMPI PUSH 32 PUSH 0 RETURN"


def planted(case: ProgramCase, change: Callable[[RegionUnit], None]) -> RegionTier:
    """The case's tier with an error in its functions."""

    def make(code: bytes, fork: Fork) -> RegionUnit:
        region = functions_of(code, fork)
        if code == case.code:
            change(region)
        return region

    return RegionTier(make)


def cheaper(region: RegionUnit) -> None:
    next(block for block in region.unit.functions["f_0"].blocks() if block.gas).gas -= 1


def another_word(region: RegionUnit) -> None:
    next(value for value in region.unit.functions["f_0"].instructions() if value.op == "ADD").op = "SUB"


@pytest.mark.parametrize("change", [cheaper, another_word])
def test_a_planted_error_in_a_function_is_seen(change: Callable[[RegionUnit], None]) -> None:
    assert outcome_seen(ADDS, planted(ADDS, change)) != outcome_seen(ADDS, execute)
    assert outcome_seen(ADDS, ADDS.tier()) == outcome_seen(ADDS, execute)


def test_a_function_that_drops_a_check_of_memory_breaks_a_promise() -> None:
    def unchecked(region: RegionUnit) -> None:
        for function in region.unit.functions.values():
            for block in function.blocks():
                block.instructions = [value for value in block.instructions if value.op != "REACH"]

    case = ProgramCase(assemble(STORES), b"", 90_000, False, LATEST, EVERYTHING)
    with pytest.raises(BrokenPromise, match="outside memory"):
        outcome_seen(case, planted(case, unchecked))


def test_a_failure_that_the_reference_tier_does_not_find_breaks_a_promise() -> None:
    def fails(region: RegionUnit) -> None:
        block = next(block for block in region.unit.functions["f_0"].blocks() if block.end.op == "EXIT")
        block.end = End(FAIL, block.end.args, cases=(*block.end.cases, 0))

    with pytest.raises(BrokenPromise, match="was to fail after pc"):
        outcome_seen(ADDS, planted(ADDS, fails))


@pytest.mark.parametrize("gas", range(0, 260, 7))
def test_code_that_runs_short_of_gas_anywhere_fails_as_on_the_reference_tier(gas: int) -> None:
    case = ProgramCase(assemble(STORES), b"", gas, False, LATEST, EVERYTHING)
    assert check_program(case) is None


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
    tier = RegionTier(functions_of)
    outcome = tier(message, state, Context(fork_named(document["fork"]), ChainBlock(), origin=caller))
    assert outcome.status.value == expected["status"]
    assert outcome.output.hex() == expected["output"][2:]
    assert gas - outcome.gas_left == expected["gas_used"]
