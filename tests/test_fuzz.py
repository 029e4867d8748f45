"""Random programs: what is made, how failures are found, named and shrunk, and a sample against the peers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from random import Random

import pytest
import typer
from typer.testing import CliRunner

from fusevm.chain.environment import Block, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import Account
from fusevm.chain.transaction import Transaction
from fusevm.cli.fuzz import fuzz
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.lab.fuzz.campaign import FuzzPlan, run_campaign
from fusevm.lab.fuzz.code import CodePart, CodeParts, parse_item, raw
from fusevm.lab.fuzz.differential import compare, fitted
from fusevm.lab.fuzz.generator import program
from fusevm.lab.fuzz.loop_programs import control
from fusevm.lab.fuzz.program import Program
from fusevm.lab.fuzz.shrink import shrink
from fusevm.lab.fuzz.starve import compare_starved, critical_gas, least_gas, random_gas
from fusevm.lab.fuzz.writer import VOCABULARIES
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import Observation, PeerWork, block_hash
from fusevm.reference.hooks import Hooks, Step

SENDER, CONTRACT, OTHER = b"\x11" * 20, b"\xcc" * 20, b"\xdd" * 20
REFERENCE = OurTier("reference")


def needs(package: str) -> pytest.MarkDecorator:
    missing = find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (pip install 'fusevm[peers]')")


def names_run(work: PeerWork) -> list[str]:
    names: list[str] = []
    OurTier("reference", Hooks(on_opcode=lambda step: names.append(step.name))).run(work)
    return names


def work_of(text: str, gas: int = 100_000, fork: Fork = Fork.OSAKA, other: str = "") -> PeerWork:
    accounts = {
        SENDER: Account(balance=10**18),
        CONTRACT: Account(1, 0, assemble(text)),
        OTHER: Account(1, 0, assemble(other)),
    }
    return PeerWork(fork, accounts, Block(hashes=block_hash), Transaction(SENDER, CONTRACT, gas_limit=gas, gas_price=0))


class Faulty(OurTier):
    """The reference tier, made to err whenever a given opcode has run."""

    def __init__(self, opcode: str) -> None:
        super().__init__("reference")
        self.name, self.opcode = "faulty", opcode

    def run(self, work: PeerWork) -> Observation:
        seen = REFERENCE.run(work)
        return replace(seen, gas_used=seen.gas_used + 1) if self.opcode in names_run(work) else seen


# -- code


def test_labels_parts_and_sizes_are_filled_in() -> None:
    lines = ("PUSH2 @L7", "JUMP", "L7:", "PUSH2 sizeof part0", "PUSH2 @part0", "PUSH1 0x0", "CODECOPY")
    code = CodeParts([parse_item(line) for line in lines], [raw(b"\xab\xcd")])
    assert code.encode() == assemble("PUSH2 4 JUMP JUMPDEST PUSH2 2 PUSH2 14 PUSH1 0 CODECOPY DATA 0xabcd")


def test_a_reference_to_what_was_cut_away_reads_as_zero() -> None:
    assert CodeParts([parse_item("PUSH2 @L1"), parse_item("PUSH2 sizeof part3")]).encode() == bytes.fromhex(
        "610000610000"
    )


@pytest.mark.parametrize("line", ["ADD", "PUSH5 0x5b", "L12:", "PUSH2 @L12", "PUSH2 @part1", "DATA 0x60ff"])
def test_an_item_reads_back_from_its_text(line: str) -> None:
    assert str(parse_item(line)) == line


def test_an_unknown_item_is_refused() -> None:
    with pytest.raises(ValueError, match="'FROB 0x1' is not an item of code"):
        parse_item("FROB 0x1")


# -- programs


@pytest.mark.parametrize("fork", list(Fork), ids=lambda fork: fork.label)
def test_a_program_survives_json(fork: Fork) -> None:
    for seed in range(5):
        made = program(seed, fork)
        again = Program.from_json(json.loads(json.dumps(made.as_json())))
        assert again.as_json() == made.as_json()
        assert REFERENCE.run(again.work()).gas_used == REFERENCE.run(made.work()).gas_used


def test_the_same_seed_makes_the_same_program() -> None:
    assert program(42, Fork.CANCUN).as_json() == program(42, Fork.CANCUN).as_json()


def test_other_seeds_and_forks_make_other_programs() -> None:
    listings = {program(seed, fork).listing() for seed in (1, 2) for fork in (Fork.CANCUN, Fork.OSAKA)}
    assert len(listings) == 4


def test_most_programs_run_more_than_30_instructions() -> None:
    lengths = [len(names_run(program(seed, Fork(seed % 15)).work())) for seed in range(150)]
    assert sum(length > 30 for length in lengths) > 0.7 * len(lengths)


def test_most_programs_succeed_and_every_ending_occurs() -> None:
    statuses = Counter(REFERENCE.run(program(seed, Fork(seed % 15)).work()).status for seed in range(300))
    assert statuses["success"] > 150
    assert set(statuses) == {"success", "revert", "halt", "rejected"}


def test_every_opcode_of_the_latest_fork_gets_run() -> None:
    seen: set[str] = set()
    for seed in range(900):
        seen.update(names_run(program(seed, Fork.OSAKA).work()))
        if seen >= VOCABULARIES[Fork.OSAKA].names:
            break
    assert VOCABULARIES[Fork.OSAKA].names <= seen


def test_only_opcodes_of_the_fork_are_written_on_purpose() -> None:
    late = {name for name, op in BY_NAME.items() if op.since > Fork.HOMESTEAD}
    written = {item.op for seed in range(100) for code in program(seed, Fork.HOMESTEAD).codes() for item in code.items}
    assert not written & late


def test_counted_loops_end_after_a_few_rounds() -> None:
    rng = Random(1)
    trips = [control(rng).trips(100) for _ in range(500)]
    assert sum(1 <= trip <= 12 for trip in trips) > 470
    assert len(set(trips)) > 8


# -- differences


def test_engines_that_agree_show_no_difference() -> None:
    assert compare(work_of("PUSH1 1 PUSH1 2 SSTORE"), [REFERENCE, REFERENCE]) is None


def test_a_difference_names_the_field_and_what_each_engine_says() -> None:
    difference = compare(work_of("PUSH1 3 PUSH1 2 SMOD"), [REFERENCE, Faulty("SMOD")])
    assert str(difference) == "gas_used: reference 21011, faulty 21012"


def test_a_difference_in_the_state_names_account_and_slot() -> None:
    class Forgetful(OurTier):
        def run(self, work: PeerWork) -> Observation:
            seen = super().run(work)
            assert seen.accounts is not None
            seen.accounts[CONTRACT].storage.pop(5)
            return seen

    difference = compare(work_of("PUSH1 7 PUSH1 5 SSTORE"), [REFERENCE, Forgetful("reference")])
    assert difference is not None
    assert [field for field, _, _ in difference.fields] == [f"account 0x{CONTRACT.hex()} slot 0x5"]


def test_a_campaign_finds_a_fault_and_shrinks_it_to_the_instruction_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = Faulty("SDIV")
    monkeypatch.setattr("fusevm.lab.fuzz.campaign.engine_named", lambda name: faulty if name == "faulty" else REFERENCE)
    tally = run_campaign(FuzzPlan(("reference", "faulty"), 12, seed=1, forks=(Fork.CANCUN,), shrink_attempts=800))
    assert tally.programs == 12
    assert tally.failures
    shortest = min(failure.shrunk.size() for failure in tally.failures)
    assert shortest <= 6
    assert all("SDIV" in failure.shrunk.listing() for failure in tally.failures)


def test_a_crash_counts_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crashing(OurTier):
        def run(self, work: PeerWork) -> Observation:
            raise ZeroDivisionError("oops")

    engines = {"reference": REFERENCE, "crashing": Crashing("reference")}
    monkeypatch.setattr("fusevm.lab.fuzz.campaign.engine_named", engines.__getitem__)
    tally = run_campaign(FuzzPlan(("reference", "crashing"), 1, shrink_attempts=5))
    assert "ZeroDivisionError: oops" in tally.failures[0].difference


class Learning(OurTier):
    """The reference tier, made to err from its third run on one machine on."""

    def run_again(self, work: PeerWork, limits: Iterable[int]) -> Iterator[Observation]:
        for number, seen in enumerate(super().run_again(work, limits)):
            yield replace(seen, gas_used=seen.gas_used + 1) if number >= 2 else seen


def test_a_campaign_finds_a_fault_that_shows_only_when_a_machine_has_run_the_code_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = {"reference": REFERENCE, "learning": Learning("reference")}
    monkeypatch.setattr("fusevm.lab.fuzz.campaign.engine_named", engines.__getitem__)
    plan = FuzzPlan(("reference", "learning"), 1, shrink_attempts=5)
    tally = run_campaign(plan)
    assert "in run 3 on one machine" in tally.failures[0].difference
    assert not run_campaign(replace(plan, again=2)).failures


def test_runs_on_one_machine_go_on_from_the_state_the_last_one_left() -> None:
    work = work_of("PUSH0 SLOAD PUSH1 1 ADD PUSH0 SSTORE PUSH0 SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
    seen = list(REFERENCE.run_again(work, [100_000, 100_000, 22_000, 100_000]))
    assert [int.from_bytes(each.output or b"", "big") for each in seen] == [1, 2, 0, 3]
    assert [each.status for each in seen] == ["success", "success", "halt", "success"]


# -- what is made and undone


def frames(work: PeerWork) -> list[tuple[Message, Outcome]]:
    ended: list[tuple[Message, Outcome]] = []
    hooks = Hooks(on_return=lambda message, outcome: ended.append((message, outcome)))
    OurTier("reference", hooks).run(work)
    return ended


def works(count: int, *forks: Fork) -> Iterator[PeerWork]:
    return (program(f"undone.{number}", forks[number % len(forks)]).work() for number in range(count))


def test_programs_create_contracts_where_a_payment_went_and_undo_it() -> None:
    """As in a fault that was found by reading: Python had looked at the account in between."""

    def is_one(work: PeerWork) -> bool:
        ended = frames(work)
        paid = {message.address for message, _ in ended if message.value and not message.code}
        made = {message.address for message, _ in ended if message.creates}
        return any(message.depth and outcome.status.value != "success" for message, outcome in ended) and bool(
            paid & made
        )

    assert any(is_one(work) for work in works(600, Fork.CONSTANTINOPLE, Fork.CANCUN))


def test_programs_make_a_contract_of_code_alone_again_that_was_undone() -> None:
    """As in the other: before EIP-161 such a contract has no nonce, and it gave away its balance."""

    def is_one(work: PeerWork) -> bool:
        made = [message.address for message, outcome in frames(work) if message.creates and outcome.created]
        again = {address for address in made if made.count(address) > 1}
        kept = OurTier("reference").run(work).accounts or {}
        return any(address in kept and kept[address].code and not kept[address].balance for address in again)

    assert any(is_one(work) for work in works(600, Fork.FRONTIER, Fork.HOMESTEAD, Fork.TANGERINE_WHISTLE))


# -- shrinking


def test_shrinking_keeps_what_makes_it_fail_and_little_else() -> None:
    several = (program(seed, Fork.CANCUN) for seed in range(100))
    made = next(each for each in several if "KECCAK256" in names_run(each.work()))
    small = shrink(made, lambda tried: "KECCAK256" in names_run(tried.work()))
    assert "KECCAK256" in names_run(small.work())
    assert small.size() <= 4 < made.size()


def test_shrinking_leaves_the_original_alone() -> None:
    made = program(3, Fork.CANCUN)
    before = made.as_json()
    shrink(made, lambda tried: True, attempts=50)
    assert made.as_json() == before


def test_a_program_that_always_fails_shrinks_to_nothing() -> None:
    small = shrink(program(5, Fork.PRAGUE), lambda tried: True)
    assert small.size() == 0
    assert set(small.accounts) == {small.transaction.sender}


def test_constants_shrink_towards_zero() -> None:
    made = program(3, Fork.CANCUN)
    contract = made.accounts[made.transaction.to or b""]
    contract.code = CodeParts([CodePart("PUSH4", 0x12345678), CodePart("PUSH1", 5), CodePart("MSTORE")])
    small = shrink(made, lambda tried: "MSTORE" in names_run(tried.work()))
    items = [str(item) for code in small.codes() for item in code.items]
    assert [item for item in items if "0x12345678" in item] == []


# -- starving


def steps_passed(work: PeerWork) -> int:
    """How many instructions that cost anything were run to their end."""
    steps: list[Step] = []
    OurTier("reference", Hooks(on_opcode=steps.append)).run(work)
    return sum(step.error is None and step.gas_cost > 0 for step in steps)


def test_critical_gas_just_suffices_for_each_instruction_and_one_less_does_not() -> None:
    work = work_of("PUSH1 1 PUSH1 0 SSTORE PUSH1 0 SLOAD PUSH2 0x100 MSTORE PUSH1 64 PUSH1 0 KECCAK256")
    limits = critical_gas(work)
    total = steps_passed(work)
    reached = {steps_passed(work.with_gas(gas)) for gas in limits}
    assert reached == set(range(total + 1))
    assert limits[:2] == [least_gas(work) + 2, least_gas(work) + 3]


def test_critical_gas_reaches_into_calls_given_all_there_is() -> None:
    call = f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH20 0x{OTHER.hex()} GAS CALL PUSH1 9 PUSH1 0 SSTORE"
    work = work_of(call, other="PUSH1 1 PUSH1 2 ADD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN")
    inner: set[int] = set()
    for gas in critical_gas(work):
        steps: list[Step] = []
        OurTier("reference", Hooks(on_opcode=steps.append)).run(work.with_gas(gas))
        inner.add(sum(step.depth == 2 and step.error is None for step in steps))
    assert inner == {0, 1, 2, 3, 4, 5, 6, 8}  # the eighth, RETURN, costs nothing


def test_critical_gas_knows_the_stipend_an_sstore_must_find() -> None:
    """EIP-2200. It costs 2,200 here and needs 2,301."""
    limits = critical_gas(work_of("PUSH1 0 PUSH1 0 SSTORE"))
    assert {21_006 + 2_200, 21_006 + 2_300, 21_006 + 2_301} <= set(limits)


def test_random_gas_lies_between_the_least_and_the_given() -> None:
    work = work_of("STOP")
    limits = random_gas(work, Random(1), 50)
    assert min(limits) >= 21_000
    assert max(limits) <= 100_000
    assert len(set(limits)) > 40


def test_a_difference_under_starved_gas_names_the_limit() -> None:
    class Generous(OurTier):
        def run(self, work: PeerWork) -> Observation:
            seen = super().run(work)
            return replace(seen, status="success") if work.transaction.gas_limit == 21_005 else seen

    work = work_of("PUSH1 1 PUSH1 2 ADD")
    assert compare(work, [REFERENCE, Generous("reference")]) is None
    difference = compare_starved(work, [REFERENCE, Generous("reference")], critical_gas(work))
    assert difference is not None
    assert "with a gas limit of 21005" in str(difference)


# -- a sample against the peers; the long campaigns are run by `fusevm fuzz`


@needs("pyrevm")
def test_a_sample_agrees_with_pyrevm() -> None:
    forks = tuple(fork for fork in Fork if fork <= Fork.CANCUN and fork != Fork.CONSTANTINOPLE)
    tally = run_campaign(FuzzPlan(("reference", "pyrevm"), 600, seed=11, forks=forks))
    assert [failure.difference for failure in tally.failures] == []
    assert tally.agreed > 550


@needs("ethereum")
def test_a_sample_agrees_with_the_executable_spec() -> None:
    forks = tuple(fork for fork in Fork if fork != Fork.CONSTANTINOPLE)
    tally = run_campaign(FuzzPlan(("reference", "spec"), 140, seed=12, forks=forks))
    assert [failure.difference for failure in tally.failures] == []
    assert tally.agreed == 140


@needs("eth")
def test_a_sample_of_constantinople_agrees_with_py_evm() -> None:
    tally = run_campaign(FuzzPlan(("reference", "py-evm"), 80, seed=13, forks=(Fork.CONSTANTINOPLE,)))
    assert [failure.difference for failure in tally.failures] == []


@needs("pyrevm")
def test_a_starved_sample_agrees_with_pyrevm() -> None:
    plan = FuzzPlan(("reference", "pyrevm"), 5, seed=14, forks=(Fork.BERLIN, Fork.CANCUN), starve=True, random_limits=3)
    tally = run_campaign(plan)
    assert [failure.difference for failure in tally.failures] == []
    assert tally.runs > 300


# -- the command


app = typer.Typer()
app.command()(fuzz)


def test_the_command_compares_with_the_native_tier_if_nothing_is_named() -> None:
    result = CliRunner().invoke(app, ["--programs", "2", "--fork", "osaka"])
    assert result.exit_code == 0
    assert "reference and native, seed 0, 1 forks" in result.output
    assert "native and reference" in CliRunner().invoke(app, ["--programs", "1", "--tier", "native"]).output


def test_the_command_names_an_unknown_engine() -> None:
    result = CliRunner().invoke(app, ["--peer", "geth"])
    assert result.exit_code == 2
    assert "unknown engine 'geth'" in result.output


def test_the_command_counts_and_reports_as_data() -> None:
    result = CliRunner().invoke(app, ["--programs", "20", "--tier", "reference", "--tier", "reference", "--json"])
    assert result.exit_code == 0
    figures = json.loads(result.stdout)
    assert (figures["programs"], figures["agreed"], figures["failures"]) == (20, 20, [])


def test_the_command_says_which_fork_a_peer_does_not_know() -> None:
    pytest.importorskip("pyrevm")
    result = CliRunner().invoke(app, ["--peer", "pyrevm", "--fork", "osaka"])
    assert result.exit_code == 2
    assert "pyrevm does not know osaka" in result.output


def test_works_are_fitted_to_what_a_peer_can_be_given() -> None:
    pytest.importorskip("pyrevm")
    from fusevm.lab.peers.engines import engine_named

    work = work_of("BASEFEE", fork=Fork.CANCUN)
    work.block.base_fee = 7
    work.transaction = replace(work.transaction, gas_price=None, max_fee=20, max_priority_fee=2)
    fit = fitted(work, [engine_named("pyrevm")])
    assert (fit.block.base_fee, fit.transaction.gas_price, fit.transaction.max_fee) == (0, 2, None)
