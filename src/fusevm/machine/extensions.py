"""What a user adds to a machine, in Python: precompiled contracts, opcodes, and a listener for the console."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from fusevm.evm.forks import Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.precompiles import Precompile, precompiles_of
from fusevm.evm.precompiles.contract import Pause, fixed, no_pause
from fusevm.machine.console import CONSOLE, readable
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import InstructionEntry, table_of
from fusevm.values import AddressLike, BadValue, shown, to_address, to_bytes, to_number

# Of input and gas; the output, or the output and the gas used.
PrecompileFunction: TypeAlias = Callable[[bytes, int], bytes | tuple[bytes, int]]
# Of the frame: None to go on, the frame itself to end it, another to run first. Gas and stack were checked.
OpcodeFunction: TypeAlias = Callable[[Frame], Frame | None]
Extend: TypeAlias = Callable[[Callable[[], object]], None]  # makes a change take effect

_BYTES = range(256)


class UserPrecompiles(MutableMapping[AddressLike, PrecompileFunction]):
    """A machine's own precompiled contracts by address, over those of its fork."""

    def __init__(self, extend: Extend, functions: Mapping[bytes, PrecompileFunction] | None = None) -> None:
        self._functions: dict[bytes, PrecompileFunction] = dict(functions or {})
        self._extend = extend

    def __setitem__(self, address: AddressLike, function: PrecompileFunction) -> None:
        where = to_address(address, "precompile")
        if not callable(function):
            raise BadValue(f"precompile 0x{where.hex()}: expected a function, got {shown(function)}")
        self._extend(lambda: self._functions.__setitem__(where, function))

    def __getitem__(self, address: AddressLike) -> PrecompileFunction:
        return self._functions[to_address(address, "precompile")]

    def __delitem__(self, address: AddressLike) -> None:
        where = to_address(address, "precompile")
        self._extend(lambda: self._functions.pop(where))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


class UserOpcodes(MutableMapping[int | str, OpcodeFunction]):
    """A machine's own opcodes by byte or name. They send its calls to the reference tier."""

    def __init__(self, extend: Extend, functions: Mapping[int, OpcodeFunction] | None = None) -> None:
        self._functions: dict[int, OpcodeFunction] = dict(functions or {})
        self._extend = extend

    def __setitem__(self, opcode: int | str, function: OpcodeFunction) -> None:
        byte = _byte(opcode)
        if not callable(function):
            raise BadValue(f"opcode 0x{byte:02x}: expected a function, got {shown(function)}")
        self._extend(lambda: self._functions.__setitem__(byte, function))

    def __getitem__(self, opcode: int | str) -> OpcodeFunction:
        return self._functions[_byte(opcode)]

    def __delitem__(self, opcode: int | str) -> None:
        byte = _byte(opcode)
        self._extend(lambda: self._functions.pop(byte))

    def __iter__(self) -> Iterator[int]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def entries(self, fork: Fork) -> dict[int, InstructionEntry]:
        """By byte. An opcode of the fork keeps its static gas and stack bounds; a new one has none."""
        known = table_of(fork)
        invalid = known[0xFE].instruction
        found: dict[int, InstructionEntry] = {}
        for byte, function in self._functions.items():
            entry = known[byte]
            if entry.instruction is invalid:
                entry = InstructionEntry(function, 0, 0, STACK_LIMIT)
            found[byte] = entry._replace(instruction=function)
        return found


def _byte(opcode: int | str) -> int:
    if isinstance(opcode, str):
        if opcode not in BY_NAME:
            raise BadValue(f"opcode: {shown(opcode)} is not the name of one; give its byte")
        return BY_NAME[opcode].byte
    if isinstance(opcode, bool) or not isinstance(opcode, int) or opcode not in _BYTES:
        raise BadValue(f"opcode: {shown(opcode)} is not a byte")
    return opcode


class _Answers:
    """A user's function as a precompiled contract's: its answer is checked."""

    def __init__(self, name: str, function: PrecompileFunction) -> None:
        self._name, self._function = name, function

    def __call__(self, data: bytes, gas: int) -> tuple[bytes, int]:
        found = self._function(data, gas)
        output, used = found if isinstance(found, tuple) and len(found) == 2 else (found, 0)
        return to_bytes(output, f"{self._name}: output"), to_number(used, f"{self._name}: gas used")


def precompile_of(address: bytes, function: PrecompileFunction) -> Precompile:
    name = f"precompile 0x{address.hex()}"
    number = int.from_bytes(address, "big")
    return Precompile(name, number, Fork.FRONTIER, fixed(0), _unused, answers=_Answers(name, function))


def _unused(data: bytes, fork: Fork, pause: Pause = no_pause) -> bytes:
    raise AssertionError("a user's precompile answers for itself")


def console_precompile(listener: Callable[[str], Any]) -> Precompile:
    def told(data: bytes, gas: int) -> bytes:
        listener(readable(data))
        return b""

    return precompile_of(CONSOLE, told)


def contracts_at(
    fork: Fork, own: Mapping[Any, PrecompileFunction], listener: Callable[[str], Any] | None
) -> tuple[Mapping[bytes, Precompile], Container[bytes]]:
    """All precompiled contracts of a machine, and those that are warm from the start: the console is not."""
    standard = precompiles_of(fork)
    if not own and listener is None:
        return standard, standard
    found = {**standard, **{address: precompile_of(address, function) for address, function in own.items()}}
    if listener is None or CONSOLE in found:
        return found, found
    return {**found, CONSOLE: console_precompile(listener)}, found
