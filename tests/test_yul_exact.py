"""Optimised text against solc itself, program by program: what differed once, and random programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil import npm_folder
from fusevm.lab.yul import exact
from fusevm.lab.yul.exact import Solc, difference

IMMUTABLES = """object "C" {
    code {
        let a := mload(64)
        let b := sload(0)
        setimmutable(a, "x", b)
        setimmutable(a, "y", add(b, 0))
        setimmutable(sload(b), "z", sload(b))
        if lt(b, 7) { setimmutable(a, "x", sload(0)) }
        setimmutable(a, "u", 0xffffffffffffffffffffffffffffffff0000000000000000000000000000ffff)
        return(0, a)
    }
    object "C_deployed" {
        code {
            for { let i := 0 } lt(i, calldataload(0)) { i := add(i, 1) }
            {
                sstore(loadimmutable("y"), loadimmutable("z"))
                log1(i, i, loadimmutable("y"))
            }
            datacopy(datasize("d"), dataoffset("d"), datasize("d"))
        }
        data "d" "abc"
    }
}"""
# A function's argument that never changes is as good as a constant to the loop in it.
PARAMETER = """object "C" {
    code {
        f(calldataload(0), calldataload(32))
        f(calldataload(64), 7)
        function f(at, end)
        {
            for { let i := 0 } lt(i, and(end, 0xffff)) { i := add(i, 1) } { sstore(add(i, mul(at, 5)), i) }
        }
    }
}"""
# Two variables of one value: which of the stores the last one overwrites, solc tells by their names.
STORES = """object "C" {
    code {
        let p := calldataload(0)
        let q := calldataload(0)
        mstore(p, 1)
        mstore(q, 2)
        sstore(p, 3)
        sstore(q, 4)
        mstore(p, 5)
        return(0, calldataload(64))
    }
}"""
# Nothing can read a store of no bytes, not even a function of which nothing is known.
NO_BYTES = """object "C" {
    code {
        let a := calldataload(4)
        extcodecopy(a, 0, 4, 0)
        f()
        calldatacopy(a, 5, 0)
        log0(0, 0x140)
        for { let i := 0 } lt(i, 5) { i := add(i, 1) } {
            f()
            extcodecopy(a, 0, 4, 0)
        }
        mstore(a, 7)
        f()
        function f()
        {
            sstore(2, mload(0))
            sstore(3, mload(32))
            if calldataload(7) { f() }
        }
    }
}"""


@pytest.fixture(scope="module")
def solc_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_folder(tmp_path_factory, "FUSEVM_SOLC", ["solc@0.8"])


@pytest.fixture(scope="module")
def running(solc_folder: Path) -> Iterator[Solc]:
    with Solc(solc_folder) as solc:
        yield solc


@pytest.mark.parametrize("source", [IMMUTABLES, PARAMETER, STORES, NO_BYTES])
def test_what_differed_once_is_solcs_text(source: str, running: Solc) -> None:
    assert difference(source, running) is None


def test_random_programs_are_compared_by_the_laboratory(solc_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exact.main(["--programs", "6", "--seed", "5000", "--solc", str(solc_folder)]) == 0
    assert capsys.readouterr().out == "6 equal, 0 differ, 0 refused\n"


def test_a_difference_names_its_step_and_its_lines(
    solc_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = "fusevm.yul.steps.constant_optimiser"
    monkeypatch.setattr(f"{steps}._SMALLEST", 1 << 256)  # a planted error: no constant is made shorter
    path = tmp_path / "a.yul"
    path.write_text(IMMUTABLES)
    assert exact.main([str(path), "--solc", str(solc_folder)]) == 1
    told = capsys.readouterr().out
    assert told.startswith("a.yul: differs at step ")
    assert "    solc    setimmutable(" in told
    assert told.endswith("0 equal, 1 differ, 0 refused\n")


def test_contracts_of_solidity_are_read_and_refusals_told(
    solc_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bad = tmp_path / "a.sol", tmp_path / "bad.yul"
    path.write_text("contract C { function f() external pure returns (uint) { return 1; } }")
    bad.write_text('object "C" { code { mstore(0, memoryguard(calldatasize())) } }')
    assert exact.main([str(path), str(bad), "--solc", str(solc_folder)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("bad.yul: solc refuses it: TypeError")
    assert told.endswith("1 equal, 0 differ, 1 refused\n")
