"""A world for comparing Yul programs: all that follows from a seed, and a record of what the outside could see."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from fusevm.evm.forks import LATEST, Fork
from fusevm.yul.execution.host import Ended, LimitReached, RunEnd, YulOutcome
from fusevm.yul.execution.worlds import ADDRESS_MASK, Storage, World, hash_of, zero_extended


class WorldEvent(NamedTuple):
    """Something the outside sees while the program runs. A call also shows storage, which the callee may read."""

    kind: str  # log, call, callcode, delegatecall, staticcall, create, create2
    words: tuple[int, ...]  # topics; or gas, address and value; or value and salt
    data: bytes
    storage: frozenset[tuple[int, int]] = frozenset()
    transient: frozenset[tuple[int, int]] = frozenset()


class Trace(NamedTuple):
    """Everything observable of a run: equal traces mean equivalent programs, on this input."""

    conclusive: bool  # no limit of ours cut it short
    succeeded: bool
    data: bytes  # returned or reverted
    events: tuple[WorldEvent, ...]
    storage: frozenset[tuple[int, int]]
    transient: frozenset[tuple[int, int]]
    destroyed: bool


def settled(storage: Storage) -> frozenset[tuple[int, int]]:
    return frozenset((key, value) for key, value in storage.items() if value)


_ENVIRONMENT_BITS = {
    **dict.fromkeys(("address", "origin", "caller", "coinbase"), 160),
    **dict.fromkeys(("callvalue", "gasprice", "timestamp", "number", "gaslimit", "chainid"), 64),
    **dict.fromkeys(("basefee", "blobbasefee", "selfbalance", "gas"), 64),
    **dict.fromkeys(("prevrandao", "difficulty"), 256),
}


_REACHED_BY_CALLEES = frozenset(range(4))  # slots that calls may change even where they hold zero


class SeededWorld(World):
    """A world for comparing programs: flat memory, and calls whose outcome follows from the seed and what was called.

    A call that may write lets the callee re-enter: it changes a slot of storage, so that a step that
    forgets to look again after a call is found out.
    """

    MAX_MEMORY = 1 << 18

    def __init__(self, seed: int = 0, calldata: bytes = b"", fork: Fork = LATEST) -> None:
        super().__init__(fork)
        self.events: list[WorldEvent] = []
        self.seed = seed
        self.calldata = calldata
        self.memory = bytearray()
        self.code = self.random("code", size=96)
        self.environment = {name: self.word(name) >> 256 - bits for name, bits in _ENVIRONMENT_BITS.items()}

    def random(self, *what: object, size: int = 32) -> bytes:
        """Bytes that are the same for the same question."""
        return hashlib.shake_128(repr((self.seed, what)).encode()).digest(size)

    def word(self, *what: object) -> int:
        return int.from_bytes(self.random(*what), "big")

    def final_memory(self) -> bytes:
        return bytes(self.memory).rstrip(b"\0")

    def trace(self, outcome: YulOutcome) -> Trace:
        kept = outcome.succeeded
        return Trace(
            outcome.end is not RunEnd.LIMIT,
            kept,
            outcome.data,
            tuple(self.events) if kept else (),
            settled(self.storage) if kept else frozenset(),
            settled(self.transient) if kept else frozenset(),
            outcome.end is RunEnd.SELFDESTRUCT,
        )

    # -- memory -------------------------------------------------------------------------------------------------------

    def touch(self, offset: int, size: int) -> None:
        if not size:
            return
        end = offset + size
        if end > self.MAX_MEMORY:
            raise LimitReached("Memory limit reached.")
        if end > self.msize:
            self.msize = (end + 31) & ~31
            self.memory.extend(bytes(self.msize - len(self.memory)))

    def read(self, offset: int, size: int) -> bytes:
        self.touch(offset, size)
        return bytes(self.memory[offset : offset + size]) if size else b""

    def write(self, offset: int, data: bytes) -> None:
        if data:
            self.touch(offset, len(data))
            self.memory[offset : offset + len(data)] = data

    def copy(self, source: bytes, target: int, offset: int, size: int) -> None:
        self.touch(target, size)
        self.write(target, zero_extended(source, offset, size))

    def op_mload(self, offset: int) -> int:
        return int.from_bytes(self.read(offset, 32), "big")

    def op_mstore(self, offset: int, value: int) -> None:
        self.write(offset, value.to_bytes(32, "big"))

    def op_mstore8(self, offset: int, value: int) -> None:
        self.write(offset, bytes([value & 0xFF]))

    def op_mcopy(self, target: int, source: int, size: int) -> None:
        data = self.read(source, size)
        self.write(target, data)

    def op_keccak256(self, offset: int, size: int) -> int:
        return hash_of(self.read(offset, size))

    def op_calldatacopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.calldata, target, offset, size)

    def op_codecopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.code, target, offset, size)

    op_datacopy = op_codecopy

    def op_returndatacopy(self, target: int, offset: int, size: int) -> None:
        if offset + size > len(self.returndata):
            raise Ended(RunEnd.INVALID)
        self.copy(self.returndata, target, offset, size)

    def op_extcodecopy(self, address: int, target: int, offset: int, size: int) -> None:
        self.copy(self.random("extcode", address & ADDRESS_MASK, size=64), target, offset, size)

    # -- the chain ----------------------------------------------------------------------------------------------------

    def named(self, function: str, name: str) -> int:
        if function in ("datasize", "dataoffset"):
            return self.word(function, name) & 0x3F
        if function == "loadimmutable" and name in self.immutables:
            return self.immutables[name]
        return self.word(function, name)

    def op_balance(self, address: int) -> int:
        own = address & ADDRESS_MASK == self.environment["address"]
        return self.environment["selfbalance"] if own else self.word("balance", address & ADDRESS_MASK) >> 192

    def op_extcodesize(self, address: int) -> int:
        return self.word("extcodesize", address & ADDRESS_MASK) & 0xFFF

    def op_extcodehash(self, address: int) -> int:
        return self.word("extcodehash", address & ADDRESS_MASK)

    def op_blockhash(self, number: int) -> int:
        return self.word("blockhash", number)

    def op_blobhash(self, index: int) -> int:
        return self.word("blobhash", index)

    def op_pc(self) -> int:
        return 0

    # -- logs, calls, ends --------------------------------------------------------------------------------------------

    def log(self, offset: int, size: int, *topics: int) -> None:
        self.events.append(WorldEvent("log", topics, self.read(offset, size)))

    op_log0 = op_log1 = op_log2 = op_log3 = op_log4 = log

    def observed(self, kind: str, words: tuple[int, ...], data: bytes) -> int:
        """Record a call, let the callee do its worst, and return a number that decides the outcome."""
        self.events.append(WorldEvent(kind, words, data, settled(self.storage), settled(self.transient)))
        luck = self.word(kind, words, data, len(self.events))
        if kind != "staticcall" and luck >> 8 & 3 == 0:
            # A slot that was set to zero is like one that was not set: which of the two must not decide anything.
            keys = sorted({key for key, value in self.storage.items() if value} | _REACHED_BY_CALLEES)
            self.storage[keys[(luck >> 16 & 0xFFFF) % len(keys)]] = luck >> 64 & 0xFF
        self.returndata = self.random("returndata", luck, size=luck >> 32 & 0x3F)
        return luck

    def message(self, kind: str, words: tuple[int, ...], source: int, size: int, target: int, room: int) -> int:
        data = self.read(source, size)
        self.touch(target, room)
        luck = self.observed(kind, words, data)
        self.write(target, self.returndata[:room])
        return luck & 1

    def op_call(self, gas: int, address: int, value: int, source: int, size: int, target: int, room: int) -> int:
        return self.message("call", (gas, address & ADDRESS_MASK, value), source, size, target, room)

    def op_callcode(self, gas: int, address: int, value: int, source: int, size: int, target: int, room: int) -> int:
        return self.message("callcode", (gas, address & ADDRESS_MASK, value), source, size, target, room)

    def op_delegatecall(self, gas: int, address: int, source: int, size: int, target: int, room: int) -> int:
        return self.message("delegatecall", (gas, address & ADDRESS_MASK), source, size, target, room)

    def op_staticcall(self, gas: int, address: int, source: int, size: int, target: int, room: int) -> int:
        return self.message("staticcall", (gas, address & ADDRESS_MASK), source, size, target, room)

    def op_create(self, value: int, offset: int, size: int) -> int:
        luck = self.observed("create", (value,), self.read(offset, size))
        return luck >> 96 if luck & 1 else 0

    def op_create2(self, value: int, offset: int, size: int, salt: int) -> int:
        luck = self.observed("create2", (value, salt), self.read(offset, size))
        return luck >> 96 if luck & 1 else 0

    def op_stop(self) -> None:
        raise Ended(RunEnd.STOP)

    def op_return(self, offset: int, size: int) -> None:
        raise Ended(RunEnd.RETURN, self.read(offset, size))

    def op_revert(self, offset: int, size: int) -> None:
        raise Ended(RunEnd.REVERT, self.read(offset, size))

    def op_invalid(self) -> None:
        raise Ended(RunEnd.INVALID)

    def op_selfdestruct(self, heir: int) -> None:
        self.events.append(WorldEvent("selfdestruct", (heir & ADDRESS_MASK,), b""))
        raise Ended(RunEnd.SELFDESTRUCT)
