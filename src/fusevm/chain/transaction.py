"""A transaction: what it asks for, whether it may run, and what it costs before a single opcode has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fusevm.chain.checks import ALL_CHECKS, Checks
from fusevm.chain.environment import Block
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.state import State
from fusevm.evm import gas
from fusevm.evm.forks import Rules
from fusevm.evm.limits import MAX_NONCE
from fusevm.values import (
    AccessList,
    AddressLike,
    Number,
    Word,
    fields_of,
    to_address,
    to_instance,
    to_list,
    to_number,
    to_word,
)

MAX_WORD = (1 << 256) - 1


@dataclass(frozen=True, slots=True)
class Authorization:
    """EIP-7702: a signer lets its account run another's code. Values over the widths of the EIP are refused.

    >>> Authorization(chain_id=1, address="0x" + "c0" * 20, nonce=0, y_parity=0, r="0x1", s=b"\\x01").s
    1
    """

    chain_id: int
    address: bytes  # or hex text, or a number
    nonce: int
    y_parity: int
    r: int  # or up to 32 bytes, as s
    s: int

    if TYPE_CHECKING:

        def __init__(
            self, chain_id: Number, address: AddressLike, nonce: Number, y_parity: Number, r: Word, s: Word
        ) -> None: ...

    def __post_init__(self) -> None:
        for name, read in _AUTHORIZATION.items():
            object.__setattr__(self, name, read(getattr(self, name), f"authorization {name}"))


_AUTHORIZATION: dict[str, Callable[[Any, str], Any]] = {
    "chain_id": to_number,
    "address": to_address,
    "nonce": partial(to_number, bits=64),
    "y_parity": partial(to_number, bits=8),
    "r": to_word,
    "s": to_word,
}
AUTHORIZATION = dict(zip(("chainId", "address", "nonce", "yParity", "r", "s"), _AUTHORIZATION, strict=True))  # in JSON


def to_authorizations(
    value: Iterable[Authorization | Mapping[str, Any]], what: str = "authorizations"
) -> tuple[Authorization, ...]:
    """`Authorization`s, or JSON-RPC's objects of the same fields."""
    return tuple(_authorization(each, f"{what}[{at}]") for at, each in enumerate(to_list(value, what)))


def _authorization(entry: Any, what: str) -> Authorization:
    if isinstance(entry, Mapping):
        given = zip(AUTHORIZATION, fields_of(entry, tuple(AUTHORIZATION), what), _AUTHORIZATION.values(), strict=True)
        return Authorization(*(read(value, f"{what}.{key}") for key, value, read in given))
    checked: Authorization = to_instance(entry, Authorization, what)
    return checked


@dataclass(slots=True)
class Transaction:
    """One that has been read: its values are of the types below. `EVM.transact` reads what people write."""

    sender: bytes
    to: bytes | None = None  # None creates a contract
    data: bytes = b""
    value: int = 0
    gas_limit: int = 30_000_000
    nonce: int | None = None  # None takes the sender's
    gas_price: int | None = None  # None where the fee fields of EIP-1559 are given
    max_fee: int | None = None
    max_priority_fee: int | None = None
    access_list: AccessList | None = None
    blob_hashes: tuple[bytes, ...] | None = None
    max_blob_fee: int = 0
    authorizations: tuple[Authorization, ...] | None = None

    @property
    def type(self) -> int:
        if self.authorizations is not None:
            return 4
        if self.blob_hashes is not None:
            return 3
        if self.max_fee is not None:
            return 2
        return 1 if self.access_list is not None else 0

    @property
    def creates(self) -> bool:
        return self.to is None

    @property
    def blob_gas(self) -> int:
        return gas.BLOB_GAS * len(self.blob_hashes or ())

    def fee_cap(self) -> int:
        """The most it would pay for a unit of gas."""
        return self.max_fee if self.max_fee is not None else self.gas_price or 0

    def effective_gas_price(self, base_fee: int) -> int:
        if self.max_fee is None:
            return self.gas_price or 0
        return min(base_fee + (self.max_priority_fee or 0), self.max_fee)

    def most_spent(self, blob_fee: int) -> int:
        """What the sender must have at most, at a price of blobs."""
        return self.gas_limit * self.fee_cap() + self.value + self.blob_gas * blob_fee


def intrinsic_gas(
    rules: Rules,
    data: bytes,
    creates: bool = False,
    access_list: AccessList = (),
    authorizations: int = 0,
) -> int:
    """What a transaction costs before any code runs (EIP-2028, 2930, 3860, 7702)."""
    zeros = data.count(0)
    cost = rules.tx_base + gas.calldata_cost(rules, zeros, len(data) - zeros)
    if creates:
        cost += gas.transaction_creation_cost(rules, len(data))
    for _, keys in access_list:
        cost += gas.access_list_cost(rules, 1, len(keys))
    return cost + rules.authorization * authorizations


def floor_gas(rules: Rules, data: bytes) -> int:
    """EIP-7623: data-heavy transactions pay at least this."""
    zeros = data.count(0)
    return gas.calldata_floor(rules, zeros, len(data) - zeros)


def intrinsic_gas_of(tx: Transaction, rules: Rules) -> int:
    return intrinsic_gas(rules, tx.data, tx.creates, tx.access_list or (), len(tx.authorizations or ()))


class BlockSpace(NamedTuple):
    """What is left of a block for a transaction."""

    gas: int
    blobs: int


def validate(
    tx: Transaction,
    state: State,
    block: Block,
    rules: Rules,
    room: BlockSpace | None = None,
    checks: Checks = ALL_CHECKS,
) -> None:
    """Raises Rejected, naming the first thing that is wrong, in the order of the executable specification.

    Without `room` the transaction has the block to itself.
    """
    if tx.type > rules.newest_tx_type:
        raise Rejected(_PRE_FORK[tx.type], f"at {rules.fork.label}")
    most_blobs = rules.blob_max if block.blob_max is None else block.blob_max
    _validate_gas(tx, state.account(tx.sender).nonce, rules)
    if not checks.gas_cap:
        room = BlockSpace(tx.gas_limit, most_blobs if room is None else room.blobs)
    _validate_room(tx, BlockSpace(block.gas_limit, most_blobs) if room is None else room)
    _validate_fees(tx, block, rules, checks)
    _validate_by_type(tx, block, rules)
    _validate_sender(tx, state, rules, checks)


_PRE_FORK = {
    1: RejectReason.TYPE_1_TX_PRE_FORK,
    2: RejectReason.TYPE_2_TX_PRE_FORK,
    3: RejectReason.TYPE_3_TX_PRE_FORK,
    4: RejectReason.TYPE_4_TX_PRE_FORK,
}


def _validate_gas(tx: Transaction, nonce: int, rules: Rules) -> None:
    needed, floor = intrinsic_gas_of(tx, rules), floor_gas(rules, tx.data)
    if tx.gas_limit < needed:
        raise Rejected(RejectReason.INTRINSIC_GAS_TOO_LOW, f"{tx.gas_limit} of {needed}")
    if tx.gas_limit < floor:
        raise Rejected(RejectReason.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST, f"{tx.gas_limit} of {floor}")
    if (nonce if tx.nonce is None else tx.nonce) >= MAX_NONCE:
        raise Rejected(RejectReason.NONCE_IS_MAX)
    if tx.creates and len(tx.data) > rules.max_initcode_size:
        raise Rejected(RejectReason.INITCODE_SIZE_EXCEEDED, f"{len(tx.data)} of {rules.max_initcode_size} bytes")
    if tx.gas_limit > rules.tx_gas_cap:
        raise Rejected(RejectReason.GAS_LIMIT_EXCEEDS_MAXIMUM, f"{tx.gas_limit} of {rules.tx_gas_cap}")


def _validate_room(tx: Transaction, room: BlockSpace) -> None:
    if tx.gas_limit > room.gas:
        raise Rejected(RejectReason.GAS_ALLOWANCE_EXCEEDED, f"{tx.gas_limit} of {room.gas}")
    blobs = len(tx.blob_hashes or ())
    if blobs > room.blobs:
        raise Rejected(RejectReason.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED, f"{blobs} of {room.blobs}")


def _validate_fees(tx: Transaction, block: Block, rules: Rules, checks: Checks) -> None:
    if tx.max_fee is not None and (tx.max_priority_fee or 0) > tx.max_fee:
        raise Rejected(RejectReason.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS)
    if checks.base_fee and rules.newest_tx_type >= 2 and tx.fee_cap() < block.base_fee:
        raise Rejected(RejectReason.INSUFFICIENT_MAX_FEE_PER_GAS, f"{tx.fee_cap()} is under {block.base_fee}")
    if tx.gas_limit * tx.fee_cap() > MAX_WORD:
        raise Rejected(RejectReason.GASLIMIT_PRICE_PRODUCT_OVERFLOW)


def _validate_by_type(tx: Transaction, block: Block, rules: Rules) -> None:
    if tx.type == 3:
        hashes = tx.blob_hashes or ()
        if not hashes:
            raise Rejected(RejectReason.TYPE_3_TX_ZERO_BLOBS)
        if len(hashes) > rules.blob_max_per_tx:
            detail = f"{len(hashes)} of at most {rules.blob_max_per_tx}"
            raise Rejected(RejectReason.TYPE_3_TX_BLOB_COUNT_EXCEEDED, detail)
        if any(len(each) != 32 or not each.startswith(b"\x01") for each in hashes):
            raise Rejected(RejectReason.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH)
        fee = block.blob_base_fee(rules)
        if tx.max_blob_fee < fee:
            raise Rejected(RejectReason.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS, f"{tx.max_blob_fee} is under {fee}")
        if tx.creates:
            raise Rejected(RejectReason.TYPE_3_TX_CONTRACT_CREATION)
    if tx.type == 4:
        if tx.creates:
            raise Rejected(RejectReason.TYPE_4_TX_CONTRACT_CREATION)
        if not tx.authorizations:
            raise Rejected(RejectReason.TYPE_4_EMPTY_AUTHORIZATION_LIST)


def _validate_sender(tx: Transaction, state: State, rules: Rules, checks: Checks) -> None:
    account = state.account(tx.sender)
    if tx.nonce is not None and checks.nonce:
        if tx.nonce < account.nonce:
            raise Rejected(RejectReason.NONCE_MISMATCH_TOO_LOW, f"{tx.nonce}, the account's is {account.nonce}")
        if tx.nonce > account.nonce:
            raise Rejected(RejectReason.NONCE_MISMATCH_TOO_HIGH, f"{tx.nonce}, the account's is {account.nonce}")
    most = tx.most_spent(tx.max_blob_fee)
    if checks.balance and account.balance < most:
        raise Rejected(RejectReason.INSUFFICIENT_ACCOUNT_FUNDS, f"{account.balance} of {most} wei")
    if checks.eoa and account.code and not (rules.delegation and state.delegate_of(tx.sender)):
        raise Rejected(RejectReason.SENDER_NOT_EOA, f"0x{tx.sender.hex()}")
