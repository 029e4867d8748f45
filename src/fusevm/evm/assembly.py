"""Text to bytecode and back. `assemble(disassemble(code)) == code` for every byte string.

A program is a stream of words, any number on a line; commas count as blanks and `;`, `//` and `#` begin a comment:

    loop:                 ; a label names a position; jumping there still needs the JUMPDEST
      JUMPDEST PUSH 1 ADD ; PUSH takes the smallest size that fits, PUSH1 to PUSH32 the size they say
      PUSH2 @loop JUMP    ; @name is the position of a label
      DATA 0x00ff         ; bytes as they are
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(slots=True)
class _Item:
    """One piece of the output: fixed bytes, or a push of a label whose position is not known yet."""

    line: int
    word: str
    data: bytes = b""
    label: str = ""
    width: int = 0  # bytes of push data for a label
    fixed: bool = True  # the width was written down, not chosen here


def assemble(text: str, fork: Fork = LATEST) -> bytes:
    items, labels = _parse(text, fork)
    positions = _place(items, labels, fork)
    return b"".join(_encode(item, positions, fork) for item in items)


def _parse(text: str, fork: Fork) -> tuple[list[_Item], dict[str, int]]:
    """The items, and for each label the index of the item it stands before."""
    items: list[_Item] = []
    labels: dict[str, int] = {}
    words = iter(_words(text))
    for line, word in words:
        if word.endswith(":"):
            labels[_declared(line, word, labels)] = len(items)
        else:
            items.append(_item(line, word, words, fork))
    for item in items:
        if item.label and item.label not in labels:
            raise AssemblyError(item.line, item.word, "names a label that is not declared")
    return items, labels


def _words(text: str) -> list[tuple[int, str]]:
    return [
        (number, match.group())
        for number, line in enumerate(text.splitlines(), 1)
        for match in _WORD.finditer(_COMMENT.split(line, maxsplit=1)[0])
    ]


def _declared(line: int, word: str, labels: dict[str, int]) -> str:
    name = word[:-1]
    if not _LABEL.fullmatch(name):
        raise AssemblyError(line, word, "is not a label name (letters, digits, '_', '.', '$')")
    if name in labels:
        raise AssemblyError(line, word, "is declared twice")
    return name


def _item(line: int, word: str, words: Iterator[tuple[int, str]], fork: Fork) -> _Item:
    mnemonic = word.upper()
    if mnemonic == "DATA":
        at, operand = _operand(words, line, word)
        return _Item(at, operand, _data(at, operand))
    if mnemonic == "PUSH":
        return _push(*_operand(words, line, word), None, fork)
    op = BY_NAME.get(mnemonic)
    if op is None:
        raise AssemblyError(line, word, "is not an instruction")
    if op.since > fork:
        raise AssemblyError(line, word, f"does not exist before {op.since.label} (assembling for {fork.label})")
    if op.immediate and not op.is_push:
        return _Item(line, word, bytes([op.byte, *_immediate(*_operand(words, line, word), op)]))
    if op.immediate:
        return _push(*_operand(words, line, word), op.immediate, fork)
    return _Item(line, word, bytes([op.byte]))


def _operand(stream: Iterator[tuple[int, str]], line: int, word: str) -> tuple[int, str]:
    following = next(stream, None)
    if following is None:
        raise AssemblyError(line, word, "needs an operand")
    return following


def _data(line: int, word: str) -> bytes:
    digits = word[2:].replace("_", "")
    if not _HEX.fullmatch(word):
        raise AssemblyError(line, word, "is not hex data (0x…)")
    if len(digits) % 2:
        raise AssemblyError(line, word, f"has an odd number of hex digits ({len(digits)})")
    return bytes.fromhex(digits)


def _number(line: int, word: str, or_else: str = "") -> int:
    if _HEX.fullmatch(word) and word[2:].strip("_"):
        return int(word, 16)
    if _DECIMAL.fullmatch(word):
        return int(word.replace("_", ""))
    raise AssemblyError(line, word, f"is not a number (decimal or 0x…){or_else}")


def _immediate(line: int, word: str, op: Opcode) -> bytes:
    value = _number(line, word)
    if value >> 8 * op.immediate or (op.variants and op.variants[value] is None):
        raise AssemblyError(line, word, f"is not an immediate of {op.name}")
    return value.to_bytes(op.immediate, "big")


def _push(line: int, word: str, width: int | None, fork: Fork) -> _Item:
    if word.startswith("@"):
        return _Item(line, word, label=word[1:], width=width or 1, fixed=width is not None)
    value = _number(line, word, " or a @label")
    if value >> 256:
        raise AssemblyError(line, word, "does not fit a word of 32 bytes")
    if width is not None and value >> 8 * width:
        raise AssemblyError(line, word, f"does not fit PUSH{width}")
    return _Item(line, word, _push_bytes(value, _width_of(value, fork) if width is None else width))


def _width_of(value: int, fork: Fork) -> int:
    smallest = 0 if fork >= Fork.SHANGHAI else 1
    return max((value.bit_length() + 7) // 8, smallest)


def _push_bytes(value: int, width: int) -> bytes:
    return bytes([BY_NAME[f"PUSH{width}"].byte]) + value.to_bytes(width, "big")


def _place(items: list[_Item], labels: dict[str, int], fork: Fork) -> dict[str, int]:
    """Positions of all labels. Pushes of labels begin at one byte and only grow, so this ends."""
    while True:
        offsets = [0]
        for item in items:
            offsets.append(offsets[-1] + (1 + item.width if item.label else len(item.data)))
        positions = {name: offsets[index] for name, index in labels.items()}
        grown = False
        for item in items:
            if item.label and not item.fixed and (need := _width_of(positions[item.label], fork)) > item.width:
                item.width, grown = need, True
        if not grown:
            return positions


def _encode(item: _Item, positions: dict[str, int], fork: Fork) -> bytes:
    if not item.label:
        return item.data
    value = positions[item.label]
    if value >> 8 * item.width:
        raise AssemblyError(item.line, item.word, f"is at {value}, which does not fit PUSH{item.width}")
    return _push_bytes(value, item.width)


def disassemble(code: bytes, fork: Fork = LATEST, labels: bool = False) -> str:
    """One instruction a line with its position behind it; what no instruction can express is DATA."""
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
