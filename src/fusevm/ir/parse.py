"""Parses the text of dependency blocks."""

from __future__ import annotations

import re

from fusevm.ir.block import DependencyBlock, Edge, Terminator
from fusevm.ir.copies import key_named
from fusevm.ir.names import NAME_OF
from fusevm.ir.values import CONST, OWN, PHI, SPILL, TRAITS, UNSPILL, Value

_TERMINATORS = {"JUMP", "JUMPI", "FALL", "STOP", "RETURN", "REVERT", "SELFDESTRUCT", "INVALID"}
_HEADER = re.compile(r"dependency block ([\d.]+):")
_FACTS = re.compile(r"// low (-?\d+), high (\d+), delta (-?\d+), gas ([\d +]+)")
_ASSIGNED = re.compile(r"\$(\d+) = (.+)")
_EDGE = re.compile(r"-> ([\d.]+) \((.*)\)")
_TOKEN = re.compile(r"\(Unspill -?\d+\)|\S+", re.IGNORECASE)


class IrSyntaxError(ValueError):
    def __init__(self, line: int, word: str, problem: str) -> None:
        super().__init__(f"ir: line {line}: {word!r} {problem}")


def parse(text: str) -> list[DependencyBlock]:
    """All blocks of the text. `//` begins a comment, except that the line of facts `block_text` writes is read."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.line = number
        facts = _FACTS.fullmatch(line.strip())
        stripped = line.split("//", 1)[0].strip()
        if facts:
            reader.facts(facts)
        elif stripped:
            reader.read(stripped)
    reader.end_block()
    for identifier, first_use in reader.awaited.items():
        raise IrSyntaxError(first_use, f"${identifier}", "is never computed")
    return reader.blocks


class _Reader:
    def __init__(self) -> None:
        self.blocks: list[DependencyBlock] = []
        self.values: dict[int, Value] = {}
        self.awaited: dict[int, int] = {}  # used, but not defined yet (by a block printed later): line of first use
        self.constants: dict[int, Value] = {}
        self.block: DependencyBlock | None = None
        self.entry: dict[int, Value] = {}
        self.slots: dict[int, Value] = {}  # the words spilled so far, by slot
        self.delta: int | None = None
        self.gas: list[int] = []
        self.line = 0

    def fail(self, word: str, problem: str) -> IrSyntaxError:
        return IrSyntaxError(self.line, word, problem)

    def read(self, line: str) -> None:
        if header := _HEADER.fullmatch(line):
            self.end_block()
            self.block = DependencyBlock(key_named(header[1]))
            return
        if self.block is None:
            raise self.fail(line, "stands before the first 'dependency block N:'")
        if assigned := _ASSIGNED.fullmatch(line):
            self.assign(int(assigned[1]), assigned[2])
        elif edge := _EDGE.fullmatch(line):
            self.edge(key_named(edge[1]), edge[2])
        else:
            self.terminator(line)

    def facts(self, found: re.Match[str]) -> None:
        if self.block is None:
            raise self.fail(found[0], "stands before the first 'dependency block N:'")
        self.block.low, self.block.high, self.delta = int(found[1]), int(found[2]), int(found[3])
        self.gas = [int(part) for part in found[4].split("+")]

    def operation(self, words: list[str]) -> tuple[str, bool]:
        raw = words[0].endswith("!")
        op = NAME_OF.get(words[0].rstrip("!").lower())
        if op is None:
            raise self.fail(words[0], "is not an instruction")
        return op, raw

    def assign(self, identifier: int, text: str) -> None:
        assert self.block is not None
        words = _TOKEN.findall(text)
        op, raw = self.operation(words)
        if op in (UNSPILL, PHI):
            slot = self.slot(words[-1])
            if slot in self.entry:
                self.values.setdefault(identifier, self.entry[slot])
            elif identifier not in self.values or identifier in self.awaited:
                self.entry[slot] = self.define(identifier, op, (), slot)
            return
        slot = self.slot(words.pop()) if op == SPILL else 0
        args = tuple([self.operand(word) for word in words[1:]])
        needs = OWN[op][0] if op in OWN else TRAITS[op].opcode.pops  # type: ignore[union-attr]
        if len(args) != needs:
            raise self.fail(words[0], f"takes {needs} operands, not {len(args)}")
        value = self.define(identifier, op, args, slot)
        value.raw = raw
        if op == SPILL:
            self.block.spills.append(value)
            self.slots[slot] = args[0]
        else:
            self.block.instructions.append(value)

    def define(self, identifier: int, op: str, args: tuple[Value, ...], number: int) -> Value:
        assert self.block is not None
        value = self.values.setdefault(identifier, Value(op))
        value.op, value.args, value.number = op, args, number
        value.id, value.block = identifier, self.block.start
        self.awaited.pop(identifier, None)
        for arg in args:
            arg.uses += 1
        return value

    def operand(self, word: str) -> Value:
        assert self.block is not None
        if word.startswith("#") and word[1:].isdigit():
            return self.constants.setdefault(int(word[1:]), Value(CONST, (), int(word[1:])))
        if word.startswith("$") and word[1:].isdigit():
            identifier = int(word[1:])
            if identifier not in self.values:
                self.values[identifier] = Value(UNSPILL, (), 0, identifier)
                self.awaited[identifier] = self.line
            return self.values[identifier]
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
        assert self.block is not None
        words = _TOKEN.findall(line)
        op, _ = self.operation(words)
        if op not in _TERMINATORS:
            raise self.fail(words[0], "computes a value, and needs '$n =' before it")
        falls = None
        if op == "FALL" or "else" in words:
            falls = self.operand(words.pop()).number
            words = [word for word in words if word != "else"]
        self.block.terminator = Terminator(op, tuple([self.operand(word) for word in words[1:]]), falls)

    def edge(self, target: int, text: str) -> None:
        assert self.block is not None
        args = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            slot, _, word = part.partition(" = ")
            args[self.slot(slot)] = self.operand(word)
        self.block.terminator.edges.append(Edge(target, args))

    def end_block(self) -> None:
        block = self.block
        if block is None:
            return
        depth = -min([block.low, *self.entry, *(spill.number for spill in block.spills)])
        block.low = block.low or -depth
        block.spills.sort(key=lambda spill: -spill.number)
        block.params = tuple(sorted((v.number for v in self.entry.values() if v.op == PHI), reverse=True))
        block.entry = [
            self.entry.get(-1 - index) or Value(UNSPILL, (), -1 - index, -2 - index, block.start)
            for index in range(depth)
        ]
        top = self.delta if self.delta is not None else max([-1, *(spill.number for spill in block.spills)]) + 1
        stack: list[Value] = block.entry[::-1][: depth + top]
        stack += [self.constants.setdefault(0, Value(CONST))] * (depth + top - len(stack))
        for spill in block.spills:
            stack[spill.number + depth] = spill.args[0]
        block.stack = tuple(stack)
        observers = [block, *(value for value in block.instructions if TRAITS[value.op].observes)]
        for owner, gas in zip(observers, self.gas, strict=False):
            owner.gas = gas  # type: ignore[attr-defined]
        self.blocks.append(block)
        self.block, self.entry, self.slots, self.delta, self.gas = None, {}, {}, None, []
