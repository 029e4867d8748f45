"""titanoboa on fusevm: its features on py-evm and here, compared, in an environment of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from environments import FOREIGN, ROOT, checkout, environment, failed_inside, pytest_inside, run_inside, sources

OF_BOAS_TESTS = ("IPython", "jupyter_server", "nest_asyncio", "pytest-cov", "requests-cache")

pytestmark = pytest.mark.long  # real tools, installed for it


def test_contracts_traces_dumps_and_anchors_are_as_with_py_evm() -> None:
    counts = pytest_inside(environment("boa"), "check_boa.py", "check_boa_traces.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= 56


def test_once_enabled_every_new_environment_is_fusevms() -> None:
    counts = pytest_inside(environment("boa"), "check_boa_enabling.py", cwd=FOREIGN)
    assert counts == {"passed": 14}


def test_boas_own_unit_tests_pass_on_fusevm_and_on_nothing_else() -> None:
    """Some want a network or compilers of old versions, and fail on py-evm in the same way."""
    if checkout("titanoboa") is None:
        pytest.skip("titanoboa's source distribution has no tests: python .ci/upstream.py boa=FOLDER, a checkout")
    python = environment("boa", *OF_BOAS_TESTS)
    folder = sources(python, "titanoboa")
    ours, passed = failed_inside(python, "-p", "boa_on_fusevm", "tests/unitary", cwd=folder, paths=(FOREIGN,))
    theirs, _ = failed_inside(python, "tests/unitary", cwd=folder)
    assert ours <= theirs
    assert passed >= 300


def test_the_bench_measures_both_engines() -> None:
    printed = run_inside(environment("boa"), str(ROOT / "bench" / "boa.py"), "--json", "--quick", cwd=FOREIGN)
    rows = json.loads(printed.strip().splitlines()[-1])
    assert {row["name"] for row in rows} >= {"a loop of 3,000 turns", "a view"}
    assert all(row["py-evm"] > 0 and row["fusevm"] > 0 for row in rows)


def test_forks_answer_as_with_py_evm(anvil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "0x" + "f0" * 20
    anvil.ask("anvil_setCode", where, "0x5f54600101805f555f5260205ff3")  # storage[0] += 1, and returns it
    anvil.ask("anvil_setStorageAt", where, "0x" + "00" * 32, "0x" + "00" * 31 + "07")
    anvil.ask("anvil_setBalance", where, hex(5))
    anvil.ask("anvil_mine", "0x3")
    monkeypatch.setenv("FUSEVM_NODE", anvil.url)
    counts = pytest_inside(environment("boa"), "check_boa_fork.py", cwd=FOREIGN)
    assert counts == {"passed": 8}
