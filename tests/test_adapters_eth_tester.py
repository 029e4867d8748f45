"""eth-tester on fusevm: its own tests of a backend, the errors that frameworks match, and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import FOREIGN, environment, pytest_inside, sources

pytestmark = pytest.mark.long  # real tools, installed for it

DIRECT_TESTS = 101
# Asks py-evm's chain for its VM classes, which no other backend has.
OF_PY_EVM = "test_custom_virtual_machines"


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("eth-tester", "py-evm>=0.12.0b1")


def test_all_tests_that_eth_tester_has_for_backends_pass(python: Path) -> None:
    counts = pytest_inside(python, "check_eth_tester.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= DIRECT_TESTS


def test_the_tests_that_eth_tester_has_for_py_evm_pass_with_our_backend_in_its_place(python: Path) -> None:
    folder = sources(python, "eth-tester")
    arguments = ("-p", "in_place_of_py_evm", "--deselect", f"tests/backends/test_pyevm.py::{OF_PY_EVM}")
    counts = pytest_inside(python, *arguments, "tests/backends", cwd=folder, paths=(FOREIGN,))
    assert set(counts) == {"passed"}
    assert counts["passed"] > DIRECT_TESTS


def test_backend_errors_forks_and_genesis_are_those_of_py_evm(python: Path) -> None:
    counts = pytest_inside(python, "check_eth_tester_errors.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}


def test_the_backend_works_where_py_evm_is_not_installed() -> None:
    counts = pytest_inside(environment("eth-tester"), "check_eth_tester_alone.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
