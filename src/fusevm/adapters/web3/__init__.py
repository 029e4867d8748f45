"""web3.py on a chain in the same process: `Web3(FusevmProvider())`, `AsyncWeb3(AsyncFusevmProvider())`."""

from fusevm.adapters.web3.provider import AsyncFusevmProvider, FusevmProvider

__all__ = ["AsyncFusevmProvider", "FusevmProvider"]
