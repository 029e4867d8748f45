"""Memory, its copies, and the hash of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusevm.chain.outcome import check_time
from fusevm.evm.gas import copy_cost, keccak_cost
from fusevm.evm.halts import ExceptionalHalt, HaltReason
from fusevm.evm.keccak import keccak256, keccak256_of
from fusevm.reference.frame import Frame

PIECE = 1 << 20  # bytes hashed at a time: 6 ms


def _mload(frame: Frame) -> None:
    offset = frame.stack.pop()
    frame.expand(offset, 32)
    frame.stack.append(int.from_bytes(frame.memory[offset : offset + 32], "big"))


def _mstore(frame: Frame) -> None:
    offset, value = frame.stack.pop(), frame.stack.pop()
    frame.expand(offset, 32)
    frame.memory[offset : offset + 32] = value.to_bytes(32, "big")


def _mstore8(frame: Frame) -> None:
    offset, value = frame.stack.pop(), frame.stack.pop()
    frame.expand(offset, 1)
    frame.memory[offset] = value & 0xFF


def _msize(frame: Frame) -> None:
    frame.stack.append(len(frame.memory))


def _mcopy(frame: Frame) -> None:
    to, source, size = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    frame.charge(copy_cost(frame.context.rules, size))
    frame.expand(max(to, source), size)
    frame.write(to, frame.read(source, size))


def _keccak256(frame: Frame) -> None:
    offset, size = frame.stack.pop(), frame.stack.pop()
    frame.charge(keccak_cost(frame.context.rules, size))
    frame.expand(offset, size)
    hashed = keccak256(frame.read(offset, size)) if size <= PIECE else keccak256_of(_pieces(frame, offset, size))
    frame.stack.append(int.from_bytes(hashed, "big"))


def _pieces(frame: Frame, offset: int, size: int) -> Iterator[memoryview]:
    """Memory piece by piece, with a check of the clock in between."""
    memory = memoryview(frame.memory)
    for start in range(offset, offset + size, PIECE):
        check_time(frame.context.deadline)
        yield memory[start : min(start + PIECE, offset + size)]


def copy_padded(frame: Frame, source: bytes) -> None:
    """Pops to, from, size; copies, reading zeros past the source's end."""
    to, start, size = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    frame.charge(copy_cost(frame.context.rules, size))
    frame.expand(to, size)
    frame.write(to, source[start : start + size].ljust(size, b"\0"))


def _copying(source: Callable[[Frame], bytes]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        copy_padded(frame, source(frame))

    return run


def _returndatacopy(frame: Frame) -> None:
    """Alone among the copies, it may not read past the end (EIP-211)."""
    to, start, size = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    frame.charge(copy_cost(frame.context.rules, size))
    frame.expand(to, size)
    if start + size > len(frame.returndata):
        detail = f"{start} + {size} is over {len(frame.returndata)}"
        raise ExceptionalHalt(HaltReason.RETURNDATA_OUT_OF_BOUNDS, detail)
    frame.write(to, frame.returndata[start : start + size])


INSTRUCTIONS = {
    "MLOAD": _mload,
    "MSTORE": _mstore,
    "MSTORE8": _mstore8,
    "MSIZE": _msize,
    "MCOPY": _mcopy,
    "KECCAK256": _keccak256,
    "CALLDATACOPY": _copying(lambda frame: frame.message.data),
    "CODECOPY": _copying(lambda frame: frame.message.code),
    "RETURNDATACOPY": _returndatacopy,
}
