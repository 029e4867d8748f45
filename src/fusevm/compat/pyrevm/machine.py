"""pyrevm's `EVM`: calls, deployments, accounts and snapshots on a `fusevm.EVM`.

As in pyrevm, all calls are of one transaction that never ends: what was touched stays warm, also by reading it from
outside, transient storage stays until it is reset, and what has destroyed itself is still there. One thing differs:
`revert` undoes all that was done since the snapshot, while pyrevm keeps balances and storage set from outside.
"""

from __future__ import annotations

import json
import sys
from copy import copy
from typing import Any

from fusevm import api
from fusevm.chain.addresses import create_address
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.processing import load_code, run_top, top_message, warm_listed
from fusevm.chain.result import Result
from fusevm.chain.transaction import Transaction
from fusevm.compat.pyrevm.arguments import address_of, bytes_of, checksummed, number_of, optional_number
from fusevm.compat.pyrevm.checks import check
from fusevm.compat.pyrevm.environment import CANCUN_FRACTION, MAX_U64, AccountInfo, BlockEnv, Env, TxEnv
from fusevm.compat.pyrevm.results import (
    CallFailed,
    ExecutionResult,
    JournalCheckpoint,
    debug_text,
    execution_result,
    failure_text,
)
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.evm.keccak import keccak256
from fusevm.reference.tracer import tracing_hooks
from fusevm.tiers import executor_for

# revm's names that are not ours.
SPECS = {"latest": LATEST, "merge": Fork.PARIS, "tangerine": Fork.TANGERINE_WHISTLE, "spurious": Fork.SPURIOUS_DRAGON}
EMPTY_CODE = b"\x00"  # as revm has it: one STOP


def _hash_of(number: int) -> bytes:
    """The hash of any block, as revm's empty database gives it."""
    return keccak256(str(number).encode())


def _block_named(text: str | None) -> str | int:
    """A number, a hash or a tag."""
    if text is None:
        return "latest"
    return int(text) if text.isdigit() else text.lower()


class EVM:
    """An EVM as pyrevm has it."""

    def __init__(
        self,
        env: Env | None = None,
        fork_url: str | None = None,
        fork_block: str | None = None,
        gas_limit: int = MAX_U64,
        tracing: bool = False,
        spec_id: str = "LATEST",
        *,
        tier: str = "auto",
    ) -> None:
        self._env = Env() if env is None else env
        self._gas_limit = number_of(gas_limit, "gas_limit", 64)
        self._spec = spec_id
        self._fork = SPECS.get(spec_id.lower()) or fork_named(spec_id.lower())
        if fork_url is None:
            self._engine = api.EVM(self._fork, tier)
        else:
            self._engine = api.EVM.fork_from(fork_url, _block_named(fork_block), fork=self._fork, tier=tier)
        self._execute = executor_for(tier)
        self._tell_block()
        self._engine.state.begin_transaction()
        self._open: list[tuple[JournalCheckpoint, int]] = []  # with the engine's checkpoints
        self._logged = 0
        self._result: ExecutionResult | None = None
        self._tracing = tracing

    # -- surroundings

    @property
    def env(self) -> Env:
        """A copy; `set_block_env` and `set_tx_env` take a changed one back."""
        return Env(copy(self._env.cfg), copy(self._env.block), copy(self._env.tx))

    def set_block_env(self, block: BlockEnv) -> None:
        self._env = Env(self._env.cfg, copy(block), self._env.tx)
        self._tell_block()

    def set_tx_env(self, tx: TxEnv) -> None:
        self._env = Env(self._env.cfg, self._env.block, copy(tx))

    def _tell_block(self) -> None:
        block = self._env.block
        self._engine.block = Block(
            number=block.number,
            timestamp=block.timestamp,
            coinbase=block._coinbase,
            gas_limit=self._gas_limit,
            prev_randao=int.from_bytes(block.prevrandao, "big"),
            difficulty=block.difficulty,
            chain_id=self._env.cfg.chain_id,
            excess_blob_gas=block.excess_blob_gas,
            hashes=_hash_of,
            blob_base_fee_fraction=CANCUN_FRACTION,
        )

    def block_hash(self, number: int) -> bytes:
        return _hash_of(number_of(number, "number"))

    # -- running

    def message_call(
        self,
        caller: str,
        to: str,
        calldata: bytes | None = None,
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
    ) -> bytes:
        """Runs a call and keeps what it changes: no nonce, no fee. Raises RuntimeError where it fails."""
        tx = self._transaction(caller, to, calldata, value, gas, gas_price)
        intrinsic = self._check(tx)
        gas = tx.gas_limit - intrinsic
        message = top_message(tx.sender, address_of(to, "to"), tx.data, tx.value, gas, static=is_static)
        return self._done(self._run(tx, message))

    def deploy(
        self,
        deployer: str,
        code: bytes,
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
        _abi: Any = None,
    ) -> str:
        """Creates a contract, in a whole transaction: the nonce is counted and the fee is paid."""
        tx = self._transaction(deployer, None, code, value, gas, gas_price)
        intrinsic, state, price = self._check(tx), self._engine.state, tx.gas_price or 0
        account = state.account(tx.sender)
        address = create_address(tx.sender, account.nonce)
        state.set_balance(tx.sender, account.balance - tx.gas_limit * price)
        state.set_nonce(tx.sender, account.nonce + 1)
        message = top_message(tx.sender, address, tx.data, tx.value, tx.gas_limit - intrinsic, creates=True)
        result = self._run(tx, message)
        state.add_balance(tx.sender, (tx.gas_limit - result.gas_used) * price)
        state.add_balance(self._engine.block.coinbase, result.gas_used * price)
        self._done(result)
        return "0x" + address.hex()

    def _transaction(
        self, sender: str, to: str | None, data: Any, value: int | None, gas: int | None, gas_price: int | None
    ) -> Transaction:
        env = self._env.tx
        return Transaction(
            address_of(sender, "caller"),
            None if to is None else address_of(to, "to"),
            bytes_of(data, "calldata"),
            optional_number(value, "value"),
            optional_number(gas, "gas", self._gas_limit, 64),
            gas_price=optional_number(gas_price, "gas_price"),
            access_list=env._access_list or None,
            blob_hashes=env._blob_hashes or None,
        )

    def _check(self, tx: Transaction) -> int:
        self._result = None
        env = self._env
        needed = check(tx, env.tx, env.block, env.cfg, self._gas_limit, self._engine.state, self._engine.rules)
        ran, block = copy(env.tx), copy(env.block)
        ran._caller, ran._to, ran._data, ran._value = tx.sender, tx.to, tx.data, tx.value
        ran._gas_limit, ran._gas_price = tx.gas_limit, tx.gas_price or 0
        block._basefee, block._gas_limit = 0, self._gas_limit
        self._env = Env(env.cfg, block, ran)
        return needed

    def _run(self, tx: Transaction, message: Message) -> Result:
        """One more message of the transaction. `gas_used` has the intrinsic cost in it and the refund taken off."""
        state, rules, block = self._engine.state, self._engine.rules, self._engine.block
        context = Context(self._fork, block, tx.sender, tx.gas_price or 0, tx.blob_hashes or ())
        context.carries = True
        load_code(message, state, rules)
        mark, refund, logged = state.mark(), state.refund, len(state.logs)
        if rules.access_sets:
            state.always_warm = context.always_warm
            for address in (tx.sender, message.address, *((block.coinbase,) if rules.warm_coinbase else ())):
                state.warm_address(address)
            warm_listed(state, tx.access_list or ())
        try:
            outcome = run_top(message, state, context, self._executor())
        except BaseException:
            state.abandon(mark)
            raise
        spent = tx.gas_limit - outcome.gas_left
        refunded, logs = 0, []
        if outcome.status is Status.SUCCESS:
            refunded = max(0, min(state.refund - refund, spent // rules.refund_quotient))
            logs = list(state.logs_so_far())[logged:]
        if not self._open:
            state.refund, state.logs = 0, []
            state.keep_since(keep=0)  # no snapshot is open: the journal is not needed
        return Result(outcome.status, outcome.output, spent - refunded, refunded, logs, None, outcome.failure)

    def _executor(self) -> Any:
        hooks = tracing_hooks(lambda line: sys.stdout.write(line)) if self.tracing else None

        def execute(message: Any, state: Any, context: Context) -> Outcome:
            return self._execute(message, state, context, hooks)

        return execute

    def _done(self, result: Result) -> bytes:
        gas_used = result.gas_used
        self._result = told = execution_result(result, gas_used)
        self._logged += len(result.logs) if result.ok else 0
        if self.tracing:
            line = {
                "stateRoot": "0x" + "00" * 32,
                "output": "0x" + result.output.hex(),
                "gasUsed": hex(gas_used),
                "pass": result.ok,
                "fork": self._spec.title(),
            }
            print(json.dumps(line))
        if result.status is not Status.SUCCESS:
            raise CallFailed(failure_text(told, result.output), result.output, gas_used)
        return result.output

    @property
    def tracing(self) -> bool:
        """Whether each step is printed, as EIP-3155 has it; this runs on the reference tier."""
        return self._tracing

    @tracing.setter
    def tracing(self, value: bool) -> None:
        self._tracing = value

    @property
    def result(self) -> ExecutionResult | None:
        """Of the last call or deployment; None where it was refused."""
        return self._result

    def reset_transient_storage(self) -> None:
        state = self._engine.state
        for address, key in list(state.transient):
            state.set_transient(address, key, 0)

    # -- accounts

    def basic(self, address: str) -> AccountInfo:
        return _info(self._engine.state.account(self._warmed(address)))

    def get_code(self, address: str) -> bytes | None:
        return self._engine.state.account(self._warmed(address)).code or None

    def get_balance(self, address: str) -> int:
        return self._engine.state.account(self._warmed(address)).balance

    def set_balance(self, address: str, balance: int) -> None:
        amount = number_of(balance, "balance")
        self._engine.state.set_balance(self._warmed(address), amount)

    def storage(self, address: str, index: int) -> int:
        where, key = self._warmed(address), number_of(index, "index")
        self._engine.state.warm_slot(where, key)
        return self._engine.state.storage(where, key)

    def _warmed(self, address: str) -> bytes:
        """Looking at an account loads it, and what is loaded is warm."""
        where = address_of(address, "address")
        self._engine.state.warm_address(where)
        return where

    def insert_account_info(self, address: str, info: AccountInfo) -> None:
        """Balance, nonce and code; the storage stays."""
        where, state = address_of(address, "address"), self._engine.state
        state.set_balance(where, info.balance)
        state.set_nonce(where, info.nonce)
        state.set_code(where, info.code or b"")

    def insert_account_storage(self, address: str, index: int, value: int) -> int:
        """The value that the slot had: on a fork, 0 where nothing looked at the account before, as in pyrevm.

        It is warm from then on if the account was; the account is in any case.
        """
        state, new, where = self._engine.state, number_of(value, "value"), address_of(address, "address")
        known, slot = state.source is None or state.is_warm(where), number_of(index, "index")
        before = state.storage(where, slot) if known else 0
        if state.is_warm(where):
            state.warm_slot(where, index)
        state.warm_address(where)
        state.write_slot(where, index, new, keep_original=False)
        state.remake()
        return before

    @property
    def db_accounts(self) -> dict[str, AccountInfo]:
        return {checksummed(address): _info(account) for address, account in self._engine.state.items()}

    @property
    def journal_state(self) -> dict[str, AccountInfo]:
        """As `db_accounts`: there is one state."""
        return self.db_accounts

    # -- snapshots

    def snapshot(self) -> JournalCheckpoint:
        mark = self._engine.checkpoint()
        made = JournalCheckpoint(self._logged, mark)
        self._open.append((made, mark))
        return made

    def revert(self, checkpoint: JournalCheckpoint) -> None:
        """Undoes what was done since; snapshots taken after it are gone."""
        if not self._open:
            raise OverflowError("No checkpoint to revert to")
        for place, (made, mark) in enumerate(self._open):
            if made == checkpoint:
                block = self._engine.block
                self._engine.revert(mark)
                self._engine.block = block  # the environment is not undone
                self._logged = made.log_i
                del self._open[place:]
                return
        raise KeyError("Invalid checkpoint")

    def commit(self) -> None:
        """Keeps what was done since the last snapshot."""
        if self._open:
            self._engine.commit(self._open.pop()[1])

    @property
    def checkpoint_ids(self) -> set[JournalCheckpoint]:
        return {made for made, _ in self._open}

    @property
    def journal_depth(self) -> int:
        return len(self._open)

    @property
    def journal_len(self) -> int:
        return len(self._open) + 1

    @property
    def journal_str(self) -> str:
        return debug_text(self._engine.state.items())


def _info(account: Any) -> AccountInfo:
    return AccountInfo(account.balance, account.nonce, account.code_hash(), account.code or EMPTY_CODE)
