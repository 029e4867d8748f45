"""web3.py's programs on eth-tester and on a chain in the same process, in an environment of their own."""

from __future__ import annotations

import pytest

from environments import FOREIGN, environment, pytest_inside

pytestmark = pytest.mark.long  # real tools, installed for it


def test_programs_for_eth_tester_run_on_the_provider_too() -> None:
    python = environment("web3", "eth-tester>=0.13.0b1", "py-evm>=0.12.0b1")
    counts = pytest_inside(python, "check_web3.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= 33
