"""trace_*: the flat traces that Parity had, made of callTracer's tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.transaction import intrinsic_gas_of
from fusevm.devchain import PENDING
from fusevm.evm.forks import rules_of
from fusevm.rpc.debug import timed
from fusevm.rpc.errors import invalid
from fusevm.rpc.filters import listed
from fusevm.rpc.values import number_of, which_block
from fusevm.tracing.flat_calls import flat
from fusevm.values import shown, to_address, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

Json = dict[str, Any]
ZERO = "0x" + "00" * 32


def _without_intrinsic(session: Session, tree: Json, signed: SignedTransaction, block: SealedBlock) -> Json:
    """geth counts what a transaction pays before its code runs as the first call's gas; Parity did not."""
    rules = rules_of(session.dev.chain.step_of(block.hash).fork)
    paid = intrinsic_gas_of(signed.transaction(), rules)
    return {**tree, **{name: hex(max(int(tree[name], 16) - paid, 0)) for name in ("gas", "gasUsed")}}


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
        tree = _without_intrinsic(session, each["result"], block.transactions[index], block)
        found += flat(tree, place)
    return found


def trace_transaction(session: Session, transaction: Any) -> Any:
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    if mined is None:
        return []
    return [each for each in _traces(session, mined.block) if each["transactionHash"] == data(wanted)]


def trace_block(session: Session, tag: Any) -> Any:
    which = which_block(session, tag)
    if which == PENDING:
        raise invalid("block: the pending block cannot be traced")
    return _traces(session, session.dev.chain.block(which))


def trace_get(session: Session, transaction: Any, indices: Any) -> Any:
    wanted = [number_of(each, "index", 64) for each in listed(indices)]
    traces = trace_transaction(session, transaction)
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


KINDS = ("trace", "stateDiff")


def replay_block(session: Session, tag: Any, kinds: Any) -> Any:
    """For each transaction of a block its output, its traces and what it changed, as far as they are asked for."""
    which, wanted = which_block(session, tag), listed(kinds)
    if which == PENDING:
        raise invalid("block: the pending block cannot be traced")
    for each in wanted:
        if each not in KINDS:
            raise invalid(f"trace type: {shown(each)} is not one of {', '.join(KINDS)}; debug_traceBlock has steps")
    chain, block = session.dev.chain, session.dev.chain.block(which)
    if not block.transactions:
        return []
    with timed(session):
        trees = chain.trace_block(block.hash, tracer="callTracer") if "trace" in wanted else None
        changes = None
        if "stateDiff" in wanted:
            changes = chain.trace_block(block.hash, tracer="prestateTracer", config={"diffMode": True})
    return [
        {
            "output": data(receipt.output),
            "stateDiff": None if changes is None else state_diff(changes[at]["result"]),
            "trace": [] if trees is None else flat(_without_intrinsic(session, trees[at]["result"], signed, block), {}),
            "vmTrace": None,
            "transactionHash": data(signed.hash),
        }
        for at, (signed, receipt) in enumerate(zip(block.transactions, chain.receipts(block.hash), strict=True))
    ]


def state_diff(changed: Json) -> Json:
    """Of geth's diff, which has the accounts as they were and what is different now."""
    before, after = changed["pre"], changed["post"]
    found: Json = {}
    for where in sorted({*before, *after}):
        old, new = before.get(where), after.get(where)
        was, now = old or {}, new or {}
        kept, left = was.get("storage", {}), now.get("storage", {})
        fields = {
            name: _change(old, new, was.get(name), now.get(name, was.get(name)), empty)
            for name, empty in (("balance", "0x0"), ("code", "0x"), ("nonce", 0))
        }
        slots = {key: _change(old, new, kept.get(key), left.get(key), ZERO) for key in sorted({*kept, *left})}
        found[where] = {**fields, "storage": slots}
    return found


def _change(old: Json | None, new: Json | None, was: Any, now: Any, empty: Any) -> Any:
    """Of one value of an account that came, went, or changed."""
    was, now = (_hex(empty if each is None else each) for each in (was, now))
    if old is None:
        return {"+": now}
    if new is None:
        return {"-": was}
    return "=" if was == now else {"*": {"from": was, "to": now}}


def _hex(value: Any) -> str:
    return hex(value) if isinstance(value, int) else str(value)


METHODS = {
    "trace_replayBlockTransactions": replay_block,
    "trace_transaction": trace_transaction,
    "trace_block": trace_block,
    "trace_get": trace_get,
    "trace_filter": trace_filter,
}
