"""JSON-RPC 2.0: a body in, a body out; batches, notifications, and what is not a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from fusevm.rpc.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, translated

MAX_IN_BATCH = 1_000


class Passed(Exception):
    """What an `Ask` raises to take the request elsewhere: it is not answered here."""


Ask = Callable[[str, Sequence[Any]], Any]  # a method and its parameters; raises RpcError


def parse(body: bytes | str) -> Any:
    """The JSON of a body. Raises RpcError where it is none."""
    try:
        return json.loads(body if isinstance(body, str) else body.decode())
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from None


def answer(body: bytes | str, ask: Ask) -> Any:
    """What to send back, as a document; None where nothing is to be sent."""
    try:
        return answered(parse(body), ask)
    except RpcError as error:
        return failure(None, error)


def answered(asked: Any, ask: Ask) -> Any:
    if not isinstance(asked, list):
        return one(asked, ask)
    if not asked:
        return failure(None, RpcError(INVALID_REQUEST, "Invalid request: an empty batch"))
    if len(asked) > MAX_IN_BATCH:
        text = f"Invalid request: a batch of {len(asked)}; send at most {MAX_IN_BATCH} at once"
        return failure(None, RpcError(INVALID_REQUEST, text))
    answers = [found for each in asked if (found := one(each, ask)) is not None]
    return answers or None


def one(asked: Any, ask: Ask) -> dict[str, Any] | None:
    """The answer to one request; None to a notification."""
    if not isinstance(asked, dict):
        return failure(None, RpcError(INVALID_REQUEST, "Invalid request: expected an object"))
    number = asked.get("id")
    if not isinstance(number, int | str | float | None) or isinstance(number, bool):
        return failure(None, RpcError(INVALID_REQUEST, "Invalid request: 'id' is neither text nor a number"))
    method, params = asked.get("method"), asked.get("params", [])
    if not isinstance(method, str):
        return failure(number, RpcError(INVALID_REQUEST, "Invalid request: no 'method'"))
    if params is None:
        params = []
    try:
        if not isinstance(params, list):
            raise RpcError(INVALID_PARAMS, f"{method}: 'params' must be a list")
        result = ask(method, params)
    except Passed:
        raise
    except Exception as error:
        return failure(number, translated(error)) if "id" in asked else None
    return {"jsonrpc": "2.0", "id": number, "result": result} if "id" in asked else None


def failure(number: Any, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": error.as_json()}
