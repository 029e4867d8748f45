"""fusevm: an optimising compiler and execution engine for the Ethereum Virtual Machine.

>>> from fusevm import EVM
>>> EVM(fork="osaka").call("0x" + "00" * 19 + "04", b"echo").output  # the identity precompile
b'echo'

Names are imported when they are first asked for: compiling Yul does not import the machine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fusevm.version import __version__

if TYPE_CHECKING:
    from fusevm import abi, ir, rules, yul
    from fusevm.api import EVM, WrongThread
    from fusevm.blockchain import Chain
    from fusevm.chain.addresses import Address
    from fusevm.chain.checks import Checks
    from fusevm.chain.environment import DEFAULT_CALLER, Block
    from fusevm.chain.outcome import EngineLimit, Failure, Status, TimeLimit
    from fusevm.chain.outcomes import CallFailed
    from fusevm.chain.packed import BadCall, Call
    from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
    from fusevm.chain.result import ExecutionFailed, Result
    from fusevm.chain.sources.source import PartialState, SourceError, SourceUnavailable
    from fusevm.chain.state import Log, State
    from fusevm.chain.transaction import Authorization
    from fusevm.evm.forks import Fork, UnknownFork
    from fusevm.evm.halts import HaltReason
    from fusevm.evm.precompiles import PrecompileFailure
    from fusevm.explanation.explain import Explanation, explain
    from fusevm.explanation.inputs import BadSource
    from fusevm.functions.code import assemble, cfg, disassemble, fusions_in, keccak, loops_in, optimize
    from fusevm.machine.batch import Batch
    from fusevm.machine.checkpoints import UnknownCheckpoint
    from fusevm.machine.estimate import EstimateFailed
    from fusevm.reference.hooks import Hooks, Step, StorageAccess
    from fusevm.tiers import UnknownTier
    from fusevm.values import BadValue

__all__ = [
    "DEFAULT_CALLER",
    "EVM",
    "Address",
    "Authorization",
    "BadCall",
    "BadSource",
    "BadValue",
    "Batch",
    "Block",
    "BlockReason",
    "Call",
    "CallFailed",
    "Chain",
    "Checks",
    "EngineLimit",
    "EstimateFailed",
    "ExecutionFailed",
    "Explanation",
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
    "abi",
    "assemble",
    "cfg",
    "disassemble",
    "explain",
    "fusions_in",
    "ir",
    "keccak",
    "loops_in",
    "optimize",
    "rules",
    "yul",
]

_ROOMS = ("abi", "ir", "rules", "yul")
_NAMES = {
    "api": ("EVM", "WrongThread"),
    "blockchain": ("Chain",),
    "chain.addresses": ("Address",),
    "chain.checks": ("Checks",),
    "chain.environment": ("DEFAULT_CALLER", "Block"),
    "chain.outcome": ("EngineLimit", "Failure", "Status", "TimeLimit"),
    "chain.outcomes": ("CallFailed",),
    "chain.packed": ("BadCall", "Call"),
    "chain.reasons": ("BlockReason", "InvalidBlock", "RejectReason", "Rejected"),
    "chain.result": ("ExecutionFailed", "Result"),
    "chain.sources.source": ("PartialState", "SourceError", "SourceUnavailable"),
    "chain.state": ("Log", "State"),
    "chain.transaction": ("Authorization",),
    "evm.forks": ("Fork", "UnknownFork"),
    "evm.halts": ("HaltReason",),
    "evm.precompiles": ("PrecompileFailure",),
    "explanation.explain": ("Explanation", "explain"),
    "explanation.inputs": ("BadSource",),
    "functions.code": ("assemble", "cfg", "disassemble", "fusions_in", "keccak", "loops_in", "optimize"),
    "machine.batch": ("Batch",),
    "machine.checkpoints": ("UnknownCheckpoint",),
    "machine.estimate": ("EstimateFailed",),
    "reference.hooks": ("Hooks", "Step", "StorageAccess"),
    "tiers": ("UnknownTier",),
    "values": ("BadValue",),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"fusevm.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'fusevm' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"fusevm.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
