"""Vyper's test suite on fusevm: an environment as its `tests/evm_backends` has them.

To be imported from Vyper's repository, whose `tests` package has the base class. In its `tests/conftest.py`:

    from fusevm.adapters.vyper import FusevmEnv
    …
    return {"py-evm": PyEvmEnv, "revm": RevmEnv, "fusevm": FusevmEnv}[backend_str]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.evm_backends.base_env import BaseEnv, EvmError, ExecutionResult

from fusevm.chain.outcome import Status
from fusevm.compat.pyrevm import EVM, BlockEnv, Env
from fusevm.compat.pyrevm.results import CallFailed


class FusevmEnv(BaseEnv):  # type: ignore[misc]
    """Contracts are deployed and called on a `fusevm` engine. Names of failures are revm's, as in `RevmEnv`."""

    invalid_opcode_error = "InvalidFEOpcode"
    out_of_gas_error = "OutOfGas"
    contract_size_limit_error = "CreateContractSizeLimit"
    initcode_size_limit_error = "CreateInitCodeSizeLimit"

    def __init__(
        self, gas_limit: int, account_keys: list[Any], tracing: bool, block_number: int, evm_version: str
    ) -> None:
        super().__init__(gas_limit, account_keys)
        environment = Env(block=BlockEnv(number=block_number))
        self._evm = EVM(gas_limit=gas_limit, tracing=tracing, spec_id=evm_version, env=environment)

    @contextmanager
    def anchor(self) -> Iterator[None]:
        """Undoes at its end what was done to state and block."""
        block, made = self._evm.env.block, self._evm.snapshot()
        try:
            yield
        finally:
            self._evm.revert(made)
            self._evm.set_block_env(block)

    # -- accounts

    def get_balance(self, address: str) -> int:
        return self._evm.get_balance(address)

    def set_balance(self, address: str, value: int) -> None:
        self._evm.set_balance(address, value)

    def get_code(self, address: str) -> bytes:
        return self._evm.get_code(address) or b""

    # -- block and transaction

    @property
    def block_number(self) -> int:
        return self._evm.env.block.number

    @block_number.setter
    def block_number(self, value: int) -> None:
        self._change_block(number=value)

    @property
    def timestamp(self) -> int:
        return self._evm.env.block.timestamp

    @timestamp.setter
    def timestamp(self, value: int) -> None:
        self._change_block(timestamp=value)

    def get_excess_blob_gas(self) -> int:
        return self._evm.env.block.excess_blob_gas

    def set_excess_blob_gas(self, value: int) -> None:
        self._change_block(excess_blob_gas=value)

    def get_blob_gasprice(self) -> int:
        return self._evm.env.block.blob_gasprice

    @property
    def blob_hashes(self) -> list[bytes]:
        return self._evm.env.tx.blob_hashes

    @blob_hashes.setter
    def blob_hashes(self, value: list[bytes]) -> None:
        tx = self._evm.env.tx
        tx.blob_hashes = value
        self._evm.set_tx_env(tx)

    def clear_transient_storage(self) -> None:
        self._evm.reset_transient_storage()

    def _change_block(self, **fields: int) -> None:
        block = self._evm.env.block
        for name, value in fields.items():
            setattr(block, name, value)
        self._evm.set_block_env(block)

    # -- running

    @property
    def last_result(self) -> Any:
        result = self._evm.result
        assert result is not None, "last_result: nothing has run yet, or the last call was refused"
        return ExecutionResult(
            gas_refunded=result.gas_refunded,
            gas_used=result.gas_used,
            is_success=result.is_success,
            logs=result.logs,
        )

    def message_call(
        self,
        to: str,
        sender: str | None = None,
        data: bytes | str = b"",
        value: int = 0,
        gas: int | None = None,
        gas_price: int = 0,
        is_modifying: bool = True,
    ) -> bytes:
        if isinstance(data, str):
            data = bytes.fromhex(data.removeprefix("0x"))
        with self._errors():
            limit = self.gas_limit if gas is None else gas
            caller = sender or self.deployer
            return self._evm.message_call(caller, to, data, value, limit, gas_price, not is_modifying)

    def _deploy(self, code: bytes, value: int, gas: int | None = None) -> str:
        with self._errors():
            return self._evm.deploy(self.deployer, code, value, gas)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except CallFailed as error:
            if self._evm.result is not None and self._evm.result._status is Status.REVERT:
                self._parse_revert(error.output, error, error.gas_used)
            raise EvmError(*error.args) from error
        except RuntimeError as error:
            raise EvmError(*error.args) from error
