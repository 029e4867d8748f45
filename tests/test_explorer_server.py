"""The explorer's server: who it answers, what it refuses, how work is stopped; in an environment that has aiohttp."""

from __future__ import annotations

import pytest

from environments import FOREIGN, environment, pytest_inside

pytestmark = pytest.mark.long  # a server needs an environment with aiohttp


def test_the_server_answers_its_page_alone_and_stops_work_on_request() -> None:
    counts = pytest_inside(environment("node", "web3>=7"), "check_explorer.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= 60
