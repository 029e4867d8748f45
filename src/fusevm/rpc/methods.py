"""The table of all methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fusevm.rpc import (
    accounts,
    blobs,
    blocks,
    calls,
    debug,
    describe,
    editing,
    fees,
    logs,
    mining,
    network,
    otterscan,
    parity,
    pool,
    simulate,
    state,
    transactions,
)

MAX_PARAMETERS = 16


class RpcMethod(NamedTuple):
    """A function of the session and of the request's parameters, and how many there may be."""

    function: Callable[..., Any]
    least: int
    most: int


def _method(function: Callable[..., Any]) -> RpcMethod:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return RpcMethod(function, 0, MAX_PARAMETERS)
    return RpcMethod(function, sum(each.default is each.empty for each in parameters), len(parameters))


_PARTS = (
    network,
    accounts,
    blocks,
    transactions,
    pool,
    state,
    calls,
    simulate,
    fees,
    logs,
    debug,
    parity,
    editing,
    mining,
    describe,
    blobs,
    otterscan,
)
METHODS: Mapping[str, RpcMethod] = {
    name: _method(function) for part in _PARTS for name, function in sorted(part.METHODS.items())
}
