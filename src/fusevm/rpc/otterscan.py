"""ots_*: the requests of the explorer Otterscan: blocks by page, calls, and where an address occurs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import Mined, block_form, data, receipt_form, transaction_form
from fusevm.chain.outcome import TimeLimit
from fusevm.chain.sealed import SealedBlock
from fusevm.rpc.blocks import blob_fee
from fusevm.rpc.debug import timed
from fusevm.rpc.errors import invalid
from fusevm.rpc.transactions import by_sender_and_nonce
from fusevm.rpc.values import number_of, which_block, which_or_none
from fusevm.values import to_address, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

Json = dict[str, Any]
API_LEVEL = 8
MAX_ON_PAGE = 1_000
TRANSFER, SELF_DESTRUCT = 0, 1
CREATIONS = {"CREATE": 2, "CREATE2": 3}


def api_level(session: Session) -> int:
    return API_LEVEL


def has_code(session: Session, address: Any, tag: Any = None) -> bool:
    where = to_address(address, "address")
    with session.dev.at(which_block(session, tag)) as (state, _, _):
        return bool(state.account(where).code)


# -- what happened in a transaction


def _frames(tree: Json) -> Iterator[tuple[Json, int]]:
    """A call and those below it, in order, with their depths; without recursion: calls may be 1,024 deep."""
    waiting = [(tree, 0)]
    while waiting:
        frame, depth = waiting.pop()
        yield frame, depth
        waiting += [(each, depth + 1) for each in reversed(frame.get("calls", []))]


def _calls(session: Session, transaction: Any) -> Iterator[tuple[Json, int]]:
    """Of a transaction, with their depths; none where no block has it."""
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    if mined is None:
        return iter(())
    with timed(session):
        return _frames(session.dev.chain.trace_transaction(wanted, tracer="callTracer", block=mined.block.hash))


def internal_operations(session: Session, transaction: Any) -> list[Json]:
    """Ether that moved, contracts that were created or destroyed themselves."""
    found = []
    for frame, _ in _calls(session, transaction):
        kind, value = frame["type"], frame.get("value", "0x0")
        if kind in CREATIONS:
            operation = CREATIONS[kind]
        elif kind == "SELFDESTRUCT":
            operation = SELF_DESTRUCT
        elif kind == "CALL" and int(value, 16):
            operation = TRANSFER
        else:
            continue
        found.append({"type": operation, "from": frame["from"], "to": frame.get("to"), "value": value})
    return found


def trace(session: Session, transaction: Any) -> list[Json]:
    return [
        {
            "type": frame["type"],
            "depth": depth,
            "from": frame["from"],
            "to": frame.get("to"),
            "value": frame.get("value", "0x0"),
            "input": frame.get("input", "0x"),
            "output": frame.get("output", "0x"),
        }
        for frame, depth in _calls(session, transaction)
    ]


def error_of(session: Session, transaction: Any) -> str:
    """What a transaction that failed has returned."""
    mined = session.dev.find_mined(to_hash(transaction, "transaction hash"))
    return "0x" if mined is None or mined.receipt.succeeded else data(mined.receipt.output)


# -- blocks


def _block(session: Session, which: Any) -> SealedBlock | None:
    found = which_or_none(session, hex(which) if isinstance(which, int) else which)
    if found is None:
        return None
    return session.dev.head if found == "pending" else session.dev.chain.block(found)


def block_details(session: Session, which: Any) -> Json | None:
    block = _block(session, which)
    if block is None:
        return None
    receipts = session.dev.chain.receipts(block.hash)
    form = block_form(block, receipts, full=False)
    del form["transactions"]
    form["transactionCount"] = len(block.transactions)
    fees = sum(each.gas_used * each.gas_price for each in receipts)
    none = dict.fromkeys(("blockReward", "uncleReward", "issuance"), "0x0")
    return {"block": form, "issuance": none, "totalFees": hex(fees)}


def block_details_by_hash(session: Session, block_hash: Any) -> Json | None:
    wanted = to_hash(block_hash, "block hash")
    return block_details(session, data(wanted)) if session.dev.chain.knows(wanted) else None


def block_transactions(session: Session, which: Any, page: Any, size: Any) -> Json | None:
    block = _block(session, which)
    if block is None:
        return None
    count, first = _page_size(size), number_of(page, "page", 64)
    receipts = session.dev.chain.receipts(block.hash)
    form = block_form(block, receipts, full=True)
    chosen = slice(first * count, (first + 1) * count)
    form["transactionCount"] = len(block.transactions)
    form["transactions"] = form["transactions"][chosen]
    listed = [Mined(signed, block, at, receipts) for at, signed in enumerate(block.transactions)][chosen]
    return {"fullblock": form, "receipts": [_receipt(session, each) for each in listed]}


def _page_size(size: Any) -> int:
    found = number_of(size, "page size", 64)
    if not 0 < found <= MAX_ON_PAGE:
        raise invalid(f"page size: {found} is not from 1 to {MAX_ON_PAGE}")
    return found


def _receipt(session: Session, mined: Mined) -> Json:
    form = receipt_form(mined, blob_fee(session, mined.block))
    return {**form, "timestamp": hex(mined.block.header.timestamp)}


# -- where an address occurs


def search_before(session: Session, address: Any, block: Any, size: Any) -> Json:
    """The newest transactions before a block, or before the end, that have to do with an address."""
    last = number_of(block, "block", 64)
    newest = session.dev.head.number if last == 0 else min(last - 1, session.dev.head.number)
    numbers = range(newest, session.dev.chain.genesis.block.number, -1)
    found, all_seen = _searched(session, address, numbers, _page_size(size))
    return _shown(session, found, first_page=last == 0, last_page=all_seen)


def search_after(session: Session, address: Any, block: Any, size: Any) -> Json:
    """The oldest ones after a block, or from the start; shown the newest first."""
    first = number_of(block, "block", 64)
    numbers = range(max(first, session.dev.chain.genesis.block.number) + 1, session.dev.head.number + 1)
    found, all_seen = _searched(session, address, numbers, _page_size(size))
    return _shown(session, found[::-1], first_page=all_seen, last_page=first == 0)


def _searched(session: Session, address: Any, numbers: Iterable[int], most: int) -> tuple[list[Mined], bool]:
    """Whole blocks, until there are enough; and whether no more can come."""
    where, chain, deadline = data(to_address(address, "address")), session.dev.chain, session.deadline()
    found: list[Mined] = []
    for number in numbers:
        if len(found) >= most:
            return found, False
        if deadline is not None and time.monotonic() > deadline:
            raise TimeLimit("the time limit is reached")
        if not chain.senders(number):
            continue
        with timed(session):
            traced = chain.trace_block(number, tracer="callTracer")
        named = [at for at, each in enumerate(traced) if _names(each["result"], where)]
        if named:
            block, receipts = chain.block(number), chain.receipts(number)
            listed = [Mined(block.transactions[at], block, at, receipts) for at in named]
            found += listed[::-1] if isinstance(numbers, range) and numbers.step < 0 else listed
    return found, True


def _names(tree: Json, where: str) -> bool:
    return any(where in (frame["from"], frame.get("to")) for frame, _ in _frames(tree))


def _shown(session: Session, found: list[Mined], *, first_page: bool, last_page: bool) -> Json:
    return {
        "txs": [transaction_form(each.signed, each) for each in found],
        "receipts": [_receipt(session, each) for each in found],
        "firstPage": first_page,
        "lastPage": last_page,
    }


def by_sender(session: Session, sender: Any, nonce: Any) -> Any:
    found = by_sender_and_nonce(session, sender, nonce)
    return None if found is None else found["hash"]


def creator(session: Session, address: Any) -> Json | None:
    """Who created a contract, and in which transaction; None if there is none, or no transaction did."""
    where, chain = to_address(address, "address"), session.dev.chain
    if not chain.state.account(where).code:
        return None
    low, high = chain.genesis.block.number, session.dev.head.number  # the code came after the one, not after the other
    while low + 1 < high:
        middle = (low + high) // 2
        with chain.at(middle) as state:
            low, high = (low, middle) if state.account(where).code else (middle, high)
    if high == chain.genesis.block.number or not chain.senders(high):
        return None
    with timed(session):
        traced = chain.trace_block(high, tracer="callTracer")
    for each in traced:
        for frame, _ in _frames(each["result"]):
            if frame["type"] in CREATIONS and frame.get("to") == data(where):
                return {"hash": each["txHash"], "creator": frame["from"]}
    return None


METHODS = {
    "ots_getApiLevel": api_level,
    "ots_hasCode": has_code,
    "ots_getInternalOperations": internal_operations,
    "ots_traceTransaction": trace,
    "ots_getTransactionError": error_of,
    "ots_getBlockDetails": block_details,
    "ots_getBlockDetailsByHash": block_details_by_hash,
    "ots_getBlockTransactions": block_transactions,
    "ots_searchTransactionsBefore": search_before,
    "ots_searchTransactionsAfter": search_after,
    "ots_getTransactionBySenderAndNonce": by_sender,
    "ots_getContractCreator": creator,
}
