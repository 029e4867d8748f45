"""The result of a call or transaction: status, output, gas, logs, and why it failed if it did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fusevm.chain.addresses import Address
from fusevm.chain.display import html_table, shown_bytes
from fusevm.chain.logs import Log, log_json
from fusevm.chain.outcome import Failure, Status

ERROR_SELECTOR = bytes.fromhex("08c379a0")  # Error(string)
PANIC_SELECTOR = bytes.fromhex("4e487b71")  # Panic(uint256)
PANICS = {
    0x00: "generic/unspecified error",
    0x01: "assertion failed",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "failed to convert value into enum type",
    0x22: "storage byte array incorrectly encoded",
    0x31: "called `.pop()` on an empty array",
    0x32: "array out-of-bounds access",
    0x41: "memory allocation error",
    0x51: "called an invalid internal function",
}


class ExecutionFailed(Exception):
    """Raised by `Result.check()` where a call did not succeed.

    >>> from fusevm import EVM
    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0xfe")
    >>> try:
    ...     evm.call("0x" + "c0" * 20).check()
    ... except ExecutionFailed as error:
    ...     print(error, error.result.status)
    halted: invalid opcode at pc 0 (0xfe) Status.HALT
    """

    def __init__(self, result: Result) -> None:
        super().__init__(result)  # what it is made from: pickle makes it again from `args`
        self.result = result

    def __str__(self) -> str:
        return str(self.result.error)


@dataclass(slots=True, repr=False)
class Result:
    """How a call or transaction ended.

    >>> from fusevm import EVM
    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x602a5f5260205ff3")  # return 42
    >>> evm.call("0x" + "c0" * 20)
    Result(success, gas_used=16, output=0x000000000000000000000000000000000000000000000000000000000000002a)
    """

    status: Status
    output: bytes
    gas_used: int
    gas_refunded: int  # what a transaction would be paid back, after the cap
    logs: Sequence[Log] = field(default_factory=list)
    address: bytes | None = None  # of the contract created
    failure: Failure | None = None  # the reason and the pc of an exceptional halt

    def __reduce__(self) -> tuple[Any, ...]:
        """To pickle and to copy: the logs decoded, so that the tier is not needed to read them."""
        return Result, (
            self.status, self.output, self.gas_used, self.gas_refunded, list(self.logs), self.address, self.failure
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.status.value}, {', '.join(f'{name}={each}' for name, each in self._told())})"
        )

    def _repr_html_(self) -> str:
        return html_table(f"{type(self).__name__}: {self.status.value}", self._told())

    def _told(self) -> list[tuple[str, object]]:
        """What there is to say beside the status."""
        told: list[tuple[str, object]] = [("error", repr(self.error))] if self.error else []
        told.append(("gas_used", self.gas_used))
        if self.gas_refunded:
            told.append(("gas_refunded", self.gas_refunded))
        told += self._told_output()
        if self.address is not None:
            told.append(("address", Address(self.address)))
        return told

    def _told_output(self) -> list[tuple[str, object]]:
        told: list[tuple[str, object]] = [("output", shown_bytes(self.output))] if self.output else []
        return [*told, ("logs", list(self.logs))] if self.logs else told

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.status is Status.SUCCESS

    @property
    def error(self) -> str | None:
        """One line saying what went wrong, or None."""
        if self.status is Status.HALT:
            return f"halted: {self.failure}"
        if self.status is Status.REVERT:
            reason = revert_reason(self.output)
            return f"reverted: {reason}" if reason else "reverted"
        return None

    def check(self) -> Result:
        """This result, or ExecutionFailed."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    def as_json(self) -> dict[str, Any]:
        """All of it in types that JSON has, bytes in hex."""
        return {
            "status": self.status.value,
            "output": "0x" + self.output.hex(),
            "gas_used": self.gas_used,
            "gas_refunded": self.gas_refunded,
            "logs": [log_json(log) for log in self.logs],
            "address": None if self.address is None else "0x" + self.address.hex(),
            "error": self.error,
            "pc": None if self.failure is None else self.failure.pc,
        }


def revert_reason(output: bytes) -> str | None:
    """`Error("…")`, `Panic(0x11: …)`, or the hex of anything else; None for nothing."""
    if not output:
        return None
    selector, body = output[:4], output[4:]
    text = error_text(output)
    if text is not None:
        return f"Error({json.dumps(text, ensure_ascii=False)})"
    if selector == PANIC_SELECTOR and len(body) == 32:
        code = int.from_bytes(body, "big")
        return f"Panic(0x{code:02x}: {PANICS.get(code, 'unknown')})"
    return "0x" + output.hex()


def error_text(output: bytes) -> str | None:
    """The text of `Error(string)`, where that is what a contract reverted with."""
    selector, body = output[:4], output[4:]
    if selector != ERROR_SELECTOR or len(body) < 64:
        return None
    offset = int.from_bytes(body[:32], "big")
    size = int.from_bytes(body[offset : offset + 32], "big")
    text = body[offset + 32 : offset + 32 + size]
    if offset > len(body) - 32 or len(text) != size:
        return None
    return text.decode("utf-8", "replace")
