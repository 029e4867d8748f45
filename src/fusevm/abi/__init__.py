"""The ABI of Solidity and Vyper: calldata, results, events and errors by name, from artifacts or signatures.

>>> from fusevm.abi import Abi, Function
>>> Function.parse("transfer(address,uint256)").selector.hex()
'a9059cbb'
"""

from fusevm.abi.artifacts import Artifact, ArtifactLike
from fusevm.abi.codec import CannotDecode
from fusevm.abi.contract import Contract, ContractResult, Method
from fusevm.abi.entries import Constructor, CustomError, Event, Function
from fusevm.abi.interface import Abi
from fusevm.abi.records import DecodedLog, Values
from fusevm.abi.signatures import parse_type
from fusevm.abi.types import BadAbi

__all__ = [
    "Abi",
    "Artifact",
    "ArtifactLike",
    "BadAbi",
    "CannotDecode",
    "Constructor",
    "Contract",
    "ContractResult",
    "CustomError",
    "DecodedLog",
    "Event",
    "Function",
    "Method",
    "Values",
    "parse_type",
]
