"""Parses the text of dependency blocks."""

from __future__ import annotations

import re

from fusevm.ir.functions import DependencyBlock, End
from fusevm.ir.names import NAME_OF
from fusevm.ir.values import CONST, OWN, SPILL, TRAITS, UNSPILL, Value

_TERMINATORS = {"JUMP", "JUMPI", "FALL", "STOP", "RETURN", "REVERT", "SELFDESTRUCT", "INVALID"}
_HEADER = re.compile(r"dependency block (\d+):")
_FACTS = re.compile(r"// low (-?\d+), high (\d+), delta (-?\d+), gas ([\d +]+)")
_ASSIGNED = re.compile(r"\$(\d+) = (.+)")
_LITERAL = re.compile(r"#(0|[1-9]\d*|0x[0-9a-f]+)", re.IGNORECASE)
_TOKEN = re.compile(r"\(Unspill -?\d+\)|\S+", re.IGNORECASE)


class IrSyntaxError(ValueError):
    def __init__(self, line: int, word: str, problem: str) -> None:
        super().__init__(f"ir: line {line}: {word!r} {problem}")


def parse(text: str) -> list[DependencyBlock]:
    """All blocks of the text. `//` begins a comment, except that the line of facts `block_text` writes is read."""
    readers: list[_Reader] = []
    for number, line in enumerate(text.splitlines(), 1):
        facts = _FACTS.fullmatch(line.strip())
        words = line.split("//", 1)[0].strip()
        if header := _HEADER.fullmatch(words):
            readers.append(_Reader(int(header[1])))
        elif (facts or words) and not readers:
            raise IrSyntaxError(number, facts[0] if facts else words, "stands before the first 'dependency block N:'")
        elif facts:
            readers[-1].facts(facts)
        elif words:
            readers[-1].read(words, number)
    return [reader.finished() for reader in readers]


class _Reader:
    """Of one block."""

    def __init__(self, start: int) -> None:
        self.block = DependencyBlock(start)
        self.values: dict[int, Value] = {}  # by identifier
        self.constants: dict[int, Value] = {}
        self.entry: dict[int, Value] = {}
        self.slots: dict[int, Value] = {}  # the words spilled so far, by slot
        self.low = 0
        self.delta: int | None = None
        self.gas: list[int] = []
        self.line = 0

    def fail(self, word: str, problem: str) -> IrSyntaxError:
        return IrSyntaxError(self.line, word, problem)

    def read(self, line: str, number: int) -> None:
        self.line = number
        if assigned := _ASSIGNED.fullmatch(line):
            self.assign(int(assigned[1]), assigned[2])
        else:
            self.terminator(line)

    def facts(self, found: re.Match[str]) -> None:
        self.low, self.block.high, self.delta = int(found[1]), int(found[2]), int(found[3])
        self.gas = [int(part) for part in found[4].split("+")]

    def operation(self, words: list[str]) -> tuple[str, bool]:
        raw = words[0].endswith("!")
        op = NAME_OF.get(words[0].rstrip("!").lower())
        if op is None:
            raise self.fail(words[0], "is not an instruction")
        return op, raw

    def assign(self, identifier: int, text: str) -> None:
        words = _TOKEN.findall(text)
        op, raw = self.operation(words)
        if op == UNSPILL:
            slot = self.slot(words[-1])
            if slot in self.entry:
                self.values.setdefault(identifier, self.entry[slot])
            elif identifier not in self.values:
                self.entry[slot] = self.define(identifier, op, (), slot)
            return
        slot = self.slot(words.pop()) if op == SPILL else 0
        args = tuple([self.operand(word) for word in words[1:]])
        needs = OWN[op][0] if op in OWN else TRAITS[op].opcode.pops  # type: ignore[union-attr]
        if len(args) != needs:
            raise self.fail(words[0], f"takes {needs} operands, not {len(args)}")
        if op == SPILL:
            self.slots[slot] = args[0]
            return
        value = self.define(identifier, op, args)
        value.prechecked = raw
        self.block.instructions.append(value)

    def define(self, identifier: int, op: str, args: tuple[Value, ...], number: int = 0) -> Value:
        value = self.values[identifier] = Value(op, args, number, identifier, self.block.start)
        for arg in args:
            arg.uses += 1
        return value

    def operand(self, word: str) -> Value:
        if literal := _LITERAL.fullmatch(word):
            number = int(literal[1], 0)
            return self.constants.setdefault(number, Value(CONST, (), number))
        if word.startswith("$") and word[1:].isdigit():
            known = self.values.get(int(word[1:]))
            if known is None:
                raise self.fail(word, "is never computed")
            return known
        if word.lower().startswith("(unspill "):
            slot = self.slot(word[9:-1])
            if slot in self.slots:
                return self.slots[slot]
            if slot not in self.entry:
                self.entry[slot] = Value(UNSPILL, (), slot, slot - 1, self.block.start)
            return self.entry[slot]
        raise self.fail(word, "is not a value: a literal #n, a $n, or (Unspill n)")

    def slot(self, word: str) -> int:
        if not re.fullmatch(r"-?\d+", word):
            raise self.fail(word, "is not a slot of the run-time stack")
        return int(word)

    def terminator(self, line: str) -> None:
        words = _TOKEN.findall(line)
        op, _ = self.operation(words)
        if op not in _TERMINATORS:
            raise self.fail(words[0], "computes a value, and needs '$n =' before it")
        falls: tuple[int, ...] = ()
        if op == "FALL" or "else" in words:
            falls = (self.operand(words.pop()).number,)
            words = [word for word in words if word != "else"]
        self.block.end = End(op, tuple([self.operand(word) for word in words[1:]]), cases=falls)

    def finished(self) -> DependencyBlock:
        block = self.block
        depth = -min([self.low, *self.entry, *self.slots])
        block.params = [
            self.entry.get(-1 - index) or Value(UNSPILL, (), -1 - index, -2 - index, block.start)
            for index in range(depth)
        ]
        top = self.delta if self.delta is not None else max([-1, *self.slots]) + 1
        words: list[Value] = block.params[::-1][: depth + top]
        words += [self.constants.setdefault(0, Value(CONST))] * (depth + top - len(words))
        for slot, word in self.slots.items():
            words[slot + depth] = word
        block.end.words = tuple(words)
        observers = [block, *(value for value in block.instructions if TRAITS[value.op].observes)]
        for owner, gas in zip(observers, self.gas, strict=False):
            owner.gas = gas  # type: ignore[attr-defined]
        return block
