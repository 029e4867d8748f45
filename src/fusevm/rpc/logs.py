"""eth_getLogs and filters that are polled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.devchain import PENDING
from fusevm.rpc.errors import SERVER_ERROR, NoSuchBlock, RpcError, invalid
from fusevm.rpc.filters import Filter, LogQuery
from fusevm.rpc.values import which_block
from fusevm.values import to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session


def get_logs(session: Session, form: Any) -> list[Any]:
    query = _query(form)
    chain = session.dev.chain
    if form.get("blockHash") is not None:
        wanted = to_hash(form["blockHash"], "blockHash")
        if not chain.knows(wanted):
            raise RpcError(SERVER_ERROR, "unknown block")
        return list(query.found_in(chain.block(wanted), chain.receipts(wanted)))
    first, last = _bound(session, form.get("fromBlock")), _bound(session, form.get("toBlock"))
    found: list[Any] = []
    if session.upstream is not None and first <= session.upstream.number:
        until = hex(min(last, session.upstream.number))
        found += session.upstream.ask("eth_getLogs", {**form, "fromBlock": hex(first), "toBlock": until})
    for number in range(max(first, chain.genesis.block.number), min(last, session.dev.head.number) + 1):
        if query.may_be_in(chain.header(number).bloom):
            found.extend(query.found_in(chain.block(number), chain.receipts(number)))
    return found


def _query(form: Any) -> LogQuery:
    """Raises for a form that names its blocks in two ways, or a range that ends before it begins, as geth does."""
    query = LogQuery.read(form)
    first, last = query.first, query.last
    if form.get("blockHash") is not None and (form.get("fromBlock") is not None or form.get("toBlock") is not None):
        raise invalid("filter: give blockHash, or fromBlock and toBlock, not both")
    if first is not None and last is not None and first > last:
        raise invalid(f"invalid block range params: {first} to {last}")
    return query


def _bound(session: Session, tag: Any) -> int:
    try:
        which = which_block(session, tag)
    except NoSuchBlock:
        return session.dev.head.number + 1
    if which == PENDING:
        return session.dev.head.number
    return session.dev.chain.block(which).number if isinstance(which, bytes) else int(which)


def new_filter(session: Session, form: Any) -> str:
    return session.filters.install(Filter("logs", _query(form), form))


def new_block_filter(session: Session) -> str:
    return session.filters.install(Filter("blocks"))


def new_pending_filter(session: Session, full: Any = False) -> str:
    return session.filters.install(Filter("transactions"))


def _filter(session: Session, number: Any) -> Filter:
    found = session.filters.by_id.get(number) if isinstance(number, str) else None
    if found is None:
        raise RpcError(SERVER_ERROR, "filter not found")
    return found


def changes(session: Session, number: Any) -> list[Any]:
    found = _filter(session, number)
    fresh, found.fresh = found.fresh, []
    return fresh


def filter_logs(session: Session, number: Any) -> list[Any]:
    found = _filter(session, number)
    if found.kind != "logs":
        raise RpcError(SERVER_ERROR, "filter not found: it is not one of logs")
    return get_logs(session, found.form)


def uninstall(session: Session, number: Any) -> bool:
    return session.filters.by_id.pop(number, None) is not None if isinstance(number, str) else False


METHODS = {
    "eth_getLogs": get_logs,
    "eth_newFilter": new_filter,
    "eth_newBlockFilter": new_block_filter,
    "eth_newPendingTransactionFilter": new_pending_filter,
    "eth_getFilterChanges": changes,
    "eth_getFilterLogs": filter_logs,
    "eth_uninstallFilter": uninstall,
}
