"""A pytest plugin for titanoboa's own tests and for projects that use it: all of them run on fusevm.

Every test begins and ends on fusevm's engine; one that makes an environment of a network says so by its class.
"""

from __future__ import annotations

from collections.abc import Iterator

import boa
import pytest
from boa.environment import Env
from boa.network import NetworkEnv

from fusevm.adapters.boa import FusevmEnv, enable
from fusevm.adapters.boa.engine import FusevmEVM

enable()


def on_fusevm() -> bool:
    return isinstance(boa.env, NetworkEnv) or type(boa.env.evm) is FusevmEVM


@pytest.fixture(autouse=True)
def every_test_runs_on_fusevm() -> Iterator[None]:
    assert on_fusevm(), f"boa.env is {boa.env} before the test"
    yield
    assert on_fusevm(), f"boa.env is {boa.env} after the test"
    assert type(Env()) is FusevmEnv
