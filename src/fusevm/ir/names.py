"""Opcode names as dependency blocks write them: SSTORE is SStore, INVALID is InvalidInstruction."""

from __future__ import annotations

from fusevm.ir.values import NAMES

_WORDS = [
    "AddMod", "MulMod", "SignExtend", "IsZero", "CallValue", "CallDataLoad", "CallDataSize", "CallDataCopy",
    "CodeSize", "CodeCopy", "GasPrice", "ExtCodeSize", "ExtCodeCopy", "ExtCodeHash", "ReturnDataSize",
    "ReturnDataCopy", "BlockHash", "CoinBase", "TimeStamp", "PrevRandao", "GasLimit", "ChainId", "SelfBalance",
    "BaseFee", "BlobHash", "BlobBaseFee", "MLoad", "MStore", "MStore8", "SLoad", "SStore", "JumpI", "JumpDest",
    "MSize", "TLoad", "TStore", "MCopy", "CallCode", "DelegateCall", "StaticCall", "SelfDestruct", "SDiv", "SMod",
    "SLt", "SGt", "ExpGas",
]  # fmt: skip

TEXT_OF: dict[str, str] = {name: name.capitalize() for name in (*NAMES, "FALL")}
TEXT_OF |= {word.upper(): word for word in _WORDS}
TEXT_OF["INVALID"] = "InvalidInstruction"
NAME_OF: dict[str, str] = {text.lower(): name for name, text in TEXT_OF.items()}
assert len(NAME_OF) == len(TEXT_OF)
