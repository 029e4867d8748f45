"""fusevm: an optimising compiler and execution engine for the Ethereum Virtual Machine.

>>> from fusevm import EVM
>>> EVM(fork="osaka").call("0x" + "00" * 19 + "04", b"echo").output  # the identity precompile
b'echo'
"""

from typing import TYPE_CHECKING, Any

from fusevm.api import EVM, WrongThread
from fusevm.chain.environment import Block
from fusevm.chain.outcome import EngineLimit, Failure, Status, TimeLimit
from fusevm.chain.outcomes import CallFailed
from fusevm.chain.packed import BadCall, Call
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
from fusevm.chain.result import ExecutionFailed, Result
from fusevm.chain.state import Log
from fusevm.chain.transaction import Authorization
from fusevm.evm.forks import Fork, UnknownFork
from fusevm.evm.halts import HaltReason
from fusevm.machine.batch import Batch
from fusevm.reference.hooks import Hooks, Step, StorageAccess
from fusevm.tiers import UnknownTier
from fusevm.values import BadValue
from fusevm.version import __version__

if TYPE_CHECKING:
    from fusevm.blockchain import Chain

__all__ = [
    "EVM",
    "Authorization",
    "BadCall",
    "BadValue",
    "Batch",
    "Block",
    "BlockReason",
    "Call",
    "CallFailed",
    "Chain",
    "EngineLimit",
    "ExecutionFailed",
    "Failure",
    "Fork",
    "HaltReason",
    "Hooks",
    "InvalidBlock",
    "Log",
    "RejectReason",
    "Rejected",
    "Result",
    "Status",
    "Step",
    "StorageAccess",
    "TimeLimit",
    "UnknownFork",
    "UnknownTier",
    "WrongThread",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """`Chain` is imported when it is first asked for: whoever runs calls alone does not pay for blocks."""
    if name == "Chain":
        from fusevm.blockchain import Chain

        return Chain
    raise AttributeError(f"module 'fusevm' has no attribute {name!r}")
