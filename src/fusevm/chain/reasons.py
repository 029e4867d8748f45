"""Why a transaction or a block is refused, and the exceptions that say so. The names are those of Ethereum's tests."""

from __future__ import annotations

from enum import Enum


class RejectReason(Enum):
    """Why a transaction may not run: `TransactionException` in Ethereum's tests.

    >>> RejectReason.NONCE_MISMATCH_TOO_LOW.value
    'nonce too low'
    """

    TYPE_NOT_SUPPORTED = "no transaction is of this type"
    TYPE_1_TX_PRE_FORK = "access lists come with Berlin"
    TYPE_2_TX_PRE_FORK = "fee-market transactions come with London"
    TYPE_3_TX_PRE_FORK = "blob transactions come with Cancun"
    TYPE_4_TX_PRE_FORK = "set-code transactions come with Prague"
    NONCE_MISMATCH_TOO_LOW = "nonce too low"
    NONCE_MISMATCH_TOO_HIGH = "nonce too high"
    NONCE_IS_MAX = "nonce at its maximum"
    SENDER_NOT_EOA = "the sender has code"
    INSUFFICIENT_ACCOUNT_FUNDS = "the sender cannot pay"
    INTRINSIC_GAS_TOO_LOW = "gas limit below the intrinsic cost"
    INTRINSIC_GAS_BELOW_FLOOR_GAS_COST = "gas limit below the calldata floor"
    GAS_ALLOWANCE_EXCEEDED = "gas limit over what the block has left"
    GAS_LIMIT_EXCEEDS_MAXIMUM = "gas limit over the cap of a transaction"
    GASLIMIT_PRICE_PRODUCT_OVERFLOW = "gas limit times price overflows"
    INITCODE_SIZE_EXCEEDED = "init code too large"
    INSUFFICIENT_MAX_FEE_PER_GAS = "fee below the base fee"
    PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS = "priority fee over the maximum fee"
    INSUFFICIENT_MAX_FEE_PER_BLOB_GAS = "blob fee below the blob base fee"
    TYPE_3_TX_ZERO_BLOBS = "a blob transaction without blobs"
    TYPE_3_TX_BLOB_COUNT_EXCEEDED = "too many blobs"
    TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED = "more blobs than the block has room for"
    TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH = "a blob hash of unknown version"
    TYPE_3_TX_WITH_FULL_BLOBS = "the network form of a blob transaction, with its blobs"
    TYPE_3_TX_CONTRACT_CREATION = "a blob transaction cannot create"
    TYPE_4_EMPTY_AUTHORIZATION_LIST = "no authorizations"
    TYPE_4_TX_CONTRACT_CREATION = "a set-code transaction cannot create"
    TYPE_4_INVALID_AUTHORIZATION_FORMAT = "an authorization of the wrong form"
    TYPE_4_INVALID_AUTHORITY_SIGNATURE = "an authorization's signature does not fit its fields"
    INVALID_CHAINID = "signed for another chain"
    INVALID_SIGNATURE_VRS = "signature values out of range"
    EC_RECOVERY_FAIL = "the signature is of no key"
    NONCE_OVERFLOW = "nonce over 64 bits"
    GASLIMIT_OVERFLOW = "gas limit over 64 bits"
    GASPRICE_OVERFLOW = "gas price over 256 bits"
    PRIORITY_OVERFLOW = "priority fee over 256 bits"
    VALUE_OVERFLOW = "value over 256 bits"
    ADDRESS_TOO_SHORT = "recipient under 20 bytes"
    ADDRESS_TOO_LONG = "recipient over 20 bytes"
    RLP_TOO_FEW_ELEMENTS = "too few fields"
    RLP_TOO_MANY_ELEMENTS = "too many fields"
    RLP_ERROR_EOF = "the encoding is cut off"
    RLP_ERROR_SIZE = "bytes after the end of the encoding"
    RLP_ERROR_SIZE_LEADING_ZEROS = "a length that has a shorter encoding"
    RLP_INVALID_HEADER = "not the encoding of a transaction"
    RLP_INVALID_NONCE = "nonce is not a number"
    RLP_INVALID_GASLIMIT = "gas limit is not a number"
    RLP_INVALID_TO = "recipient is not an address"
    RLP_INVALID_VALUE = "a field is not a number"
    RLP_INVALID_DATA = "a field of the wrong form"
    RLP_INVALID_SIGNATURE_R = "r is not a number of 256 bits"
    RLP_INVALID_SIGNATURE_S = "s is not a number of 256 bits"
    RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_LONG = "an address of the access list over 20 bytes"
    RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_SHORT = "an address of the access list under 20 bytes"
    RLP_INVALID_ACCESS_LIST_STORAGE_TOO_LONG = "a key of the access list over 32 bytes"
    RLP_INVALID_ACCESS_LIST_STORAGE_TOO_SHORT = "a key of the access list under 32 bytes"
    RLP_LEADING_ZEROS_NONCE = "nonce with leading zeros"
    RLP_LEADING_ZEROS_GASLIMIT = "gas limit with leading zeros"
    RLP_LEADING_ZEROS_GASPRICE = "gas price with leading zeros"
    RLP_LEADING_ZEROS_BASEFEE = "maximum fee with leading zeros"
    RLP_LEADING_ZEROS_PRIORITY_FEE = "priority fee with leading zeros"
    RLP_LEADING_ZEROS_VALUE = "value with leading zeros"
    RLP_LEADING_ZEROS_V = "v with leading zeros"
    RLP_LEADING_ZEROS_R = "r with leading zeros"
    RLP_LEADING_ZEROS_S = "s with leading zeros"


class BlockReason(Enum):
    """Why a block is refused: `BlockException` in Ethereum's tests.

    >>> BlockReason.UNKNOWN_PARENT.value
    'the parent is not known'
    """

    RLP_STRUCTURES_ENCODING = "not the encoding of a block"
    RLP_INVALID_FIELD_OVERFLOW_64 = "a field over 64 bits"
    RLP_INVALID_ADDRESS = "an address that is not 20 bytes"
    RLP_WITHDRAWALS_NOT_READ = "withdrawals are missing"
    RLP_BLOCK_LIMIT_EXCEEDED = "the encoding is over the size limit"
    INCORRECT_BLOCK_FORMAT = "fields that are not those of the block's fork"
    UNKNOWN_PARENT = "the parent is not known"
    UNKNOWN_PARENT_ZERO = "the parent hash is zero"
    INVALID_BLOCK_NUMBER = "number is not the parent's plus one"
    INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT = "timestamp not after the parent's"
    INVALID_GASLIMIT = "gas limit too far from the parent's, or too small"
    GASLIMIT_TOO_BIG = "gas limit over 2^63 - 1"
    EXTRA_DATA_TOO_BIG = "extra data over 32 bytes"
    EXTRA_DATA_INVALID_DAO = "extra data of the ten blocks from the DAO fork must be 'dao-hard-fork'"
    INVALID_DIFFICULTY = "wrong difficulty"
    IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS = "difficulty must be zero since Paris"
    IMPORT_IMPOSSIBLE_PARIS_WRONG_POW = "nonce must be zero since Paris"
    IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS = "ommers since Paris"
    INVALID_BASEFEE_PER_GAS = "wrong base fee"
    INVALID_GAS_USED_ABOVE_LIMIT = "gas used over the gas limit"
    INVALID_GAS_USED = "wrong gas used"
    INCORRECT_EXCESS_BLOB_GAS = "wrong excess blob gas"
    INCORRECT_BLOB_GAS_USED = "wrong blob gas used"
    BLOB_GAS_USED_ABOVE_LIMIT = "blob gas used over the limit"
    INVALID_TRANSACTIONS_ROOT = "wrong transactions root"
    INVALID_RECEIPTS_ROOT = "wrong receipts root"
    INVALID_WITHDRAWALS_ROOT = "wrong withdrawals root"
    INVALID_STATE_ROOT = "wrong state root"
    INVALID_LOG_BLOOM = "wrong logs bloom"
    INVALID_UNCLES_HASH = "wrong ommers hash"
    INVALID_REQUESTS = "wrong requests hash"
    INVALID_DEPOSIT_EVENT_LAYOUT = "a deposit event of the wrong layout"
    SYSTEM_CONTRACT_EMPTY = "a system contract has no code"
    SYSTEM_CONTRACT_CALL_FAILED = "a system contract failed"
    TOO_MANY_UNCLES = "more than two ommers"
    UNCLE_IN_CHAIN = "an ommer that is in the chain already"
    UNCLE_IS_ANCESTOR = "an ommer that is an ancestor"
    UNCLE_IS_BROTHER = "the same ommer twice"
    UNCLE_PARENT_INCORRECT = "an ommer whose parent is too far back, or the block's own"
    UNCLE_UNKNOWN_PARENT = "an ommer whose parent is not known"


class Rejected(Exception):
    """The transaction is invalid; nothing has happened.

    >>> print(Rejected(RejectReason.NONCE_MISMATCH_TOO_LOW, "1, expected 2"))
    transaction rejected: nonce too low (1, expected 2)
    """

    def __init__(self, reason: RejectReason, detail: str = "") -> None:
        super().__init__(reason, detail)  # what it is made from: pickle makes it again from `args`
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"transaction rejected: {self.reason.value}" + (f" ({self.detail})" if self.detail else "")

    @property
    def official_name(self) -> str:
        return f"TransactionException.{self.reason.name}"


class InvalidBlock(Exception):
    """The block is refused; the chain is as it was. The reason is the block's own, or that of a transaction in it.

    >>> print(InvalidBlock(BlockReason.UNKNOWN_PARENT))
    block refused: the parent is not known
    """

    def __init__(self, reason: BlockReason | RejectReason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"block refused: {self.reason.value}" + (f" ({self.detail})" if self.detail else "")

    @property
    def official_name(self) -> str:
        """As Ethereum's tests spell it, `BlockException.INVALID_STATE_ROOT` say."""
        family = "BlockException" if isinstance(self.reason, BlockReason) else "TransactionException"
        return f"{family}.{self.reason.name}"
