"""fusevm's refusals as the exceptions and texts that py-evm has: frameworks match them by pattern."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rlp
from eth_tester.exceptions import TransactionFailed
from eth_utils import ValidationError

from fusevm.chain.outcome import Status
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.result import Result, error_text
from fusevm.chain.state import State
from fusevm.chain.transaction import Transaction

_ENCODING = ("RLP_", "ADDRESS_TOO_")
_NONCES = (RejectReason.NONCE_MISMATCH_TOO_LOW, RejectReason.NONCE_MISMATCH_TOO_HIGH)


def unknown_type_error() -> type[Exception]:
    """py-evm's exception if py-evm is installed."""
    try:
        from eth.exceptions import UnrecognizedTransactionType
    except ImportError:
        return ValidationError  # type: ignore[no-any-return]
    return UnrecognizedTransactionType  # type: ignore[no-any-return]


@contextmanager
def translated(tx: Transaction | None = None, state: State | None = None, expected_nonce: int = 0) -> Iterator[None]:
    """Raises what py-evm would in place of `Rejected`."""
    try:
        yield
    except Rejected as error:
        raise _translation(error, tx, state, expected_nonce) from error


def _translation(error: Rejected, tx: Transaction | None, state: State | None, expected: int) -> Exception:
    if error.reason is RejectReason.TYPE_NOT_SUPPORTED:
        return unknown_type_error()(str(error))
    if error.reason.name.startswith(_ENCODING):
        undecodable: Exception = rlp.exceptions.DecodingError(str(error), b"")
        return undecodable
    if tx is None or state is None:
        return _invalid(str(error))
    if error.reason in _NONCES:
        return _invalid(f"Invalid transaction nonce: Expected {expected}, but got {tx.nonce}")
    if error.reason is RejectReason.INSUFFICIENT_ACCOUNT_FUNDS:
        return _invalid(_funds_text(tx, state.account(tx.sender).balance))
    if error.reason is RejectReason.GAS_ALLOWANCE_EXCEEDED:
        return _invalid(f"Transaction exceeds gas limit: using {error.detail}")
    if error.reason is RejectReason.INSUFFICIENT_MAX_FEE_PER_GAS:
        return _invalid(f"Sender's max fee per gas is lower than block's base fee per gas: {error.detail}")
    if error.reason is RejectReason.INTRINSIC_GAS_TOO_LOW:
        return _invalid(f"Insufficient gas: {error.detail}")
    return _invalid(str(error))


def _invalid(text: str) -> Exception:
    error: Exception = ValidationError(text)
    return error


def _funds_text(tx: Transaction, balance: int) -> str:
    gas_cost = tx.gas_limit * tx.fee_cap()
    if balance < gas_cost:
        return f"Sender {tx.sender!r} cannot afford txn gas {gas_cost} with account balance {balance}"
    needed = gas_cost + tx.value
    return f"Sender does not have enough balance to cover transaction value and gas  (has {balance}, needs {needed})"


def check_success(result: Result) -> None:
    """Raises TransactionFailed where a call did not succeed: with the reason, else with the data it reverted with."""
    if result.ok:
        return
    text: Any = str(result.failure)
    if result.status is Status.REVERT:
        reason = error_text(result.output)
        text = str(result.output) if reason is None else reason
    raise TransactionFailed(text)
