"""eth-tester on fusevm: `ETHEREUM_TESTER_CHAIN_BACKEND=fusevm.adapters.eth_tester.FusevmBackend`."""

from fusevm.adapters.eth_tester.backend import FusevmBackend

__all__ = ["FusevmBackend"]
