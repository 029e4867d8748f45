"""fusevm: an optimising compiler and execution engine for the Ethereum Virtual Machine.

>>> from fusevm import EVM
>>> EVM(fork="osaka").call("0x" + "00" * 19 + "04", b"echo").output  # the identity precompile
b'echo'
"""

from typing import TYPE_CHECKING, Any

from fusevm.api import EVM, WrongThread
from fusevm.chain.checks import Checks
from fusevm.chain.environment import Block
from fusevm.chain.outcome import EngineLimit, Failure, Status, TimeLimit
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
from fusevm.chain.result import ExecutionFailed, Result
from fusevm.chain.sources.source import PartialState, SourceError, SourceUnavailable
from fusevm.chain.state import Log, State
from fusevm.chain.transaction import Authorization
from fusevm.evm.forks import Fork, UnknownFork
from fusevm.evm.halts import HaltReason
from fusevm.evm.precompiles import PrecompileFailure
from fusevm.machine.checkpoints import UnknownCheckpoint
from fusevm.machine.estimate import EstimateFailed
from fusevm.reference.hooks import Hooks, Step, StorageAccess
from fusevm.tiers import UnknownTier
from fusevm.values import BadValue
from fusevm.version import __version__

if TYPE_CHECKING:
    from fusevm.blockchain import Chain

__all__ = [
    "EVM",
    "Authorization",
    "BadValue",
    "Block",
    "BlockReason",
    "Chain",
    "Checks",
    "EngineLimit",
    "EstimateFailed",
    "ExecutionFailed",
    "Failure",
    "Fork",
    "HaltReason",
    "Hooks",
    "InvalidBlock",
    "Log",
    "PartialState",
    "PrecompileFailure",
    "RejectReason",
    "Rejected",
    "Result",
    "SourceError",
    "SourceUnavailable",
    "State",
    "Status",
    "Step",
    "StorageAccess",
    "TimeLimit",
    "UnknownCheckpoint",
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
