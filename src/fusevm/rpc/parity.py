"""trace_*: the flat traces that Parity had, made of callTracer's tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import PENDING
from fusevm.rpc.debug import timed
from fusevm.rpc.errors import invalid
from fusevm.rpc.filters import listed
from fusevm.rpc.values import data, number_of, which_block
from fusevm.values import to_address, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

Json = dict[str, Any]
CREATIONS = ("CREATE", "CREATE2")


def flat(tree: Json, place: Json) -> list[Json]:
    """A call and those below it, each where it stands; without recursion, since calls may be 1,024 deep."""
    found: list[Json] = []
    waiting: list[tuple[Json, list[int]]] = [(tree, [])]
    while waiting:
        frame, address = waiting.pop()
        below = frame.get("calls", [])
        found.append({**_entry(frame), "subtraces": len(below), "traceAddress": address, **place})
        waiting += [(each, [*address, at]) for at, each in reversed(list(enumerate(below)))]
    return found


def _entry(frame: Json) -> Json:
    kind, error = frame["type"], frame.get("error")
    if kind == "SELFDESTRUCT":
        action = {"address": frame["from"], "refundAddress": frame["to"], "balance": frame.get("value", "0x0")}
        return {"type": "suicide", "action": action, "result": None}
    common = {"from": frame["from"], "gas": frame["gas"], "value": frame.get("value", "0x0")}
    entry: Json
    if kind in CREATIONS:
        entry = {"type": "create", "action": {**common, "init": frame["input"], "creationMethod": kind.lower()}}
        result = {"gasUsed": frame["gasUsed"], "code": frame.get("output", "0x"), "address": frame.get("to")}
    else:
        action = {**common, "callType": kind.lower(), "to": frame.get("to"), "input": frame["input"]}
        entry = {"type": "call", "action": action}
        result = {"gasUsed": frame["gasUsed"], "output": frame.get("output", "0x")}
    if error is None:
        entry["result"] = result
    else:
        entry |= {"error": "Reverted" if error == "execution reverted" else error, "result": None}
    return entry


def _traces(session: Session, block: SealedBlock) -> list[Json]:
    if not block.transactions:
        return []
    with timed(session):
        traced = session.dev.chain.trace_block(block.hash, tracer="callTracer")
    found: list[Json] = []
    for index, each in enumerate(traced):
        place = {
            "blockHash": data(block.hash),
            "blockNumber": block.number,
            "transactionHash": each["txHash"],
            "transactionPosition": index,
        }
        found += flat(each["result"], place)
    return found


def trace_transaction(session: Session, transaction: Any) -> Any:
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    if mined is None:
        return None
    return [each for each in _traces(session, mined.block) if each["transactionHash"] == data(wanted)]


def trace_block(session: Session, tag: Any) -> Any:
    which = which_block(session, tag)
    if which == PENDING:
        raise invalid("block: the pending block cannot be traced")
    return _traces(session, session.dev.chain.block(which))


def trace_get(session: Session, transaction: Any, indices: Any) -> Any:
    wanted = [number_of(each, "index", 64) for each in listed(indices)]
    traces = trace_transaction(session, transaction) or []
    return next((each for each in traces if each["traceAddress"] == wanted), None)


def trace_filter(session: Session, form: Any) -> Any:
    if not isinstance(form, dict):
        raise invalid("filter: expected an object")
    bounds = [which_block(session, form.get(name)) for name in ("fromBlock", "toBlock")]
    first, last = (session.dev.head.number if each == PENDING else int(each) for each in bounds)
    senders, targets = (
        {data(to_address(each, name)) for each in listed(form.get(name))} for name in ("fromAddress", "toAddress")
    )
    found = [
        each
        for number in range(max(first, session.dev.chain.genesis.block.number + 1), last + 1)
        for each in _traces(session, session.dev.chain.block(number))
        if (not senders or each["action"].get("from") in senders)
        and (not targets or each["action"].get("to") in targets)
    ]
    after = number_of(form.get("after") or 0, "after", 64)
    count = form.get("count")
    return found[after:] if count is None else found[after : after + number_of(count, "count", 64)]


METHODS = {
    "trace_transaction": trace_transaction,
    "trace_block": trace_block,
    "trace_get": trace_get,
    "trace_filter": trace_filter,
}
