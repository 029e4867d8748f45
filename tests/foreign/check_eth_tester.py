"""eth-tester's own tests of a backend, on fusevm; run where eth-tester and py-evm are installed."""

from __future__ import annotations

from typing import Any

import pytest
from eth_tester import EthereumTester
from eth_tester.utils.backend_testing import BaseTestBackendDirect

from fusevm.adapters.eth_tester import FusevmBackend


@pytest.fixture
def eth_tester() -> Any:
    return EthereumTester(backend=FusevmBackend())


class TestFusevmBackendDirect(BaseTestBackendDirect):  # type: ignore[misc]
    """All of them."""
