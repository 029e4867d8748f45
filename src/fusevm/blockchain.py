"""A chain of blocks: genesis, building, importing with every rule checked, the state at any block, reorganisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from fusevm.chain.assembly import BlockAssembly
from fusevm.chain.building import following, sealed
from fusevm.chain.checks import ALL_CHECKS, Checks
from fusevm.chain.diffs import Diff, diff_since
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.execution import environment_of, run_block
from fusevm.chain.fees import base_fee_after
from fusevm.chain.genesis import Genesis, genesis_from_json
from fusevm.chain.header import BLANK, NO_OMMERS, ZERO_HASH, Header
from fusevm.chain.history import HistoryNode
from fusevm.chain.outcome import Outcome
from fusevm.chain.pool import TransactionPool
from fusevm.chain.reasons import BlockReason, InvalidBlock, Rejected, RejectReason
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.rewards import check_ommers, reward_of
from fusevm.chain.schedule import ForkSchedule, Upgrade
from fusevm.chain.sealed import SealedBlock, Withdrawal, decode_block, ommers_hash
from fusevm.chain.signed import SignedTransaction, decode_transaction, sign
from fusevm.chain.state import State
from fusevm.chain.system import expect_block
from fusevm.chain.transaction import Transaction
from fusevm.chain.tree import BlockTree, Which
from fusevm.chain.validation import check_block, check_header
from fusevm.evm.forks import Fork
from fusevm.evm.secp256k1 import ORDER, address_of_key
from fusevm.reference.hooks import Hooks
from fusevm.tiers import executor_for
from fusevm.values import (
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    Word,
    shown,
    to_address,
    to_bytes,
    to_hash,
    to_number,
)

SLOT_SECONDS = 12
DEFAULT_GAS = 1_000_000
Bookmark: TypeAlias = HistoryNode


class Plan(NamedTuple):
    """A block before any transaction: its header as far as it is known, its upgrade, and what calls see of it."""

    header: Header
    step: Upgrade
    environment: Block


class Chain:
    """Blocks from a genesis on, and the state after any of them.

    >>> key = bytes(31) + bytes([1])
    >>> alloc = {"7e5f4552091a69125d5dfcb7b8c2659029395bdf": {"balance": "1000000000000000000"}}  # the key's account
    >>> chain = Chain.from_json({"config": {"londonBlock": 0, "mergeNetsplitBlock": 0}, "alloc": alloc})
    >>> block = chain.build([chain.sign(key, "0x" + "02" * 20, value=5)])
    >>> block.number, block.header.gas_used, chain.state.account(b"\\x02" * 20).balance
    (1, 21000, 5)
    >>> twin = Chain(chain.genesis)
    >>> twin.import_block(block.encoded) == block
    True
    >>> with chain.at(0) as state:
    ...     state.account(b"\\x02" * 20).balance
    0
    """

    def __init__(
        self, genesis: Genesis, *, tier: str = "auto", hooks: Hooks | None = None, checks: Checks = ALL_CHECKS
    ) -> None:
        """With other `checks` than all, blocks that are built may also have any base fee and gas limit."""
        self.genesis = genesis
        self.checks = checks
        self.tier = tier
        self.deadline: float | None = None  # on time.monotonic's clock, of whatever runs; then TimeLimit is raised
        self.schedule: ForkSchedule = genesis.schedule
        self.pool = TransactionPool()
        self.known_contracts: Mapping[bytes, bytes] | None = None  # see `Assembly`
        self._tree = BlockTree(genesis)
        self._executor = executor_for(tier)
        self._hooks = hooks

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, tier: str = "auto") -> Chain:
        """From the contents of geth's genesis.json."""
        return cls(genesis_from_json(document), tier=tier)

    # -- what there is

    @property
    def chain_id(self) -> int:
        return self.schedule.chain_id

    @property
    def head(self) -> SealedBlock:
        """The last block of the canonical chain."""
        return self._tree.head.block

    @property
    def pending(self) -> list[SignedTransaction]:
        """The transactions that wait for the next block that is built; assigned where some are dropped."""
        return self.pool.listed

    @pending.setter
    def pending(self, listed: Iterable[SignedTransaction]) -> None:
        self.pool = TransactionPool(listed)

    @property
    def state(self) -> State:
        """The state after the head: to be read. What is written to it, no block has."""
        return self._tree.state

    def block(self, which: Which) -> SealedBlock:
        """A block of the canonical chain by number, or any known one by hash."""
        return self._tree.node(which).block

    def header(self, which: Which) -> Header:
        """As `block`, if only the header is needed: of old blocks it is available sooner."""
        return self._tree.node(which).header

    def senders(self, which: Which) -> list[bytes]:
        """The senders of a block's transactions: of old blocks they are available sooner than the transactions."""
        return self._tree.node(which).senders()

    def knows(self, block_hash: bytes) -> bool:
        return block_hash in self._tree.nodes

    def receipts(self, which: Which) -> tuple[BlockReceipt, ...]:
        return self._tree.node(which).receipts

    def requests(self, which: Which) -> tuple[bytes, ...] | None:
        """What the block asked of the consensus layer (EIP-7685); None before Prague, and for the genesis."""
        return self._tree.node(which).requests

    def total_difficulty(self, which: Which) -> int:
        return self._tree.node(which).total_difficulty

    def step_of(self, which: Which) -> Upgrade:
        """The upgrade whose rules a block has."""
        node = self._tree.node(which)
        return self._step(node.header, self._tree.nodes.get(node.header.parent_hash, node))

    def step_after(self, header: Header) -> Upgrade:
        """The upgrade whose rules a block with this header has; its parent must be known."""
        return self._step(header, self._tree.node(header.parent_hash))

    def environment(self, which: Which) -> Block:
        """A block as calls see it, for `EVM(block=…)`."""
        header = self.header(which)
        return environment_of(header, self.schedule.chain_id, self._tree.hashes(header.parent_hash))

    @contextmanager
    def at(self, which: Which) -> Iterator[State]:
        """The state after a block, for as long as the `with` block lasts; what is done to it there is undone.

        It costs what has changed between that block and the head.
        """
        target = self._tree.node(which)
        with self._tree.scratch():
            self._tree.move_to(target)
            yield self.state

    # -- tracing: geth's tracers, see `EVM.trace_call`

    def trace_transaction(
        self,
        transaction: BytesLike,
        *,
        tracer: str | None = None,
        config: Mapping[str, Any] | None = None,
        block: Which | None = None,
    ) -> dict[str, Any]:
        """What geth's debug_traceTransaction answers, of a transaction of the canonical chain by its hash.

        It is looked for from `block` back; without one, from the head.
        """
        from fusevm.tracing.replay import trace_mined

        return trace_mined(self, self._executor, to_hash(transaction, "transaction"), tracer, config, block)

    def trace_block(
        self, which: Which, *, tracer: str | None = None, config: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """What geth's debug_traceBlockByNumber answers: `txHash` and `result` of each transaction of a block."""
        from fusevm.tracing.replay import trace_block

        return trace_block(self, self._executor, which, tracer, config)

    # -- growing

    def sign(
        self,
        key: BytesLike,
        to: AddressLike | None = None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        gas_limit: Number = DEFAULT_GAS,
        nonce: Number | None = None,
        max_fee: Number | None = None,
        max_priority_fee: Number = 0,
    ) -> SignedTransaction:
        """A transaction for the next block; without `to` it creates.

        The nonce is the next one after the head and what is pending, the fee twice the base fee: unless they are given.
        Other types than 0 and 2, and other chains: `fusevm.chain.signed.sign`.
        """
        secret = to_hash(key, "key")
        if not 0 < int.from_bytes(secret, "big") < ORDER:
            raise BadValue(f"key: {shown(int.from_bytes(secret, 'big'))} is not a secret key")
        sender = address_of_key(secret)
        waiting = sum(each.sender == sender for each in self.pending)
        tip = to_number(max_priority_fee, "max_priority_fee")
        cap = 2 * base_fee_after(self.head.header) + tip if max_fee is None else to_number(max_fee, "max_fee")
        market = self.step_of(self.head.hash).fork >= Fork.LONDON
        tx = Transaction(
            sender,
            None if to is None else to_address(to, "to"),
            to_bytes(data, "data"),
            to_number(value, "value"),
            to_number(gas_limit, "gas_limit", bits=64),
            self.state.account(sender).nonce + waiting if nonce is None else to_number(nonce, "nonce", bits=64),
            gas_price=None if market else cap,
            max_fee=cap if market else None,
            max_priority_fee=tip if market else None,
        )
        return sign(tx, secret, self.schedule.chain_id if market else None)

    def submit(self, transaction: SignedTransaction | BytesLike) -> bytes:
        """Keeps a transaction for the next block that is built; its hash."""
        signed = _signed(transaction)
        self.pending.append(signed)
        return signed.hash

    def build(
        self,
        transactions: Iterable[SignedTransaction | BytesLike] | None = None,
        *,
        coinbase: AddressLike = bytes(20),
        timestamp: Number | None = None,
        gas_limit: Number | None = None,
        extra_data: BytesLike = b"",
        prev_randao: Word = ZERO_HASH,
        beacon_root: Word = ZERO_HASH,
        withdrawals: Sequence[Withdrawal] = (),
        ommers: Sequence[Header] = (),
        base_fee: Number | None = None,
    ) -> SealedBlock:
        """A new head, from these transactions, each of which must be valid, or from the pending ones.

        Of the pending ones those that cannot run yet stay, those whose nonce is used are dropped.
        """
        fields = coinbase, timestamp, gas_limit, extra_data, prev_randao, beacon_root, ommers, base_fee
        return self.build_planned(self.plan(*fields), transactions, withdrawals, ommers)

    def plan(self, *fields: Any, **named: Any) -> Plan:
        """As `upcoming`, and the block as calls in it will see it."""
        header, step = self.upcoming(*fields, **named)
        return Plan(header, step, step.with_blobs(self.environment_after(header)))

    def expect(self, plan: Plan) -> None:
        """Does what can be done now for a block that may come; see `expect_block`."""
        header, step, environment = plan
        given = header.parent_hash, header.parent_beacon_root
        expect_block(self.state, environment, step.fork, *given, self.known_contracts)

    def build_planned(
        self,
        plan: Plan,
        transactions: Iterable[SignedTransaction | BytesLike] | None = None,
        withdrawals: Sequence[Withdrawal] = (),
        ommers: Sequence[Header] = (),
    ) -> SealedBlock:
        """As `build`, where the head is still the one that the plan was made on."""
        parent = self._tree.head
        with self._tree.scratch() as keep:
            mark = self.state.mark()
            block, assembly, left = self._assemble(plan, transactions, withdrawals, ommers)
            keep(self._add(block, parent, assembly, mark))
        self.pending = left
        return block

    @contextmanager
    def trial(
        self,
        *,
        coinbase: AddressLike = bytes(20),
        timestamp: Number | None = None,
        prev_randao: Word = ZERO_HASH,
        gas_limit: Number | None = None,
        base_fee: Number | None = None,
    ) -> Iterator[tuple[SealedBlock, tuple[BlockReceipt, ...]]]:
        """The block that `build` would make of the pending transactions now; the state is the one after it.

        All of it is undone at the end of the `with` block.
        """
        with self._tree.scratch():
            plan = self.plan(coinbase, timestamp, gas_limit, prev_randao=prev_randao, base_fee=base_fee)
            block, assembly, _ = self._assemble(plan)
            yield block, tuple(assembly.receipts)

    def import_block(self, block: SealedBlock | BytesLike) -> SealedBlock:
        """Adds a block whose parent is known. Raises InvalidBlock, with the chain as it was, if it breaks a rule.

        It becomes the head if its total difficulty is higher, or the same and its number higher. Proof of work is not
        checked.
        """
        if not isinstance(block, SealedBlock):
            block = decode_block(to_bytes(block, "block"))
        if block.hash in self._tree.nodes:
            return self._tree.nodes[block.hash].block
        header = block.header
        parent = self._tree.nodes.get(header.parent_hash)
        if parent is None:
            zero = header.parent_hash == ZERO_HASH
            reason = BlockReason.UNKNOWN_PARENT_ZERO if zero else BlockReason.UNKNOWN_PARENT
            raise InvalidBlock(reason, f"0x{header.parent_hash.hex()}")
        step = self._step(header, parent)
        check_block(block, parent.header, step, self.schedule)
        self._check_ommers(block, step)
        with self._tree.scratch() as keep:
            self._tree.move_to(parent)
            mark = self.state.mark()
            hashes = self._tree.hashes(header.parent_hash)
            assembly = run_block(block, step, self.schedule, self.state, self.execute, hashes)
            node = self._add(block, parent, assembly, mark)
            if (node.total_difficulty, node.number) > (self._tree.head.total_difficulty, self.head.number):
                keep(node)
        return block

    def set_head(self, which: Which) -> None:
        """Makes a known block the head, as a consensus layer tells its execution layer to."""
        target = self._tree.node(which)
        with self._tree.scratch() as keep:
            self._tree.move_to(target)
            keep(target)

    # -- by hand: what a development chain does

    @contextmanager
    def edited(self) -> Iterator[State]:
        """The state after the head, to be changed: the changes count as the head's own, and go when it goes."""
        with self._tree.scratch() as keep:
            mark = self.state.mark()
            yield self.state
            keep(self._tree.edit(mark))

    def bookmark(self) -> Bookmark:
        """The current position of the chain, with what was edited, for `return_to`."""
        return self._tree.head

    def return_to(self, bookmark: Bookmark) -> None:
        """Goes back to a block of the canonical chain, as it was; the blocks after it are forgotten."""
        self._tree.return_to(bookmark)

    def watch(self, told: Callable[[Diff], None] | None) -> None:
        """Registers a listener for every committed change of the state."""
        self._tree.on_change = told

    def upcoming(
        self,
        coinbase: AddressLike = bytes(20),
        timestamp: Number | None = None,
        gas_limit: Number | None = None,
        extra_data: BytesLike = b"",
        prev_randao: Word = ZERO_HASH,
        beacon_root: Word = ZERO_HASH,
        ommers: Sequence[Header] = (),
        base_fee: Number | None = None,
    ) -> tuple[Header, Upgrade]:
        """The header of a block after the head, as far as it is known before the block has run; and its upgrade."""
        parent = self._tree.head
        next_slot = parent.header.timestamp + SLOT_SECONDS
        header = BLANK.having(
            {
                "parent_hash": parent.hash,
                "ommers_hash": ommers_hash(ommers) if ommers else NO_OMMERS,
                "coinbase": to_address(coinbase, "coinbase"),
                "number": parent.number + 1,
                "timestamp": to_number(next_slot if timestamp is None else timestamp, "timestamp", bits=64),
                "extra_data": to_bytes(extra_data, "extra_data"),
                "prev_randao": to_hash(prev_randao, "prev_randao"),
            }
        )
        step = self._step(header, parent)
        limit = None if gas_limit is None else to_number(gas_limit, "gas_limit", bits=64)
        root = to_hash(beacon_root, "beacon_root")
        fields = following(parent.header, header, step, limit, root)
        if base_fee is not None and step.fork >= Fork.LONDON:
            fields["base_fee"] = to_number(base_fee, "base_fee")
        return header.having(fields), step

    def environment_after(self, header: Header) -> Block:
        """A block that is not of the chain yet, as calls in it see it; its parent must be known."""
        return environment_of(header, self.schedule.chain_id, self._tree.hashes(header.parent_hash))

    # -- parts

    def _assemble(
        self,
        plan: Plan,
        transactions: Iterable[SignedTransaction | BytesLike] | None = None,
        withdrawals: Sequence[Withdrawal] = (),
        ommers: Sequence[Header] = (),
    ) -> tuple[SealedBlock, BlockAssembly, list[SignedTransaction]]:
        """Runs a new block on the state; the block, how it went, and the transactions that are still pending."""
        parent = self._tree.head
        header, step, environment = plan
        given = tuple(withdrawals) if step.fork >= Fork.SHANGHAI else None
        if withdrawals and given is None:
            raise BadValue(f"withdrawals: come with Shanghai, this block is of {step.name}")
        assembly = BlockAssembly(
            self.state, environment, step, self.schedule, self.execute, self.checks, self.known_contracts
        )
        assembly.begin(header.parent_hash, header.parent_beacon_root)
        left = self._fill(assembly, transactions)
        assembly.end(given, reward_of(step.fork), [(each.number, each.coinbase) for each in ommers])
        block = sealed(assembly, header, tuple(ommers), given)
        if self.checks is ALL_CHECKS:
            check_block(block, parent.header, step, self.schedule)
        self._check_ommers(block, step)
        return block, assembly, left

    def execute(self, message: Message, state: State, context: Context) -> Outcome:
        """Runs a message on the chain's tier."""
        if self.deadline is not None:
            context.deadline = self.deadline
        return self._executor(message, state, context, self._hooks)

    def _step(self, header: Header, parent: HistoryNode) -> Upgrade:
        return self.schedule.at(header.number, header.timestamp, parent.total_difficulty)

    def _check_ommers(self, block: SealedBlock, step: Upgrade) -> None:
        def find(block_hash: bytes) -> SealedBlock | None:
            node = self._tree.nodes.get(block_hash)
            return None if node is None else node.block

        def check(header: Header, parent: Header) -> None:
            check_header(header, parent, self._step(header, self._tree.nodes[parent.hash]), self.schedule)

        if step.fork < Fork.PARIS:
            check_ommers(block, find, check)

    def _fill(
        self, assembly: BlockAssembly, transactions: Iterable[SignedTransaction | BytesLike] | None
    ) -> list[SignedTransaction]:
        """Runs the transactions; what is left of the pending ones."""
        if transactions is not None:
            for each in transactions:
                assembly.add(_signed(each))
            return self.pending
        left = []
        for each in _in_order(self.pending):
            try:
                assembly.add(each)
            except Rejected as error:
                if error.reason is not RejectReason.NONCE_MISMATCH_TOO_LOW:
                    left.append(each)
        return left

    def _add(self, block: SealedBlock, parent: HistoryNode, assembly: BlockAssembly, mark: int) -> HistoryNode:
        node = HistoryNode(
            block,
            parent.total_difficulty + block.header.difficulty,
            diff_since(self.state, mark),
            tuple(assembly.receipts),
            None if assembly.requests is None else tuple(assembly.requests),
        )
        self._tree.nodes[block.hash] = node
        return node


def _signed(transaction: SignedTransaction | BytesLike) -> SignedTransaction:
    if isinstance(transaction, SignedTransaction):
        return transaction
    return decode_transaction(to_bytes(transaction, "transaction"))


def _in_order(pending: Sequence[SignedTransaction]) -> list[SignedTransaction]:
    """As they came, but each sender's by nonce."""
    waiting: dict[bytes, list[SignedTransaction]] = {}
    for each in sorted(pending, key=lambda signed: signed.nonce, reverse=True):
        waiting.setdefault(each.sender, []).append(each)
    return [waiting[each.sender].pop() for each in pending]
