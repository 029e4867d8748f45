"""Steps keep the meaning of random programs: a fixed sample of what `fusevm.lab.yul.equivalence` runs at length."""

from __future__ import annotations

import pytest

from conftest import WHOLE
from fusevm.lab.yul.equivalence import CHECKS, EquivalenceTally, RunComparison, campaign, main
from fusevm.lab.yul.generate import random_program
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_block

SAMPLES = {"steps": (25, 7_000_000), "suite": (40, 8_000_000), "sequences": (120, 9_000_000), "compiled": (40, 1_000)}
SHARE = 1 if WHOLE else 3


@pytest.mark.parametrize("what", CHECKS)
def test_meaning_is_kept(what: str) -> None:
    programs, seed = SAMPLES[what][0] // SHARE, SAMPLES[what][1]
    *_, tally = campaign(what, programs, seed)
    assert [str(finding) for finding in tally.findings] == []
    assert tally.checked >= programs / 2
    assert tally.inconclusive < tally.runs / 10


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_are_valid(seed: int) -> None:
    _, errors = check(random_program(seed))
    assert [str(error) for error in errors if not error.is_warning] == []


def test_random_programs_are_the_same_for_the_same_seed() -> None:
    assert random_program(42) == random_program(42)


def test_random_programs_have_everything_in_them() -> None:
    text = "\n".join(random_program(seed) for seed in range(150))
    wanted = (
        "for {", "break", "continue", "leave", "switch", "case", "default", "function", "if ", "let ", ":=",
        "mstore(", "sstore(", "tstore(", "sload(", "tload(", "keccak256(", "log2(", "call(", "staticcall(", "create(",
        "delegatecall(", "revert(", "return(", "stop()", "mcopy(", "returndatacopy(", "msize()", "memoryguard(",
    )  # fmt: skip
    assert [word for word in wanted if word not in text] == []


def difference(before: str, after: str, with_memory: bool = True) -> str:
    comparison = RunComparison(parse_block(before), dialect_for(), 0, EquivalenceTally())
    finding = comparison.check(parse_block(after), "test", with_memory)
    return "" if finding is None else finding.reason


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("{ sstore(0, 1) }", "{ sstore(0, 2) }", "storage was"),
        ("{ tstore(0, 1) }", "{ }", "transient was"),
        ("{ log0(0, 0) }", "{ }", "events was"),
        ("{ log1(0, 0, 1) log1(0, 0, 2) }", "{ log1(0, 0, 2) log1(0, 0, 1) }", "events was"),
        ("{ return(0, 32) }", "{ return(0, 0) }", "data was"),
        ("{ revert(0, 0) }", "{ stop() }", "succeeded was"),
        ("{ mstore(0, 1) }", "{ }", "memory differs"),
        ("{ stop() }", "{ for { } 1 { } { } }", "conclusive was"),
        ("{ stop() }", "{ sstore(0, x) }", "'x' is not declared"),
    ],
)
def test_a_change_of_meaning_is_found(before: str, after: str, reason: str) -> None:
    assert reason in difference(before, after)


def test_what_nobody_sees_is_no_finding() -> None:
    assert difference("{ mstore(0, 1) pop(sload(7)) sstore(1, 2) }", "{ sstore(1, 2) }", with_memory=False) == ""


def test_a_program_that_does_not_end_proves_nothing() -> None:
    tally = EquivalenceTally()
    forever = parse_block("{ for { } 1 { } { } }")
    RunComparison(forever, dialect_for(), 0, tally).check(Block(), "test", False)
    assert tally.inconclusive == tally.runs
    assert tally.findings == []


def test_a_campaign_reports_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "3", "--seed", "5", "--what", "sequences"]) == 0
    assert capsys.readouterr().out.startswith("sequences: 3 programs from seed 5, ")
