"""What a client talks to: a development chain, whether blocks are mined at once, filters, and snapshots by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fusevm.blockchain import Which
from fusevm.chain.reasons import Rejected
from fusevm.chain.signed import SignedTransaction
from fusevm.devchain import PENDING, DevChain, Snapshot
from fusevm.rpc.errors import INVALID_PARAMS, RpcError, refused
from fusevm.values import BadValue, to_hash, to_number

LATEST = ("latest", "safe", "finalized")


@dataclass
class Filter:
    """What a client asked to be told of since it last asked."""

    kind: str  # logs, blocks or transactions
    criteria: Any = None
    seen: int = 0  # the last block it was told of
    pending: list[bytes] = field(default_factory=list)  # transactions sent since


class Session:
    """One client's, or all clients': methods are functions of it."""

    def __init__(self, dev: DevChain | None = None, *, automine: bool = True) -> None:
        self.dev = DevChain.live() if dev is None else dev
        self.automine = automine
        self.filters: dict[int, Filter] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self._filter_ids, self._snapshot_ids = count(1), count(1)
        self.on_block: list[Callable[[Any], None]] = []  # told of each new block

    def which(self, tag: Any) -> Which:
        """A block by number, tag or hash, or by an object of EIP-1898."""
        chain = self.dev.chain
        if tag is None or tag in LATEST:
            return self.dev.head.number
        if tag == PENDING:
            return PENDING
        if tag == "earliest":
            return chain.genesis.block.number
        if isinstance(tag, dict):
            if "blockHash" in tag:
                return self._known(to_hash(tag["blockHash"], "blockHash"))
            tag = tag.get("blockNumber")
        if isinstance(tag, str) and len(tag) == 66:
            return self._known(to_hash(tag, "block"))
        number = to_number(tag, "block", bits=64)
        if number > self.dev.head.number:
            raise BadValue(f"block {number}: not there yet; the head is {self.dev.head.number}")
        return number

    def _known(self, block_hash: bytes) -> bytes:
        if not self.dev.chain.knows(block_hash):
            raise BadValue(f"block 0x{block_hash.hex()}: not known")
        return block_hash

    def send(self, signed: SignedTransaction) -> bytes:
        """Takes a transaction; mines it where that is done at once."""
        try:
            sent = self.dev.send(signed)
        except Rejected as error:
            raise refused(error) from error
        for each in self.filters.values():
            if each.kind == "transactions":
                each.pending.append(sent)
        if self.automine:
            self.mine()
        return sent

    def mine(self) -> None:
        block = self.dev.mine()
        for tell in self.on_block:
            tell(block)

    def add_filter(self, kind: str, criteria: Any = None) -> int:
        made = next(self._filter_ids)
        self.filters[made] = Filter(kind, criteria, self.dev.head.number)
        return made

    def filter(self, number: Any) -> Filter:
        found = self.filters.get(to_number(number, "filter"))
        if found is None:
            raise RpcError(-32000, "filter not found")
        return found

    def snapshot(self) -> int:
        made = next(self._snapshot_ids)
        self.snapshots[made] = self.dev.snapshot()
        return made

    def revert(self, number: Any) -> bool:
        """Goes back; the snapshot and all after it are gone."""
        wanted = to_number(number, "snapshot")
        found = self.snapshots.get(wanted)
        if found is None:
            return False
        self.dev.revert(found)
        self.snapshots = {each: kept for each, kept in self.snapshots.items() if each < wanted}
        for each in self.filters.values():
            each.seen = min(each.seen, self.dev.head.number)
        return True


def parameters(given: list[Any], least: int, most: int) -> list[Any]:
    """So many parameters, those that are missing as None."""
    if not least <= len(given) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise RpcError(INVALID_PARAMS, f"expected {wanted} parameters, got {len(given)}")
    return [*given, *[None] * (most - len(given))]
