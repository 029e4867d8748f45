"""Short random code over few instructions, most of which move words and jump: code addresses are copied, tested, masked
and computed with, and jumps go back to words that the code was given. What finds functions sees all of that, though no
compiler writes it."""

from __future__ import annotations

from random import Random

from fusevm.lab.fuzz.code import LABEL, REF, Code, Item

_MOVES = ("DUP1", "DUP1", "DUP2", "DUP3", "SWAP1", "SWAP1", "SWAP2", "SWAP3", "POP")
_WORDS = ("ISZERO", "ISZERO", "NOT", "ADD", "SUB", "AND", "OR", "EQ", "LT", "SHL", "SHR", "MUL", "BYTE", "SIGNEXTEND")
_SEEN = ("SLOAD", "MLOAD", "MSIZE", "GAS", "PC", "BALANCE")
_GIVEN = 6  # words of the data that the code begins with
_LEAST, _MOST = 2, 7  # blocks
_MAX_DEEP = 560  # words


def maze(rng: Random) -> tuple[Code, bytes]:
    """Code, and the data to call it with."""
    blocks = rng.randint(_LEAST, _MOST)
    items = [*_number(rng.randrange(2)), *_beginning(rng)]
    for label in range(blocks):
        if label and rng.random() < 0.8:
            items += [Item("JUMP")] if rng.random() < 0.7 else _ending(rng)
        items.append(Item(LABEL, label))
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8))):
            items += _step(rng, blocks)
        if rng.random() < 0.03:
            items += [Item(rng.choice(("POP", "DUP1", "DUP16", "SWAP16")))] * rng.choice((17, 30, _MAX_DEEP))
        if rng.random() < 0.6:
            items += [Item(REF, rng.randint(0, blocks)), Item("JUMPI")]
        if rng.random() < 0.6:
            items.append(Item(REF, rng.randint(0, blocks)))
    items += [Item("JUMP"), Item(LABEL, blocks), *_ending(rng)]
    words = [rng.choice((0, 0, 1, 2, 32, (1 << 256) - 1, rng.randrange(64))) for _ in range(_GIVEN)]
    return Code(items), b"".join([word.to_bytes(32, "big") for word in words])


def _beginning(rng: Random) -> list[Item]:
    made: list[Item] = []
    for number in range(rng.randrange(_GIVEN)):
        made += [Item("PUSH1", 32 * number), Item("CALLDATALOAD")]
    if rng.random() < 0.05:
        made += [Item("DUP1")] * rng.choice((_MAX_DEEP, 1_010))
    return made


def _step(rng: Random, blocks: int) -> list[Item]:
    kind = rng.random()
    if kind < 0.4:
        return [Item(rng.choice(_MOVES))]
    if kind < 0.6:
        return [Item(REF, rng.randint(0, blocks))]
    if kind < 0.7:
        return _number(rng.choice((0, 1, 1, 2, 3, 31, 32, 255)))
    if kind < 0.73:
        return [Item("PUSH32", rng.choice(((1 << 256) - 1, 0xFFFFFF, 1 << 64)))]
    if kind < 0.76:
        return [Item("PUSH1", 32 * rng.randrange(_GIVEN)), Item("CALLDATALOAD")]
    if kind < 0.92:
        return [Item(rng.choice(_WORDS))]
    if kind < 0.97:
        return [Item(rng.choice(_SEEN))]
    return [*_number(rng.randrange(4)), Item(rng.choice(("SSTORE", "MSTORE", "MSTORE8")))]


def _number(number: int) -> list[Item]:
    return [Item("PUSH1", number)]


def _ending(rng: Random) -> list[Item]:
    if rng.random() < 0.5:
        return [Item("STOP")]
    return [*_number(0), Item("MSTORE"), *_number(32), *_number(0), Item("RETURN")]
