"""Programs of real clients against `fusevm node` and against anvil: they print the same, step by step."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anvil import KEY, Anvil, npm_folder
from environments import FOREIGN, environment, run_inside
from fusevm import yul
from nodes import Node

pytestmark = pytest.mark.long  # real tools, installed for it

CLIENTS = ("ethers@6", "viem@2.45.0", "@foundry-rs/cast@1")
RUN_SECONDS = 120


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("node", "web3>=7")


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_folder(tmp_path_factory, "FUSEVM_CLIENTS", CLIENTS)


@pytest.fixture(scope="module")
def code() -> str:
    return "0x" + yul.compile((FOREIGN / "counter.yul").read_text("utf-8")).code.hex()


@pytest.fixture
def nodes(python: Path, anvil_binary: Path) -> Iterator[dict[str, str]]:
    """URLs of both, each on a chain of its own."""
    with Node(python, "--base-fee", "0") as ours, Anvil(anvil_binary) as theirs:
        yield {"fusevm": ours.url, "anvil": theirs.url}


def steps(printed: str) -> list[Any]:
    assert printed.strip(), "the client printed nothing"
    try:
        return [json.loads(line) for line in printed.splitlines() if line.strip()]
    except ValueError:
        raise AssertionError(printed) from None


def run_script(clients: Path, script: str, url: str, code: str) -> list[Any]:
    """A module beside the packages it imports: node looks for them there."""
    copied = clients / script
    copied.write_text((FOREIGN / script).read_text("utf-8"))
    command = ["node", str(copied), url, code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return steps(done.stdout)


def test_a_web3_py_program_sees_on_fusevm_what_it_sees_on_anvil(python: Path, nodes: Any, code: str) -> None:
    ours, theirs = (
        steps(run_inside(python, "client_web3.py", nodes[name], code, cwd=FOREIGN)) for name in ("fusevm", "anvil")
    )
    assert ours == theirs
    assert len(ours) > 25


def test_an_ethers_program_sees_on_fusevm_what_it_sees_on_anvil(clients: Path, nodes: Any, code: str) -> None:
    ours, theirs = (run_script(clients, "client_ethers.mjs", nodes[name], code) for name in ("fusevm", "anvil"))
    assert ours == theirs
    assert len(ours) > 18


def test_a_viem_program_sees_on_fusevm_what_it_sees_on_anvil(clients: Path, nodes: Any, code: str) -> None:
    ours, theirs = (run_script(clients, "client_viem.mjs", nodes[name], code) for name in ("fusevm", "anvil"))
    assert ours == theirs
    assert len(ours) > 30


CAST_STEPS: tuple[tuple[str, ...], ...] = (
    ("chain-id",),
    ("block-number",),
    ("balance", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"),
    ("send", "--json", "--create", "CODE"),
    ("code", "CONTRACT"),
    ("send", "--json", "CONTRACT", "set(uint256)", "7"),
    ("call", "CONTRACT", "get()(uint256)"),
    ("call", "CONTRACT", "fail()"),
    ("estimate", "CONTRACT", "set(uint256)", "8"),
    ("estimate", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "--value", "1ether"),
    ("access-list", "CONTRACT", "fail()"),
    ("block", "pending", "-f", "number"),
    ("storage", "CONTRACT", "0"),
    ("nonce", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"),
    ("logs", "--json", "--from-block", "0", "--address", "CONTRACT"),
    ("rpc", "anvil_mine", "0x2"),
    ("block-number",),
)
_VARIES = ("blockHash", "transactionHash", "blockTimestamp", "effectiveGasPrice", "root", "logs", "blobGasPrice")


def cast(binary: Path, url: str, arguments: tuple[str, ...]) -> Any:
    wallet = ["--private-key", "0x" + KEY.hex()] if arguments[0] == "send" else []
    command = [str(binary), arguments[0], *wallet, "--rpc-url", url, *arguments[1:]]
    surroundings = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, env=surroundings)
    if done.returncode:
        return ["failed", "no more" in done.stderr]
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return done.stdout
    forms = found if isinstance(found, list) else [found]
    return [
        {name: value for name, value in form.items() if name not in _VARIES} if isinstance(form, dict) else form
        for form in forms
    ]


def test_cast_sees_on_fusevm_what_it_sees_on_anvil(clients: Path, nodes: Any, code: str) -> None:
    found = sorted((clients / "node_modules" / "@foundry-rs").glob("cast-*/bin/cast*"))
    if not found:
        pytest.skip("cast has no program for this platform")
    contract = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
    given = {"CODE": code, "CONTRACT": contract}
    for arguments in CAST_STEPS:
        wanted = tuple(given.get(each, each) for each in arguments)
        ours, theirs = (cast(found[0], nodes[name], wanted) for name in ("fusevm", "anvil"))
        assert ours == theirs, arguments
