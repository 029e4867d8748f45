"""debug_*: geth's tracers over transactions, blocks and calls; raw blocks and receipts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.forms import data
from fusevm.chain.sealed import SealedBlock
from fusevm.devchain import PENDING
from fusevm.rpc.calls import machine, traced_fields
from fusevm.rpc.errors import RESOURCE_NOT_FOUND, RpcError, invalid
from fusevm.rpc.requests import read_request
from fusevm.rpc.transactions import raw_by_hash
from fusevm.rpc.values import which_block, which_or_none
from fusevm.tracing.tracers import FLAT, MUX, STRUCT_LOGS
from fusevm.values import shown, to_hash

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

_OF_REQUEST = ("tracer", "tracerConfig", "timeout", "reexec", "stateOverrides", "blockOverrides", "txIndex")


def _tracer(options: Any) -> tuple[str | None, Mapping[str, Any] | None]:
    """A tracer and its configuration: geth has the options of struct logs beside, those of others in tracerConfig."""
    given = {} if options is None else options
    if not isinstance(given, Mapping):
        raise invalid(f"trace options: expected an object, got {shown(options)}")
    name = given.get("tracer")
    if name is None or name == STRUCT_LOGS:
        return None, {key: value for key, value in given.items() if key not in _OF_REQUEST and value is not None}
    return name, given.get("tracerConfig")


def trace_transaction(session: Session, transaction: Any, options: Any = None) -> Any:
    tracer, config = _tracer(options)
    wanted = to_hash(transaction, "transaction hash")
    mined = session.dev.find_mined(wanted)
    if mined is None:  # as anvil, whatever the tracer: clients take it for a transaction that did nothing
        return {"failed": False, "gas": 0, "returnValue": "0x", "structLogs": []}
    with timed(session):
        found = session.dev.chain.trace_transaction(wanted, tracer=tracer, config=config, block=mined.block.hash)
    return _placed(found, tracer, mined.block, mined.index)


def trace_block(session: Session, tag: Any, options: Any = None) -> Any:
    tracer, config = _tracer(options)
    which = which_or_none(session, tag)
    if which is None:
        raise RpcError(RESOURCE_NOT_FOUND, f"block not found: {shown(tag)}")
    if which == PENDING:
        raise invalid("block: the pending block cannot be traced")
    with timed(session):
        found = session.dev.chain.trace_block(which, tracer=tracer, config=config)
    block = session.dev.chain.block(which)
    return [{**each, "result": _placed(each["result"], tracer, block, at)} for at, each in enumerate(found)]


def _placed(found: Any, tracer: str | None, block: SealedBlock, index: int) -> Any:
    """Flat traces with the block and the transaction that they are of, as geth has them."""
    if tracer == MUX:
        return {name: _placed(each, name, block, index) for name, each in found.items()}
    if tracer != FLAT:
        return found
    place = {
        "blockHash": data(block.hash),
        "blockNumber": block.number,
        "transactionHash": data(block.transactions[index].hash),
        "transactionPosition": index,
    }
    return [{**each, **place} for each in found]


def trace_call(session: Session, form: Any, tag: Any = None, options: Any = None) -> Any:
    tracer, config = _tracer(options)
    given = options or {}
    fields, which = read_request(form), which_block(session, tag)
    with machine(session, which, given.get("stateOverrides"), given.get("blockOverrides")) as evm:
        traced = traced_fields(evm, fields)
        return evm.trace_call(fields["to"], fields["data"], **traced, tracer=tracer, config=config)


class timed:  # noqa: N801 - used as a function
    """Whatever runs on the chain in the `with` block has the time of one request."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> None:
        self.session.dev.chain.deadline = self.session.deadline()

    def __exit__(self, *error: object) -> None:
        self.session.dev.chain.deadline = None


def raw_block(session: Session, tag: Any) -> str:
    return data(session.dev.chain.block(_settled(session, tag)).encoded)


def raw_header(session: Session, tag: Any) -> str:
    from fusevm.chain.rlp import encode

    return data(encode(session.dev.chain.block(_settled(session, tag)).header.item))


def raw_receipts(session: Session, tag: Any) -> list[str]:
    return [data(each.encoded) for each in session.dev.chain.receipts(_settled(session, tag))]


def _settled(session: Session, tag: Any) -> Any:
    which = which_block(session, tag)
    return session.dev.head.number if which == PENDING else which


def code_by_hash(session: Session, code_hash: Any, tag: Any = None) -> Any:
    from fusevm.evm.keccak import keccak256

    wanted = to_hash(code_hash, "code hash")
    found = (account.code for _, account in session.dev.chain.state.items() if account.code)
    return next((data(code) for code in found if keccak256(code) == wanted), None)


METHODS = {
    "debug_traceTransaction": trace_transaction,
    "debug_traceBlockByNumber": trace_block,
    "debug_traceBlockByHash": trace_block,
    "debug_traceCall": trace_call,
    "debug_getRawBlock": raw_block,
    "debug_getRawHeader": raw_header,
    "debug_getRawReceipts": raw_receipts,
    "debug_getRawTransaction": raw_by_hash,
    "debug_codeByHash": code_by_hash,
}
