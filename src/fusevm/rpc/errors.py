"""Errors as JSON-RPC clients decode them: codes, texts and the data of a revert."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fusevm.chain.outcome import EngineLimit, Status
from fusevm.chain.pool import NotPooled
from fusevm.chain.reasons import InvalidBlock, Rejected, RejectReason
from fusevm.chain.result import PANIC_SELECTOR, PANICS, ExecutionFailed, Result, error_text
from fusevm.chain.sources.source import PartialState, SourceError
from fusevm.evm.halts import HaltReason
from fusevm.values import BadValue

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
RESOURCE_NOT_FOUND = -32001
TRANSACTION_REJECTED = -32003
REVERTED = 3

# The words that clients match: geth's.
_REJECTED = {
    RejectReason.NONCE_MISMATCH_TOO_LOW: "nonce too low",
    RejectReason.NONCE_MISMATCH_TOO_HIGH: "nonce too high",
    RejectReason.INSUFFICIENT_ACCOUNT_FUNDS: "Insufficient funds for gas * price + value",
    RejectReason.INTRINSIC_GAS_TOO_LOW: "intrinsic gas too low",
    RejectReason.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST: "intrinsic gas too low: below the floor of its data",
    RejectReason.GAS_ALLOWANCE_EXCEEDED: "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit",
    RejectReason.GAS_LIMIT_EXCEEDS_MAXIMUM: "intrinsic gas too high -- TxGasLimitGreaterThanCap",
    RejectReason.INSUFFICIENT_MAX_FEE_PER_GAS: "max fee per gas less than block base fee",
    RejectReason.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS: "max priority fee per gas higher than max fee per gas",
    RejectReason.INVALID_CHAINID: "invalid chain id for signer",
    RejectReason.INITCODE_SIZE_EXCEEDED: "max initcode size exceeded",
    RejectReason.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS: "max fee per blob gas less than block blob gas fee",
    RejectReason.TYPE_NOT_SUPPORTED: "transaction type not supported",
}


# How a halt is called by revm, and so by Foundry's tools.
HALTED = {
    HaltReason.OUT_OF_GAS: "OutOfGas",
    HaltReason.STACK_UNDERFLOW: "StackUnderflow",
    HaltReason.STACK_OVERFLOW: "StackOverflow",
    HaltReason.INVALID_OPCODE: "OpcodeNotFound",
    HaltReason.INVALID_JUMP: "InvalidJump",
    HaltReason.STATIC_WRITE: "StateChangeDuringStaticCall",
    HaltReason.RETURNDATA_OUT_OF_BOUNDS: "OutOfOffset",
    HaltReason.PRECOMPILE_FAILED: "PrecompileError",
    HaltReason.NONCE_OVERFLOW: "NonceOverflow",
    HaltReason.ADDRESS_COLLISION: "CreateCollision",
    HaltReason.CODE_TOO_LARGE: "CreateContractSizeLimit",
    HaltReason.INITCODE_TOO_LARGE: "CreateInitCodeSizeLimit",
    HaltReason.CODE_STARTS_WITH_EF: "CreateContractStartingWithEF",
}


_OF_GAS = {
    RejectReason.INTRINSIC_GAS_TOO_LOW,
    RejectReason.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST,
    RejectReason.GAS_ALLOWANCE_EXCEEDED,
    RejectReason.GAS_LIMIT_EXCEEDS_MAXIMUM,
}


class RpcError(Exception):
    """What a client gets instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code, self.message, self.data = code, message, data

    def __str__(self) -> str:
        return self.message

    def as_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            form["data"] = self.data
        return form


class NoSuchBlock(RpcError):
    """The block that a request names is not there. Methods that look blocks up answer null instead."""


def invalid(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message)


def failed(result: Result) -> RpcError:
    """Why a call did not succeed."""
    if result.status is Status.REVERT:
        return RpcError(REVERTED, revert_message(result.output), "0x" + result.output.hex())
    return RpcError(INTERNAL_ERROR, f"EVM error {halt_name(result)}")


def halt_name(result: Result) -> str:
    """Why a call halted, as Foundry's tools name it."""
    failure = result.failure
    if failure is None:
        return "Unknown"
    return "InvalidFEOpcode" if failure.detail == "0xfe" else HALTED[failure.reason]


def revert_message(output: bytes) -> str:
    """As Foundry's tools word it: Solidity's reason, the panic, text, or the selector of a custom error."""
    if not output:
        return "execution reverted"
    return f"execution reverted: {_reason(output)}"


def _reason(output: bytes) -> str:
    text = error_text(output)
    if text is not None:
        return text
    if output[:4] == PANIC_SELECTOR and len(output) == 36:
        code = int.from_bytes(output[4:], "big")
        return f"panic: {PANICS.get(code, 'unknown code')} (0x{code:02x})"
    with suppress(UnicodeDecodeError):
        if (text := output.decode()).isprintable():
            return text
    if len(output) < 4:
        return "0x" + output.hex()
    return f"custom error 0x{output[:4].hex()}" + (f": {output[4:].hex()}" if output[4:] else "")


def rejected(error: Rejected) -> RpcError:
    words = _REJECTED.get(error.reason, error.reason.value)
    code = SERVER_ERROR if error.reason in _OF_GAS else TRANSACTION_REJECTED
    return RpcError(code, f"{words} ({error.detail})" if error.detail else words)


def translated(error: Exception) -> RpcError:
    """The error that a client gets for one of ours."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, Rejected):
        return rejected(error)
    if isinstance(error, ExecutionFailed):
        return failed(error.result)
    if isinstance(error, NotPooled):
        return RpcError(TRANSACTION_REJECTED, str(error))
    if isinstance(error, BadValue):
        return invalid(str(error))
    if isinstance(error, EngineLimit | SourceError | PartialState | InvalidBlock):
        return RpcError(SERVER_ERROR, str(error))
    return RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
