"""What an ABI lists: functions, the constructor, events and custom errors, each with its encoding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from fusevm.abi.codec import CannotDecode, decode, encode
from fusevm.abi.records import DecodedLog, Values
from fusevm.abi.types import Array, BadAbi, Parameter, Tuple, named
from fusevm.chain.state import Log
from fusevm.evm.keccak import keccak256


@dataclass(frozen=True)
class _Entry:
    name: str
    inputs: tuple[Parameter, ...]

    @cached_property
    def signature(self) -> str:
        """The canonical one: `transfer(address,uint256)`."""
        return f"{self.name}({','.join(each.type.name for each in self.inputs)})"

    @cached_property
    def _types(self) -> list[str]:
        return [each.type.name for each in self.inputs]

    def _listed(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))})"


@dataclass(frozen=True)
class Function(_Entry):
    """A function: calldata from arguments, and values from what it returns.

    >>> transfer = Function.parse("transfer(address to, uint256 amount) returns (bool)")
    >>> transfer.selector.hex(), transfer.signature
    ('a9059cbb', 'transfer(address,uint256)')
    >>> data = transfer.encode("0x" + "a1" * 20, 5)
    >>> transfer.decode_arguments(data).amount
    5
    >>> transfer.decode((1).to_bytes(32, "big"))
    True
    """

    outputs: tuple[Parameter, ...] | None = None  # None: not given
    mutability: str = "nonpayable"

    @staticmethod
    def parse(text: str) -> Function:
        """From a signature as people write it, with or without names, `function` and `returns`."""
        return _parsed(text, Function)

    @cached_property
    def selector(self) -> bytes:
        """The first four bytes of its calldata."""
        return keccak256(self.signature.encode())[:4]

    def encode(self, *arguments: Any) -> bytes:
        """The calldata."""
        return self.selector + encode(self.inputs, arguments, self.name)

    def decode(self, output: bytes) -> Any:
        """What it returned: nothing, a value, or several as `Values`. Raises CannotDecode where it is not that."""
        outputs = self.outputs or ()
        if outputs and not output:
            raise CannotDecode(
                f"what {self.name} returned: nothing: no code at this address, or code that has no such function"
            )
        found = decode([each.type.name for each in outputs], output, f"what {self.name} returned")
        if len(outputs) == 1:
            return outputs[0].type.made(found[0])
        return named(outputs, found) if outputs else None

    def decode_arguments(self, data: bytes) -> Values:
        """The arguments in its calldata."""
        if data[:4] != self.selector:
            raise CannotDecode(f"calldata 0x{data[:4].hex()}… does not call {self.signature}")
        return named(self.inputs, decode(self._types, data[4:], f"the arguments of {self.name}"), self.name)

    def __str__(self) -> str:
        returns = f" returns ({', '.join(map(str, self.outputs))})" if self.outputs else ""
        state = "" if self.mutability == "nonpayable" else f" {self.mutability}"
        return f"function {self._listed()}{state}{returns}"


@dataclass(frozen=True)
class Constructor(_Entry):
    """What a contract is created with.

    >>> Constructor.parse("constructor(uint256 supply)").encode(1).hex()[-2:]
    '01'
    """

    mutability: str = "nonpayable"

    @staticmethod
    def parse(text: str) -> Constructor:
        """From text as people write it."""
        return _parsed(text, Constructor)

    def encode(self, *arguments: Any) -> bytes:
        """What follows the creation code."""
        return encode(self.inputs, arguments, "constructor")

    def __str__(self) -> str:
        return f"constructor{self._listed()[len(self.name) :]}"


@dataclass(frozen=True)
class Event(_Entry):
    """An event, and how to read a log as one.

    >>> event = Event.parse("event Transfer(address indexed from, address indexed to, uint256 value)")
    >>> hex(event.topic)[:10]
    '0xddf252ad'
    """

    anonymous: bool = False

    @staticmethod
    def parse(text: str) -> Event:
        """From text as people write it."""
        return _parsed(text, Event)

    @cached_property
    def topic(self) -> int:
        """The first topic of its logs, unless it is anonymous."""
        return int.from_bytes(keccak256(self.signature.encode()), "big")

    @cached_property
    def indexed(self) -> int:
        """How many arguments are topics."""
        return sum(each.indexed for each in self.inputs)

    def matches(self, log: Log) -> bool:
        """Whether a log may be one of these."""
        if self.anonymous:
            return len(log.topics) == self.indexed
        return len(log.topics) == self.indexed + 1 and log.topics[0] == self.topic

    def decode(self, log: Log) -> DecodedLog:
        """The arguments. Of an indexed one that is not a single word the log has the hash alone, and so has this."""
        if not self.matches(log):
            raise CannotDecode(f"this log is not a {self.signature}")
        topics = iter(log.topics if self.anonymous else log.topics[1:])
        plain = [each for each in self.inputs if not each.indexed]
        rest = iter(decode([each.type.name for each in plain], log.data, f"the data of {self.name}"))
        values = [
            _from_topic(each, next(topics), self.name) if each.indexed else each.type.made(next(rest))
            for each in self.inputs
        ]
        return DecodedLog.of(log, values, (each.name for each in self.inputs), self.name)

    def __str__(self) -> str:
        return f"event {self._listed()}{' anonymous' if self.anonymous else ''}"


@dataclass(frozen=True)
class CustomError(_Entry):
    """A custom error of Solidity, and how to read a revert as one.

    >>> error = CustomError.parse("error Insufficient(uint256 balance, uint256 needed)")
    >>> error.decode(error.encode(0, 1))
    Insufficient(balance=0, needed=1)
    """

    @staticmethod
    def parse(text: str) -> CustomError:
        """From text as people write it."""
        return _parsed(text, CustomError)

    @cached_property
    def selector(self) -> bytes:
        """The first four bytes of the revert's data."""
        return keccak256(self.signature.encode())[:4]

    def encode(self, *arguments: Any) -> bytes:
        """The data of the revert."""
        return self.selector + encode(self.inputs, arguments, self.name)

    def decode(self, data: bytes) -> Values:
        """Its arguments, from a revert's data."""
        if data[:4] != self.selector:
            raise CannotDecode(f"this revert is not a {self.signature}")
        return named(self.inputs, decode(self._types, data[4:], f"the arguments of {self.name}"), self.name)

    def __str__(self) -> str:
        return f"error {self._listed()}"


Entry = Function | Constructor | Event | CustomError


def _from_topic(parameter: Parameter, topic: int, event: str) -> Any:
    word, type_ = topic.to_bytes(32, "big"), parameter.type
    if isinstance(type_, Array | Tuple) or type_.dynamic:
        return word
    return type_.made(decode([type_.name], word, f"the topic {parameter.name} of {event}")[0])


Kind = TypeVar("Kind", Function, Constructor, Event, CustomError)


def _parsed(text: str, kind: type[Kind]) -> Kind:
    from fusevm.abi.signatures import parse_entry

    found = parse_entry(text)
    if not isinstance(found, kind):
        raise BadAbi(f"{text!r}: expected a signature of {kind.__name__}, got {type(found).__name__}")
    return found
