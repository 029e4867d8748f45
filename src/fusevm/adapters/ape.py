"""ape's provider: a development chain in the same process, in the place of ape's own test chain.

ape finds providers by distributions whose names begin with `ape-`: `plugins/ape-fusevm` is one that names this class.
"""

from __future__ import annotations

from typing import Any

from ape.api.providers import TestProviderAPI
from ape.exceptions import UnknownSnapshotError
from ape_ethereum.provider import Web3Provider
from web3 import Web3

from fusevm.adapters.web3 import FusevmProvider
from fusevm.evm.forks import rules_of
from fusevm.rpc import Config, Session

CHAIN_ID = 1337  # ape's for local networks


class ApeProvider(TestProviderAPI, Web3Provider):  # type: ignore[misc]
    """`ape test --network ethereum:local:fusevm`. Accounts are those of ape's `test` configuration."""

    @property
    def session(self) -> Session:
        """The chain, as `fusevm.rpc` has it."""
        found: Session = self.web3.provider.session
        return found

    # -- connecting: nothing listens, so there are no addresses

    @property
    def http_uri(self) -> None:
        return None

    @property
    def ws_uri(self) -> None:
        return None

    @property
    def ipc_path(self) -> None:
        return None

    def connect(self) -> None:
        test = self.config_manager.get_config("test")
        config = Config(
            chain_id=self.chain_id,
            mnemonic=test.mnemonic,
            accounts=test.number_of_accounts,
            balance=test.balance,
            hardfork=self._setting("hardfork", "osaka"),
        )
        self._web3 = Web3(FusevmProvider(config))

    def disconnect(self) -> None:
        self._web3 = None

    def update_settings(self, new_settings: dict[str, Any]) -> None:
        self.provider_settings.update(new_settings)
        self.disconnect()
        self.connect()

    @property
    def chain_id(self) -> int:
        return int(self._setting("chain_id", CHAIN_ID))

    def _setting(self, name: str, default: Any) -> Any:
        given: dict[str, Any] = self.provider_settings
        return given.get(name, default)

    @property
    def supports_tracing(self) -> bool:
        return True

    @property
    def max_gas(self) -> int:
        """Of a transaction, which since EIP-7825 is less than a block's."""
        header, step = self.session.dev.upcoming()
        return min(header.gas_limit, rules_of(step.fork).tx_gas_cap)

    @property
    def priority_fee(self) -> int:
        return 0  # nobody competes for a place in a block

    # -- the chain by hand

    def snapshot(self) -> Any:
        return self.make_request("evm_snapshot", [])

    def restore(self, snapshot_id: Any) -> None:
        if not self.make_request("evm_revert", [snapshot_id]):
            raise UnknownSnapshotError(snapshot_id)

    def set_timestamp(self, new_timestamp: int) -> None:
        if new_timestamp != self.session.dev.pending_timestamp:
            self.make_request("evm_setNextBlockTimestamp", [hex(new_timestamp)])

    def mine(self, num_blocks: int = 1) -> None:
        self.make_request("anvil_mine", [hex(num_blocks)])

    @property
    def auto_mine(self) -> bool:
        return self.session.automine

    @auto_mine.setter
    def auto_mine(self, value: bool) -> None:
        self.make_request("evm_setAutomine", [value])

    def set_balance(self, address: Any, amount: int) -> None:
        self.make_request("anvil_setBalance", [address, hex(amount)])

    def set_code(self, address: Any, code: Any) -> bool:
        self.make_request("anvil_setCode", [address, Web3.to_hex(code) if isinstance(code, bytes) else code])
        return True

    def set_storage(self, address: Any, slot: int, value: Any) -> None:
        padded = Web3.to_hex(bytes(value).rjust(32, b"\0"))
        self.make_request("anvil_setStorageAt", [address, hex(slot), padded])

    def unlock_account(self, address: Any) -> bool:
        self.make_request("anvil_impersonateAccount", [address])
        return True

    def relock_account(self, address: Any) -> None:
        self.make_request("anvil_stopImpersonatingAccount", [address])
