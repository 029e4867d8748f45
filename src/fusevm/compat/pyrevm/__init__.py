"""pyrevm's names and types on fusevm: `from fusevm.compat.pyrevm import EVM` in the place of `from pyrevm import EVM`.

>>> from fusevm.compat.pyrevm import EVM, AccountInfo
>>> evm, contract, caller = EVM(), "0x" + "c0" * 20, "0x" + "a1" * 20
>>> evm.insert_account_info(contract, AccountInfo(code=bytes.fromhex("600160020160005260206000f3")))
>>> int.from_bytes(evm.message_call(caller, contract), "big"), evm.result.gas_used
(3, 21024)
"""

from fusevm.compat.pyrevm.environment import AccountInfo, BlockEnv, CfgEnv, Env, TxEnv, fake_exponential
from fusevm.compat.pyrevm.machine import EVM
from fusevm.compat.pyrevm.results import ExecutionResult, JournalCheckpoint, Log

__all__ = [
    "EVM",
    "AccountInfo",
    "BlockEnv",
    "CfgEnv",
    "Env",
    "ExecutionResult",
    "JournalCheckpoint",
    "Log",
    "TxEnv",
    "fake_exponential",
]
