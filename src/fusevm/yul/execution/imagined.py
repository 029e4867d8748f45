"""The imagined chain of solc's interpreter tests: fixed values, calls that do nothing, and a trace in text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.yul.execution.host import Ended, LimitReached, Limits, RunEnd
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.execution.worlds import ADDRESS_MASK, WORD, Storage, World, hash_of, zero_extended
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Builtin, dialect_for

TRACE_LINES = 32
LIMITS = Limits(steps=512, nesting=64, calls=0)
_INNER_LIMITS = Limits(steps=100_000, calls=0)  # of simulated calls

_ENVIRONMENT = {
    "address": 0x11111111, "selfbalance": 0x22223333, "origin": 0x33333333, "caller": 0x44444444,
    "gasprice": 0x66666666, "coinbase": 0x77777777, "timestamp": 0x88888888, "number": 1024,
    "difficulty": 0x9999999, "prevrandao": (1 << 64) + 1, "gaslimit": 4_000_000, "chainid": 1, "basefee": 7,
    "blobbasefee": 1, "gas": 0x99, "pc": 0x77,
}  # fmt: skip
_BALANCE = 0x22222222
_CODE = b"code" * 5
_CREATED = {"create": 0xCCCCCC, "create2": 0xDDDDDD}
_BLOB_COMMITMENTS = (1, 2)
_MAX_BYTES = 0xFFFF  # larger pieces of memory, and those past the last offset, are neither read nor written
_OFFSETS = 1 << 64  # offsets into data wrap around here
_LAST_OFFSET = _OFFSETS - 1 - _MAX_BYTES

# The memory that calls, creations and logs read: pairs of pointer and length.
_RANGES = {op.name.lower(): op.touches for op in OPCODES_TABLE if op.calls or op.is_log}
# Which operand is a pointer to memory, and which its length: a pointer to nothing is traced as 0, but not mcopy's.
_POINTERS = {op.name.lower(): op.touches[0] for op in OPCODES_TABLE if op.touches and op.name != "MCOPY"}


def show_number(value: int) -> str:
    """Decimal up to 2^24, then hexadecimal in whole bytes."""
    if value <= 0x1000000:
        return str(value)
    return "0x" + value.to_bytes((value.bit_length() + 7) // 8, "big").hex()


class FakeWorld(World):
    """Memory is sparse and wraps around at 2^256; every call is traced and, unless it is simulated, does nothing."""

    def __init__(self, fork: Fork = LATEST, program: Block | None = None, trace_lines: int = TRACE_LINES) -> None:
        super().__init__(fork)
        self.environment = dict(_ENVIRONMENT, callvalue=0x55555555)
        self.program = program  # what a call to oneself runs; None if calls are not simulated
        self.code = _CODE
        self.memory: dict[int, int] = {}
        self.lines: list[str] = []
        self.trace_lines = trace_lines

    def operation(self, builtin: Builtin) -> Callable[..., Any]:
        name = builtin.name
        if name in _RANGES:
            return lambda *words: self.outside(name, words)
        return super().operation(builtin)

    def dump(self) -> str:
        memory: Storage = {}
        for offset, byte in self.memory.items():
            base = offset & ~31
            memory[base] = memory.get(base, 0) | byte << 8 * (31 - offset % 32)
        return "\n".join(
            [
                "Trace:",
                *(f"  {line}" for line in self.lines),
                "Memory dump:",
                *(f"  {offset:4X}: {memory[offset]:064x}" for offset in sorted(memory) if memory[offset]),
                "Storage dump:",
                *_dump(self.storage),
                "Transient storage dump:",
                *_dump(self.transient),
            ]
        )

    def note(self, name: str, words: tuple[int, ...], data: bytes = b"") -> None:
        pointer, length = _POINTERS.get(name, (-1, 0))
        shown = ["0" if i == pointer and words[length] == 0 else show_number(word) for i, word in enumerate(words)]
        self.lines.append(f"{name.upper()}({', '.join(shown)})" + (f" [{data.hex()}]" if data else ""))
        if self.trace_lines and len(self.lines) >= self.trace_lines:
            raise LimitReached("Trace size limit reached.")

    # -- memory -------------------------------------------------------------------------------------------------------

    def touch(self, offset: int, size: int) -> bool:
        """Grow memory; whether the range is one that this world records."""
        if size == 0:
            return True
        if offset + size + 31 >= WORD:
            self.msize = WORD - 1
            return False
        self.msize = max(self.msize, (offset + size + 31) & ~31)
        return size <= _MAX_BYTES and offset <= _LAST_OFFSET

    def read(self, offset: int, size: int) -> bytes:
        memory = self.memory
        return bytes(memory.get((offset + i) % WORD, 0) for i in range(size))

    def write(self, offset: int, data: bytes) -> None:
        for i, byte in enumerate(data):
            self.memory[(offset + i) % WORD] = byte

    def op_mload(self, offset: int) -> int:
        self.touch(offset, 32)
        return int.from_bytes(self.read(offset, 32), "big")

    def op_mstore(self, offset: int, value: int) -> None:
        self.touch(offset, 32)
        self.write(offset, value.to_bytes(32, "big"))

    def op_mstore8(self, offset: int, value: int) -> None:
        self.touch(offset, 1)
        self.write(offset, bytes([value & 0xFF]))

    def op_mcopy(self, target: int, source: int, size: int) -> None:
        if self.touch(source, size) and self.touch(target, size):
            self.write(target, self.read(source, size))
        self.note("mcopy", (target, source, size))

    def op_keccak256(self, offset: int, size: int) -> int:
        if not self.touch(offset, size):
            return (0x1234CAFE1234CAFE1234CAFE + offset) % WORD
        return hash_of(self.read(offset, size))

    def copy(self, source: bytes, target: int, offset: int, size: int) -> None:
        if self.touch(target, size):
            self.write(target, zero_extended(source, offset % _OFFSETS, size))

    def op_calldatacopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.calldata, target, offset, size)
        self.note("calldatacopy", (target, offset, size))

    def op_codecopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.code, target, offset, size)
        self.note("codecopy", (target, offset, size))

    def op_datacopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.code, target, offset, size)

    def op_returndatacopy(self, target: int, offset: int, size: int) -> None:
        self.copy(self.returndata, target, offset, size)
        self.note("returndatacopy", (target, offset, size))

    def op_extcodecopy(self, address: int, target: int, offset: int, size: int) -> None:
        self.copy(self.code, target, offset, size)
        self.note("extcodecopy", (address, target, offset, size))

    # -- the chain ----------------------------------------------------------------------------------------------------

    def named(self, function: str, name: str) -> int:
        text = name.encode("latin-1")
        if function == "datasize":
            return hash_of(text.ljust(32, b"\0")) & 0xFFF
        if function == "dataoffset":  # a byte is changed, to be different from the size
            padded = text.ljust(32, b"\0")
            return hash_of(padded[:31] + bytes([(padded[31] + 2) & 0xFF]) + padded[32:]) & 0xFFF
        return hash_of(text)

    def set_immutable(self, offset: int, name: str, value: int) -> None:
        pass

    def op_balance(self, address: int) -> int:
        return self.environment["selfbalance"] if address == self.environment["address"] else _BALANCE

    def op_extcodesize(self, address: int) -> int:
        return hash_of(address.to_bytes(32, "big")) & 0xFFFFFF

    def op_extcodehash(self, address: int) -> int:
        return hash_of(((address + 1) % WORD).to_bytes(32, "big"))

    def op_blockhash(self, number: int) -> int:
        current = self.environment["number"]
        if number >= current or number + 256 < current:
            return 0
        return (0xAAAAAAAA + number - current - 256) % WORD

    def op_blobhash(self, index: int) -> int:
        """EIP-4844's versioned hash of an imagined commitment."""
        import hashlib

        if index >= len(_BLOB_COMMITMENTS):
            return 0
        digest = hashlib.sha256(_BLOB_COMMITMENTS[index].to_bytes(32, "big")).digest()
        return int.from_bytes(b"\x01" + digest[1:], "big")

    # -- calls and ends -----------------------------------------------------------------------------------------------

    def outside(self, name: str, words: tuple[int, ...]) -> int | None:
        """Logs, creations and calls: all of them are traced, and some numbers decide what they return."""
        for pointer, length in _RANGES[name]:
            self.touch(words[pointer], words[length])
        self.note(name, words)
        if name in _CREATED:
            return (_CREATED[name] + words[1] if words[2] else _CREATED[name]) & ADDRESS_MASK
        if name.startswith("log"):
            return None
        own = words[1] == self.environment["address"]
        if own and self.program is not None:
            self.simulate(name, words)
        return int(words[0] > 0 and (own or words[1] & 1 == 1))

    def simulate(self, name: str, words: tuple[int, ...]) -> None:
        """A call to oneself: the program again in a world of its own. Unless it returns, everything ends with it."""
        (source, size), (target, room) = _RANGES[name]
        callee = FakeWorld(self.fork, self.program, trace_lines=0)
        callee.environment["callvalue"] = words[2] if name in ("call", "callcode") else 0
        callee.calldata = self.read(words[source], words[size])
        assert self.program is not None
        outcome = interpret(self.program, callee, dialect_for(self.fork), _INNER_LIMITS)
        if outcome.end is RunEnd.RETURN:
            self.returndata = outcome.data
            self.write(words[target], zero_extended(outcome.data, 0, words[room]))
        elif outcome.end is RunEnd.LIMIT:
            raise LimitReached(outcome.reason)
        elif outcome.end is not RunEnd.FINISHED:
            raise Ended(outcome.end)

    def forget(self) -> None:
        self.storage.clear()
        self.transient.clear()

    def op_stop(self) -> None:
        self.note("stop", ())
        raise Ended(RunEnd.STOP)

    def op_return(self, offset: int, size: int) -> None:
        data = self.read(offset, size) if self.touch(offset, size) else b""
        self.note("return", (offset, size), data)
        raise Ended(RunEnd.RETURN, data)

    def op_revert(self, offset: int, size: int) -> None:
        self.touch(offset, size)
        self.note("revert", (offset, size))
        self.forget()
        raise Ended(RunEnd.REVERT)

    def op_invalid(self) -> None:
        self.note("invalid", ())
        self.forget()
        self.lines.clear()
        raise Ended(RunEnd.INVALID)

    def op_selfdestruct(self, heir: int) -> None:
        self.note("selfdestruct", (heir,))
        self.forget()
        self.lines.clear()
        raise Ended(RunEnd.SELFDESTRUCT)


def _dump(storage: Storage) -> list[str]:
    return [f"  {key:064x}: {storage[key]:064x}" for key in sorted(storage) if storage[key]]
