"""A development chain as JSON-RPC clients see it: the chain, and what a node keeps beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from fusevm.abi import Abi
from fusevm.api import EVM
from fusevm.chain.checks import Checks
from fusevm.chain.sealed import SealedBlock
from fusevm.chain.signed import SignedTransaction
from fusevm.devchain import Snapshot
from fusevm.rpc.blobs import BlobStore
from fusevm.rpc.describe import KNOWN
from fusevm.rpc.errors import METHOD_NOT_FOUND, RpcError, invalid, translated
from fusevm.rpc.filters import Filters
from fusevm.rpc.quick import QuickCalls
from fusevm.rpc.start import Config, Upstream, start
from fusevm.rpc.values import HASH_TEXT

if TYPE_CHECKING:
    from fusevm.rpc.methods import RpcMethod

CALL_SECONDS = 30.0  # that one request may run code for


@cache
def _methods() -> Mapping[str, RpcMethod]:
    from fusevm.rpc.methods import METHODS

    return METHODS


class Session:
    """What requests are answered from. One thread at a time: requests never interleave.

    >>> session = Session(Config(timestamp=1_700_000_000))
    >>> first, second = session.request("eth_accounts")[:2]
    >>> sent = session.request("eth_sendTransaction", [{"from": first, "to": second, "value": "0x5"}])
    >>> session.request("eth_getTransactionReceipt", [sent])["status"]
    '0x1'
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        saved: Mapping[str, Any] | None = None,
        call_seconds: float | None = CALL_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.config = Config() if config is None else config
        self.call_seconds = call_seconds
        self.now = now
        self.on_block: list[Callable[[SealedBlock], None]] = []
        self.on_pending: list[Callable[[SignedTransaction], None]] = []
        self.on_head: list[Callable[[SealedBlock], None]] = []  # told of a head that does not follow the one before
        self.automine = True
        self.logs = True  # whether what is asked and done is told to those who watch
        self.defers_mining = False  # whether the block of a transaction that is sent is left to `catch_up`
        self.block_due = False  # whether such a block is still to be made; no request sees the chain without it
        self.interval: float | None = None  # seconds between blocks mined automatically
        self.begin(self.config, saved)

    def begin(self, config: Config, saved: Mapping[str, Any] | None = None) -> None:
        """A chain from its start; what was kept of the one before is gone."""
        self.config = config
        started = start(config, saved)
        self.dev, self.upstream = started.dev, started.upstream
        self.dev.clock = self.next_time
        self.blobs = BlobStore()
        self.quick_calls: QuickCalls | None = None if self.upstream else QuickCalls()
        self.machines: dict[Checks, EVM] = {}  # of calls on the head, for the next one
        self.impersonated: dict[bytes, None] = {}  # in the order in which they were named
        self.impersonates_all = False
        self.filters = Filters()
        self.abi = Abi(KNOWN)
        self.snapshots: dict[int, tuple[Snapshot, int]] = {}  # with the clock's offset
        self.next_snapshot = 0
        self.time_offset = 0  # seconds that the chain's clock is ahead of ours
        self.block_interval: int | None = None  # seconds from block to block, in the place of the clock

    # -- time

    def next_time(self, last: int) -> int:
        """The timestamp of a block after one of that time."""
        if self.block_interval is not None:
            return last + self.block_interval
        return max(int(self.now()) + self.time_offset, last + 1)

    def deadline(self) -> float | None:
        return None if self.call_seconds is None else time.monotonic() + self.call_seconds

    # -- requests

    def request(self, method: str, params: Sequence[Any] = ()) -> Any:
        """The result of a method, in JSON's types. Raises RpcError, whatever goes wrong."""
        if self.block_due:
            self.catch_up()
        found = _methods().get(method)
        if found is None:
            raise RpcError(METHOD_NOT_FOUND, f"the method {method} does not exist or is not available")
        given = list(params)
        if len(given) > found.most and all(each is None for each in given[found.most :]):
            given = given[: found.most]
        if not found.least <= len(given) <= found.most:
            counts = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
            raise invalid(f"{method}: expected {counts} parameters, got {len(given)}")
        try:
            return found.function(self, *given)
        except Exception as error:
            wanted = translated(error)
            raise wanted from (None if wanted is error else error)

    def upstream_for(self, number: Any, tag: Any = None) -> Upstream | None:
        """The node to ask about a block before the fork, or with an unknown hash; None for one of ours."""
        if self.upstream is None:
            return None
        before = isinstance(number, int) and number < self.upstream.number
        foreign = number is None and isinstance(tag, str) and len(tag) == HASH_TEXT
        return self.upstream if before or foreign else None

    @property
    def oldest(self) -> int:
        """The first block that can be asked for."""
        return self.dev.chain.genesis.block.number if self.upstream is None else 0

    # -- blocks

    def mine(self) -> SealedBlock:
        """A block of what is pending; those who watch are told."""
        self.block_due = False
        block = self.dev.mine()
        self.filters.add_block(block, self.dev.chain.receipts(block.hash))
        for told in list(self.on_block):
            told(block)
        return block

    def submit(self, signed: SignedTransaction) -> bytes:
        """Keeps a transaction, and mines it where that is done at once; its hash. Raises Rejected, or NotPooled."""
        self.dev.send(signed, gaps=True)
        self.filters.add_pending(signed.hash)
        for told in list(self.on_pending):
            told(signed)
        if self.automine and signed.nonce < self.dev.next_nonce(signed.sender):
            self.block_due = True
            if not self.defers_mining:
                self.catch_up()
        return signed.hash

    def catch_up(self) -> None:
        """Makes the block that is owed, if one is."""
        if self.block_due:
            self.mine()

    # -- going back

    def moved(self) -> None:
        """To be called where the head is another, and not by a block after it."""
        for told in list(self.on_head):
            told(self.dev.head)

    def snapshot(self) -> int:
        number = self.next_snapshot
        self.snapshots[number] = self.dev.snapshot(), self.time_offset
        self.next_snapshot += 1
        return number

    def revert(self, number: int) -> bool:
        """Goes back to a snapshot, which is gone then, as are those after it. False where there is none."""
        found = self.snapshots.get(number)
        if found is None:
            return False
        made, self.time_offset = found
        self.dev.revert(made)
        self.snapshots = {each: kept for each, kept in self.snapshots.items() if each < number}
        self.moved()
        return True
