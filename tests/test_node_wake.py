"""Tests of wake, which starts `anvil`: the program of that name is `fusevm node` for them, and anvil itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from environments import FOREIGN, ROOT, RUN_SECONDS, environment

pytestmark = [
    pytest.mark.long,  # real tools, installed for it
    pytest.mark.skipif(os.name == "nt", reason="wake looks for a program, not for a script"),
]
NODE = """#!/bin/sh
export PYTHONPATH='{sources}'
exec '{python}' -c 'from fusevm.cli.start import main; main()' node "$@"
"""


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("wake", "eth-wake>=4.22")


def run_tests(python: Path, folder: Path) -> dict[str, int]:
    """How many passed, failed and so on with the program `anvil` in that folder."""
    shutil.copy(FOREIGN / "check_wake.py", folder / "test_node.py")
    homes = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
    path = os.pathsep.join((str(folder), os.environ["PATH"]))
    surroundings = {**os.environ, **homes, "PATH": path, "PYTEST_ADDOPTS": ""}
    command = [str(python), "-c", "from wake.cli.__main__ import main; main()", "test", "test_node.py"]
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=RUN_SECONDS)
    print(done.stdout + done.stderr)
    return {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|errors?)", done.stdout)}


def test_tests_of_wake_pass_on_a_node_that_it_starts(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "anvil"
    program.write_text(NODE.format(sources=ROOT / "src", python=environment("node", "web3>=7")))
    program.chmod(0o755)
    assert run_tests(python, tmp_path) == {"passed": 8}


def test_they_pass_on_anvil_too(python: Path, anvil_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "anvil").symlink_to(anvil_binary)
    assert run_tests(python, tmp_path) == {"passed": 8}
