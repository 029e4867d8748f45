"""How many calls ended, one record for each, as native code writes them and Python reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable

from fusevm.chain.column import Column
from fusevm.chain.outcome import Status
from fusevm.chain.result import Result
from fusevm.chain.transaction import intrinsic_gas
from fusevm.evm.forks import Rules

STATUSES = (Status.SUCCESS, Status.REVERT, Status.HALT)
FAILED = 3  # in the column of statuses: an exception, see `Batch.errors`
RECORD = struct.Struct("<5Q")  # status, gas used, gas refunded, where the output and the logs end
STATUS, GAS_USED, GAS_REFUNDED, OUTPUT_END, LOG_END = range(5)
COLUMNS = 5
_NUMBERS = {status: number for number, status in enumerate(STATUSES)}


class CallFailed(RuntimeError):
    """One of many calls ended in an exception; `number` says which.

    >>> from fusevm import EVM
    >>> evm = EVM(timeout=0.05)
    >>> evm.set_code("0x" + "c0" * 20, "0x5b5f56")  # an endless loop
    >>> try:
    ...     evm.simulate_many([b""], "0x" + "c0" * 20, gas=10**15)
    ... except CallFailed as error:
    ...     error.number
    0
    """

    def __init__(self, number: int, error: str) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error

    def __str__(self) -> str:
        return f"call {self.number}: {self.error}"


class Outcomes:
    """The outcomes of many calls, written one after another: by native code into `records`, or from results."""

    def __init__(
        self, count: int, outputs: Column, logs: Column, reads: bytearray, records: memoryview | None = None
    ) -> None:
        self.records = bytearray(count * RECORD.size) if records is None else records
        self.outputs = outputs  # of all calls, as the logs
        self.logs = logs
        self.reads = reads  # words, of each call as many
        self.done = 0  # calls
        self.odd: dict[int, Result] = {}  # those that are more than a record says
        self.errors: dict[int, CallFailed] = {}

    def add(self, result: Result) -> None:
        """How the next call ended."""
        if result.logs or result.failure is not None or result.address is not None:
            self.odd[self.done] = result
        self.add_ended(_NUMBERS[result.status], result.gas_used, result.gas_refunded, result.output)

    def add_ended(self, status: int, used: int, refunded: int, output: bytes, logs: bytes = b"") -> None:
        self.outputs.add(output)
        self.logs.add(logs)
        ends = len(self.outputs), len(self.logs)
        RECORD.pack_into(self.records, self.done * RECORD.size, status, used, refunded, *ends)
        self.done += 1

    def add_error(self, error: CallFailed) -> None:
        self.errors[self.done] = error
        self.add_ended(FAILED, 0, 0, b"")

    def cap_refunds(self, first: int, last: int, rules: Rules, data_of: Callable[[int], bytes]) -> None:
        """Native code writes what was counted; a result says what a transaction would be paid back."""
        numbers = memoryview(self.records).cast("Q")
        for number in range(first, last):
            place = number * COLUMNS + GAS_REFUNDED
            refund = numbers[place]
            if refund:
                cost = numbers[place - 1] + intrinsic_gas(rules, data_of(number))
                numbers[place] = min(refund, cost // rules.refund_quotient)
