"""A session pinned to one block, on a copy of its state: for long calls in threads of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from fusevm.chain.environment import Block
from fusevm.chain.schedule import Upgrade
from fusevm.chain.state import State
from fusevm.chain.tree import Which
from fusevm.devchain import DevChain
from fusevm.rpc.values import which_block
from fusevm.tracing.requests import undone

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

# Methods that change nothing and run code on the state after one block, which their second parameter names.
CALLS = frozenset({"eth_call", "eth_estimateGas", "eth_createAccessList", "eth_simulateV1", "debug_traceCall"})


class PinnedChain:
    """A `DevChain` as far as calls use it: the state of one block is its own, the rest is looked up."""

    def __init__(self, dev: DevChain, state: State, block: Block, step: Upgrade) -> None:
        self._dev, self._state, self._block, self._step = dev, state, block, step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dev, name)

    @contextmanager
    def at(self, which: Which) -> Iterator[tuple[State, Block, Upgrade]]:
        """The one block, whichever is asked for."""
        with undone(self._state):
            yield self._state, copy(self._block), self._step


def pinned(session: Session, params: list[Any]) -> Session:
    """For one of `CALLS` with these parameters. To be made where no other request runs; it is used anywhere."""
    which = which_block(session, params[1] if len(params) > 1 else None)
    with session.dev.at(which) as (state, block, step):
        held, seen = state.copy(), copy(block)  # the chain's own block serves the next call as well
    twin = copy(session)
    twin.machines, twin.quick_calls = {}, None
    twin.dev = PinnedChain(session.dev, held, seen, step)  # type: ignore[assignment]
    return twin
