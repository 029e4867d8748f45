"""Text to bytecode and back. `assemble(disassemble(code)) == code` for every byte string.

A program is a stream of words, any number on a line; commas count as blanks and `;`, `//` and `#` begin a comment:

    loop:                 ; a label names a position; jumping there still needs the JUMPDEST
      JUMPDEST PUSH 1 ADD ; PUSH takes the smallest size that fits, PUSH1 to PUSH32 the size they say
      PUSH2 @loop JUMP    ; @name is the position of a label
      DATA 0x00ff         ; bytes as they are
"""

from __future__ import annotations

import re

from fusevm.evm import assembler
from fusevm.evm.assembler import Item, ItemKind, LayoutError, Source, push, push_of_width
from fusevm.evm.bytecode import Instruction, instructions, jumpdests
from fusevm.evm.forks import LATEST, Fork
from fusevm.evm.opcodes import BY_NAME, Opcode

_WORD = re.compile(r"[^\s,]+")
_COMMENT = re.compile(r";|//|#")
_LABEL = re.compile(r"[A-Za-z_.$][\w.$]*")
_HEX = re.compile(r"0[xX][0-9a-fA-F_]*")
_DECIMAL = re.compile(r"[0-9][0-9_]*")


class AssemblyError(ValueError):
    """Names the line, the word and what is wrong with it."""

    def __init__(self, line: int, word: str, problem: str) -> None:
        super().__init__(f"line {line}: {word!r} {problem}")
        self.line, self.word, self.problem = line, word, problem


def assemble(text: str, fork: Fork = LATEST) -> bytes:
    try:
        return assembler.assemble(items_of(text, fork), fork).code
    except LayoutError as error:
        item = error.item
        word = f"{item.name}:" if item.kind is ItemKind.LABEL else f"@{item.name}"
        line = item.source[0] if item.source else 0
        raise AssemblyError(line, word, error.problem) from None


def items_of(text: str, fork: Fork = LATEST) -> list[Item]:
    """What the assembler is given; the source of each item is its line."""
    reader = _Reader(_words(text), fork)
    while reader.at < len(reader.words):
        reader.read()
    return reader.items


def _words(text: str) -> list[tuple[int, str]]:
    """Each with the number of its line."""
    return [
        (number, match.group())
        for number, line in enumerate(text.splitlines(), 1)
        for match in _WORD.finditer(_COMMENT.split(line, maxsplit=1)[0])
    ]


class _Reader:
    def __init__(self, words: list[tuple[int, str]], fork: Fork) -> None:
        self.words, self.fork = words, fork
        self.at = 0  # the word to read next
        self.items: list[Item] = []
        self.labels: dict[str, int] = {}

    def read(self) -> None:
        """One label, instruction or piece of data."""
        line, word = self.next()
        mnemonic = word.upper()
        if word.endswith(":"):
            self.declare(line, word)
        elif mnemonic == "DATA":
            self.raw(_data(*self.operand()))
        elif mnemonic == "PUSH":
            self.push(None)
        else:
            op = BY_NAME.get(mnemonic)
            if op is None:
                raise AssemblyError(line, word, "is not an instruction")
            if op.since > self.fork:
                problem = f"does not exist before {op.since.label} (assembling for {self.fork.label})"
                raise AssemblyError(line, word, problem)
            if op.is_push and op.immediate:
                self.push(op.immediate)
            elif op.immediate:
                self.raw(bytes([op.byte]) + _immediate(*self.operand(), op))
            else:
                self.raw(bytes([op.byte]))

    def next(self) -> tuple[int, str]:
        self.at += 1
        return self.words[self.at - 1]

    def operand(self) -> tuple[int, str]:
        if self.at == len(self.words):
            raise AssemblyError(*self.words[-1], "needs an operand")
        return self.next()

    @property
    def source(self) -> Source:
        """The line of the word read last."""
        return (self.words[self.at - 1][0],)

    def raw(self, data: bytes) -> None:
        self.items.append(Item(ItemKind.RAW, data, source=self.source))

    def declare(self, line: int, word: str) -> None:
        name = word[:-1]
        if not _LABEL.fullmatch(name):
            raise AssemblyError(line, word, "is not a label name (letters, digits, '_', '.', '$')")
        self.items.append(Item(ItemKind.LABEL, name=name, label=self.label(name), source=self.source))

    def push(self, width: int | None) -> None:
        line, word = self.operand()
        if word.startswith("@"):
            name = word[1:]
            self.items.append(
                Item(ItemKind.LABEL_REFERENCE, name=name, label=self.label(name), width=width, source=self.source)
            )
        else:
            value = _number(line, word, width)
            self.raw(push(value, self.fork) if width is None else push_of_width(value, width))

    def label(self, name: str) -> int:
        return self.labels.setdefault(name, len(self.labels))


def _data(line: int, word: str) -> bytes:
    digits = word[2:].replace("_", "")
    if not _HEX.fullmatch(word):
        raise AssemblyError(line, word, "is not hex data (0x…)")
    if len(digits) % 2:
        raise AssemblyError(line, word, f"has an odd number of hex digits ({len(digits)})")
    return bytes.fromhex(digits)


def _literal(line: int, word: str, or_else: str = "") -> int:
    if _HEX.fullmatch(word) and word[2:].strip("_"):
        return int(word, 16)
    if _DECIMAL.fullmatch(word):
        return int(word.replace("_", ""))
    raise AssemblyError(line, word, f"is not a number (decimal or 0x…){or_else}")


def _immediate(line: int, word: str, op: Opcode) -> bytes:
    value = _literal(line, word)
    if value >> 8 * op.immediate or (op.variants and op.variants[value] is None):
        raise AssemblyError(line, word, f"is not an immediate of {op.name}")
    return value.to_bytes(op.immediate, "big")


def _number(line: int, word: str, width: int | None) -> int:
    value = _literal(line, word, " or a @label")
    if value >> 256:
        raise AssemblyError(line, word, "does not fit a word of 32 bytes")
    if width is not None and value >> 8 * width:
        raise AssemblyError(line, word, f"does not fit PUSH{width}")
    return value


def disassemble(code: bytes, fork: Fork = LATEST, labels: bool = False) -> str:
    """One instruction per line, its position after it; what no instruction can express is DATA."""
    targets = jumpdests(code) if labels else frozenset()
    lines: list[str] = []
    for instruction in instructions(code, fork):
        if instruction.pc in targets:
            lines.append(f"{_label_at(instruction.pc)}:")
        text = _text_of(instruction, code, targets)
        lines.append(f"{text:<31} ; {instruction.pc:#06x}{_remark(instruction)}")
    return "\n".join(lines) + "\n" if lines else ""


def _label_at(pc: int) -> str:
    return f"L{pc:04x}"


def _text_of(instruction: Instruction, code: bytes, targets: frozenset[int]) -> str:
    raw = code[instruction.pc : instruction.next_pc]
    if instruction.op is None or instruction.truncated:
        return f"DATA 0x{raw.hex()}"
    if not instruction.op.immediate:
        return instruction.op.name
    if instruction.push in targets:
        return f"{instruction.op.name} @{_label_at(instruction.push or 0)}"
    return f"{instruction.op.name} 0x{raw[1:].hex()}"


def _remark(instruction: Instruction) -> str:
    if instruction.op is None:
        return "  unknown"
    if instruction.truncated:
        return f"  {instruction.op.name} cut off by the end of the code"
    return ""
