"""The pytest plugin: fixtures that tests share without seeing each other, and a gas report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusevm.adapters.gas_report import GasReport, table
from fusevm.folders import cache_folder

pytest_plugins = ["pytester"]
CACHE = cache_folder()  # as it is before pytester has tests run in a home of their own


@pytest.fixture(autouse=True)
def _handlers_are_not_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEVM_CACHE", str(CACHE))


SUITE = """
import pytest
from fusevm.chain.transaction import Transaction

TOKEN = "0x" + "c0" * 20
COUNTS = "5f54600101805f555f5260205ff3"  # storage[0] += 1, and returns it

@pytest.fixture(scope="session")
def token(evm_session, gas_report):
    evm_session.set_code(TOKEN, COUNTS)
    gas_report.name(bytes.fromhex(TOKEN[2:]), "Counter", [{"type": "function", "name": "count", "inputs": []}])
    return TOKEN

@pytest.fixture(scope="module")
def counted(evm_module, token):
    evm_module.call(token)

def test_first(evm, token, counted):
    assert evm.call(token, "0x06661abd").output[-1] == 2
    evm.block.number = 77

def test_second(evm, token, counted):
    assert evm.call(token, "0x06661abd").output[-1] == 2
    assert evm.block.number == 1

def test_rich(evm):
    evm.set_balance("0x" + "a1" * 20, 5)

def test_poor(evm):
    assert evm.get_balance("0x" + "a1" * 20) == 0

@pytest.mark.parametrize("turn", [1, 2])
def test_chain(chain, turn):
    assert chain.head.number == 0
    chain.send(chain.sign(Transaction(chain.accounts[0], b"\\x02" * 20, value=5, gas_limit=21_000, gas_price=10**9)))
    chain.mine()
    assert chain.chain.state.account(b"\\x02" * 20).balance == 5
"""
OTHER_MODULE = """
def test_a_module_does_not_see_anothers_setup(evm, evm_module):
    assert evm.get_storage("0x" + "c0" * 20, 0) == 0
"""
PLUGIN = ("-p", "fusevm.adapters.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_suite=SUITE, test_zother=OTHER_MODULE)
    return pytester


def test_what_tests_do_to_the_fixtures_is_undone(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=7)


def test_a_conftest_can_load_it(suite: pytest.Pytester) -> None:
    suite.makeconftest('pytest_plugins = ["fusevm.adapters.pytest_plugin"]')
    done = suite.runpytest_subprocess("-p", "no:cacheprovider", "--fusevm-gas-report")
    done.assert_outcomes(passed=7)
    done.stdout.re_match_lines([r"=+ gas =+"])


def test_the_gas_report_names_contracts_and_functions(suite: pytest.Pytester) -> None:
    done = suite.runpytest_subprocess(*PLUGIN, "--fusevm-gas-report")
    done.assert_outcomes(passed=7)
    done.stdout.re_match_lines([r"=+ gas =+", r"contract +function +calls +failures +least +mean +most"])
    done.stdout.re_match_lines([r"Counter +count\(\) +2 +0 +[\d,]+ +[\d,]+ +[\d,]+"])
    done.stdout.re_match_lines([r"0x0{0}(02){20} +\(no data\) +2 +0 +21,000 +21,000 +21,000"])


def test_the_gas_report_can_be_a_file(suite: pytest.Pytester, tmp_path: Path) -> None:
    where = tmp_path / "gas.json"
    suite.runpytest_subprocess(*PLUGIN, f"--fusevm-gas-report={where}").assert_outcomes(passed=7)
    rows = json.loads(where.read_text())
    assert {"contract": "Counter", "function": "count()", "calls": 2}.items() <= rows[-1].items()


def test_workers_of_xdist_add_up(suite: pytest.Pytester, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    where = tmp_path / "gas.json"
    done = suite.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-n", "2", f"--fusevm-gas-report={where}")
    done.assert_outcomes(passed=7)
    assert sum(row["calls"] for row in json.loads(where.read_text()) if row["function"] == "count()") == 2


def test_fork_and_tier_come_from_the_configuration(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfusevm_fork = london\nfusevm_tier = reference\n")
    pytester.makepyfile(
        "def test_it(evm, chain):\n"
        "    assert (evm.fork.label.lower(), evm.tier) == ('london', 'reference')\n"
        "    assert chain.chain.step_of(0).name == 'london'\n"
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_a_report_counts_least_mean_most_and_failures() -> None:
    report = GasReport()
    where = b"\x0a" * 20
    parts = [{"type": "tuple[]", "components": [{"type": "uint256"}, {"type": "address"}]}]
    report.name(where, "Pool", [{"type": "function", "name": "swap", "inputs": parts}])
    selector = next(found for _, found in report.functions)
    assert report.functions["Pool", selector] == "swap((uint256,address)[])"
    for gas, ok in ((100, True), (300, True), (50, False)):
        report.add(where, selector + b"...", gas, ok)
    (row,) = report.rows()
    assert (row["calls"], row["failures"], row["least"], row["mean"], row["most"]) == (3, 1, 50, 150, 300)
    twice = GasReport()
    twice.merge(report.rows())
    twice.merge(report.rows())
    assert (twice.rows()[0]["calls"], twice.rows()[0]["most"]) == (6, 300)
    assert table(report.rows())[1].startswith("Pool      swap((uint256,address)[])")
