"""What the worlds that the interpreter runs in have in common: storage, data, and the values of the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.keccak import keccak256
from fusevm.yul.syntax.dialect import Builtin

WORD = 1 << 256
ADDRESS_MASK = (1 << 160) - 1
Storage = dict[int, int]


def hash_of(data: bytes) -> int:
    return int.from_bytes(keccak256(data), "big")


def zero_extended(data: bytes, offset: int, size: int) -> bytes:
    """A part of data that ends nowhere: past its end are zeros."""
    return data[offset : offset + size].ljust(size, b"\0") if offset < len(data) else bytes(size)


class World:
    """What every world has. An operation is the method `op_` + the builtin's name, or a constant of `environment`."""

    # Values of the opcodes without operands, by Yul name.
    environment: dict[str, int]

    def __init__(self, fork: Fork = LATEST) -> None:
        self.fork = fork
        self.storage: Storage = {}
        self.transient: Storage = {}
        self.calldata = b""
        self.returndata = b""
        self.code = b""
        self.msize = 0
        self.immutables: dict[str, int] = {}

    def operation(self, builtin: Builtin) -> Callable[..., Any]:
        value = self.environment.get(builtin.name)
        if value is not None:
            return lambda: value
        found: Callable[..., Any] = getattr(self, f"op_{builtin.name}")
        return found

    def named(self, function: str, name: str) -> int:
        if function == "loadimmutable" and name in self.immutables:
            return self.immutables[name]
        return hash_of(name.encode("latin-1"))

    def set_immutable(self, offset: int, name: str, value: int) -> None:
        self.immutables[name] = value

    # -- storage and data ---------------------------------------------------------------------------------------------

    def op_sload(self, key: int) -> int:
        return self.storage.get(key, 0)

    def op_sstore(self, key: int, value: int) -> None:
        self.storage[key] = value

    def op_tload(self, key: int) -> int:
        return self.transient.get(key, 0)

    def op_tstore(self, key: int, value: int) -> None:
        self.transient[key] = value

    def op_calldataload(self, offset: int) -> int:
        return int.from_bytes(zero_extended(self.calldata, offset, 32), "big")

    def op_calldatasize(self) -> int:
        return len(self.calldata)

    def op_codesize(self) -> int:
        return len(self.code)

    def op_returndatasize(self) -> int:
        return len(self.returndata)

    def op_msize(self) -> int:
        return self.msize
