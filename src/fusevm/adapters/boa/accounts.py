"""fusevm's state as py-evm's account database: what py-evm runs and what runs natively see the same accounts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from eth.abc import AccountDatabaseAPI
from eth.validation import validate_is_bytes, validate_uint64, validate_uint256
from eth_utils import ValidationError

from fusevm.chain.state import State

NO_ROOT = bytes(32)


class StateAccounts(AccountDatabaseAPI):  # type: ignore[misc]
    """A subclass names the state: py-evm makes the object itself."""

    state: State
    on_code: Callable[[bytes], None]  # told of the code of contracts

    def __init__(self, db: Any = None, state_root: bytes = NO_ROOT) -> None:
        self._ids = count(-1, -1)  # py-evm counts its own upwards, and keeps both in one place
        self._opened: dict[int, tuple[int, int]] = {}  # by id: how many marks were open before, and the mark

    @property
    def state_root(self) -> bytes:
        """Not kept: snapshots are marks in the journal."""
        return NO_ROOT

    @state_root.setter
    def state_root(self, value: bytes) -> None:
        pass

    def has_root(self, state_root: bytes) -> bool:
        return True

    # -- storage

    def get_storage(self, address: bytes, slot: int, from_journal: bool = True) -> int:
        return self.state.storage(address, slot) if from_journal else self.state.original_storage(address, slot)

    def set_storage(self, address: bytes, slot: int, value: int) -> None:
        validate_uint256(value, title="Storage Value")
        validate_uint256(slot, title="Storage Slot")
        self.state.set_storage(address, slot, value)

    def delete_storage(self, address: bytes) -> None:
        for slot in list(self.state.account(address).storage):
            self.state.set_storage(address, slot, 0)

    def is_storage_warm(self, address: bytes, slot: int) -> bool:
        return self.state.is_warm_slot(address, slot)

    def mark_storage_warm(self, address: bytes, slot: int) -> None:
        self.state.warm_slot(address, slot)

    # -- accounts

    def get_balance(self, address: bytes) -> int:
        return self.state.account(address).balance

    def set_balance(self, address: bytes, balance: int) -> None:
        validate_uint256(balance, title="Account Balance")
        self.state.set_balance(address, balance)

    def get_nonce(self, address: bytes) -> int:
        return self.state.account(address).nonce

    def set_nonce(self, address: bytes, nonce: int) -> None:
        validate_uint64(nonce, title="Nonce")
        self.state.set_nonce(address, nonce)

    def increment_nonce(self, address: bytes) -> None:
        self.state.set_nonce(address, self.state.account(address).nonce + 1)

    def get_code(self, address: bytes) -> bytes:
        return self.state.account(address).code

    def set_code(self, address: bytes, code: bytes) -> None:
        validate_is_bytes(code, title="Code")
        type(self).on_code(code)
        self.state.set_code(address, code)

    def get_code_hash(self, address: bytes) -> bytes:
        return self.state.account(address).code_hash()

    def delete_code(self, address: bytes) -> None:
        self.state.set_code(address, b"")

    def account_has_code_or_nonce(self, address: bytes) -> bool:
        account = self.state.account(address)
        return bool(account.code or account.nonce)

    def delete_account(self, address: bytes) -> None:
        self.state.delete(address)

    def account_exists(self, address: bytes) -> bool:
        return self.state.exists(address)

    def touch_account(self, address: bytes) -> None:
        self.state.ensure(address)

    def account_is_empty(self, address: bytes) -> bool:
        return self.state.account(address).empty

    def is_address_warm(self, address: bytes) -> bool:
        return self.state.is_warm(address)

    def mark_address_warm(self, address: bytes) -> None:
        self.state.warm_address(address)

    def _reset_access_counters(self) -> None:
        """Nothing: every call begins cold."""

    def try_prefetch_state(self, message: Any) -> None:
        """Nothing: what a forked state needs is asked for as it is needed."""

    # -- snapshots

    def record(self) -> int:
        opened, mark = self.state.open_marks, self.state.mark()
        self.state.open_mark(mark)
        made = next(self._ids)
        self._opened[made] = opened, mark
        return made

    def discard(self, checkpoint: int) -> None:
        opened, mark = self._closed(checkpoint)
        self.state.close_mark(mark, keep=opened)

    def commit(self, checkpoint: int) -> None:
        opened, _ = self._closed(checkpoint)
        self.state.keep_since(keep=opened)

    def _closed(self, checkpoint: int) -> tuple[int, int]:
        """And with it those opened since."""
        if checkpoint not in self._opened:
            raise ValidationError(f"No checkpoint {checkpoint} was found")
        found = self._opened[checkpoint]
        for each in [each for each in self._opened if each <= checkpoint]:  # they count downwards
            del self._opened[each]
        return found

    def lock_changes(self) -> None:
        pass

    def make_state_root(self) -> bytes:
        return self.state.root()

    def persist(self) -> Any:
        """Nothing: the state lives in memory."""


def accounts_on(state: State, on_code: Callable[[bytes], None]) -> type[StateAccounts]:
    return type("StateAccountsOfEnv", (StateAccounts,), {"state": state, "on_code": staticmethod(on_code)})
