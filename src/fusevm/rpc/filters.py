"""Logs by address and topics, and filters that remember what is new since they were last asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from fusevm.chain.forms import Json, data, log_form, log_place
from fusevm.chain.receipts import BlockReceipt, bloom_bits
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.state import Log
from fusevm.rpc.errors import invalid
from fusevm.rpc.values import HASH_TEXT
from fusevm.values import shown, to_address, to_hash, to_number

MAX_TOPICS = 4
MAX_KEPT = 100_000  # changes that a filter keeps for a client that does not ask


@dataclass(frozen=True)
class LogQuery:
    """Which logs: from any of some addresses, with any of some topics at each place. Nothing given: all.

    `first` and `last` are the blocks that a range names by number; a filter that waits keeps to them.
    """

    addresses: frozenset[bytes] = frozenset()
    topics: tuple[frozenset[int], ...] = ()
    first: int | None = None
    last: int | None = None

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> LogQuery:
        if not isinstance(form, Mapping):
            raise invalid(f"filter: expected an object, got {shown(form)}")
        topics = form.get("topics") or []
        if not isinstance(topics, list) or len(topics) > MAX_TOPICS:
            raise invalid(f"filter: 'topics' is not a list of at most {MAX_TOPICS}")
        addresses = frozenset(to_address(each, "filter address") for each in listed(form.get("address")))
        wanted = tuple(_topics(each) for each in topics)
        return cls(addresses, wanted, _number(form.get("fromBlock")), _number(form.get("toBlock")))

    def spans(self, number: int) -> bool:
        return (self.first is None or self.first <= number) and (self.last is None or number <= self.last)

    def matches(self, log: Log) -> bool:
        if self.addresses and log.address not in self.addresses:
            return False
        if len(self.topics) > len(log.topics):
            return False
        return all(not wanted or found in wanted for wanted, found in zip(self.topics, log.topics, strict=False))

    def may_be_in(self, bloom: bytes) -> bool:
        """False where a block's bloom rules it out."""
        bits = int.from_bytes(bloom, "big")
        if not bits:
            return False
        return all(not masks or any(bits & mask == mask for mask in masks) for masks in self._masks)

    @cached_property
    def _masks(self) -> list[list[int]]:
        """For each thing that is asked for, the bits of each value that would do."""
        wanted = [self.addresses, *([topic.to_bytes(32, "big") for topic in each] for each in self.topics)]
        return [[bloom_bits(entry) for entry in entries] for entries in wanted]

    def found_in(self, block: SealedBlock, receipts: tuple[BlockReceipt, ...]) -> Iterator[Json]:
        if not self.may_be_in(block.header.bloom):
            return
        number = 0
        for index, (signed, receipt) in enumerate(zip(block.transactions, receipts, strict=True)):
            if not receipt.logs:
                continue
            place = log_place(signed, block, index)
            for log in receipt.logs:
                if self.matches(log):
                    yield log_form(log, place, number)
                number += 1


def _topics(wanted: Any) -> frozenset[int]:
    """Any of these at a place; where null is among them, whatever is there. A topic has 32 bytes, as in a log."""
    given = listed(wanted)
    if not all(isinstance(each, str | None) for each in given):
        raise invalid(f"filter topic: expected null, 32 bytes as 0x hex text, or a list of them, got {shown(wanted)}")
    if None in given:
        return frozenset()
    return frozenset(int.from_bytes(to_hash(each, "filter topic"), "big") for each in given)


def _number(tag: Any) -> int | None:
    """Of a block that is not named by tag, object or hash."""
    named = not isinstance(tag, str | int) or (isinstance(tag, str) and (len(tag) == HASH_TEXT or tag[:2] != "0x"))
    return None if named else to_number(tag, "block", bits=64)


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


@dataclass
class Filter:
    """What one client wants to know, and has not been told yet."""

    kind: str  # "logs", "blocks" or "transactions"
    query: LogQuery = field(default_factory=LogQuery)
    form: Mapping[str, Any] = field(default_factory=dict)
    fresh: list[Any] = field(default_factory=list)

    def add(self, found: Iterable[Any]) -> None:
        self.fresh.extend(found)
        if len(self.fresh) > MAX_KEPT:
            del self.fresh[: len(self.fresh) - MAX_KEPT]


class Filters:
    """The filters of all clients, by number."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.by_id: dict[str, Filter] = {}

    def install(self, made: Filter) -> str:
        number = hex(next(self._numbers))
        self.by_id[number] = made
        return number

    def add_block(self, block: SealedBlock, receipts: tuple[BlockReceipt, ...]) -> None:
        for each in self.by_id.values():
            if each.kind == "blocks":
                each.add([data(block.hash)])
            elif each.kind == "logs" and each.query.spans(block.number):
                each.add(each.query.found_in(block, receipts))

    def add_pending(self, transaction: bytes) -> None:
        for each in self.by_id.values():
            if each.kind == "transactions":
                each.add([data(transaction)])
