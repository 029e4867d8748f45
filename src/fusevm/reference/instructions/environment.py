"""What a frame can ask about itself, the transaction, the block and other accounts."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.evm.forks import Fork
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


def _prevrandao(frame: Frame) -> int:
    """DIFFICULTY until the merge made it PREVRANDAO (EIP-4399)."""
    block = frame.context.block
    return block.prev_randao if frame.context.fork >= Fork.PARIS else block.difficulty


def _calldataload(frame: Frame) -> None:
    offset = frame.stack.pop()
    frame.stack.append(number(frame.message.data[offset : offset + 32].ljust(32, b"\0")))


def _blockhash(frame: Frame) -> None:
    frame.stack.append(number(frame.context.block.hash_of(frame.stack.pop())))


def _blobhash(frame: Frame) -> None:
    index, hashes = frame.stack.pop(), frame.context.blob_hashes
    frame.stack.append(number(hashes[index]) if index < len(hashes) else 0)


def charge_cold_account(frame: Frame, address: bytes) -> None:
    """EIP-2929: the first look at an address in a transaction costs more."""
    rules = frame.context.rules
    if rules.access_sets and not frame.state.is_warm(address):
        frame.charge(rules.cold_account - rules.warm_access)
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
    "ADDRESS": _asks(lambda frame: number(frame.message.address)),
    "ORIGIN": _asks(lambda frame: number(frame.context.origin)),
    "CALLER": _asks(lambda frame: number(frame.message.caller)),
    "CALLVALUE": _asks(lambda frame: frame.message.value),
    "CALLDATALOAD": _calldataload,
    "CALLDATASIZE": _asks(lambda frame: len(frame.message.data)),
    "CODESIZE": _asks(lambda frame: len(frame.message.code)),
    "GASPRICE": _asks(lambda frame: frame.context.gas_price),
    "RETURNDATASIZE": _asks(lambda frame: len(frame.returndata)),
    "COINBASE": _asks(lambda frame: number(frame.context.block.coinbase)),
    "TIMESTAMP": _asks(lambda frame: frame.context.block.timestamp),
    "NUMBER": _asks(lambda frame: frame.context.block.number),
    "PREVRANDAO": _asks(_prevrandao),
    "GASLIMIT": _asks(lambda frame: frame.context.block.gas_limit),
    "CHAINID": _asks(lambda frame: frame.context.block.chain_id),
    "SELFBALANCE": _asks(lambda frame: frame.state.account(frame.message.address).balance),
    "BASEFEE": _asks(lambda frame: frame.context.block.base_fee),
    "BLOBBASEFEE": _asks(lambda frame: frame.context.blob_base_fee),
    "BLOCKHASH": _blockhash,
    "BLOBHASH": _blobhash,
    "BALANCE": _balance,
    "EXTCODESIZE": _extcodesize,
    "EXTCODEHASH": _extcodehash,
    "EXTCODECOPY": _extcodecopy,
}
