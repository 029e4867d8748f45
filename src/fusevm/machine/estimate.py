"""How much gas a transaction needs: the least limit with which it succeeds, found as geth finds it."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.result import ExecutionFailed, Result
from fusevm.evm.forks import Rules

STARVED = (RejectReason.INTRINSIC_GAS_TOO_LOW, RejectReason.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST)


class EstimateFailed(ExecutionFailed):
    """The transaction fails with all the gas it may have; `result` tells why, with the data of a revert.

    >>> from fusevm import EVM
    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x5f5ffd")  # revert
    >>> try:
    ...     evm.estimate_gas("0x" + "c0" * 20)
    ... except EstimateFailed as error:
    ...     error.result.status.value
    'revert'
    """

    def __init__(self, result: Result, limit: int) -> None:
        super().__init__(result)
        self.args = (result, limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"no estimate: {self.result.error} with the most gas it may have, {self.limit}"


Attempt = Callable[[int], Result]  # of a gas limit; its changes are discarded


def least_gas(attempt: Attempt, rules: Rules, most: int, error_ratio: float) -> int:
    """Between what the transaction uses and the most it may have, by binary search.

    A run that is not short of gas bounds it from below. Most need just what they use before refunds. Else the first
    guess adds the stipend of a call, and the 64th that a call leaves to its caller (EIP-150).
    """
    first = attempt(most)
    if not first.ok:
        raise EstimateFailed(first, most)
    low, high, spent = first.gas_used - 1, most, first.gas_used + first.gas_refunded
    for guess in (spent, spent - 1, (spent + rules.call_stipend) * 64 // 63):
        if low < guess < high:
            low, high = (low, guess) if _succeeds(attempt, guess) else (guess, high)
    while low + 1 < high:
        if error_ratio and (high - low) / high < error_ratio:
            break
        middle = min((low + high) // 2, 2 * low)
        low, high = (low, middle) if _succeeds(attempt, middle) else (middle, high)
    return high


def _succeeds(attempt: Attempt, gas: int) -> bool:
    try:
        return attempt(gas).ok
    except Rejected as error:
        if error.reason in STARVED:
            return False
        raise
