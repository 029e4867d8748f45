"""Writes one code item by item and knows how high the stack is, so that what it writes runs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME, Opcode, opcodes_of
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import LABEL, PART, REF, SIZE, CodePart, CodeParts, push, raw

_PLAIN = {name: CodePart(op.name) for name, op in BY_NAME.items()}
_DELTA = {name: op.pushes - op.pops for name, op in BY_NAME.items()}
_REACH = 16  # how deep DUP and SWAP reach
_HIGH = 24  # words a block lets pile up before it drops some


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a code may refer to: the fork, and the contracts it can call."""

    fork: Fork
    targets: tuple[int, ...]  # accounts of the world, and some that are not there
    precompiles: tuple[int, ...]


class Vocabulary:
    """The fork's opcodes by what a writer needs of them."""

    def __init__(self, fork: Fork) -> None:
        known = [op for op in opcodes_of(fork) if op is not None]
        self.undefined = [byte for byte, op in enumerate(opcodes_of(fork)) if op is None]
        self.names = {op.name for op in known}
        self.pure = [op for op in known if op.pure and op.pops]
        self.nullary = [op for op in known if not op.pops and op.pushes == 1 and not op.is_stack]
        self.logs = [op for op in known if op.is_log]
        self.any: list[Opcode] = known


VOCABULARIES = {fork: Vocabulary(fork) for fork in Fork}


class Writer:
    def __init__(self, rng: Random, around: Surroundings, nesting: int = 0, loops: int = 0) -> None:
        self.rng = rng
        self.around = around
        self.fork = around.fork
        self.vocabulary = VOCABULARIES[around.fork]
        self.nesting = nesting  # how many codes this one is inside of
        self.loops = loops  # how many loops the place being written is inside of
        self.height = 0
        self.floor = 0  # words below this are another block's, and left alone
        self.room = 0  # items the block being written may still take
        self.code = CodeParts()
        self._labels = 0

    def has(self, name: str) -> bool:
        return name in self.vocabulary.names

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # -- items

    def op(self, name: str) -> None:
        self.code.items.append(_PLAIN[name])
        self.height += _DELTA[name]

    def ops(self, *names: str) -> None:
        for name in names:
            self.op(name)

    def push(self, value: int) -> None:
        """In as few bytes as it takes, or a few more."""
        rng = self.rng
        least = 0 if self.fork >= Fork.SHANGHAI else 1
        if rng.random() < 0.1:
            least = rng.choice((1, 2, 3, 4, 5, 8, 20, 31, 32))
        self.code.items.append(push(value, least))
        self.height += 1

    def new_label(self) -> int:
        self._labels += 1
        return self._labels - 1

    def label(self, label: int) -> None:
        self.code.items.append(CodePart(LABEL, label))

    def ref(self, label: int) -> None:
        self.code.items.append(CodePart(REF, label))
        self.height += 1

    def part(self, code: CodeParts) -> int:
        self.code.parts.append(code)
        return len(self.code.parts) - 1

    def copy_part(self, part: int, to: int) -> None:
        """Brings a part into memory at `to`."""
        self.code.items += [CodePart(SIZE, part), CodePart(PART, part)]
        self.height += 2
        self.push(to)
        self.op("CODECOPY")

    def push_size(self, part: int) -> None:
        self.code.items.append(CodePart(SIZE, part))
        self.height += 1

    def data(self, octets: bytes) -> None:
        """Bytes in the middle of the code."""
        self.code.items += raw(octets).items

    # -- operands

    def operand(self) -> None:
        """Leaves one more word, from anywhere."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            self.push(words.word(rng))
        elif kind < 0.75 and self.height > 0:
            self.op(f"DUP{rng.randint(1, min(self.height, _REACH))}")
        elif kind < 0.88:
            self.op(rng.choice(self.vocabulary.nullary).name)
        elif kind < 0.93:
            self.push(rng.randrange(70))
            self.op("CALLDATALOAD")
        elif kind < 0.97:
            self.push(words.offset(rng))
            self.op("MLOAD")
        else:
            self.push(words.key(rng))
            self.op("SLOAD")

    def operands(self, count: int) -> None:
        """Makes sure that `count` words are on the stack; some may have been there before."""
        free = self.height - self.floor
        there = self.rng.randint(0, min(count, free)) if free > 0 and self.rng.random() < 0.5 else 0
        for _ in range(count - there):
            self.operand()

    def offset(self) -> None:
        if self.rng.random() < 0.9:
            self.push(words.offset(self.rng))
        else:
            self.operand()
            self.push(self.rng.choice((0x1F, 0x7F, 0xFF)))
            self.op("AND")

    def size(self) -> None:
        self.push(words.size(self.rng))

    def key(self) -> None:
        self.push(words.key(self.rng))

    def condition(self) -> None:
        """Leaves a word that is zero or not."""
        rng = self.rng
        if rng.random() < 0.7:
            self.operands(2)
            self.op(rng.choice(("LT", "GT", "SLT", "SGT", "EQ", "AND", "SUB", "XOR")))
        else:
            self.operands(1)
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            self.op("ISZERO")

    # -- blocks

    def settle(self, height: int) -> None:
        """Pops or pushes to the given height."""
        while self.height > height:
            if self.height > height + 1 and self.rng.random() < 0.1:
                self.op("SWAP1")
            self.op("POP")
        while self.height < height:
            self.push(words.word(self.rng))

    def level(self) -> None:
        """Drops some of a pile that has grown too high."""
        if self.height - self.floor > _HIGH:
            self.settle(self.floor + self.rng.randrange(_HIGH))
