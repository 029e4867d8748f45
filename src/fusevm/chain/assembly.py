"""A block in the making: system calls, transactions one by one, withdrawals, rewards, requests.

Importing, building and `t8n` all run their blocks here. They differ in what they do about a transaction that may not
run: refuse the block, leave it out, or list it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusevm.chain.checks import ALL_CHECKS, Checks
from fusevm.chain.dao import apply_dao_fork
from fusevm.chain.environment import Block
from fusevm.chain.outcome import Executor
from fusevm.chain.processing import process
from fusevm.chain.receipts import BlockReceipt, union_of
from fusevm.chain.rewards import pay, pay_rewards
from fusevm.chain.schedule import ForkSchedule, Upgrade
from fusevm.chain.sealed import GWEI, Withdrawal, list_root
from fusevm.chain.signed import SignedTransaction
from fusevm.chain.state import State
from fusevm.chain.system import begin_block, requests_hash, requests_of_block
from fusevm.chain.transaction import BlockSpace
from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.gas import BLOB_GAS


class BlockAssembly:
    """Runs a block on a state, piece by piece. The holder of a mark of the state can undo it."""

    def __init__(
        self,
        state: State,
        block: Block,
        step: Upgrade,
        schedule: ForkSchedule,
        execute: Executor,
        checks: Checks = ALL_CHECKS,
        known: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """`known`: system contracts by address that need not run, since what their code does is known."""
        self.state = state
        self._known = known
        self.checks = checks
        self.block = step.with_blobs(block)
        self.step = step
        self.rules = rules_of(step.fork)
        self.transactions: list[SignedTransaction] = []
        self.receipts: list[BlockReceipt] = []
        self.gas_used = 0
        self.blobs = 0
        self.requests: list[bytes] | None = None
        self._schedule = schedule
        self._execute = execute

    def begin(self, parent_hash: bytes, beacon_root: bytes | None) -> None:
        """What comes before the first transaction."""
        if self.block.number == self._schedule.dao_block:
            apply_dao_fork(self.state)
        begin_block(self.state, self.block, self.step.fork, self._execute, parent_hash, beacon_root, self._known)

    @property
    def most_blobs(self) -> int:
        return 0 if self.step.blobs is None else self.step.blobs.most

    @property
    def room(self) -> BlockSpace:
        return BlockSpace(self.block.gas_limit - self.gas_used, self.most_blobs - self.blobs)

    def add(self, signed: SignedTransaction) -> BlockReceipt:
        """Runs a transaction. Raises Rejected, with nothing done, if it may not run here."""
        signed.check_signature(self.block.chain_id if self.checks.chain_id else None, self.rules)
        tx = signed.transaction()
        done = process(tx, self.state, self.block, self.step.fork, self._execute, self.room, self.checks)
        self.gas_used += done.gas_used
        self.blobs += len(tx.blob_hashes or ())
        receipt = BlockReceipt(
            type=tx.type,
            succeeded=done.ok,
            cumulative_gas=self.gas_used,
            logs=done.logs,
            post_state=self.state.root() if self.step.fork < Fork.BYZANTIUM else None,
            gas_used=done.gas_used,
            gas_price=tx.effective_gas_price(self.block.base_fee),
            created=done.address,
            output=done.output,
        )
        self.transactions.append(signed)
        self.receipts.append(receipt)
        return receipt

    def end(
        self,
        withdrawals: Sequence[Withdrawal] | None,
        reward: int | None,
        ommers: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        """What comes after the last transaction. Raises InvalidBlock if the requests cannot be had."""
        if reward is not None:
            pay_rewards(self.state, self.rules, reward, self.block.number, self.block.coinbase, ommers)
        for each in withdrawals or ():
            pay(self.state, self.rules, each.address, each.amount * GWEI)
        if self.step.fork >= Fork.PRAGUE:
            logs = (log for receipt in self.receipts for log in receipt.logs)
            self.requests = requests_of_block(
                self.state,
                self.block,
                self.step.fork,
                self._execute,
                logs,
                self._schedule.deposit_contract,
                self._known,
            )

    # -- what a header says of it

    @property
    def blob_gas_used(self) -> int:
        return self.blobs * BLOB_GAS

    @property
    def receipts_root(self) -> bytes:
        return list_root([receipt.encoded for receipt in self.receipts])

    @property
    def bloom(self) -> bytes:
        return union_of([receipt.bloom for receipt in self.receipts])

    @property
    def requests_hash(self) -> bytes | None:
        return None if self.requests is None else requests_hash(self.requests)
