"""A state and a block that differ from the machine's for one simulation, under geth's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeAlias

from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.evm.precompiles import Precompile
from fusevm.machine.transactions import Transactions
from fusevm.values import BadValue, shown, to_address, to_bytes, to_number, to_word

Overrides: TypeAlias = Mapping[Any, Mapping[str, Any]]  # by address

_ACCOUNT = ("balance", "nonce", "code", "state", "stateDiff", "movePrecompileToAddress")
# geth's name of a field → the block's
_BLOCK = {
    "number": "number",
    "time": "timestamp",
    "gasLimit": "gas_limit",
    "feeRecipient": "coinbase",
    "prevRandao": "prev_randao",
    "difficulty": "difficulty",
    "baseFeePerGas": "base_fee",
}


class Overriding(Transactions):
    """Runs what is simulated under overrides."""

    @contextmanager
    def overridden(
        self, overrides: Overrides | None = None, block_overrides: Mapping[str, Any] | None = None
    ) -> Iterator[None]:
        """A `snapshot()` in which accounts and block are as the overrides say; all of it is undone at the end.

        By address: `balance`, `nonce`, `code`, `state` (the whole storage), `stateDiff` (some slots),
        `movePrecompileToAddress`. Of the block: `number`, `time`, `gasLimit`, `feeRecipient`, `prevRandao`,
        `difficulty`, `baseFeePerGas`.

        >>> from fusevm import EVM
        >>> evm, alice = EVM(), "0x" + "a1" * 20
        >>> with evm.overridden({alice: {"balance": "0x5"}}, {"number": 77}):
        ...     evm.get_balance(alice), evm.block.number
        (5, 77)
        >>> evm.get_balance(alice), evm.block.number
        (0, 1)
        """
        kept = self._precompiles, self._always_warm
        try:
            with self.snapshot():
                if block_overrides is not None:
                    self._override_block(block_overrides)
                if overrides is not None:
                    self._override_accounts(overrides)
                yield
        finally:
            if kept != (self._precompiles, self._always_warm):
                self._use_precompiles(*kept)

    def _override_block(self, fields: Mapping[str, Any]) -> None:
        if not isinstance(fields, Mapping):
            raise BadValue(f"block_overrides: expected fields by name, got {shown(fields)}")
        block = copy(self._block)
        for name, value in fields.items():
            if name not in _BLOCK:
                raise BadValue(f"block_overrides: {shown(name)} is not a field; expected {', '.join(_BLOCK)}")
            setattr(block, _BLOCK[name], value)
        self._block = block

    def _override_accounts(self, overrides: Overrides) -> None:
        if not isinstance(overrides, Mapping):
            raise BadValue(f"overrides: expected accounts by address, got {shown(overrides)}")
        moves: dict[bytes, bytes] = {}
        named = {to_address(where, f"overrides: address {shown(where)}") for where in overrides}
        if self._state.source is not None:
            self._state.prefetch(list(named))
        for where, fields in overrides.items():
            address, what = to_address(where), f"overrides[{shown(where)}]"
            if not isinstance(fields, Mapping):
                raise BadValue(f"{what}: expected an object of {', '.join(_ACCOUNT)}")
            for name in fields:
                if name not in _ACCOUNT:
                    raise BadValue(f"{what}: {shown(name)} is not a field; expected {', '.join(_ACCOUNT)}")
            if fields.get("state") is not None and fields.get("stateDiff") is not None:
                raise BadValue(f"{what}: give state or stateDiff, not both")
            for name, value in fields.items():
                if name == "movePrecompileToAddress":
                    moves[address] = to_address(value, f"{what}.{name}")
                elif value is not None:
                    _SETTERS[name](self, address, value, f"{what}.{name}")
        if moves:
            self._move_precompiles(moves, named)

    def _move_precompiles(self, moves: Mapping[bytes, bytes], named: Iterable[bytes]) -> None:
        found: dict[bytes, Precompile] = dict(self._precompiles)
        for source, target in moves.items():
            if source not in self._precompiles:
                raise BadValue(f"movePrecompileToAddress: 0x{source.hex()} is not a precompile of {self._fork.label}")
            if target in named or list(moves.values()).count(target) > 1:
                raise BadValue(f"movePrecompileToAddress: 0x{target.hex()} is overridden already")
            del found[source]
        for source, target in moves.items():
            found[target] = self._precompiles[source]
        self._use_precompiles(found, found)

    def _use_precompiles(self, precompiles: Any, always_warm: Any) -> None:
        self._precompiles, self._always_warm = precompiles, always_warm
        self._context = self._new_context(DEFAULT_CALLER, 0)
        self._choose_executor()


def _set_balance(machine: Overriding, address: bytes, value: Any, what: str) -> None:
    machine.state.set_balance(address, to_number(value, what))


def _set_nonce(machine: Overriding, address: bytes, value: Any, what: str) -> None:
    machine.state.set_nonce(address, to_number(value, what, bits=64))


def _set_code(machine: Overriding, address: bytes, value: Any, what: str) -> None:
    machine.state.set_code(address, to_bytes(value, what))


def _set_state(machine: Overriding, address: bytes, value: Any, what: str) -> None:
    machine.state.replace_storage(address, _slots(value, what))


def _set_slots(machine: Overriding, address: bytes, value: Any, what: str) -> None:
    for key, word in _slots(value, what).items():
        machine.state.set_storage(address, key, word)


def _slots(value: Any, what: str) -> dict[int, int]:
    if not isinstance(value, Mapping):
        raise BadValue(f"{what}: expected values by key, got {shown(value)}")
    return {to_word(key, f"{what}: key"): to_word(word, f"{what}[{shown(key)}]") for key, word in value.items()}


_SETTERS: dict[str, Callable[[Overriding, bytes, Any, str], None]] = {
    "balance": _set_balance,
    "nonce": _set_nonce,
    "code": _set_code,
    "state": _set_state,
    "stateDiff": _set_slots,
}
