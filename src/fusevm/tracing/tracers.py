"""Tracers by geth's names, run over calls and transactions of an EVM. What is traced is undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, Protocol

from fusevm.chain.addresses import create_address
from fusevm.chain.checks import Checks, checks_of
from fusevm.chain.environment import Block
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import Transaction, intrinsic_gas_of
from fusevm.evm.forks import Fork, rules_of
from fusevm.tracing import call_tracer, flat_calls, prestate, struct_logs
from fusevm.tracing.four_byte import FourByteTracer, NoopTracer
from fusevm.tracing.mux import MuxTracer
from fusevm.tracing.requests import Json, TracedMachine, Tracer, TraceRequest, TracerMaker
from fusevm.values import (
    AccessListLike,
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    shown,
    to_access_list,
    to_address,
    to_bytes,
    to_number,
)


class _Known(NamedTuple):
    make: TracerMaker
    options: tuple[str, ...] = ()


STRUCT_LOGS = "structLogs"  # our name for geth's default tracer, which has none
FLAT = "flatCallTracer"
MUX = "muxTracer"  # several of these
TRACERS = {
    STRUCT_LOGS: _Known(struct_logs.StructLogTracer.configured, struct_logs.OPTIONS),
    "callTracer": _Known(call_tracer.CallTracer.configured, call_tracer.OPTIONS),
    "prestateTracer": _Known(prestate.PrestateTracer.configured, prestate.OPTIONS),
    FLAT: _Known(flat_calls.FlatCallTracer.configured, flat_calls.OPTIONS),
    "4byteTracer": _Known(FourByteTracer.configured),
    "noopTracer": _Known(NoopTracer.configured),
}


def tracer_named(name: str | None, config: Mapping[str, Any] | None = None) -> Tracer:
    """Without a name, struct logs. Raises BadValue for a tracer or an option that is not known."""
    given = {} if config is None else config
    if not isinstance(given, Mapping):
        raise BadValue(f"config: expected a mapping of options, got {type(given).__name__}")
    if name == MUX:
        return MuxTracer.configured(given, tracer_named)
    known = TRACERS.get(STRUCT_LOGS) if name is None else TRACERS.get(name) if isinstance(name, str) else None
    if known is None:
        listed = f"known: {', '.join(TRACERS)}, {MUX}"
        if isinstance(name, str) and "{" in name:
            raise BadValue(f"tracer: JavaScript is not run here; name one of the tracers that are built in: {listed}")
        raise BadValue(f"tracer: {shown(name)} is not known; {listed}")
    for option in given:
        if option not in known.options:
            listed = f"its options are {', '.join(known.options)}" if known.options else "it has no options"
            raise BadValue(f"config: {name or STRUCT_LOGS} has no option {shown(option)}; {listed}")
    return known.make(given)


class TracedWorld(TracedMachine, Protocol):
    """An `EVM`, as far as tracers use it."""

    @property
    def state(self) -> State: ...

    @property
    def block(self) -> Block: ...

    @property
    def fork(self) -> Fork: ...

    @property
    def checks(self) -> Checks: ...


def traced(world: TracedWorld, tx: Transaction, tracer: Tracer, run: Callable[[Transaction], Result]) -> Json:
    """What a tracer says of a transaction, which is undone."""
    request = TraceRequest.of(tx, target_of(tx, world.state), world.block, world.fork)
    return tracer.run(world, world.state, request, lambda: run(tx))


def target_of(tx: Transaction, state: State) -> bytes:
    return create_address(tx.sender, state.account(tx.sender).nonce) if tx.to is None else tx.to


def call_transaction(
    world: TracedWorld,
    to: AddressLike | None,
    data: BytesLike,
    value: Number,
    caller: AddressLike,
    gas: Number,
    gas_price: Number,
    access_list: AccessListLike | None = None,
) -> Transaction:
    """A call in the form of an unsigned transaction, as geth's debug_traceCall runs it.

    Raises BadValue where it has not the gas for its data, or not the ether that it sends.
    """
    tx = Transaction(
        to_address(caller, "caller"),
        None if to is None else to_address(to, "to"),
        to_bytes(data, "data"),
        to_number(value, "value"),
        to_number(gas, "gas", bits=64),
        gas_price=to_number(gas_price, "gas_price"),
        access_list=None if access_list is None else to_access_list(access_list),
    )
    needed = intrinsic_gas_of(tx, rules_of(world.fork))
    if tx.gas_limit < needed:
        raise BadValue(f"gas: {tx.gas_limit} is under the intrinsic gas, {needed}")
    most, balance = tx.gas_limit * tx.fee_cap() + tx.value, world.state.account(tx.sender).balance
    if balance < most and checks_of(tx.sender, world.checks).balance:
        raise BadValue(f"value: caller 0x{tx.sender.hex()} has {balance} wei, not {most}")
    return tx


def call_block(tx: Transaction, block: Block) -> Block:
    """The block that a call sees: without a base fee where it pays none, as in geth."""
    if tx.fee_cap() or not block.base_fee:
        return block
    free = copy(block)
    free.base_fee = 0
    return free
