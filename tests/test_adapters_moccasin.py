"""`mox test` of a small project: on fusevm in the same process, and on `fusevm node` as a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from anvil import KEY
from environments import FOREIGN, ROOT, RUN_SECONDS, environment
from nodes import Node

FILES = {"moccasin.toml": "moccasin.toml", "Counter.vy": "src/Counter.vy", "check_counter.py": "tests/test_counter.py"}

pytestmark = pytest.mark.long  # real tools, installed for it


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("boa", "moccasin>=0.4.4")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With what docs/adapters.md has for a project's conftest.py."""
    for name, place in FILES.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        shutil.copy(FOREIGN / "moccasin" / name, tmp_path / place)
    (tmp_path / "tests" / "conftest.py").write_text("import fusevm.adapters.boa\n\nfusevm.adapters.boa.enable()\n")
    return tmp_path


def mox_test(python: Path, project: Path, *options: str, node: str = "") -> dict[str, int]:
    """How many tests passed, failed and so on."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_ADDOPTS": "", "NODE_URL": node}
    command = [str(python), "-m", "moccasin", "test", *options]
    done = subprocess.run(command, cwd=project, env=surroundings, capture_output=True, text=True, timeout=RUN_SECONDS)
    counts = {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)", done.stdout)}
    assert counts, done.stdout + done.stderr
    print(done.stdout)
    return counts


def test_the_tests_of_a_moccasin_project_pass_on_fusevm(python: Path, project: Path) -> None:
    assert mox_test(python, project) == {"passed": 4}


def test_those_for_a_network_run_on_a_node(python: Path, project: Path) -> None:
    with Node(environment("node", "web3>=7")) as node:
        counts = mox_test(python, project, "--network", "node", "--private-key", "0x" + KEY.hex(), node=node.url)
    assert counts == {"passed": 1, "skipped": 3}
