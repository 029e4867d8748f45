"""pyrevm's environment: configuration, block, transaction, accounts. Fields that it does not let be set, cannot be."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.chain.state import EMPTY_CODE_HASH
from fusevm.compat.pyrevm.arguments import address_of, bytes_of, checksummed, number_of, optional_number, word_of
from fusevm.evm.keccak import keccak256
from fusevm.values import AccessList

MAX_U64 = (1 << 64) - 1
MAX_U256 = (1 << 256) - 1
CANCUN_FRACTION = 3_338_477  # how pyrevm prices blobs, at every fork
ANALYSES = ("raw", "check", "analyse")
ZERO_ADDRESS = bytes(20)


def fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """EIP-4844: factor * e^(numerator / denominator), in integers."""
    factor, numerator, denominator = (
        number_of(value, name, 64)
        for name, value in (("factor", factor), ("numerator", numerator), ("denominator", denominator))
    )
    if denominator == 0:
        raise ZeroDivisionError("attempt to divide by zero")
    total, step, i = 0, factor * denominator, 1
    while step:
        total += step
        step = step * numerator // (denominator * i)
        i += 1
    return total // denominator


class CfgEnv:
    """The chain's id and what code it takes."""

    def __init__(
        self,
        chain_id: int | None = None,
        limit_contract_code_size: int | None = None,
        perf_analyse_created_bytecodes: str | None = None,
    ) -> None:
        self._chain_id = optional_number(chain_id, "chain_id", 1, 64)
        self._limit = limit_contract_code_size
        self._analysis = "analyse" if perf_analyse_created_bytecodes is None else perf_analyse_created_bytecodes
        if self._analysis not in ANALYSES:
            raise ValueError("Invalid analysis kind. Expected 'raw', 'check', or 'analyse'")

    @property
    def chain_id(self) -> int:
        return self._chain_id

    @property
    def limit_contract_code_size(self) -> int | None:
        return self._limit

    @property
    def perf_analyse_created_bytecodes(self) -> str:
        """Accepted and ignored: fusevm analyses code itself."""
        return self._analysis


class BlockEnv:
    """The block that calls run in."""

    def __init__(
        self,
        number: int | None = None,
        coinbase: str | None = None,
        timestamp: int | None = None,
        difficulty: int | None = None,
        prevrandao: bytes | None = None,
        basefee: int | None = None,
        gas_limit: int | None = None,
        excess_blob_gas: int | None = None,
    ) -> None:
        self._number = optional_number(number, "number")
        self._coinbase = ZERO_ADDRESS if coinbase is None else address_of(coinbase, "coinbase")
        self._timestamp = optional_number(timestamp, "timestamp", 1)
        self._difficulty = optional_number(difficulty, "difficulty")
        self._prevrandao = bytes(32) if prevrandao is None else word_of(prevrandao, "prevrandao")
        self._basefee = optional_number(basefee, "basefee")
        self._gas_limit = optional_number(gas_limit, "gas_limit", MAX_U64)
        self._excess_blob_gas = optional_number(excess_blob_gas, "excess_blob_gas", 0, 64)

    @property
    def number(self) -> int:
        return self._number

    @number.setter
    def number(self, value: int | None) -> None:
        self._number = optional_number(value, "number")

    @property
    def coinbase(self) -> str:
        return checksummed(self._coinbase)

    @property
    def timestamp(self) -> int:
        return self._timestamp

    @timestamp.setter
    def timestamp(self, value: int | None) -> None:
        self._timestamp = optional_number(value, "timestamp", 1)

    @property
    def difficulty(self) -> int:
        return self._difficulty

    @property
    def prevrandao(self) -> bytes:
        return self._prevrandao

    @property
    def basefee(self) -> int:
        """Kept, and not looked at: calls see a base fee of zero, as in pyrevm."""
        return self._basefee

    @property
    def gas_limit(self) -> int:
        return self._gas_limit

    @property
    def excess_blob_gas(self) -> int:
        return self._excess_blob_gas

    @excess_blob_gas.setter
    def excess_blob_gas(self, value: int | None) -> None:
        self._excess_blob_gas = optional_number(value, "excess_blob_gas", 0, 64)

    @property
    def blob_gasprice(self) -> int:
        return fake_exponential(1, self._excess_blob_gas, CANCUN_FRACTION)


class TxEnv:
    """The transaction that calls run in. Of it the access list, blobs, nonce and chain are looked at."""

    def __init__(
        self,
        caller: str | None = None,
        gas_limit: int | None = None,
        gas_price: int | None = None,
        gas_priority_fee: int | None = None,
        to: str | None = None,
        value: int | None = None,
        data: bytes | None = None,
        chain_id: int | None = None,
        nonce: int | None = None,
        salt: int | None = None,
        access_list: Iterable[tuple[str, Iterable[int]]] | None = None,
        blob_hashes: Iterable[bytes] | None = None,
        max_fee_per_blob_gas: int | None = None,
    ) -> None:
        self._caller = ZERO_ADDRESS if caller is None else address_of(caller, "caller")
        self._gas_limit = optional_number(gas_limit, "gas_limit", MAX_U64, 64)
        self._gas_price = optional_number(gas_price, "gas_price")
        self._gas_priority_fee = gas_priority_fee
        self._to = None if to is None else address_of(to, "to")
        self._value = optional_number(value, "value")
        self._data = bytes_of(data, "data")
        self._chain_id = chain_id
        self._nonce = nonce
        self._salt = salt
        self._access_list: AccessList = tuple(
            (address_of(address, "access_list"), tuple(number_of(key, "access_list") for key in keys))
            for address, keys in access_list or ()
        )
        self._max_fee_per_blob_gas: int | None = None
        self.blob_hashes = list(blob_hashes or ())
        self.max_fee_per_blob_gas = max_fee_per_blob_gas

    @property
    def caller(self) -> str:
        return checksummed(self._caller)

    @property
    def gas_limit(self) -> int:
        return self._gas_limit

    @property
    def gas_price(self) -> int:
        return self._gas_price

    @property
    def gas_priority_fee(self) -> int | None:
        return self._gas_priority_fee

    @property
    def to(self) -> str | None:
        return None if self._to is None else "0x" + self._to.hex()

    @property
    def value(self) -> int:
        return self._value

    @property
    def data(self) -> bytes:
        return self._data

    @property
    def chain_id(self) -> int | None:
        return self._chain_id

    @property
    def nonce(self) -> int | None:
        return self._nonce

    @property
    def salt(self) -> int | None:
        return self._salt

    @property
    def access_list(self) -> list[tuple[str, list[int]]]:
        return [(checksummed(address), list(keys)) for address, keys in self._access_list]

    @property
    def blob_hashes(self) -> list[bytes]:
        return list(self._blob_hashes)

    @blob_hashes.setter
    def blob_hashes(self, value: Iterable[bytes]) -> None:
        self._blob_hashes = tuple(word_of(each, "blob_hashes") for each in value)

    @property
    def max_fee_per_blob_gas(self) -> int | None:
        return self._max_fee_per_blob_gas

    @max_fee_per_blob_gas.setter
    def max_fee_per_blob_gas(self, value: int | None) -> None:
        self._max_fee_per_blob_gas = None if value is None else number_of(value, "max_fee_per_blob_gas")


class Env:
    """Configuration, block and transaction."""

    def __init__(self, cfg: CfgEnv | None = None, block: BlockEnv | None = None, tx: TxEnv | None = None) -> None:
        self._cfg = CfgEnv() if cfg is None else cfg
        self._block = BlockEnv(gas_limit=MAX_U256) if block is None else block
        self._tx = TxEnv(to="00" * 20) if tx is None else tx

    @property
    def cfg(self) -> CfgEnv:
        return self._cfg

    @property
    def block(self) -> BlockEnv:
        return self._block

    @property
    def tx(self) -> TxEnv:
        return self._tx


class AccountInfo:
    """An account without its storage."""

    def __init__(
        self,
        balance: int | None = None,
        nonce: int = 0,
        code_hash: bytes | None = None,
        code: bytes | None = None,
    ) -> None:
        self._balance = optional_number(balance, "balance")
        self._nonce = number_of(nonce, "nonce", 64)
        if code is not None and not isinstance(code, bytes):
            raise TypeError(f"argument 'code': '{type(code).__name__}' object cannot be converted to 'PyBytes'")
        self._code = code
        computed = EMPTY_CODE_HASH if not code else keccak256(code)
        self._code_hash = computed if code_hash is None else word_of(code_hash, "code_hash")

    @property
    def balance(self) -> int:
        return self._balance

    @property
    def nonce(self) -> int:
        return self._nonce

    @property
    def code(self) -> bytes | None:
        return self._code

    @property
    def code_hash(self) -> bytes:
        return self._code_hash
