"""Logs and filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fusevm.chain.receipts import bloom_bits
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import Log
from fusevm.devchain import PENDING, Mined
from fusevm.rpc.encoding import Json, hex_data, logs_json
from fusevm.rpc.errors import INVALID_PARAMS, RpcError
from fusevm.rpc.session import Filter, Session, parameters
from fusevm.values import to_address, to_hash


@dataclass(frozen=True)
class Criteria:
    """Which logs: by block, address and topics, each place of which may have alternatives."""

    first: Any
    last: Any
    addresses: frozenset[bytes]  # none: any
    topics: tuple[frozenset[int] | None, ...]

    def matches(self, log: Log) -> bool:
        if self.addresses and log.address not in self.addresses:
            return False
        if len(self.topics) > len(log.topics):
            return False
        return all(wanted is None or found in wanted for wanted, found in zip(self.topics, log.topics, strict=False))

    def may_be_in(self, bloom: bytes) -> bool:
        """Whether a block with this bloom can have such a log."""
        bits = int.from_bytes(bloom, "big")
        groups = [[bloom_bits(topic.to_bytes(32, "big")) for topic in wanted] for wanted in self.topics if wanted]
        if self.addresses:
            groups.append([bloom_bits(address) for address in self.addresses])
        return all(any(each & bits == each for each in group) for group in groups)


def criteria_of(session: Session, fields: Any) -> Criteria:
    if not isinstance(fields, Mapping):
        raise RpcError(INVALID_PARAMS, f"filter: expected an object, got {type(fields).__name__}")
    if fields.get("blockHash") is not None:
        if fields.get("fromBlock") is not None or fields.get("toBlock") is not None:
            raise RpcError(INVALID_PARAMS, "filter: give blockHash, or fromBlock and toBlock")
        first: Any = session.which(fields["blockHash"])
        last: Any = first
    else:
        first, last = fields.get("fromBlock"), fields.get("toBlock")
    given = fields.get("address")
    listed = [] if given is None else given if isinstance(given, list) else [given]
    topics = tuple(_alternatives(each) for each in fields.get("topics") or ())
    return Criteria(first, last, frozenset(to_address(each, "address") for each in listed), topics)


def _alternatives(topic: Any) -> frozenset[int] | None:
    if topic is None:
        return None
    listed = topic if isinstance(topic, list) else [topic]
    if any(each is None for each in listed):
        return None
    return frozenset(int.from_bytes(to_hash(each, "topic"), "big") for each in listed) or None


def found_logs(session: Session, criteria: Criteria, first: int, last: int) -> Iterator[Json]:
    for number in range(first, last + 1):
        yield from logs_of(session, session.dev.chain.block(number), criteria)


def logs_of(session: Session, block: SealedBlock, criteria: Criteria) -> Iterator[Json]:
    if not criteria.may_be_in(block.header.bloom):
        return
    receipts = session.dev.chain.receipts(block.hash)
    for index, signed in enumerate(block.transactions):
        if not receipts[index].logs:
            continue
        for log, body in zip(receipts[index].logs, logs_json(Mined(signed, block, index, receipts)), strict=True):
            if criteria.matches(log):
                yield body


def get_logs(session: Session, given: list[Any]) -> list[Json]:
    (fields,) = parameters(given, 1, 1)
    criteria = criteria_of(session, fields)
    if isinstance(criteria.first, bytes):
        return list(logs_of(session, session.dev.chain.block(criteria.first), criteria))
    return list(found_logs(session, criteria, *_range(session, criteria)))


def _range(session: Session, criteria: Criteria) -> tuple[int, int]:
    first, last = _number(session, criteria.first), _number(session, criteria.last)
    if first > last:
        raise RpcError(INVALID_PARAMS, f"filter: fromBlock {first} is after toBlock {last}")
    return first, min(last, session.dev.head.number)


def _number(session: Session, tag: Any) -> int:
    if isinstance(tag, str) and tag.startswith("0x") and len(tag) < 20:
        return int(tag, 16)
    which = session.which(tag)
    return session.dev.head.number if which == PENDING or not isinstance(which, int) else which


# -- filters


def new_filter(session: Session, given: list[Any]) -> str:
    (fields,) = parameters(given, 1, 1)
    return hex(session.add_filter("logs", criteria_of(session, fields)))


def new_block_filter(session: Session, given: list[Any]) -> str:
    return hex(session.add_filter("blocks"))


def new_transaction_filter(session: Session, given: list[Any]) -> str:
    return hex(session.add_filter("transactions"))


def uninstall_filter(session: Session, given: list[Any]) -> bool:
    (number,) = parameters(given, 1, 1)
    try:
        session.filter(number)
    except RpcError:
        return False
    return session.filters.pop(int(number, 16) if isinstance(number, str) else number, None) is not None


def filter_changes(session: Session, given: list[Any]) -> list[Any]:
    (number,) = parameters(given, 1, 1)
    found, head = session.filter(number), session.dev.head.number
    first, found.seen = found.seen + 1, head
    if found.kind == "blocks":
        return [hex_data(session.dev.chain.block(each).hash) for each in range(first, head + 1)]
    if found.kind == "transactions":
        told, found.pending = found.pending, []
        return [hex_data(each) for each in told]
    return _log_changes(session, found, first, head)


def _log_changes(session: Session, found: Filter, first: int, head: int) -> list[Json]:
    criteria: Criteria = found.criteria
    if criteria.first is not None and criteria.first != "latest":
        first = max(first, _number(session, criteria.first))
    last = head
    if criteria.last not in (None, "latest", PENDING):
        last = min(head, _number(session, criteria.last))
    return list(found_logs(session, criteria, first, last))


def filter_logs(session: Session, given: list[Any]) -> list[Json]:
    """All logs that fit, whenever they came."""
    (number,) = parameters(given, 1, 1)
    found = session.filter(number)
    if found.kind != "logs":
        raise RpcError(INVALID_PARAMS, f"filter {number}: is not of logs")
    return list(found_logs(session, found.criteria, *_range(session, found.criteria)))
