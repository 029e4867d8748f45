"""Whole transactions: read from what people write, processed, and answered with a `Result`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fusevm.chain.checks import Checks, checks_of
from fusevm.chain.environment import Block
from fusevm.chain.processing import process_valid
from fusevm.chain.result import Result
from fusevm.chain.transaction import Authorization, Transaction, to_authorizations, validate
from fusevm.machine.messages import GAS_BITS, ZERO
from fusevm.machine.scope import Scopes
from fusevm.machine.turns import in_turn, refuse
from fusevm.values import (
    AccessListLike,
    AddressLike,
    BadValue,
    BytesLike,
    Number,
    Word,
    to_access_list,
    to_address,
    to_bytes,
    to_hashes,
    to_number,
)

if TYPE_CHECKING:
    from fusevm.chain.signed import SignedTransaction

NONCE_BITS = 64
MAX_GAS = (1 << GAS_BITS) - 1


class Transactions(Scopes):
    """Runs transactions, with what they pay and count."""

    def transact(
        self,
        sender: AddressLike,
        to: AddressLike | None = None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        gas: Number | None = None,
        nonce: Number | None = None,
        gas_price: Number | None = None,
        max_fee: Number | None = None,
        max_priority_fee: Number | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        max_blob_fee: Number = 0,
        authorizations: Iterable[Authorization | Mapping[str, Any]] | None = None,
    ) -> Result:
        """A whole transaction: validated, paid for, its nonce counted. Raises `Rejected` if it is invalid.

        Without a fee it pays the block's base fee; without `gas` it may use all that a transaction of this fork may.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> evm.set_balance(alice, 10**18)
        >>> evm.transact(alice, "0x" + "b0" * 20, value=5, gas_price=1).gas_used, evm.get_nonce(alice)
        (21000, 1)
        """
        tx = self.read_transaction(
            sender, to, data, value=value, gas=gas, nonce=nonce, gas_price=gas_price, max_fee=max_fee,
            max_priority_fee=max_priority_fee, access_list=access_list, blob_hashes=blob_hashes,
            max_blob_fee=max_blob_fee, authorizations=authorizations,
        )  # fmt: skip
        return self._process(tx)

    def send_raw(self, transaction: BytesLike | SignedTransaction) -> Result:
        """A signed transaction as the wire has it, of types 0 to 4: its signature is checked, then it runs.

        Raises `Rejected` for what is not one, is not for this chain (`evm.block.chain_id`), or may not run.

        >>> from fusevm import EVM
        >>> from fusevm.chain.signed import sign
        >>> from fusevm.chain.transaction import Transaction
        >>> evm, key = EVM(), bytes(31) + bytes([1])
        >>> evm.set_balance("0x7e5f4552091a69125d5dfcb7b8c2659029395bdf", 10**18)  # the key's account
        >>> signed = sign(Transaction(b"", b"\\xb0" * 20, value=5, gas_limit=21_000, nonce=0), key, chain_id=1)
        >>> evm.send_raw(signed.encoded).gas_used, evm.get_balance("0x" + "b0" * 20)
        (21000, 5)
        """
        from fusevm.chain.signed import SignedTransaction, decode_transaction

        if not isinstance(transaction, SignedTransaction):
            transaction = decode_transaction(to_bytes(transaction, "transaction"))
        transaction.check_signature(self._block.chain_id if self._checks.chain_id else None, self._rules)
        return self._process(transaction.transaction())

    def read_transaction(
        self,
        sender: AddressLike,
        to: AddressLike | None = None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        gas: Number | None = None,
        nonce: Number | None = None,
        gas_price: Number | None = None,
        max_fee: Number | None = None,
        max_priority_fee: Number | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        max_blob_fee: Number = 0,
        authorizations: Iterable[Authorization | Mapping[str, Any]] | None = None,
    ) -> Transaction:
        """The transaction that `transact` would run with these arguments.

        >>> from fusevm import EVM
        >>> EVM().read_transaction(0xA1, 0xB0, value=5, gas=21_000).gas_limit
        21000
        """
        if gas_price is not None and not (max_fee is None and max_priority_fee is None):
            raise BadValue("gas_price: give it or the fees of EIP-1559 (max_fee, max_priority_fee), not both")
        if max_priority_fee is not None and max_fee is None:
            raise BadValue("max_priority_fee: needs a max_fee")
        block = self.block
        if gas is None:
            gas = min(block.gas_limit, self._rules.tx_gas_cap, MAX_GAS)
        if gas_price is None and max_fee is None:
            gas_price = block.base_fee
        tx = Transaction(
            to_address(sender, "sender"),
            None if to is None else to_address(to, "to"),
            data if type(data) is bytes else to_bytes(data),
            0 if value is ZERO else to_number(value, "value"),
            to_number(gas, "gas", bits=GAS_BITS),
            None if nonce is None else to_number(nonce, "nonce", bits=NONCE_BITS),
            None if gas_price is None else to_number(gas_price, "gas_price"),
            None if max_fee is None else to_number(max_fee, "max_fee"),
            None if max_priority_fee is None else to_number(max_priority_fee, "max_priority_fee"),
            None if access_list is None else to_access_list(access_list),
            None if blob_hashes is None else to_hashes(blob_hashes, "blob_hashes"),
            0 if max_blob_fee is ZERO else to_number(max_blob_fee, "max_blob_fee"),
            None if authorizations is None else to_authorizations(authorizations),
        )
        if tx.max_blob_fee and tx.blob_hashes is None:
            raise BadValue("max_blob_fee: needs blob_hashes")
        return tx

    def _process(self, tx: Transaction, checks: Checks | None = None, *, unchecked_in: Block | None = None) -> Result:
        """Runs a transaction; with `unchecked_in` a block, an unsigned one."""
        return in_turn(self, refuse, self._run_transaction, tx, checks or self._checks, unchecked_in)

    def _run_transaction(self, tx: Transaction, checks: Checks, unchecked_in: Block | None) -> Result:
        state, block = self._state, self._block if unchecked_in is None else unchecked_in
        checks = checks_of(tx.sender, checks)
        if state.source is not None:
            self._prefetch(tx)
        context = self._new_context(tx.sender, tx.effective_gas_price(block.base_fee), tx.blob_hashes or ())
        context.block = block
        if unchecked_in is None:
            validate(tx, state, block, self._rules, None, checks)
        return process_valid(context, tx, state, self._run, checks)

    def _prefetch(self, tx: Transaction) -> None:
        """What the transaction names is loaded in one go."""
        named = (tx.sender, self._block.coinbase, tx.sender if tx.to is None else tx.to)
        if tx.access_list:
            places = [(address, key) for address, keys in tx.access_list for key in keys]
            self._state.prefetch((*named, *(address for address, _ in tx.access_list)), places)
        else:
            self._state.prefetch(named)
