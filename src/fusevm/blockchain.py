"""A chain of blocks: genesis, building, importing with every rule checked, the state at any block, reorganisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from fusevm.chain.assembly import Assembly
from fusevm.chain.difficulty import difficulty_after
from fusevm.chain.diffs import Diff, diff_since
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.execution import environment_of, run_block
from fusevm.chain.fees import ELASTICITY, base_fee_after, excess_blob_gas_after
from fusevm.chain.genesis import Genesis, genesis_from_json
from fusevm.chain.header import NO_OMMERS, ZERO_HASH, Header
from fusevm.chain.outcome import Outcome
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.rewards import check_ommers, reward_of
from fusevm.chain.schedule import Schedule, Step
from fusevm.chain.sealed import (
    SealedBlock,
    Withdrawal,
    decode_block,
    ommers_hash,
    transactions_root,
    withdrawals_root,
)
from fusevm.chain.signed import SignedTransaction, decode_transaction
from fusevm.chain.state import State
from fusevm.chain.validation import check_block, check_header
from fusevm.evm.forks import Fork
from fusevm.reference.hooks import Hooks
from fusevm.tiers import executor_for
from fusevm.values import BadValue

SLOT_SECONDS = 12


@dataclass(frozen=True, slots=True)
class _Node:
    """A block of the tree, with what importing it has shown."""

    block: SealedBlock
    total_difficulty: int
    diff: Diff
    receipts: tuple[BlockReceipt, ...]
    requests: tuple[bytes, ...] | None


class Chain:
    """Blocks from a genesis on, and the state after any of them.

    >>> from fusevm.chain.authorization import address_of_key
    >>> from fusevm.chain.signed import sign
    >>> from fusevm.chain.transaction import Transaction
    >>> key = bytes(31) + bytes([1])
    >>> alloc = {"0x" + address_of_key(key).hex(): {"balance": "1000000000000000000"}}
    >>> chain = Chain.from_json({"config": {"chainId": 1, "londonBlock": 0, "mergeNetsplitBlock": 0}, "alloc": alloc})
    >>> tx = Transaction(b"", to=b"\\x02" * 20, value=5, nonce=0, gas_limit=21_000, max_fee=10**10)
    >>> block = chain.build([sign(tx, key, chain_id=1)])
    >>> block.number, block.header.gas_used, chain.state.account(b"\\x02" * 20).balance
    (1, 21000, 5)
    >>> twin = Chain(chain.genesis)
    >>> twin.import_block(block.encoded) == block
    True
    >>> with chain.at(0) as state:
    ...     state.account(b"\\x02" * 20).balance
    0
    """

    def __init__(self, genesis: Genesis, *, tier: str = "auto", hooks: Hooks | None = None) -> None:
        self.genesis = genesis
        self.schedule: Schedule = genesis.schedule
        self.pending: list[SignedTransaction] = []
        self._state = genesis.state.copy()
        self._executor = executor_for(tier)
        self._hooks = hooks
        first = _Node(genesis.block, genesis.block.header.difficulty, Diff([], [], []), (), None)
        self._nodes = {genesis.block.hash: first}
        self._canonical = [genesis.block.hash]
        self._head = first

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, tier: str = "auto") -> Chain:
        """From the contents of geth's genesis.json."""
        return cls(genesis_from_json(document), tier=tier)

    # -- what there is

    @property
    def head(self) -> SealedBlock:
        """The last block of the canonical chain."""
        return self._head.block

    @property
    def state(self) -> State:
        """The state after the head: to be read. What is written to it, no block has."""
        return self._state

    def block(self, which: int | bytes) -> SealedBlock:
        """A block of the canonical chain by number, or any known one by hash."""
        return self._node(which).block

    def knows(self, block_hash: bytes) -> bool:
        return block_hash in self._nodes

    def receipts(self, which: int | bytes) -> tuple[BlockReceipt, ...]:
        return self._node(which).receipts

    def requests(self, which: int | bytes) -> tuple[bytes, ...] | None:
        """What the block asked of the consensus layer (EIP-7685); None before Prague, and for the genesis."""
        return self._node(which).requests

    def total_difficulty(self, which: int | bytes) -> int:
        return self._node(which).total_difficulty

    def step_of(self, which: int | bytes) -> Step:
        """The upgrade whose rules a block has."""
        node = self._node(which)
        return self._step(node.block.header, self._nodes.get(node.block.header.parent_hash, node))

    def step_after(self, header: Header) -> Step:
        """The upgrade whose rules a block with this header has; its parent must be known."""
        return self._step(header, self._node(header.parent_hash))

    def environment(self, which: int | bytes) -> Block:
        """A block as calls see it, for `EVM(block=…)`."""
        block = self.block(which)
        return environment_of(block.header, self.schedule.chain_id, self._hashes(block.header.parent_hash))

    @contextmanager
    def at(self, which: int | bytes) -> Iterator[State]:
        """The state after a block, for as long as the `with` block lasts; what is done to it there is undone.

        It costs what has changed between that block and the head.
        """
        target = self._node(which)
        with self._scratch():
            self._move(self._head, target)
            yield self._state

    # -- growing

    def submit(self, transaction: SignedTransaction | bytes) -> bytes:
        """Keeps a transaction for the next block that is built; its hash."""
        signed = decode_transaction(transaction) if isinstance(transaction, bytes) else transaction
        self.pending.append(signed)
        return signed.hash

    def build(
        self,
        transactions: Iterable[SignedTransaction] | None = None,
        *,
        coinbase: bytes = bytes(20),
        timestamp: int | None = None,
        gas_limit: int | None = None,
        extra_data: bytes = b"",
        prev_randao: bytes = ZERO_HASH,
        beacon_root: bytes = ZERO_HASH,
        withdrawals: Sequence[Withdrawal] = (),
        ommers: Sequence[Header] = (),
    ) -> SealedBlock:
        """A new head, from these transactions, each of which must be valid, or from the pending ones.

        Of the pending ones those that cannot run yet stay, those whose nonce is used are dropped.
        """
        parent = self._head
        header = Header(
            parent_hash=parent.block.hash,
            ommers_hash=ommers_hash(ommers) if ommers else NO_OMMERS,
            coinbase=coinbase,
            number=parent.block.number + 1,
            timestamp=parent.block.header.timestamp + SLOT_SECONDS if timestamp is None else timestamp,
            extra_data=extra_data,
            prev_randao=prev_randao,
        )
        step = self._step(header, parent)
        header = replace(header, **_following(parent.block.header, header, step, gas_limit, beacon_root))
        given = tuple(withdrawals) if step.fork >= Fork.SHANGHAI else None
        if withdrawals and given is None:
            raise BadValue(f"withdrawals: come with Shanghai, this block is of {step.name}")
        with self._scratch() as keep:
            environment = environment_of(header, self.schedule.chain_id, self._hashes(parent.block.hash))
            mark = self._state.mark()
            assembly = Assembly(self._state, environment, step, self.schedule, self._execute)
            assembly.begin(header.parent_hash, header.parent_beacon_root)
            left = self._fill(assembly, transactions)
            assembly.end(given, reward_of(step.fork), [(each.number, each.coinbase) for each in ommers])
            block = _sealed(assembly, header, tuple(ommers), given)
            check_block(block, parent.block.header, step, self.schedule)
            self._check_ommers(block, step)
            keep(self._add(block, parent, assembly, mark))
        self.pending = left
        return block

    def import_block(self, block: SealedBlock | bytes) -> SealedBlock:
        """Adds a block whose parent is known. Raises InvalidBlock, with the chain as it was, if it breaks a rule.

        It becomes the head if its total difficulty is higher, or the same and its number higher. Proof of work is not
        checked.
        """
        if isinstance(block, bytes):
            block = decode_block(block)
        if block.hash in self._nodes:
            return self._nodes[block.hash].block
        header = block.header
        parent = self._nodes.get(header.parent_hash)
        if parent is None:
            zero = header.parent_hash == ZERO_HASH
            reason = BlockReason.UNKNOWN_PARENT_ZERO if zero else BlockReason.UNKNOWN_PARENT
            raise InvalidBlock(reason, f"0x{header.parent_hash.hex()}")
        step = self._step(header, parent)
        check_block(block, parent.block.header, step, self.schedule)
        self._check_ommers(block, step)
        with self._scratch() as keep:
            self._move(self._head, parent)
            mark = self._state.mark()
            hashes = self._hashes(header.parent_hash)
            assembly = run_block(block, step, self.schedule, self._state, self._execute, hashes)
            node = self._add(block, parent, assembly, mark)
            if (node.total_difficulty, node.block.number) > (self._head.total_difficulty, self.head.number):
                keep(node)
        return block

    def set_head(self, which: int | bytes) -> None:
        """Makes a known block the head, as a consensus layer tells its execution layer to."""
        target = self._node(which)
        with self._scratch() as keep:
            self._move(self._head, target)
            keep(target)

    # -- parts

    def _execute(self, message: Message, state: State, context: Context) -> Outcome:
        return self._executor(message, state, context, self._hooks)

    def _node(self, which: int | bytes) -> _Node:
        if isinstance(which, int):
            place = which - self.genesis.block.number
            if not 0 <= place < len(self._canonical):
                raise BadValue(f"block {which}: the chain goes from {self.genesis.block.number} to {self.head.number}")
            return self._nodes[self._canonical[place]]
        if which not in self._nodes:
            raise BadValue(f"block 0x{which.hex()}: not known")
        return self._nodes[which]

    def _step(self, header: Header, parent: _Node) -> Step:
        return self.schedule.at(header.number, header.timestamp, parent.total_difficulty)

    def _hashes(self, parent_hash: bytes) -> Callable[[int], bytes]:
        """The hashes of a block's ancestors by number, for BLOCKHASH."""
        path = [parent_hash]

        def hash_of(number: int) -> bytes:
            newest = self._nodes[parent_hash].block.number
            while len(path) <= newest - number:
                node = self._nodes.get(path[-1])
                if node is None:
                    return ZERO_HASH
                path.append(node.block.header.parent_hash)
            return path[newest - number]

        return hash_of

    def _check_ommers(self, block: SealedBlock, step: Step) -> None:
        def find(block_hash: bytes) -> SealedBlock | None:
            node = self._nodes.get(block_hash)
            return None if node is None else node.block

        def check(header: Header, parent: Header) -> None:
            check_header(header, parent, self._step(header, self._nodes[parent.hash]), self.schedule)

        if step.fork < Fork.PARIS:
            check_ommers(block, find, check)

    def _fill(self, assembly: Assembly, transactions: Iterable[SignedTransaction] | None) -> list[SignedTransaction]:
        """Runs the transactions; what is left of the pending ones."""
        if transactions is not None:
            for each in transactions:
                assembly.add(each)
            return self.pending
        left = []
        for each in sorted(self.pending, key=lambda signed: signed.nonce):
            try:
                assembly.add(each)
            except Rejected as error:
                if error.reason is not RejectReason.NONCE_MISMATCH_TOO_LOW:
                    left.append(each)
        return left

    @contextmanager
    def _scratch(self) -> Iterator[Callable[[_Node], None]]:
        """Undoes at its end what was done to the state, unless its function was told which block it is now after."""
        state = self._state
        opened = state.open_marks
        mark = state.mark()
        reached: list[_Node] = []
        state.open_mark(mark)
        try:
            yield reached.append
        finally:
            if reached:
                self._set_head(reached[-1])
                state.keep_since(keep=opened)
            else:
                state.close_mark(mark, keep=opened)

    def _move(self, start: _Node, target: _Node) -> None:
        """Takes the state from one block to another, over their last common ancestor."""
        forward: list[_Node] = []
        while start is not target:
            if start.block.number >= target.block.number:
                start.diff.undo(self._state)
                start = self._nodes[start.block.header.parent_hash]
            else:
                forward.append(target)
                target = self._nodes[target.block.header.parent_hash]
        for node in reversed(forward):
            node.diff.apply(self._state)

    def _add(self, block: SealedBlock, parent: _Node, assembly: Assembly, mark: int) -> _Node:
        node = _Node(
            block,
            parent.total_difficulty + block.header.difficulty,
            diff_since(self._state, mark),
            tuple(assembly.receipts),
            None if assembly.requests is None else tuple(assembly.requests),
        )
        self._nodes[block.hash] = node
        return node

    def _set_head(self, node: _Node) -> None:
        """The canonical chain ends with this block, whose state is the current one."""
        branch: list[bytes] = []
        place = node.block.number - self.genesis.block.number
        found = node.block.hash
        while place >= len(self._canonical) or self._canonical[place] != found:
            branch.append(found)
            found = self._nodes[found].block.header.parent_hash
            place -= 1
        self._canonical[place + 1 :] = reversed(branch)
        self._head = node


def _following(parent: Header, header: Header, step: Step, gas_limit: int | None, beacon_root: bytes) -> dict[str, Any]:
    """The header fields that follow from the parent's, for a block to be built."""
    fields: dict[str, Any] = {"gas_limit": parent.gas_limit if gas_limit is None else gas_limit}
    if step.fork >= Fork.LONDON:
        fields["base_fee"] = base_fee_after(parent)
        if parent.base_fee is None and gas_limit is None:
            fields["gas_limit"] = parent.gas_limit * ELASTICITY
    if step.blobs is not None:
        fields["excess_blob_gas"] = excess_blob_gas_after(parent, step)
        fields["blob_gas_used"] = 0
        fields["parent_beacon_root"] = beacon_root
    if step.fork < Fork.PARIS:
        has_ommers = parent.ommers_hash != NO_OMMERS
        times = header.timestamp, parent.timestamp
        fields["difficulty"] = difficulty_after(step, header.number, *times, parent.difficulty, has_ommers)
    return fields


def _sealed(
    assembly: Assembly, header: Header, ommers: tuple[Header, ...], withdrawals: tuple[Withdrawal, ...] | None
) -> SealedBlock:
    """The block that was made, with all that its header commits to."""
    transactions = tuple(assembly.transactions)
    fields: dict[str, Any] = {
        "state_root": assembly.state.root(),
        "transactions_root": transactions_root(transactions),
        "receipts_root": assembly.receipts_root,
        "bloom": assembly.bloom,
        "gas_used": assembly.gas_used,
        "requests_hash": assembly.requests_hash,
    }
    if withdrawals is not None:
        fields["withdrawals_root"] = withdrawals_root(withdrawals)
    if header.blob_gas_used is not None:
        fields["blob_gas_used"] = assembly.blob_gas_used
    return SealedBlock(replace(header, **fields), transactions, ommers, withdrawals)
