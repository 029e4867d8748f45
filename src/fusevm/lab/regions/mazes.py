"""Short random code over few instructions, most of which move words and jump: code addresses are copied, tested, masked
and computed with, and jumps go back to words that the code was given. What finds functions sees all of that, though no
compiler writes it."""

from __future__ import annotations

from random import Random

from fusevm.lab.fuzz.code import LABEL, REF, CodePart, CodeParts

_MOVES = ("DUP1", "DUP1", "DUP2", "DUP3", "SWAP1", "SWAP1", "SWAP2", "SWAP3", "POP")
_WORDS = ("ISZERO", "ISZERO", "NOT", "ADD", "SUB", "AND", "OR", "EQ", "LT", "SHL", "SHR", "MUL", "BYTE", "SIGNEXTEND")
_SEEN = ("SLOAD", "MLOAD", "MSIZE", "GAS", "PC", "BALANCE")
_GIVEN = 6  # words of the data that the code begins with
_LEAST, _MOST = 2, 7  # blocks
_MAX_DEEP = 560  # words


def maze(rng: Random) -> tuple[CodeParts, bytes]:
    """Code, and the data to call it with."""
    blocks = rng.randint(_LEAST, _MOST)
    items = [*_number(rng.randrange(2)), *_beginning(rng)]
    for label in range(blocks):
        if label and rng.random() < 0.8:
            items += [CodePart("JUMP")] if rng.random() < 0.7 else _ending(rng)
        items.append(CodePart(LABEL, label))
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8))):
            items += _step(rng, blocks)
        if rng.random() < 0.03:
            items += [CodePart(rng.choice(("POP", "DUP1", "DUP16", "SWAP16")))] * rng.choice((17, 30, _MAX_DEEP))
        if rng.random() < 0.6:
            items += [CodePart(REF, rng.randint(0, blocks)), CodePart("JUMPI")]
        if rng.random() < 0.6:
            items.append(CodePart(REF, rng.randint(0, blocks)))
    items += [CodePart("JUMP"), CodePart(LABEL, blocks), *_ending(rng)]
    words = [rng.choice((0, 0, 1, 2, 32, (1 << 256) - 1, rng.randrange(64))) for _ in range(_GIVEN)]
    return CodeParts(items), b"".join([word.to_bytes(32, "big") for word in words])


def _beginning(rng: Random) -> list[CodePart]:
    made: list[CodePart] = []
    for number in range(rng.randrange(_GIVEN)):
        made += [CodePart("PUSH1", 32 * number), CodePart("CALLDATALOAD")]
    if rng.random() < 0.05:
        made += [CodePart("DUP1")] * rng.choice((_MAX_DEEP, 1_010))
    return made


def _step(rng: Random, blocks: int) -> list[CodePart]:
    kind = rng.random()
    if kind < 0.4:
        return [CodePart(rng.choice(_MOVES))]
    if kind < 0.6:
        return [CodePart(REF, rng.randint(0, blocks))]
    if kind < 0.7:
        return _number(rng.choice((0, 1, 1, 2, 3, 31, 32, 255)))
    if kind < 0.73:
        return [CodePart("PUSH32", rng.choice(((1 << 256) - 1, 0xFFFFFF, 1 << 64)))]
    if kind < 0.76:
        return [CodePart("PUSH1", 32 * rng.randrange(_GIVEN)), CodePart("CALLDATALOAD")]
    if kind < 0.92:
        return [CodePart(rng.choice(_WORDS))]
    if kind < 0.97:
        return [CodePart(rng.choice(_SEEN))]
    return [*_number(rng.randrange(4)), CodePart(rng.choice(("SSTORE", "MSTORE", "MSTORE8")))]


def _number(number: int) -> list[CodePart]:
    return [CodePart("PUSH1", number)]


def _ending(rng: Random) -> list[CodePart]:
    if rng.random() < 0.5:
        return [CodePart("STOP")]
    return [*_number(0), CodePart("MSTORE"), *_number(32), *_number(0), CodePart("RETURN")]
