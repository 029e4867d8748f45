"""A Hardhat project whose tests run against `fusevm node`, as they do against anvil."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from anvil import Anvil, npm_folder
from environments import FOREIGN, environment
from nodes import Node

pytestmark = pytest.mark.long  # real tools, installed for it

PACKAGES = (
    "hardhat@2",
    "@nomicfoundation/hardhat-ethers@3",
    "@nomicfoundation/hardhat-network-helpers@1",
    "@nomicfoundation/hardhat-chai-matchers@2",
    "chai@4",
    "ethers@6",
    "solc@0.8",
)
RUN_SECONDS = 300


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files, beside the packages."""
    packages = npm_folder(tmp_path_factory, "FUSEVM_HARDHAT", PACKAGES)
    folder = tmp_path_factory.mktemp("hardhat") / "project"
    shutil.copytree(FOREIGN / "hardhat", folder)
    (folder / "package.json").write_text('{"name": "project", "private": true}')
    (folder / "node_modules").symlink_to(packages / "node_modules")
    return folder


def run_tests(project: Path, url: str) -> dict[str, Any]:
    """Mocha's report."""
    surroundings = {**os.environ, "NODE_URL": url, "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", "CI": "1"}
    command = ["node", "node_modules/hardhat/internal/cli/bootstrap.js", "test", "--network", "node"]
    done = subprocess.run(
        command, cwd=project, env=surroundings, capture_output=True, text=True, timeout=RUN_SECONDS
    )  # fmt: skip
    start = done.stdout.find('{\n  "stats"')
    assert start >= 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout[start:])
    return found


def test_the_tests_of_a_hardhat_project_pass(project: Path) -> None:
    with Node(environment("node", "web3>=7")) as node:
        report = run_tests(project, node.url)
    failed = {each["fullTitle"]: each["err"].get("message") for each in report["failures"]}
    assert not failed, failed
    assert report["stats"]["passes"] == report["stats"]["tests"] == 11


def test_they_pass_on_anvil_too(project: Path, anvil_binary: Path) -> None:
    with Anvil(anvil_binary) as node:
        report = run_tests(project, node.url)
    assert report["stats"]["passes"] == 11, [each["fullTitle"] for each in report["failures"]]
