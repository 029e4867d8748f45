"""A pytest plugin: whoever imports eth-tester's `PyEVMBackend` gets fusevm's backend."""

import eth_tester

from fusevm.adapters.eth_tester import FusevmBackend

eth_tester.PyEVMBackend = FusevmBackend
