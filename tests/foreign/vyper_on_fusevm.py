"""A pytest plugin for Vyper's test suite: its backend `revm` is fusevm's, as every test with an environment asserts."""

from __future__ import annotations

import pytest
from tests.evm_backends import revm_env

from fusevm.adapters.vyper import FusevmEnv
from fusevm.compat.pyrevm import EVM

revm_env.RevmEnv = FusevmEnv


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    environment = item.funcargs.get("env")  # type: ignore[attr-defined]
    assert environment is None or type(environment._evm) is EVM
