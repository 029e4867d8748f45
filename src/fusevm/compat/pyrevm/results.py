"""What pyrevm reports about a call: results, logs, checkpoints; and revm's names for why one failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fusevm.chain import state
from fusevm.chain.outcome import Failure, Status
from fusevm.chain.result import Result
from fusevm.compat.pyrevm.arguments import checksummed
from fusevm.evm.halts import HaltReason
from fusevm.evm.opcodes import BY_NAME
from fusevm.rpc.errors import HALTED

INVALID = 0xFE
KNOWN = frozenset(opcode.byte for opcode in BY_NAME.values())  # to some fork

# revm distinguishes kinds of running out of gas; here all are Basic.
HALTS: dict[HaltReason, str] = {**HALTED, HaltReason.OUT_OF_GAS: "OutOfGas(Basic)"}


class CallFailed(RuntimeError):
    """A call that reverted or halted. pyrevm has only the text; here the data is an attribute too."""

    def __init__(self, text: str, output: bytes, gas_used: int) -> None:
        super().__init__(text)
        self.output = output
        self.gas_used = gas_used


class JournalCheckpoint(NamedTuple):
    """The position of a snapshot: logs and changes before it. Valid for the EVM that gave it."""

    log_i: int
    journal_i: int


class Log:
    """An event."""

    def __init__(self, log: state.Log) -> None:
        self._log = log

    @property
    def address(self) -> str:
        return checksummed(self._log.address)

    @property
    def topics(self) -> list[str]:
        return [f"0x{topic:064x}" for topic in self._log.topics]

    @property
    def data(self) -> tuple[list[bytes], bytes]:
        """The topics and the data."""
        return [topic.to_bytes(32, "big") for topic in self._log.topics], self._log.data


class ExecutionResult:
    """How the last call or deployment ended."""

    def __init__(
        self, status: Status, reason: str, gas_used: int, gas_refunded: int, logs: Sequence[state.Log]
    ) -> None:
        self._status = status
        self._reason = reason
        self._gas_used = gas_used
        self._gas_refunded = gas_refunded
        self._logs = logs

    @property
    def is_success(self) -> bool:
        return self._status is Status.SUCCESS

    @property
    def is_halt(self) -> bool:
        return self._status is Status.HALT

    @property
    def reason(self) -> str:
        return self._reason

    @property
    def gas_used(self) -> int:
        return self._gas_used

    @property
    def gas_refunded(self) -> int:
        return self._gas_refunded

    @property
    def logs(self) -> list[Log]:
        return [Log(log) for log in self._logs]


def execution_result(result: Result, gas_used: int) -> ExecutionResult:
    """`gas_used` has the intrinsic cost in it and the refund taken off."""
    if result.ok:
        reason = "Return" if result.output else "Stop"
        return ExecutionResult(result.status, reason, gas_used, result.gas_refunded, result.logs)
    reason = halt_name(result.failure) if result.status is Status.HALT else "Revert"
    return ExecutionResult(result.status, reason, gas_used, 0, ())


def halt_name(failure: Failure | None) -> str:
    if failure is None:
        return "OutOfGas(Basic)"
    if failure.reason is HaltReason.INVALID_OPCODE and failure.detail.startswith("0x"):
        byte = int(failure.detail, 16)
        if byte == INVALID:
            return "InvalidFEOpcode"
        return "NotActivated" if byte in KNOWN else HALTS[failure.reason]
    return HALTS[failure.reason]


def failure_text(result: ExecutionResult, output: bytes) -> str:
    """As Rust prints the result; programs read the output from it."""
    if result.is_halt:
        return f"Halt {{ reason: {result.reason}, gas_used: {result.gas_used} }}"
    return f"Revert {{ gas_used: {result.gas_used}, output: 0x{output.hex()} }}"


def debug_text(accounts: Any) -> str:
    """A state for people: what `journal_str` shows."""
    shown = ", ".join(
        f"0x{address.hex()}: {{ balance: {account.balance}, nonce: {account.nonce}, code: {len(account.code)} bytes, "
        f"storage: {account.storage} }}"
        for address, account in accounts
    )
    return f"State {{ {shown} }}"
