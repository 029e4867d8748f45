"""The library's front door: an `EVM` that holds a state and runs calls and transactions on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.evm.forks import LATEST, Fork
from fusevm.machine.messages import ZERO
from fusevm.machine.settings import WrongThread
from fusevm.machine.tracing import DEFAULT_GAS, Tracing
from fusevm.machine.transactions import NONCE_BITS
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.session import recording_on
from fusevm.values import (
    AddressLike,
    BytesLike,
    Number,
    Word,
    to_address,
    to_bytes,
    to_flag,
    to_list,
    to_number,
    to_word,
)

if TYPE_CHECKING:
    from fusevm.abi import ArtifactLike, Contract

__all__ = ["DEFAULT_GAS", "EVM", "WrongThread"]


class EVM(Tracing):
    """An Ethereum Virtual Machine with a state of its own.

    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")  # return 1 + 2
    >>> result = evm.call("0x" + "c0" * 20)
    >>> int.from_bytes(result.output, "big"), result.gas_used
    (3, 24)
    """

    @classmethod
    def fork_from(
        cls,
        url: str,
        block: str | int | bytes = "latest",
        *,
        cache: bool | str | PathLike[str] = True,
        fork: str | Fork | None = None,
        tier: str = "auto",
        timeout: float | None = None,
        node_timeout: float = 30.0,
        retries: int = 3,
    ) -> Self:
        """A machine on the state after a block of a node's chain, with that block as `evm.block`.

        Accounts and slots are asked of the node when they are first touched, and kept on disk by the block's hash
        (`cache` is a folder, or whether the user's is used). `block` is a number, a hash, or a tag as "latest". The
        fork is that of the block where the chain is a public network, else the latest. A node that does not answer
        within `node_timeout` seconds, `retries` times again, is `SourceUnavailable`; then the call has not happened.

        >>> EVM.fork_from("ftp://example.org")
        Traceback (most recent call last):
        fusevm.values.BadValue: url: expected http://… or https://…, got 'ftp://example.org'
        """
        from fusevm.chain.sources.node import NodeSource  # loaded when used: it needs HTTP and SQLite

        source = NodeSource.at(url, block, cache=cache, timeout=node_timeout, retries=retries)
        step = source.step()
        if fork is None:
            fork = LATEST if step is None else step.fork
        return cls(fork, tier, block=source.block(), state=State(source=source), timeout=timeout)

    # -- running

    def call(
        self,
        to: AddressLike,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        static: bool = False,
        origin: AddressLike | None = None,
    ) -> Result:
        """A message call: no intrinsic cost, no nonce, no fee; what it changes is kept if it succeeds.

        `gas_used` is what the code itself used.
        """
        sender = caller if type(caller) is bytes and len(caller) == 20 else to_address(caller, "caller")
        target = to if type(to) is bytes and len(to) == 20 else to_address(to, "to")
        payload = data if type(data) is bytes else to_bytes(data)
        if static is not False:
            static = to_flag(static, "static")
        if value is ZERO and gas_price is ZERO and origin is None:
            result = self._call_directly(sender, target, payload, gas, static, True)
            if result is not None:
                return result
        return self._message(sender, target, payload, value, gas, gas_price, static, origin, creates=False)

    def deploy(
        self,
        initcode: BytesLike,
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        salt: Word | None = None,
        origin: AddressLike | None = None,
    ) -> Result:
        """Runs init code and keeps the contract it returns; its address is the result's `address`.

        The address follows from the caller's nonce as CREATE's does, or from `salt` as CREATE2's. A caller whose nonce
        is 2^64 - 1 can create nothing (EIP-2681): the result is a halt that has used no gas, and nothing has changed.
        """
        sender, payload = to_address(caller, "caller"), to_bytes(initcode, "initcode")
        nonce = self._state.account(sender).nonce
        if salt is None:
            target = create_address(sender, nonce)
        else:
            target = create2_address(sender, to_word(salt, "salt"), payload)
        return self._message(sender, target, payload, value, gas, gas_price, False, origin, creates=True)

    def simulate(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = ZERO_ADDRESS,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
    ) -> Result:
        """As `call` (or `deploy`, where `to` is None), and nothing is kept."""
        if to is not None and value is ZERO and gas_price is ZERO and type(data) is bytes:
            sender, target = to_address(caller, "caller"), to_address(to, "to")
            result = self._call_directly(sender, target, data, gas, False, False)
            if result is not None:
                return result
        with self.snapshot():
            if to is None:
                return self.deploy(data, value=value, caller=caller, gas=gas, gas_price=gas_price)
            return self.call(to, data, value=value, caller=caller, gas=gas, gas_price=gas_price)

    # -- contracts by their ABI

    def contract(self, artifact: ArtifactLike, address: AddressLike, *, name: str | None = None) -> Contract:
        """The contract at an address, its functions as methods.

        The artifact is that of a build tool (a path, or its JSON), an ABI, or a list of signatures; `name` says which
        contract, where there are several.

        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x602a5f5260205ff3")  # return 42
        >>> evm.contract(["function answer() returns (uint256)"], "0x" + "c0" * 20).answer().value
        42
        """
        from fusevm.abi.contract import contract_at

        return contract_at(self, artifact, address, name)

    def deploy_contract(
        self,
        artifact: ArtifactLike,
        *arguments: Any,
        libraries: Mapping[str, AddressLike] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Contract:
        """Deploys an artifact with the constructor's arguments; `options` are those of `deploy`.

        Raises ExecutionFailed, the error decoded, where the constructor fails.

        >>> EVM().deploy_contract({"abi": [], "bytecode": "0x60fe60005360016000f3"}).address
        0xBd770416a3345F91E4B34576cb804a576fa48EB1
        """
        from fusevm.abi.contract import deploy

        return deploy(self, artifact, arguments, libraries, name, options)

    # -- recordings

    def record(
        self,
        *,
        calls: bool = True,
        logs: bool = True,
        storage: bool = False,
        keccak: bool = False,
        coverage: bool = False,
        gas: bool = False,
    ) -> AbstractContextManager[Recording]:
        """Records what calls, deployments, simulations and transactions in the `with` block do.

        >>> evm = EVM()
        >>> evm.set_code("0x" + "c0" * 20, "0x6007600055")  # storage[0] = 7
        >>> with evm.record(storage=True) as recording:
        ...     result = evm.call("0x" + "c0" * 20, gas=100_000)
        >>> print(recording)
        CALL 0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0 () → () [22106 gas]
        └─ SSTORE 0x0 = 0x7 (was 0x0)
        """
        return recording_on(self, Wanted(calls, logs, storage, keccak, coverage, gas))

    # -- the state

    def get_code(self, address: AddressLike) -> bytes:
        """The code of an account; empty where there is none."""
        return self._state.account(to_address(address)).code

    def set_code(self, address: AddressLike, code: BytesLike) -> None:
        """Gives an account this code, as if it had been deployed."""
        self._state.set_code(to_address(address), to_bytes(code, "code"))

    def get_balance(self, address: AddressLike) -> int:
        """In wei."""
        return self._state.account(to_address(address)).balance

    def set_balance(self, address: AddressLike, balance: Number) -> None:
        """In wei; nobody else's changes."""
        self._state.set_balance(to_address(address), to_number(balance, "balance"))

    def get_nonce(self, address: AddressLike) -> int:
        """How many transactions an account has sent, or contracts it has created."""
        return self._state.account(to_address(address)).nonce

    def set_nonce(self, address: AddressLike, nonce: Number) -> None:
        """What the account's next transaction must have."""
        self._state.set_nonce(to_address(address), to_number(nonce, "nonce", bits=NONCE_BITS))

    def get_storage(self, address: AddressLike, key: Word) -> int:
        """The word in a slot; zero where nothing was written."""
        return self._state.storage(to_address(address), to_word(key, "key"))

    def set_storage(self, address: AddressLike, key: Word, value: Word) -> None:
        """Writes a slot."""
        self._state.set_storage(to_address(address), to_word(key, "key"), to_word(value, "value"))

    @property
    def state_root(self) -> bytes:
        """What a block header would commit to. It is kept up to date: after a change it costs what the change does."""
        return self._state.root()

    def proof(self, address: AddressLike, slots: Iterable[Word] = ()) -> dict[str, Any]:
        """That an account and its slots are what they are, or are not there: the fields of eth_getProof (EIP-1186).

        >>> evm = EVM()
        >>> evm.set_storage("0x" + "11" * 20, 1, 5)
        >>> evm.proof("0x" + "11" * 20, [1])["storageProof"][0]["value"]
        '0x5'
        """
        keys = [to_word(slot, f"slots[{at}]") for at, slot in enumerate(to_list(slots, "slots"))]
        return self._state.proof(to_address(address), keys)
