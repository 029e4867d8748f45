"""An EVM and a development chain that tell a gas report of their calls."""

from __future__ import annotations

from typing import Any

from fusevm.adapters.gas_report import GasReport
from fusevm.api import EVM
from fusevm.chain.result import Result
from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import DevChain
from fusevm.values import to_address, to_bytes


class MeteredEVM(EVM):
    """Gas as a result has it: without the intrinsic cost for calls, with it for transactions."""

    report: GasReport

    def call(self, to: Any, data: Any = b"", **fields: Any) -> Result:
        result = super().call(to, data, **fields)
        self.report.add(to_address(to), to_bytes(data), result.gas_used, result.ok)
        return result

    def deploy(self, initcode: Any, **fields: Any) -> Result:
        result = super().deploy(initcode, **fields)
        self.report.add(None, to_bytes(initcode), result.gas_used, result.ok)
        return result

    def transact(self, sender: Any, to: Any = None, data: Any = b"", **fields: Any) -> Result:
        result = super().transact(sender, to, data, **fields)
        target = None if to is None else to_address(to)
        self.report.add(target, to_bytes(data), result.gas_used, result.ok)
        return result


class MeteredChain(DevChain):
    """Gas of the transactions in its blocks."""

    report: GasReport

    def mine(self, **fields: Any) -> SealedBlock:
        block = super().mine(**fields)
        for signed, receipt in zip(block.transactions, self.chain.receipts(block.hash), strict=True):
            self.report.add(signed.to, signed.data, receipt.gas_used, receipt.succeeded)
        return block
