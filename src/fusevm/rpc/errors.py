"""Errors as JSON-RPC has them: the codes and texts that clients look at, and the data of a revert."""

from __future__ import annotations

from typing import Any

from fusevm.chain.outcome import Status
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.result import ERROR_SELECTOR, PANIC_SELECTOR, Result, revert_reason

INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602
INTERNAL, SERVER, REVERTED = -32603, -32000, 3

# geth's words: clients and frameworks match them.
_TEXTS: dict[RejectReason, str] = {
    RejectReason.NONCE_MISMATCH_TOO_LOW: "nonce too low",
    RejectReason.NONCE_MISMATCH_TOO_HIGH: "nonce too high",
    RejectReason.INSUFFICIENT_ACCOUNT_FUNDS: "insufficient funds for gas * price + value",
    RejectReason.INTRINSIC_GAS_TOO_LOW: "intrinsic gas too low",
    RejectReason.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST: "intrinsic gas too low: below the calldata floor",
    RejectReason.GAS_ALLOWANCE_EXCEEDED: "exceeds block gas limit",
    RejectReason.GAS_LIMIT_EXCEEDS_MAXIMUM: "transaction gas limit too high",
    RejectReason.INSUFFICIENT_MAX_FEE_PER_GAS: "max fee per gas less than block base fee",
    RejectReason.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS: "max priority fee per gas higher than max fee per gas",
    RejectReason.INITCODE_SIZE_EXCEEDED: "max initcode size exceeded",
    RejectReason.INVALID_CHAINID: "invalid chain id for signer",
}


class RpcError(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


def refused(error: Rejected) -> RpcError:
    """A transaction that may not run."""
    text = _TEXTS.get(error.reason, error.reason.value)
    return RpcError(SERVER, f"{text}: {error.detail}" if error.detail else text)


def failed(result: Result) -> RpcError:
    """A call that did not succeed; of a revert with its data."""
    if result.status is Status.HALT:
        return RpcError(SERVER, str(result.failure))
    data = "0x" + result.output.hex()
    reason = revert_reason(result.output)
    told = reason is not None and result.output[:4] in (ERROR_SELECTOR, PANIC_SELECTOR)
    return RpcError(REVERTED, f"execution reverted: {reason}" if told else "execution reverted", data)


def check_success(result: Result) -> Result:
    if not result.ok:
        raise failed(result)
    return result
