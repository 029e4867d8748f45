"""The campaign of compiled programs: it finds what is planted, makes it small, and says how to see it again."""

from __future__ import annotations

from itertools import islice
from unittest.mock import patch

import pytest

from fusevm.codegen import stack_code
from fusevm.codegen.yul import CompiledObject, compile_object
from fusevm.lab.yul import compiled
from fusevm.lab.yul.compiled import CompiledTally, check, main, one_program, random_case
from fusevm.lab.yul.generate_contracts import YulContract, random_contract
from fusevm.lab.yul.shrink import shrunken
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check as check_source
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.parser import parse_object


@pytest.mark.long
def test_a_planted_error_is_found_and_shown_in_a_few_lines() -> None:
    """Every difference of two words is the wrong way round."""
    with patch.object(stack_code, "COMMUTATIVE", stack_code.COMMUTATIVE | {"SUB"}):
        tallies = (one_program(seed, shrinks=False) for seed in range(1, 60))
        seeds = islice((tally.findings[0].seed for tally in tallies if tally.findings), 2)
        seed = min(seeds, key=lambda each: len(random_case(each).source))  # made smaller in less time
        (finding,) = one_program(seed).findings
    assert "runs: call" in finding.reason
    assert len(finding.source) < len(random_case(seed).source) / 2


def test_code_that_costs_more_than_plain_code_is_a_finding() -> None:
    def exchanged(obj: Object, dialect: Dialect, runs: int | None, **_: object) -> CompiledObject:
        return compile_object(obj, dialect, runs=200 if runs is None else None)

    loop = "{ for { let i := 0 } lt(i, 20) { i := add(i, 1) } { sstore(i, f(f(i))) } function f(a) -> b { b := a } }"
    contract = YulContract(loop, ((b"", 0),))
    assert check(contract, CompiledTally()) is None
    with patch.object(compiled, "compile_object", exchanged):
        assert "0 runs: gas was" in str(check(contract, CompiledTally()))


def test_a_campaign_without_findings_says_what_it_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "4", "--seed", "8"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("4 programs from seed 8: ")
    assert "0 findings" in line


def test_random_contracts_are_valid_and_the_same_for_the_same_seed() -> None:
    for seed in range(60):
        contract = random_contract(seed)
        assert contract == random_contract(seed)
        _, errors = check_source(contract.source)
        assert [error for error in errors if not error.is_warning] == []


def test_random_contracts_have_everything_that_the_back_end_has_a_pass_for() -> None:
    text = "\n".join(random_contract(seed).source for seed in range(150))
    for needle in ("memoryguard", "setimmutable", "loadimmutable", "delegatecall", "create2", "tstore", "msize()",
                   "switch", "leave", "continue", "break", "selfdestruct", "datacopy", "callvalue()", "gas()",
                   "panic_11", "decode_3", "codesize()"):  # fmt: skip
        assert needle in text, needle


def test_a_program_shrinks_to_what_shows_the_finding() -> None:
    source = """{
        let a := calldataload(0)
        if a { sstore(1, add(a, 2)) sstore(7, mul(add(a, 3), 5)) }
        for { let i := 0 } lt(i, 3) { i := add(i, 1) } { sstore(i, a) }
        switch a case 1 { sstore(8, 1) } default { }
        function f() { sstore(9, 9) }
    }"""
    found = shrunken(source, lambda text: "sstore(7, " in text, 20)
    assert found.split() == ["{", "{", "sstore(7,", "0)", "}", "}"] or found.split() == ["{", "sstore(7,", "0)", "}"]


def test_a_constant_that_has_the_digits_of_a_gas_limit_stays_a_constant() -> None:
    """The generator hands all gas to some calls: it must not write that into other operands."""
    parse_object(random_contract(9_002_284).source, dialect_for())
