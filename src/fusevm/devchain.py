"""A chain for development: keys of its own, transactions that wait, blocks on demand, snapshots, calls at any block."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from fusevm.blockchain import Bookmark, Chain, Plan
from fusevm.chain.checks import ALL_CHECKS, Checks, rules_with
from fusevm.chain.environment import Block
from fusevm.chain.forms import Mined
from fusevm.chain.genesis import Genesis, genesis_on
from fusevm.chain.header import Header
from fusevm.chain.predeploys import SYSTEM_CONTRACTS, add_system_contracts
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.result import Result
from fusevm.chain.schedule import ForkSchedule, Upgrade, always
from fusevm.chain.sealed import SealedBlock, Withdrawal
from fusevm.chain.signed import SignedTransaction, sign
from fusevm.chain.state import Account, State
from fusevm.chain.transaction import Transaction, validate
from fusevm.chain.tree import Which
from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.secp256k1 import address_of_key
from fusevm.machine.estimate import least_gas
from fusevm.tracing.requests import undone
from fusevm.values import AddressLike, BadValue, to_address

# As in eth_call: of these only what cannot be paid for matters.
CALL_CHECKS = Checks(nonce=False, base_fee=False, gas_cap=False, eoa=False)
PENDING = "pending"
DEV_GAS_LIMIT = 30_000_000
DEV_CHAIN_ID = 1337
DEV_BALANCE = 10**24  # wei: a million ether
DEV_ACCOUNTS = 10
Clock = Callable[[int], int]  # from the head's timestamp to the next block's


class Snapshot(NamedTuple):
    """What `DevChain.revert` goes back to."""

    bookmark: Bookmark
    pending: tuple[SignedTransaction, ...]
    next_timestamp: int | None
    next_base_fee: int | None


def dev_keys(count: int = DEV_ACCOUNTS) -> list[bytes]:
    """Well-known keys: 1, 2, 3 …"""
    return [place.to_bytes(32, "big") for place in range(1, count + 1)]


def dev_genesis(
    schedule: ForkSchedule | str = "osaka",
    accounts: Iterable[bytes] = (),
    *,
    state: State | None = None,
    header: Header | None = None,
    balance: int = DEV_BALANCE,
) -> Genesis:
    """The beginning of a development chain: funded accounts, and the system contracts that its forks need."""
    if isinstance(schedule, str):
        schedule = always(schedule, DEV_CHAIN_ID)
    if state is None:
        state = State()
    given = state.accounts
    for address in accounts:
        given[address] = Account(balance=balance)
    first = Header(gas_limit=DEV_GAS_LIMIT) if header is None else header
    if any(each.step.fork >= Fork.CANCUN for each in schedule.activations):
        add_system_contracts(state)
    return genesis_on(schedule, first, state)


class HeadView(NamedTuple):
    """What calls on the head see, and of which head it is."""

    head: Bookmark
    chain_id: int
    block: Block
    step: Upgrade


class _OnHead:
    """The state after the head; what is done to it, and to the block, is undone. Short calls spend their time here."""

    __slots__ = ("_dev", "_found", "_mark", "_opened", "_restore")

    def __init__(self, dev: DevChain) -> None:
        self._dev = dev

    def __enter__(self) -> tuple[State, Block, Upgrade]:
        state = self._dev.chain.state
        self._opened, self._mark = state.open_marks, state.mark()
        self._found = self._dev.take_surroundings()
        self._restore = self._found.block.keep()
        state.open_mark(self._mark)
        return state, self._found.block, self._found.step

    def __exit__(self, *error: object) -> None:
        try:
            self._dev.chain.state.close_mark(self._mark, keep=self._opened)
        finally:
            self._restore()
            self._dev.surroundings = self._found


class DevChain:
    """A `Chain` that a program or a node drives.

    >>> dev = DevChain()
    >>> sender = dev.accounts[0]
    >>> found = dev.send(dev.sign(Transaction(sender, b"\\x02" * 20, value=5, gas_limit=21_000, gas_price=10**9)))
    >>> block = dev.mine()
    >>> block.number, dev.chain.state.account(b"\\x02" * 20).balance, dev.find(found).receipt.gas_used
    (1, 5, 21000)
    """

    def __init__(
        self,
        genesis: Genesis | None = None,
        *,
        keys: Iterable[bytes] | None = None,
        tier: str = "auto",
        clock: Clock | None = None,
        checks: Checks = ALL_CHECKS,
    ) -> None:
        secret = dev_keys() if keys is None else list(keys)
        self.keys = {address_of_key(key): key for key in secret}
        self.chain = Chain(dev_genesis("osaka", self.keys) if genesis is None else genesis, tier=tier, checks=checks)
        self.chain.known_contracts = SYSTEM_CONTRACTS
        self.clock: Clock = clock or (lambda timestamp: timestamp + 1)
        self.coinbase = bytes(20)
        self.next_timestamp: int | None = None  # of the next block alone
        self.next_base_fee: int | None = None  # likewise
        self.gas_limit: int | None = None  # of all blocks from the next on; the head's unless it is set
        # transactions: the blocks they are in, canonical or not; mostly one
        self._places: dict[bytes, bytes | tuple[bytes, ...]] = {}
        self.next_randao = secrets.token_bytes(32)
        self._any_nonce = replace(checks, nonce=False)
        self._next: tuple[tuple[Any, ...], Plan] | None = None  # the block that is next, and what it follows from
        self.surroundings: HeadView | None = None  # of calls on the head

    @property
    def accounts(self) -> list[bytes]:
        return list(self.keys)

    @property
    def head(self) -> SealedBlock:
        return self.chain.head

    @property
    def chain_id(self) -> int:
        return self.chain.schedule.chain_id

    def add_key(self, key: bytes) -> bytes:
        address = address_of_key(key)
        self.keys[address] = key
        return address

    # -- the next block

    @property
    def pending_timestamp(self) -> int:
        return (
            self.clock(self.chain.bookmark().header.timestamp) if self.next_timestamp is None else self.next_timestamp
        )

    def upcoming(self) -> tuple[Header, Upgrade]:
        """The header of the next block before any transaction, and its upgrade."""
        return self.chain.upcoming(**self._next_fields())

    def _next_fields(self) -> dict[str, Any]:
        return {
            "coinbase": self.coinbase,
            "timestamp": self.pending_timestamp,
            "prev_randao": self.next_randao,
            "gas_limit": self.gas_limit,
            "base_fee": self.next_base_fee,
        }

    @contextmanager
    def pending_block(self) -> Iterator[tuple[SealedBlock, tuple[BlockReceipt, ...]]]:
        """The next block as it would be now; while the `with` block lasts, the state is the one after it."""
        with self.chain.trial(**self._next_fields()) as found:
            yield found

    def next_nonce(self, sender: bytes) -> int:
        """The sender's nonce after the head and what is pending."""
        return self.chain.pool.next_nonce(sender, self.chain.state.account(sender).nonce)

    # -- transactions

    def sign(self, tx: Transaction) -> SignedTransaction:
        """Signed with the sender's key, for this chain; without a nonce it gets the next one."""
        key = self.keys.get(tx.sender)
        if key is None:
            raise BadValue(f"from: no key for 0x{tx.sender.hex()}; add it with add_key")
        if tx.nonce is None:
            tx = replace(tx, nonce=self.next_nonce(tx.sender))
        return sign(tx, key, self.chain_id)

    def check(self, signed: SignedTransaction, *, gaps: bool = False) -> None:
        """Raises Rejected where it could not be in the next block, as far as that can be told without running it.

        With `gaps`, it may also be one for later, or replace one that is pending: any nonce that is not used will do.
        """
        plan = self._planned()
        rules, state = rules_with(rules_of(plan.step.fork), self.chain.checks), self.chain.state
        signed.check_signature(self.chain_id if self.chain.checks.chain_id else None, rules)
        tx = signed.transaction()
        expected = state.account(tx.sender).nonce if gaps else self.next_nonce(tx.sender)
        if signed.nonce < expected or (signed.nonce > expected and not gaps):
            low = signed.nonce < expected
            reason = RejectReason.NONCE_MISMATCH_TOO_LOW if low else RejectReason.NONCE_MISMATCH_TOO_HIGH
            raise Rejected(reason, f"{signed.nonce}, the account's is {expected}")
        validate(tx, state, plan.environment, rules, checks=self._any_nonce)

    def _planned(self) -> Plan:
        """The next block: transactions are checked against it, then run in it. Made once for as long as it is the
        same."""
        fields = self._next_fields()
        key = self.chain.bookmark(), self.chain.schedule, *fields.values()
        if self._next is None or self._next[0] != key:
            self._next = key, self.chain.plan(**fields)
        return self._next[1]

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan for the next block, be it out of date."""
        return self._next is not None

    def plan_ahead(self) -> None:
        """Computed in idle time: the next transaction is checked against it."""
        self.chain.expect(self._planned())

    def send(self, signed: SignedTransaction, *, gaps: bool = False) -> bytes:
        """Keeps a transaction for the next block, or with `gaps` for one after it; its hash.

        Raises Rejected where it cannot be in it, NotPooled where it cannot replace the one that is pending.
        """
        self.check(signed, gaps=gaps)
        self.chain.pool.add(signed)
        return signed.hash

    def mine(self, *, coinbase: AddressLike | None = None, withdrawals: tuple[Withdrawal, ...] = ()) -> SealedBlock:
        """A block of what is pending."""
        if coinbase is None:
            plan = self._planned()
        else:
            plan = self.chain.plan(**{**self._next_fields(), "coinbase": to_address(coinbase, "coinbase")})
        self._next = None  # it is not reused: the run may change it
        block = self.chain.build_planned(plan, None, withdrawals)
        self.next_timestamp = self.next_base_fee = None
        self.next_randao = secrets.token_bytes(32)
        for signed in block.transactions:
            others = self._blocks_of(signed.hash)
            self._places[signed.hash] = (*others, block.hash) if others else block.hash
        return block

    def find(self, transaction_hash: bytes) -> Mined | None:
        """A transaction of the canonical chain; else a pending one; None where there is none."""
        mined = self.find_mined(transaction_hash)
        if mined is not None:
            return mined
        if any(each.hash == transaction_hash for each in self.chain.pending):
            with self.pending_block() as (block, receipts):
                for index, signed in enumerate(block.transactions):
                    if signed.hash == transaction_hash:
                        return Mined(signed, block, index, receipts, pending=True)
        return None

    def find_mined(self, transaction_hash: bytes) -> Mined | None:
        """A transaction of the canonical chain."""
        for block_hash in self._blocks_of(transaction_hash):
            if self.chain.knows(block_hash) and self.is_canonical(block := self.chain.block(block_hash)):
                for index, signed in enumerate(block.transactions):
                    if signed.hash == transaction_hash:
                        return Mined(signed, block, index, self.chain.receipts(block_hash))
        return None

    def _blocks_of(self, transaction_hash: bytes) -> tuple[bytes, ...]:
        found = self._places.get(transaction_hash, ())
        return (found,) if isinstance(found, bytes) else found

    def is_canonical(self, block: SealedBlock) -> bool:
        return block.number <= self.head.number and self.chain.header(block.number).hash == block.hash

    # -- reading and calling at a block

    def at(self, which: Which) -> AbstractContextManager[tuple[State, Block, Upgrade]]:
        """The state after a block (or after the pending one), the block as calls see it, and its upgrade."""
        if which != PENDING and self.chain.header(which).hash == self.head.hash:
            return _OnHead(self)
        return self._at_another(which)

    @contextmanager
    def _at_another(self, which: Which) -> Iterator[tuple[State, Block, Upgrade]]:
        if which == PENDING:
            with self.pending_block() as (block, _):
                step = self.chain.step_after(block.header)
                yield self.chain.state, step.with_blobs(self.chain.environment_after(block.header)), step
        else:
            with self.chain.at(which) as state:
                step = self.chain.step_of(which)
                yield state, step.with_blobs(self.chain.environment(which)), step

    def take_surroundings(self) -> HeadView:
        """The head as calls see it, made once. A caller gives it back unchanged; a call within a call gets one
        of its own."""
        head, chain_id = self.chain.bookmark(), self.chain_id
        found, self.surroundings = self.surroundings, None
        if found is None or found.head is not head or found.chain_id != chain_id:
            step = self.chain.step_of(self.head.hash)
            block = step.with_blobs(self.chain.environment(self.head.hash))
            found = HeadView(head, chain_id, block, step)
        return found

    def call(self, tx: Transaction, which: Which, checks: Checks = CALL_CHECKS) -> Result:
        """Runs a transaction after a block and forgets what it did. Raises Rejected where it may not run."""
        with self.at(which) as (state, block, step):
            return self._run(tx, state, block, step, checks)

    def estimate_gas(self, tx: Transaction, which: Which, *, error_ratio: float = 0.0) -> int:
        """The least gas limit with which a transaction succeeds after a block, up to its own.

        Raises EstimateFailed, with the result, where it does not even succeed with the most it may have.
        """
        with self.at(which) as (state, block, step):
            rules = rules_of(step.fork)
            most = min(tx.gas_limit, block.gas_limit, rules.tx_gas_cap)

            def attempt(limit: int) -> Result:
                with undone(state):
                    return self._run(replace(tx, gas_limit=limit), state, block, step, CALL_CHECKS)

            return least_gas(attempt, rules, most, error_ratio)

    def _run(self, tx: Transaction, state: State, block: Block, step: Upgrade, checks: Checks) -> Result:
        if tx.fee_cap() == 0 and not checks.base_fee:
            block.base_fee = 0  # as geth: a call without a price is in a block without one
        elif tx.fee_cap() < block.base_fee:
            detail = f"{tx.fee_cap()} is under {block.base_fee}"
            raise Rejected(RejectReason.INSUFFICIENT_MAX_FEE_PER_GAS, detail)
        return process(tx, state, block, step.fork, self.chain.execute, checks=checks)

    # -- going back

    def snapshot(self) -> Snapshot:
        return Snapshot(self.chain.bookmark(), tuple(self.chain.pending), self.next_timestamp, self.next_base_fee)

    def revert(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot, and to the state as it was edited then; the blocks since then are forgotten."""
        self.chain.return_to(snapshot.bookmark)
        self.chain.pending = list(snapshot.pending)
        self.next_timestamp, self.next_base_fee = snapshot.next_timestamp, snapshot.next_base_fee
