"""An account: nonce, balance, code and storage; and a mapping of them that notes which have changed."""

from __future__ import annotations

from typing import Any

from fusevm.chain.noting import Noting, Watch
from fusevm.chain.slots import Slots
from fusevm.evm.code_cache import CodeMemo
from fusevm.evm.keccak import keccak256

EMPTY_CODE_HASH = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
DELEGATION_PREFIX = b"\xef\x01\x00"  # EIP-7702: followed by the address whose code runs instead
DELEGATION_SIZE = 23

_hash_of_code = CodeMemo(keccak256, len, 1 << 25)


class Account:
    __slots__ = ("balance", "code", "nonce", "storage", "watch")
    watch: Watch  # only of those that are or were watched

    def __init__(self, nonce: int = 0, balance: int = 0, code: bytes = b"", storage: dict[int, int] | None = None):
        self.nonce = nonce
        self.balance = balance
        self.code = code
        # Non-zero values only. Storage that is loaded on access is kept as it is.
        self.storage: dict[int, int] = Slots(storage or ()) if storage is None or type(storage) is dict else storage

    @property
    def empty(self) -> bool:
        """EIP-161: no nonce, no balance, no code."""
        return not (self.nonce or self.balance or self.code)

    def code_hash(self) -> bytes:
        return _hash_of_code(self.code) if self.code else EMPTY_CODE_HASH

    def copy(self) -> Account:
        return Account(self.nonce, self.balance, self.code, self.storage.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return Account, (self.nonce, self.balance, self.code, self.storage)


class Watched(Account):
    """An account whose next change is reported. It is then a plain one again, so that further changes cost nothing.

    An account becomes watched, and ceases to be, by a change of its class.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        changed, address = self.watch
        changed.add(address)
        object.__setattr__(self, "__class__", Account)
        object.__setattr__(self, name, value)


class Accounts(Noting[bytes, Account]):
    """By address. A reader of roots installs a set, to which the addresses of possibly changed accounts are added."""

    __slots__ = ("changed",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.changed: set[bytes] | None = None  # None: not requested, or not known

    def _note(self, key: bytes) -> None:
        if self.changed is not None:
            self.changed.add(key)

    def _note_all(self) -> None:
        self.changed = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Accounts, (dict(self),)


ABSENT = Account()  # what reading an account that does not exist sees; never written to


def put_slot(mapping: dict[Any, int], key: Any, value: int) -> None:
    """Zero is the same as absent."""
    if value:
        mapping[key] = value
    else:
        mapping.pop(key, None)


def delegate_in(code: bytes) -> bytes | None:
    """EIP-7702: the address that code of this form delegates to."""
    return code[3:] if len(code) == DELEGATION_SIZE and code.startswith(DELEGATION_PREFIX) else None
