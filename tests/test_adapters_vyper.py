"""Vyper's own functional tests, with fusevm's environment in the place of revm's.

A few hundred run with the plain test command; `FUSEVM_WHOLE_CORPUS` runs all of those that deploy and call contracts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from environments import FOREIGN, environment, pytest_inside, sources

pytestmark = pytest.mark.long  # real tools, installed for it

# What Vyper's own `test` extra asks for, as far as running needs it.
NEEDED = (
    "vyper==0.4.3",
    "eth-abi>=5.0.0,<6.0.0",
    "eth-account==0.12.2",
    "eth-stdlib==0.2.7",
    "hexbytes>=1.2",
    "hypothesis[lark]>=6.0,<7.0",
    "lark==1.1.9",
    "py-evm>=0.12.1b1",
    "pyrevm>=0.3.2",
    "setuptools",
)
CODEGEN = "tests/functional/codegen"
A_FEW = {
    "features": [f"{CODEGEN}/features/{name}.py" for name in ("test_transient", "test_logging", "test_assert")],
    "calls": ["tests/functional/examples/tokens"],
}
ALL = {
    "types": [f"{CODEGEN}/types"],
    "features": [f"{CODEGEN}/features", f"{CODEGEN}/modules", f"{CODEGEN}/storage_variables"],
    "calls": [f"{CODEGEN}/calling_convention", f"{CODEGEN}/environment_variables", "tests/functional/examples"],
}
WHOLE = bool(os.environ.get("FUSEVM_WHOLE_CORPUS"))


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("vyper", *NEEDED)


@pytest.mark.parametrize("part", ALL)
def test_vypers_tests_pass_on_fusevm(python: Path, part: str) -> None:
    if not WHOLE and part not in A_FEW:
        pytest.skip("types are many; FUSEVM_WHOLE_CORPUS runs them")
    folder = sources(python, "vyper")
    paths = [each for each in (ALL if WHOLE else A_FEW)[part] if (folder / each).exists()]
    marked = ("-m", "not fuzzing", "-o", "markers=fuzzing\nrequires_evm_version\nhevm\nvenom_xfail", "-W", "default")
    counts = pytest_inside(python, "-p", "vyper_on_fusevm", *marked, *paths, cwd=folder, paths=(FOREIGN, folder))
    assert set(counts) <= {"passed", "xfailed"}
    assert counts["passed"] >= 40
