"""What a frame can ask about itself, the transaction, the block and other accounts."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.evm.gas import cold_account_cost
from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.reference.frame import Frame
from fusevm.reference.instructions.memory import copy_padded


def _asks(answer: Callable[[Frame], int]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        frame.stack.append(answer(frame))

    return run


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def to_address(word: int) -> bytes:
    return word.to_bytes(32, "big")[12:]


def _word(path: str) -> Callable[[Frame], None]:
    """Pushes the attribute of the frame that the opcode table names, compiled to run as if it were written here."""
    source = f"lambda frame: frame.stack.append(x if (x := frame.{path}).__class__ is int else number(x))"
    instruction: Callable[[Frame], None] = eval(source, {"number": number})
    return instruction


def _calldataload(frame: Frame) -> None:
    offset = frame.stack.pop()
    frame.stack.append(number(frame.message.data[offset : offset + 32].ljust(32, b"\0")))


def _blockhash(frame: Frame) -> None:
    frame.stack.append(number(frame.context.block.hash_of(frame.stack.pop())))


def _blobhash(frame: Frame) -> None:
    index, hashes = frame.stack.pop(), frame.context.blob_hashes
    frame.stack.append(number(hashes[index]) if index < len(hashes) else 0)


def charge_cold_account(frame: Frame, address: bytes) -> None:
    """EIP-2929: the first access to an address in a transaction costs more."""
    rules = frame.context.rules
    if rules.access_sets and not frame.state.is_warm(address):
        frame.charge(cold_account_cost(rules))
        frame.state.warm_address(address)


def _balance(frame: Frame) -> None:
    address = to_address(frame.stack.pop())
    charge_cold_account(frame, address)
    frame.stack.append(frame.state.account(address).balance)


def _extcodesize(frame: Frame) -> None:
    address = to_address(frame.stack.pop())
    charge_cold_account(frame, address)
    frame.stack.append(len(frame.state.account(address).code))


def _extcodehash(frame: Frame) -> None:
    """Zero for an account that is not there (EIP-1052)."""
    address = to_address(frame.stack.pop())
    charge_cold_account(frame, address)
    dead = frame.state.is_dead(address)
    frame.stack.append(0 if dead else number(frame.state.account(address).code_hash()))


def _extcodecopy(frame: Frame) -> None:
    address = to_address(frame.stack.pop())
    charge_cold_account(frame, address)
    copy_padded(frame, frame.state.account(address).code)


INSTRUCTIONS = {
    **{op.name: _word(op.word) for op in OPCODES_TABLE if op.word},
    "CALLDATALOAD": _calldataload,
    "CALLDATASIZE": _asks(lambda frame: len(frame.message.data)),
    "CODESIZE": _asks(lambda frame: len(frame.message.code)),
    "RETURNDATASIZE": _asks(lambda frame: len(frame.returndata)),
    "SELFBALANCE": _asks(lambda frame: frame.state.account(frame.message.address).balance),
    "BLOCKHASH": _blockhash,
    "BLOBHASH": _blobhash,
    "BALANCE": _balance,
    "EXTCODESIZE": _extcodesize,
    "EXTCODEHASH": _extcodehash,
    "EXTCODECOPY": _extcodecopy,
}
