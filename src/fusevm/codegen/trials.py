"""Trials: runs two versions of code on the same inputs on the reference tier and compares the results.

Both are laid out in the same way and padded to the same size, so that only the change can make a difference. Gas is not
compared, GAS gives the same word in both, and code that reads itself sees zeros instead of instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.assembler import (
    STOP,
    WORD_BYTES,
    Assembly,
    CodePiece,
    Item,
    ItemKind,
    ObjectLayout,
    ObjectReferences,
    assemble,
)
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.halts import HaltReason
from fusevm.evm.keccak import keccak256
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.frame import Frame, jump_map, padded
from fusevm.reference.instructions import table_of
from fusevm.reference.interpreter import run
from fusevm.reference.trampoline import drive

GAS = 200_000
MORE_GAS = 2  # the factor for the version after the change: the layout used for trials may be worse than before
CALLER, ADDRESS, ECHO, ORIGIN = (bytes([byte]) * 20 for byte in (0xCA, 0xC0, 0xEC, 0x0A))
BLOCK = Block(  # all fields differ
    number=20, timestamp=1_700_000_000, coinbase=b"\xcb" * 20, base_fee=5, prev_randao=1 << 200, chain_id=1337
)
_ECHO_CODE = bytes.fromhex("365f5f37365ff3")  # returns its calldata
_EDGES = (0, 1, 2, 3, 31, 32, 33, 64, 128, 255, 256, (1 << 128) - 1, 1 << 255, (1 << 255) - 1, (1 << 256) - 1)
_STEP = 1024  # both versions are padded to a multiple of it
_PIECE = 96  # bytes of a placeholder for an object or data
_WORD = (1 << 256) - 1


class TrialInput(NamedTuple):
    """An input: calldata, value, and the storage before."""

    data: bytes
    value: int
    storage: dict[int, int]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a caller can observe of a run, except gas."""

    status: Status
    output: bytes
    logs: tuple[object, ...]
    storage: dict[int, int]


def trials_for(
    constants: Sequence[int], selectors: Sequence[int], count: int, operands: int | None
) -> Iterator[TrialInput]:
    """Inputs made from the code's constants. `operands`: how many words a function takes; None for a contract."""
    random = Random(0)
    pool = [*_EDGES, *(int.from_bytes(each, "big") for each in (CALLER, ADDRESS, ECHO))]
    for number in constants:
        pool += [number, number - 1 & _WORD, number + 1 & _WORD]

    def word() -> int:
        kind = random.random()
        if kind < 0.7:
            return random.choice(pool)
        return random.getrandbits(random.choice((8, 64, 160, 256)))

    for number in range(count):
        storage = {slot: word() for slot in (*range(8), word())} if number % 2 else {}
        if operands is not None:
            words = [word() for _ in range(operands)]
        elif number % 3 == 0:
            words = [word() for _ in range(random.randrange(7))]
        else:  # what runs loops a few times
            words = _sizes(random) if number % 3 == 1 else _array(random)
        data = b"".join(each.to_bytes(WORD_BYTES, "big") for each in words)
        if operands is None:
            if selectors and number:
                data = selectors[number % len(selectors)].to_bytes(4, "big") + data
            data = data[: random.choice((len(data), len(data), max(len(data) - 1, 0)))] if number else b""
        yield TrialInput(data, random.choice((0, 0, 0, 1)), storage)


def _sizes(random: Random) -> list[int]:
    most = random.choice((4, 40, 160))
    return [random.randint(1, most) for _ in range(random.randint(1, 4))]


def _array(random: Random) -> list[int]:
    """Sizes, and the offset of an array among them, as the ABI has it."""
    head, items = _sizes(random), [random.getrandbits(random.choice((4, 8, 64))) for _ in range(random.randint(1, 9))]
    head[random.randrange(len(head))] = WORD_BYTES * len(head)
    return [*head, len(items), *items]


def difference(
    before: Assembly, after: Assembly, names: Sequence[str], trials: Iterator[TrialInput], final: bool = True
) -> TrialInput | None:
    """The first input on which the versions differ.

    Inputs on which the first version runs out of gas are skipped. The recursion depth that fits on the stack depends on
    the layout, so stack overflows count only if the layout is `final`.
    """
    around = _surroundings(names)
    one, two = _padded(before, after, around)
    for trial in trials:
        expected, reason = _run(one, before.fork, trial, GAS)
        if reason is HaltReason.OUT_OF_GAS or (reason is HaltReason.STACK_OVERFLOW and not final):
            continue
        found, reason = _run(two, after.fork, trial, GAS * MORE_GAS)
        if found != expected and (final or reason is not HaltReason.STACK_OVERFLOW):
            return trial
    return None


def _surroundings(names: Sequence[str]) -> ObjectReferences:
    """A placeholder for every name that the code may refer to."""
    pieces = {name: CodePiece(keccak256(name.encode()) * (_PIECE // WORD_BYTES)) for name in names}
    immutables = {name: [WORD_BYTES * number] for number, name in enumerate(names)}
    return ObjectReferences(dict.fromkeys(names, _PIECE), pieces, "", b"", immutables)


class _Code(NamedTuple):
    """The code that is executed, and what it sees when it reads itself: zeros instead of instructions."""

    executed: bytes
    seen: bytes


def _padded(before: Assembly, after: Assembly, around: ObjectReferences) -> tuple[_Code, _Code]:
    sizes = [assemble(version.items, version.fork, around).size for version in (before, after)]
    room = -(-(max(sizes) + _STEP // 4) // _STEP) * _STEP
    return _padded_to(before, around, room), _padded_to(after, around, room)


def _padded_to(version: Assembly, around: ObjectReferences, room: int) -> _Code:
    padding = 0
    for _ in range(4):  # offsets of data may take more bytes than before
        layout = assemble([*version.items, Item(ItemKind.RAW, STOP * padding)], version.fork, around)
        if layout.size == room:
            break
        padding += room - layout.size
    return _filled(layout, version.fork)


def _filled(layout: ObjectLayout, fork: Fork) -> _Code:
    """Fills in immutables and libraries, and replaces GAS by GASLIMIT, which gives the same word in both versions."""
    code = bytearray(layout.code)
    for name, places in layout.immutables.items():
        for place in places:
            code[place : place + WORD_BYTES] = keccak256(name.encode())
    for name, places in layout.libraries.items():
        for place in places:
            code[place : place + 20] = keccak256(name.encode())[:20]
    for instruction in instructions(layout.code[: layout.size], fork):
        if instruction.name == "GAS":
            code[instruction.pc] = BY_NAME["GASLIMIT"].byte
    return _Code(bytes(code), bytes(layout.size) + bytes(code[layout.size :]))


def _run(code: _Code, fork: Fork, trial: TrialInput, gas: int) -> tuple[Observed, HaltReason | None]:
    """What a caller observes, and the reason if it halted exceptionally."""
    state = State()
    state.set_code(ADDRESS, code.seen)
    state.set_code(ECHO, _ECHO_CODE)
    state.set_balance(CALLER, 10**18)
    state.set_balance(ADDRESS, 10**18)
    for slot, word in trial.storage.items():
        state.set_storage(ADDRESS, slot, word)
    state.begin_transaction()
    context = Context(fork, BLOCK, ORIGIN, gas_price=7)
    message = Message(CALLER, ADDRESS, code.seen, trial.data, trial.value, gas, code_address=ADDRESS)
    frame = Frame(message, state, context)
    frame.code, frame.jumps = padded(code.executed), jump_map(code.executed)
    table = table_of(fork)
    outcome: Outcome = drive(frame, lambda each: run(each, table))
    storage = {slot: word for slot, word in state.account(ADDRESS).storage.items() if word}
    reason = outcome.failure.reason if outcome.failure is not None else None
    return Observed(outcome.status, outcome.output, tuple(state.logs), storage), reason
