"""A fork that is data alone: new opcodes of every kind, and new prices, work on all tiers without a change elsewhere.

The tables are derived from as modules are imported, so the imagined fork needs a process in which it comes first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CHECKS = HERE / "imagined_fork_checks.py"
NAMES = re.findall(r"^def (test_\w+)", CHECKS.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of each check, in a process of its own with a cache folder of its own."""
    cache = tmp_path_factory.mktemp("imagined")
    command = [sys.executable, "-c", "import imagined_fork, sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"]
    options = ["-vv", "--color=no", "-p", "no:cacheprovider", "-p", "no:xdist", str(CHECKS)]
    surroundings = {**os.environ, "FUSEVM_CACHE": str(cache), "PYTHONPATH": str(HERE)}
    surroundings.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        command + options, capture_output=True, text=True, env=surroundings, cwd=HERE.parent, timeout=400
    )
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_in_the_imagined_fork(name: str, outcomes: str) -> None:
    found = re.findall(rf"::{name}(?:\[.*\])? (PASSED|FAILED|ERROR)", outcomes)
    assert found, outcomes[-2_000:]
    assert set(found) == {"PASSED"}, outcomes[outcomes.find("= FAILURES =") :][:6_000]
