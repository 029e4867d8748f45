"""The library's front door: an `EVM` that holds a state and runs calls and transactions on it."""

from __future__ import annotations

from fusevm.chain.addresses import create2_address, create_address
from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.chain.result import Result
from fusevm.machine.batches import DEFAULT_GAS, Batches
from fusevm.machine.messages import ZERO
from fusevm.machine.settings import WrongThread
from fusevm.machine.transactions import NONCE_BITS
from fusevm.values import AddressLike, BytesLike, Number, Word, to_address, to_bytes, to_flag, to_number, to_word

__all__ = ["DEFAULT_GAS", "EVM", "WrongThread"]


class EVM(Batches):
    """An Ethereum Virtual Machine with a state of its own.

    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")  # return 1 + 2
    >>> result = evm.call("0x" + "c0" * 20)
    >>> int.from_bytes(result.output, "big"), result.gas_used
    (3, 24)
    """

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

    # -- the state

    def get_code(self, address: AddressLike) -> bytes:
        return self._state.account(to_address(address)).code

    def set_code(self, address: AddressLike, code: BytesLike) -> None:
        self._state.set_code(to_address(address), to_bytes(code, "code"))

    def get_balance(self, address: AddressLike) -> int:
        return self._state.account(to_address(address)).balance

    def set_balance(self, address: AddressLike, balance: Number) -> None:
        self._state.set_balance(to_address(address), to_number(balance, "balance"))

    def get_nonce(self, address: AddressLike) -> int:
        return self._state.account(to_address(address)).nonce

    def set_nonce(self, address: AddressLike, nonce: Number) -> None:
        self._state.set_nonce(to_address(address), to_number(nonce, "nonce", bits=NONCE_BITS))

    def get_storage(self, address: AddressLike, key: Word) -> int:
        return self._state.storage(to_address(address), to_word(key, "key"))

    def set_storage(self, address: AddressLike, key: Word, value: Word) -> None:
        self._state.set_storage(to_address(address), to_word(key, "key"), to_word(value, "value"))

    @property
    def state_root(self) -> bytes:
        return self._state.root()
