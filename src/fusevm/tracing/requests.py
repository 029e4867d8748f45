"""What is traced: a transaction, or a message on its own; and running it so that its changes are discarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from fusevm.chain.authorization import signer_of
from fusevm.chain.environment import Block
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork
from fusevm.reference.hooks import Hooks
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.session import Recorded, RecordingSession, recording_on
from fusevm.values import BadValue

Json = dict[str, Any]


class TraceRequest(NamedTuple):
    """The outermost call: known before it runs, and also where it does not begin."""

    caller: bytes
    to: bytes  # of a creation, the new contract's address
    data: bytes
    value: int
    gas: int  # the limit of a transaction
    creates: bool
    coinbase: bytes
    fork: Fork
    authorities: tuple[bytes, ...] = ()
    first_log: int = 0  # how many logs the block has before it

    @classmethod
    def of(cls, tx: Transaction, to: bytes, block: Block, fork: Fork, first_log: int = 0) -> TraceRequest:
        authorities = (signer_of(each) for each in tx.authorizations or ())
        known = tuple(authority for authority in authorities if authority is not None)
        gas, coinbase = tx.gas_limit, block.coinbase
        return cls(tx.sender, to, tx.data, tx.value, gas, tx.creates, coinbase, fork, known, first_log)


class TracedMachine(Recorded, Protocol):
    """What hooks and recordings are put on: an `EVM`, or a `Replay` of a block."""

    session: RecordingSession | None
    hooks: Hooks | None


Run = Callable[[], Result]


class Tracer(Protocol):
    """Watches one request, on a machine, and says what it saw."""

    def run(self, machine: TracedMachine, state: State, request: TraceRequest, run: Run) -> Json: ...


TracerMaker = Callable[[Mapping[str, Any]], Tracer]


@contextmanager
def undone(state: State) -> Iterator[None]:
    """Whatever is done to a state in the `with` block is undone at its end."""
    opened = state.open_marks
    mark = state.mark()
    state.open_mark(mark)
    try:
        yield
    finally:
        state.close_mark(mark, keep=opened)


@contextmanager
def hooked(machine: TracedMachine, hooks: Hooks | None) -> Iterator[None]:
    """These hooks, in place of those that the machine has."""
    if machine.session is not None:
        raise BadValue("trace: this EVM is being recorded; leave the `with` block of `record` first")
    before = machine.hooks
    machine.hooks = hooks
    try:
        yield
    finally:
        machine.hooks = before


@contextmanager
def recorded(machine: TracedMachine, wanted: Wanted) -> Iterator[Recording]:
    """A recording, without the hooks that the machine has: what is traced does not happen."""
    with hooked(machine, None), recording_on(machine, wanted) as recording:
        yield recording


def flag(config: Mapping[str, Any], name: str) -> bool:
    value = config.get(name, False)
    if not isinstance(value, bool):
        raise BadValue(f"{name}: expected true or false, got {type(value).__name__}")
    return value
