"""Whose turn it is on a machine: one thread's at a time, whether it runs a call or reads or writes the state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from fusevm.chain.scope import Ledger
    from fusevm.chain.state import State

Ticket = list[int]  # the thread; a list of its own for every turn, since a thread's own hooks may not run another call
Running = dict[int, Ticket]  # the ticket at 0, or nothing: `setdefault` decides who is first
BUSY = (
    "this EVM is running already; give each thread (and each hook) an EVM of its own, "
    "and call inside a transaction by its own call()"
)


class WrongThread(RuntimeError):
    """An EVM is used by one thread at a time, and not by its own hooks.

    >>> from fusevm import EVM, Hooks
    >>> evm = EVM(hooks=Hooks(on_call=lambda message: evm.call(message.address)))
    >>> try:
    ...     evm.call("0x" + "c0" * 20)
    ... except WrongThread as error:
    ...     print(str(error)[:27])
    this EVM is running already
    """


class HasTurns(Protocol):
    """A machine."""

    _running: Running

    @property
    def _state(self) -> State: ...


P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
M = TypeVar("M", bound=HasTurns)
Occupied = Callable[[Running], None]  # fails where the turn of another does not allow one within it


def refuse_others(running: Running) -> None:
    """Fails while another thread has its turn. A call's hooks, and the body of a transaction, may read and write."""
    ticket = running.get(0)
    if ticket is not None and ticket[0] != get_ident():
        raise WrongThread(BUSY)


def refuse(running: Running) -> None:
    """Fails while anyone has a turn, the same thread included."""
    raise WrongThread(BUSY)


def alone(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """What reads or writes the state of a machine, as a turn of its own: no call of another thread begins in the middle
    of it, which would undo with its own changes what was written here."""
    return _in_turn(method, refuse_others)


def idle(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """As `alone`, and not within a call or transaction of the same thread either."""
    return _in_turn(method, refuse)


def _in_turn(method: Callable[Concatenate[M, P], T], occupied: Occupied) -> Callable[Concatenate[M, P], T]:
    @wraps(method)
    def guarded(self: M, /, *arguments: P.args, **named: P.kwargs) -> T:
        run = partial(method, **named) if named else method
        return in_turn(self, occupied, run, self, *arguments)

    return guarded


def in_turn(machine: HasTurns, occupied: Occupied, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
    """Runs a function as a turn of its own, or within the one that `occupied` allows it to share.

    Ctrl-C may come anywhere, and must not leave the machine occupied, nor its state in the hands of a tier.
    """
    running, ticket, state = machine._running, [get_ident()], machine._state
    ledger = state.ledger  # another machine may be running on the same state
    try:
        try:
            own = running.setdefault(0, ticket) is ticket
            if not own:
                occupied(running)
            found = function(*arguments)
            if own:
                running.clear()
            return found
        finally:
            if running:
                leave(running, ticket, state, ledger)
    finally:
        if running:
            leave(running, ticket, state, ledger)  # again: Ctrl-C may have come in the middle of the first


def leave(running: Running, ticket: Ticket, state: State, ledger: Ledger | None) -> None:
    """Ends a turn, where it has not ended; what a tier has begun on the state since then never was. `ledger` is the
    one that the state had before."""
    if running.get(0) is ticket:
        if state.ledger is not None and state.ledger is not ledger:
            state.ledger.end(state)
        running.clear()
