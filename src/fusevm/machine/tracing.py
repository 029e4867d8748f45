"""Tracing calls and transactions: geth's tracers, access lists, stack traces. Changes of traced calls are discarded.

What does the work is imported when it is first asked for: most programs trace nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.machine.messages import DEFAULT_GAS
from fusevm.machine.overrides import Overrides, Overriding
from fusevm.values import AccessListLike, AddressLike, BytesLike, Number

if TYPE_CHECKING:
    from fusevm.tracing.sources.contracts import Sources
    from fusevm.tracing.stack_trace import StackTrace


class Tracing(Overriding):
    """Runs calls and transactions to say what they do."""

    def trace_call(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        access_list: AccessListLike | None = None,
        overrides: Overrides | None = None,
        block_overrides: Mapping[str, Any] | None = None,
        tracer: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What geth's debug_traceCall answers; nothing is kept.

        As there, the call is an unsigned transaction: intrinsic gas is counted. Without `to` it creates.
        Tracers are `callTracer`, `flatCallTracer` (which answers a list), `prestateTracer`, `4byteTracer`, `noopTracer`
        and `muxTracer`; without a name, struct logs. The overrides are those of `simulate`.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x6007600055")  # storage[0] = 7
        >>> trace = evm.trace_call("0x" + "c0" * 20, gas=100_000, tracer="callTracer")
        >>> trace["type"], trace["gas"], trace["gasUsed"]
        ('CALL', '0x186a0', '0xa862')
        """
        from fusevm.tracing.tracers import call_block, call_transaction, traced, tracer_named

        with self.overridden(overrides, block_overrides):
            tx = call_transaction(self, to, data, value, caller, gas, gas_price, access_list)
            block = call_block(tx, self.block)
            return traced(self, tx, tracer_named(tracer, config), lambda tx: self._process(tx, unchecked_in=block))

    def trace_transaction(
        self,
        sender: AddressLike,
        to: AddressLike | None = None,
        data: BytesLike = b"",
        *,
        tracer: str | None = None,
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """What geth's debug_traceTransaction would answer of a transaction; it takes the fields of `transact`.

        Its changes are discarded. Raises `Rejected` if it is invalid.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_balance("0x" + "a1" * 20, 10)
        >>> diff = {"diffMode": True}
        >>> trace = evm.trace_transaction(
        ...     "0x" + "a1" * 20, "0x" + "b2" * 20, value=3, tracer="prestateTracer", config=diff
        ... )
        >>> trace["post"]["0x" + "a1" * 20], trace["post"]["0x" + "b2" * 20]
        ({'balance': '0x7', 'nonce': 1}, {'balance': '0x3'})
        """
        from fusevm.tracing.tracers import traced, tracer_named

        tx = self.read_transaction(sender, to, data, **fields)
        return traced(self, tx, tracer_named(tracer, config), self._process)

    def create_access_list(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        access_list: AccessListLike | None = None,
    ) -> dict[str, Any]:
        """What geth's eth_createAccessList answers: the accounts and slots that a call uses, and its gas with them.

        >>> from fusevm import EVM
        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x6007600055")  # storage[0] = 7
        >>> evm.create_access_list("0x" + "c0" * 20)["accessList"][0]["storageKeys"]
        ['0x0000000000000000000000000000000000000000000000000000000000000000']
        """
        from fusevm.tracing.access_list import create_access_list
        from fusevm.tracing.tracers import call_block, call_transaction

        tx = call_transaction(self, to, data, value, caller, gas, gas_price, access_list)
        block = call_block(tx, self.block)
        return create_access_list(self, tx, lambda tx: self._process(tx, unchecked_in=block))

    def stack_trace(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        sources: Sources,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
    ) -> StackTrace | None:
        """Why a call fails, with the functions that were running and their lines; None if it succeeds.

        Sources are read from artifacts by `fusevm.tracing.sources.artifacts.read_sources`.

        >>> from fusevm import EVM
        >>> from fusevm.tracing.sources.contracts import Sources
        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x5f5ffd")
        >>> print(evm.stack_trace("0x" + "c0" * 20, sources=Sources()))
        reverted
            at 0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0: () (no source)
        """
        from fusevm.tracing.requests import undone
        from fusevm.tracing.stack_trace import stack_trace
        from fusevm.tracing.tracers import call_block, call_transaction

        tx = call_transaction(self, to, data, value, caller, gas, 0)
        with undone(self.state):
            return stack_trace(self, lambda: self._process(tx, unchecked_in=call_block(tx, self.block)), sources)
