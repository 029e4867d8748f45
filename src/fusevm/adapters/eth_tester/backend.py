"""The backend itself: what eth-tester asks of a chain, answered by a `DevChain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eth_keys import KeyAPI
from eth_tester.backends.base import BaseChainBackend
from eth_tester.exceptions import BlockNotFound, TransactionNotFound, ValidationError
from eth_tester.validation.inbound import validate_inbound_withdrawals

from fusevm.adapters.eth_tester.errors import check_success, translated
from fusevm.adapters.eth_tester.genesis import (
    Forks,
    Params,
    account_keys,
    genesis_params,
    genesis_state,
    make_genesis,
)
from fusevm.adapters.eth_tester.requests import request, signed_request
from fusevm.adapters.eth_tester.serialize import block_fields, receipt_fields, transaction_fields
from fusevm.blockchain import Chain
from fusevm.chain.checks import Checks
from fusevm.chain.forms import Mined
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.rlp import encode
from fusevm.chain.sealed import SealedBlock, Withdrawal
from fusevm.chain.signed import SignedTransaction, decode_transaction, network_parts, sign
from fusevm.chain.transaction import Transaction
from fusevm.chain.tree import Which
from fusevm.devchain import PENDING, DevChain
from fusevm.evm.forks import Fork
from fusevm.machine.estimate import EstimateFailed
from fusevm.values import BadValue, to_address

LATEST = ("latest", "safe", "finalized")
MAX_BLOCKS = 1024
PY_EVM_CHECKS = Checks(chain_id=False)  # programs sign for 1337 or 1; py-evm does not look


class FusevmBackend(BaseChainBackend):  # type: ignore[misc]
    """A drop-in for eth-tester's `PyEVMBackend`: `EthereumTester(FusevmBackend())`."""

    def __init__(
        self,
        genesis_parameters: Params | None = None,
        genesis_state: Any = None,
        vm_configuration: Forks | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
    ) -> None:
        """`vm_configuration` has pairs of a block and a fork: its name, or one of py-evm's VM classes."""
        count = len(genesis_state) if genesis_state else None
        self.reset_to_genesis(genesis_parameters, genesis_state, count, vm_configuration, mnemonic, hd_path)

    @classmethod
    def from_mnemonic(
        cls,
        mnemonic: str,
        genesis_state_overrides: Params | None = None,
        num_accounts: int | None = None,
        genesis_parameters: Params | None = None,
        vm_configuration: Forks | None = None,
        hd_path: str | None = None,
    ) -> FusevmBackend:
        state = cls.generate_genesis_state(genesis_state_overrides, num_accounts, mnemonic, hd_path)
        return cls(genesis_parameters, state, vm_configuration, mnemonic, hd_path)

    @classmethod
    def generate_genesis_params(cls, overrides: Params | None = None) -> dict[str, Any]:
        return genesis_params(overrides)

    @classmethod
    def generate_genesis_state(
        cls,
        overrides: Params | None = None,
        num_accounts: int | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
    ) -> dict[bytes, dict[str, Any]]:
        return genesis_state(account_keys(mnemonic, num_accounts, hd_path), overrides)

    def reset_to_genesis(
        self,
        genesis_params: Params | None = None,
        genesis_state: Any = None,
        num_accounts: int | None = None,
        vm_configuration: Forks | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
    ) -> None:
        """Starts again; without arguments, with the previous ones."""
        given = (genesis_params, genesis_state, num_accounts, vm_configuration, mnemonic, hd_path)
        if any(each is not None for each in given) or not hasattr(self, "_given"):
            self._given = given
        params, accounts, count, forks, words, path = self._given
        keys = account_keys(words, len(accounts) if accounts else count, path)
        if accounts is None:
            accounts = self.generate_genesis_state(None, len(keys), words, path)
        self.dev = DevChain(make_genesis(params, accounts, forks), keys=keys, checks=PY_EVM_CHECKS)

    @property
    def chain(self) -> Chain:
        return self.dev.chain

    # -- snapshots, time, mining

    def take_snapshot(self) -> bytes:
        return self.dev.head.hash

    def revert_to_snapshot(self, snapshot: bytes) -> None:
        self.chain.set_head(snapshot)
        self.chain.pending = []

    def time_travel(self, to_timestamp: int) -> int:
        """Mines a block, so that the next one is of that time."""
        self.dev.next_timestamp = to_timestamp - 1
        self.mine_blocks()
        return to_timestamp

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = bytes(20)) -> tuple[bytes, ...]:
        return tuple(self.dev.mine(coinbase=coinbase).hash for _ in range(num_blocks))

    def apply_withdrawals(self, withdrawals_list: Sequence[Mapping[str, Any]]) -> None:
        """Mines a block with withdrawals from the consensus layer."""
        validate_inbound_withdrawals(withdrawals_list)
        if self.chain.step_of(self.dev.head.hash).fork < Fork.SHANGHAI:
            raise ValidationError("Withdrawals are only supported after the Shanghai fork")
        withdrawals = tuple(
            Withdrawal(each["index"], each["validator_index"], to_address(each["address"]), each["amount"])
            for each in withdrawals_list
        )
        self.dev.mine(withdrawals=withdrawals)

    # -- accounts

    @property
    def account_keys(self) -> tuple[Any, ...]:
        return tuple(KeyAPI().PrivateKey(key) for key in self.dev.keys.values())

    def get_accounts(self) -> tuple[bytes, ...]:
        return tuple(self.dev.accounts)

    def add_account(self, private_key: bytes) -> None:
        self.dev.add_key(bytes(private_key))

    # -- blocks and what is in them

    def get_block_by_number(self, block_number: Any, full_transaction: bool = True) -> dict[str, Any]:
        which = self._which(block_number)
        if which != PENDING:
            return self._block_fields(self.chain.block(which), full_transaction)
        with self.dev.pending_block() as (block, receipts):
            total = self.chain.total_difficulty(self.dev.head.hash) + block.header.difficulty
            return block_fields(block, receipts, total, full=full_transaction, pending=True)

    def get_block_by_hash(self, block_hash: bytes, full_transaction: bool = True) -> dict[str, Any]:
        if self.chain.knows(block_hash):
            block = self.chain.block(block_hash)
            if self.dev.is_canonical(block):
                return self._block_fields(block, full_transaction)
        raise BlockNotFound(f"No block found for block hash: 0x{block_hash.hex()}")

    def get_transaction_by_hash(self, transaction_hash: bytes) -> dict[str, Any]:
        return transaction_fields(self._find(transaction_hash))

    def get_transaction_receipt(self, transaction_hash: bytes) -> dict[str, Any]:
        mined = self._find(transaction_hash)
        header = mined.block.header
        return receipt_fields(mined, self.chain.step_after(header).blob_price(header.excess_blob_gas))

    def get_fee_history(
        self, block_count: int = 1, newest_block: Any = "latest", reward_percentiles: Sequence[int] = ()
    ) -> dict[str, Any]:
        """As eth-tester has it: of the blocks before the newest, the newest first, and without rewards."""
        if isinstance(block_count, int) and not 1 <= block_count <= MAX_BLOCKS:
            raise ValidationError("block_count must be between 1 and 1024")
        newest = self.chain.block(self._which("latest" if newest_block == PENDING else newest_block)).number
        headers = [
            self.chain.block(number).header for number in range(newest - 1, max(newest - 1 - block_count, -1), -1)
        ]
        return {
            "oldest_block": 1,
            "base_fee_per_gas": [header.base_fee for header in headers],
            "gas_used_ratio": [header.gas_used / header.gas_limit for header in headers],
            "reward": [],
        }

    # -- the state

    def get_nonce(self, account: bytes, block_number: Any = "latest") -> int:
        with self.dev.at(self._which(block_number)) as (state, _, _):
            return state.account(account).nonce

    def get_balance(self, account: bytes, block_number: Any = "latest") -> int:
        with self.dev.at(self._which(block_number)) as (state, _, _):
            return state.account(account).balance

    def get_code(self, account: bytes, block_number: Any = "latest") -> bytes:
        with self.dev.at(self._which(block_number)) as (state, _, _):
            return state.account(account).code

    def get_storage(self, account: bytes, slot: int, block_number: Any = "latest") -> int:
        with self.dev.at(self._which(block_number)) as (state, _, _):
            return state.storage(account, slot)

    def get_base_fee(self, block_number: Any = "latest") -> int:
        with self.dev.at(self._which(block_number)) as (_, block, _):
            return block.base_fee

    # -- transactions

    def send_transaction(self, transaction: Mapping[str, Any]) -> bytes:
        key = self.dev.keys.get(transaction["from"])
        if key is None:
            raise ValidationError(
                'No valid "from" key was provided in the transaction which is required for transaction signing.'
            )
        tx = self._request(transaction, "latest", self.dev.next_nonce(transaction["from"]))
        chain_id = transaction.get("chain_id", self.dev.chain_id if tx.type else None)
        return self._send(sign(tx, key, chain_id), tx)

    def send_signed_transaction(self, signed_transaction: Mapping[str, Any], block_number: Any = "latest") -> bytes:
        tx = self._request(signed_transaction, block_number, self.dev.next_nonce(signed_transaction["from"]))
        return self._send(signed_request(signed_transaction, tx, self.dev.chain_id), tx)

    def send_raw_transaction(self, raw_transaction: bytes) -> bytes:
        with translated():
            raw = bytes(raw_transaction)
            parts = network_parts(raw)
            signed = decode_transaction(raw if parts is None else raw[:1] + encode(parts[0]))
            tx = signed.transaction()
        return self._send(signed, tx)

    def call(self, transaction: Mapping[str, Any], block_number: Any = "latest") -> bytes:
        which = self._which(block_number)
        tx = self._request(transaction, block_number, None)
        state = self.chain.state
        with translated(tx, state, expected := self.get_nonce(tx.sender, block_number)):
            if tx.nonce not in (None, expected):
                raise Rejected(RejectReason.NONCE_MISMATCH_TOO_LOW)
            done = self.dev.call(tx, which)
        check_success(done)
        return done.output

    def estimate_gas(self, transaction: Mapping[str, Any], block_number: Any = "latest") -> int:
        if block_number == PENDING:
            raise NotImplementedError('"pending" block identifier is unsupported in eth-tester')
        most = self.chain.block(self._which(block_number)).header.gas_limit
        tx = self._request({**transaction, "gas": most}, block_number, None)
        free = replace(tx, gas_price=None if tx.gas_price is None else 0, max_fee=None if tx.max_fee is None else 0)
        free.max_priority_fee = None if tx.max_fee is None else 0
        with translated(tx, self.chain.state):
            try:
                return self.dev.estimate_gas(free, self._which(block_number))
            except EstimateFailed as error:
                check_success(error.result)
                raise

    # -- parts

    def _which(self, block_number: Any) -> Which:
        if block_number in LATEST:
            return self.dev.head.number
        if block_number == "earliest":
            return self.chain.genesis.block.number
        if block_number == PENDING:
            return PENDING
        if isinstance(block_number, int):
            try:
                return self.chain.block(block_number).number
            except BadValue:
                pass
        raise BlockNotFound(f"No block found for block number: {block_number}")

    def _block_fields(self, block: SealedBlock, full: bool) -> dict[str, Any]:
        total = self.chain.total_difficulty(block.hash)
        return block_fields(block, self.chain.receipts(block.hash), total, full=full, pending=False)

    def _find(self, transaction_hash: bytes) -> Mined:
        mined = self.dev.find(transaction_hash)
        if mined is None:
            raise TransactionNotFound(f"No transaction found for transaction hash: 0x{transaction_hash.hex()}")
        return mined

    def _request(self, fields: Mapping[str, Any], block_number: Any, nonce: int | None) -> Transaction:
        head = self.dev.head.header
        return request(
            fields,
            nonce=nonce,
            gas=head.gas_limit,
            base_fee=head.base_fee or 0,
            market=self.dev.upcoming()[1].fork >= Fork.LONDON,
        )

    def _send(self, signed: SignedTransaction, tx: Transaction) -> bytes:
        expected = self.dev.next_nonce(tx.sender)
        with translated(tx, self.chain.state, expected):
            return self.dev.send(signed)
