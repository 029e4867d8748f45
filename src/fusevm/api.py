"""The library's front door: an `EVM` that holds a state and runs calls and transactions on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from fusevm.chain.addresses import Address
from fusevm.chain.checks import checks_of
from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.chain.processing import top_message
from fusevm.chain.result import Result
from fusevm.chain.state import State
from fusevm.chain.transaction import Authorization
from fusevm.evm.forks import LATEST, Fork
from fusevm.machine.batches import Batches
from fusevm.machine.estimate import least_gas
from fusevm.machine.messages import DEFAULT_GAS, NO_EXTRAS, ZERO, created_at, read_extras
from fusevm.machine.overrides import Overrides
from fusevm.machine.transactions import NONCE_BITS
from fusevm.machine.turns import WrongThread, alone, idle
from fusevm.tracing.recording import Recording, Wanted
from fusevm.tracing.session import recording_on
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
    to_flag,
    to_list,
    to_number,
    to_word,
)

if TYPE_CHECKING:
    from fusevm.abi import ArtifactLike, Contract

__all__ = ["DEFAULT_GAS", "EVM", "WrongThread"]


class EVM(Batches):
    """An Ethereum Virtual Machine with a state of its own.

    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")  # return 1 + 2
    >>> result = evm.call("0x" + "c0" * 20)
    >>> int.from_bytes(result.output, "big"), result.gas_used
    (3, 24)
    """

    @classmethod
    def preset(cls, name: str, *, tier: str = "auto", **fields: Any) -> Self:
        """A machine with an empty state and the fork, chain id and block of a network: mainnet, sepolia, hoodi, dev, …

        `fields` are those of the `Block` that shall be otherwise; its number and timestamp tell which fork it is.

        >>> EVM.preset("mainnet").block.chain_id, EVM.preset("sepolia").fork.label
        (1, 'osaka')
        >>> EVM.preset("mainnet", number=5_000_000).fork.label
        'byzantium'
        """
        from fusevm.chain.presets import preset

        fork, block = preset(name, fields)
        return cls(fork, tier, block=block)

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

    @alone
    def prefetch(self, access_list: AccessListLike) -> None:
        """Loads accounts and slots of a forked state in one go; on a state without a source there is nothing to load.

        >>> evm = EVM()
        >>> evm.prefetch([("0x" + "c0" * 20, [0, 1])])
        """
        listed = to_access_list(access_list)
        places = [(address, key) for address, keys in listed for key in keys]
        self._state.prefetch([address for address, _ in listed], places)

    def prefetch_call(
        self, to: AddressLike, data: BytesLike = b"", *, value: Number = 0, caller: AddressLike = DEFAULT_CALLER
    ) -> None:
        """Loads what a call will touch, as the node itself foretells it (eth_createAccessList): two round trips in all.

        >>> EVM().prefetch_call("0x" + "c0" * 20)  # nothing to load
        """
        target, sender, source = to_address(to, "to"), to_address(caller, "caller"), self.state.source
        foretell = getattr(source, "access_list", None)
        if foretell is None:
            return
        payload, amount = to_bytes(data), to_number(value, "value")
        listed = foretell(
            {
                "from": "0x" + sender.hex(),
                "to": "0x" + target.hex(),
                "data": "0x" + payload.hex(),
                "value": hex(amount),
            }
        )
        self.prefetch([(sender, ()), (target, ()), *listed])

    # -- running

    def call(
        self,
        to: AddressLike,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        static: bool = False,
        origin: AddressLike | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        code: BytesLike | None = None,
        charge_access_list: bool = False,
    ) -> Result:
        """A message call: no intrinsic cost, no nonce, no fee; what it changes is kept if it succeeds.

        `gas_used` is what the code itself used. What `access_list` names is warm from the start, and not charged
        unless `charge_access_list` is set. With `code`, that runs in the place of the account's own.

        >>> evm = EVM()
        >>> evm.call(0xC0, code="60025f5260205ff3").output[-1]  # returns 2
        2
        """
        sender = caller if type(caller) is bytes and len(caller) == 20 else to_address(caller, "caller")
        if type(to) is Address:
            target = bytes(to)
        else:
            target = to if type(to) is bytes and len(to) == 20 else to_address(to, "to")
        payload = data if type(data) is bytes else to_bytes(data)
        if static is not False:
            static = to_flag(static, "static")
        extras = NO_EXTRAS
        if access_list is not None or blob_hashes is not None or code is not None:
            charged_by = self._rules if to_flag(charge_access_list, "charge_access_list") else None
            extras = read_extras(access_list, blob_hashes, code, charged_by)
        elif value is ZERO and gas_price is ZERO and origin is None:
            result = self._call_directly(sender, target, payload, gas, static, True)
            if result is not None:
                return result
        message = top_message(sender, target, payload, static=static)
        return self._message(message, value, gas, gas_price, origin, extras)

    def deploy(
        self,
        initcode: BytesLike,
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        salt: Word | None = None,
        address: AddressLike | None = None,
        origin: AddressLike | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
    ) -> Result:
        """Runs init code and keeps the contract it returns; its address is the result's `address`.

        The address follows from the caller's nonce as CREATE's does, or from `salt` as CREATE2's, or is the given
        `address`. A caller whose nonce is 2^64 - 1 can create nothing (EIP-2681): the result is a halt that has used
        no gas, and nothing has changed.

        >>> evm = EVM()
        >>> evm.deploy("60015ff3", address=0xC0).address.hex()[-2:]
        'c0'
        """
        sender, payload = to_address(caller, "caller"), to_bytes(initcode, "initcode")
        target = created_at(self._state, sender, payload, salt, address)
        extras = NO_EXTRAS
        if access_list is not None or blob_hashes is not None:
            extras = read_extras(access_list, blob_hashes)
        return self._message(top_message(sender, target, payload, creates=True), value, gas, gas_price, origin, extras)

    def simulate(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number = DEFAULT_GAS,
        gas_price: Number = 0,
        static: bool = False,
        origin: AddressLike | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        code: BytesLike | None = None,
        charge_access_list: bool = False,
        overrides: Overrides | None = None,
        block_overrides: Mapping[str, Any] | None = None,
    ) -> Result:
        """As `call` (or `deploy`, where `to` is None), and nothing is kept.

        `overrides` and `block_overrides` change accounts and block for this once, under geth's names: see
        `overridden`.

        >>> evm = EVM()
        >>> evm.simulate(0xC0, overrides={0xC0: {"code": "60025f5260205ff3"}}).output[-1]
        2
        >>> evm.get_code(0xC0)
        b''
        """
        changed = overrides is not None or block_overrides is not None
        plain = static is False and origin is None and access_list is None and blob_hashes is None and code is None
        if to is not None and plain and value is ZERO and gas_price is ZERO and type(data) is bytes and not changed:
            sender, target = to_address(caller, "caller"), to_address(to, "to")
            result = self._call_directly(sender, target, data, gas, False, False)
            if result is not None:
                return result
        with self.overridden(overrides, block_overrides) if changed else self.snapshot():
            if to is not None:
                return self.call(
                    to, data, value=value, caller=caller, gas=gas, gas_price=gas_price, static=static, origin=origin,
                    access_list=access_list, blob_hashes=blob_hashes, code=code, charge_access_list=charge_access_list,
                )  # fmt: skip
            if static is not False or code is not None or charge_access_list is not False:
                raise BadValue("to: a deployment (to=None) has no static, code or charge_access_list")
            return self.deploy(
                data, value=value, caller=caller, gas=gas, gas_price=gas_price, origin=origin,
                access_list=access_list, blob_hashes=blob_hashes,
            )  # fmt: skip

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
        0x5b73C5498c1E3b4dbA84de0F1833c4a029d90519
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

    def estimate_gas(
        self,
        to: AddressLike | None,
        data: BytesLike = b"",
        *,
        value: Number = 0,
        caller: AddressLike = DEFAULT_CALLER,
        gas: Number | None = None,
        gas_price: Number | None = None,
        max_fee: Number | None = None,
        max_priority_fee: Number | None = None,
        access_list: AccessListLike | None = None,
        blob_hashes: Iterable[Word] | None = None,
        authorizations: Iterable[Authorization | Mapping[str, Any]] | None = None,
        overrides: Overrides | None = None,
        block_overrides: Mapping[str, Any] | None = None,
        error_ratio: float = 0.0,
    ) -> int:
        """The least gas limit with which a transaction like this succeeds, at most `gas`. Nothing is kept.

        The search is geth's, and exact; with an `error_ratio` (geth's is 0.015) it ends once it is that near. Without
        a price, none is charged. Raises `EstimateFailed`, with the result, where no limit is enough.

        >>> EVM().estimate_gas("0x" + "b0" * 20)
        21000
        """
        with self.overridden(overrides, block_overrides):
            if gas_price is None and max_fee is None:
                gas_price = 0
            tx = self.read_transaction(
                caller, to, data, value=value, gas=gas, gas_price=gas_price, max_fee=max_fee,
                max_priority_fee=max_priority_fee, access_list=access_list, blob_hashes=blob_hashes,
                max_blob_fee=self._block.blob_base_fee(self._rules) if blob_hashes is not None else 0,
                authorizations=authorizations,
            )  # fmt: skip
            checks = replace(checks_of(tx.sender, self._checks), nonce=False, base_fee=False, eoa=False)
            most = tx.gas_limit
            if tx.fee_cap() and checks.balance:
                most = min(most, max(self._state.account(tx.sender).balance - tx.value, 0) // tx.fee_cap())

            def attempt(limit: int) -> Result:
                with self.snapshot():
                    return self._process(replace(tx, gas_limit=limit), checks)

            return least_gas(attempt, self._rules, most, error_ratio)

    # -- the state

    def get_code(self, address: AddressLike) -> bytes:
        """An account's code; empty where it has none.

        >>> EVM().get_code(0xC0)
        b''
        """
        return self.state.account(to_address(address)).code

    @alone
    def set_code(self, address: AddressLike, code: BytesLike) -> None:
        """Gives an account code.

        >>> evm = EVM()
        >>> evm.set_code(0xC0, "0x00")
        """
        self._state.set_code(to_address(address), to_bytes(code, "code"))

    def get_balance(self, address: AddressLike) -> int:
        """In wei.

        >>> EVM().get_balance(0xA1)
        0
        """
        return self.state.account(to_address(address)).balance

    @alone
    def set_balance(self, address: AddressLike, balance: Number) -> None:
        """In wei.

        >>> evm = EVM()
        >>> evm.set_balance(0xA1, 10**18)
        """
        self._state.set_balance(to_address(address), to_number(balance, "balance"))

    def get_nonce(self, address: AddressLike) -> int:
        """How many transactions an account has sent, or contracts it has created.

        >>> EVM().get_nonce(0xA1)
        0
        """
        return self.state.account(to_address(address)).nonce

    @alone
    def set_nonce(self, address: AddressLike, nonce: Number) -> None:
        """At most 2^64 - 1.

        >>> evm = EVM()
        >>> evm.set_nonce(0xA1, 7)
        """
        self._state.set_nonce(to_address(address), to_number(nonce, "nonce", bits=NONCE_BITS))

    def get_storage(self, address: AddressLike, key: Word) -> int:
        """The word in a slot; zero where nothing was stored.

        >>> EVM().get_storage(0xC0, 1)
        0
        """
        return self.state.storage(to_address(address), to_word(key, "key"))

    @alone
    def set_storage(self, address: AddressLike, key: Word, value: Word) -> None:
        """Writes a slot, as outside of any transaction.

        >>> evm = EVM()
        >>> evm.set_storage(0xC0, "0x1", 7)
        >>> evm.get_storage(0xC0, 1)
        7
        """
        self._state.set_storage(to_address(address), to_word(key, "key"), to_word(value, "value"))

    @alone
    def dump_state(self, form: str = "alloc") -> dict[str, Any]:
        """All accounts as a JSON document: geth's `alloc`, or anvil's dump (`form="anvil"`).

        Of a forked state these are the accounts and slots that were loaded.

        >>> evm = EVM()
        >>> evm.set_balance(0xA1, 5)
        >>> evm.dump_state()
        {'0x00000000000000000000000000000000000000a1': {'balance': '0x5'}}
        """
        from fusevm.chain.dumps import write_state

        return write_state(self._state, self._block, form)

    @idle
    def load_state(self, dump: Mapping[str, Any] | bytes | str | PathLike[str]) -> None:
        """Replaces the state by one that was dumped: geth's alloc, genesis.json or dump, or anvil's dump.

        A document, its JSON, what `anvil_dumpState` answers, or the path of a file with any of them.

        >>> evm = EVM()
        >>> evm.load_state({"0x" + "a1" * 20: {"balance": "0x5", "storage": {"0x1": "0x2"}}})
        >>> evm.get_balance("0x" + "a1" * 20), evm.get_storage("0x" + "a1" * 20, 1)
        (5, 2)
        """
        from fusevm.chain.dumps import read_state

        self.state = read_state(dump)

    @property
    @alone
    def state_root(self) -> bytes:
        """What a block header would commit to. It is kept up to date: after a change it costs what the change does.

        Of a forked state: `PartialState`.

        >>> EVM().state_root.hex()[:8]
        '56e81f17'
        """
        return self._state.root()

    @alone
    def proof(self, address: AddressLike, slots: Iterable[Word] = ()) -> dict[str, Any]:
        """That an account and its slots are what they are, or are not there: the fields of eth_getProof (EIP-1186).

        >>> evm = EVM()
        >>> evm.set_storage("0x" + "11" * 20, 1, 5)
        >>> evm.proof("0x" + "11" * 20, [1])["storageProof"][0]["value"]
        '0x5'
        """
        keys = [to_word(slot, f"slots[{at}]") for at, slot in enumerate(to_list(slots, "slots"))]
        return self._state.proof(to_address(address), keys)
