"""web3.py's programs and its own tests of providers: on eth-tester, on a chain in the same process and on a node."""

from __future__ import annotations

import pytest

from environments import FOREIGN, environment, pytest_inside
from nodes import Node

pytestmark = pytest.mark.long  # real tools, installed for it

CHAIN_ID = 131277322940537  # that web3.py's tests expect
# web3.py's names are normalised with pyunormalize, whose later releases it does not know.
MODULES = ("aiohttp>=3.10", "orjson>=3.10", "pytest-asyncio>=1", "pyunormalize==16.0.0", "websockets>=10")
LEAST = {"process": 385, "http": 380, "ws": 200}  # of what there is; the rest is skipped with its reason


def test_programs_for_eth_tester_run_on_the_provider_too() -> None:
    python = environment("web3", "eth-tester>=0.13.0b1", "py-evm>=0.12.0b1")
    counts = pytest_inside(python, "check_web3.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= 33


@pytest.mark.parametrize("how", LEAST)
def test_the_tests_that_web3_has_for_providers_pass(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment("web3", *MODULES)
    monkeypatch.setenv("FUSEVM_HOW", how)
    with Node(python, "--chain-id", str(CHAIN_ID)) as node:
        monkeypatch.setenv("FUSEVM_NODE", node.url)
        counts = pytest_inside(python, "-W", "ignore", "check_web3_modules.py", cwd=FOREIGN)
    assert set(counts) <= {"passed", "skipped", "xpassed"}
    assert counts["passed"] >= LEAST[how]
