"""A fork that does not exist, made by data alone: rows of the opcode table, meanings, and changed rules.

Importing this module first is all it takes; so it is imported only in processes of their own (`test_new_opcodes`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCES = Path(__file__).resolve().parent.parent / "src" / "fusevm"


def _tables() -> tuple[Any, Any, Any]:
    """The modules of data, before anything else of the package is imported and derives something from them."""
    assert "fusevm" not in sys.modules, "the imagined fork must be imported first"
    package = sys.modules["fusevm"] = ModuleType("fusevm")
    package.__path__ = [str(SOURCES)]
    from fusevm.evm import forks, opcodes, words

    del sys.modules["fusevm"]
    return forks, opcodes, words


forks, opcodes, words = _tables()
Fork, Opcode, Span, Price = forks.Fork, opcodes.Opcode, opcodes.Span, opcodes.Price


def _new_fork(name: str) -> Any:
    fork = int.__new__(Fork, len(Fork))
    fork._name_, fork._value_ = name, len(Fork)
    Fork._member_map_[name] = Fork._value2member_map_[fork._value_] = fork
    Fork._member_names_.append(name)
    return fork


IMAGINED = _new_fork("IMAGINED")
forks.CHANGES[IMAGINED] = {"keccak_word": 9, "copy_word": 5, "log_byte": 11, "call_value": 7_000, "sstore_set": 22_000}


def average(w: Any, x: Any, y: Any) -> Any:
    """(x + y) / 2, without overflow."""
    return (x & y) + w.shr(x ^ y, w.const(1))


def _dupn(op: Any, byte: int) -> Any:
    """As EIP-8024 has DUPN: 17 to 235 deep, and no immediate that is a JUMPDEST or a PUSH."""
    if 0x5B <= byte <= 0x7F:
        return None
    return opcodes.copying(op, byte + 17 if byte <= 90 else byte - 20)


def _swapn(op: Any, byte: int) -> Any:
    found = _dupn(op, byte)
    return None if found is None else opcodes.swapping(op, 1, found.copies + 1)


def _exchange(op: Any, byte: int) -> Any:
    """Two words neither of which is the top, by the halves of the byte."""
    one, other = (byte >> 4) + 2, (byte & 15) + 2
    return None if 0x5B <= byte <= 0x7F or one >= other else opcodes.swapping(op, one, other)


ROWS = (
    Opcode(0x0C, "AVERAGE", 2, 1, 4, IMAGINED, commutes=True),
    Opcode(0x4B, "EXCESSBLOBGAS", 0, 1, 2, IMAGINED, word="context.block.excess_blob_gas"),
    Opcode(0xB0, "MFILL", 3, 0, 3, IMAGINED, writes_at=(Span(0, 1),), prices=(Price("copy_word", 1, 32),)),
    Opcode(0xB1, "MSUM", 2, 1, 3, IMAGINED, reads_at=(Span(0, 1),), prices=(Price("keccak_word", 1, 32),)),
    opcodes.arranged_by_immediate(Opcode(0xE6, "DUPN", 0, 1, 3, IMAGINED), _dupn),
    opcodes.arranged_by_immediate(Opcode(0xE7, "SWAPN", 0, 0, 3, IMAGINED), _swapn),
    opcodes.arranged_by_immediate(Opcode(0xE8, "EXCHANGE", 0, 0, 3, IMAGINED), _exchange),
)  # fmt: skip

opcodes.OPCODES_TABLE += ROWS
opcodes.BY_BYTE.update({op.byte: op for op in ROWS})
opcodes.BY_NAME.update({op.name: op for op in ROWS})
opcodes.CONTEXT_WORDS.update({"EXCESSBLOBGAS": "excess_blob_gas"})
words.MEANINGS["AVERAGE"] = average
words.INTEGER_MEANINGS.update(words.meanings_in(words.INTEGERS))

from fusevm.evm import gas  # noqa: E402
from fusevm.reference.frame import Frame  # noqa: E402
from fusevm.reference.instructions import INSTRUCTIONS  # noqa: E402


def _mfill(frame: Frame) -> None:
    offset, size, byte = (frame.stack.pop() for _ in range(3))
    frame.charge(gas.copy_cost(frame.context.rules, size))
    frame.expand(offset, size)
    frame.write(offset, bytes([byte & 0xFF]) * size)


def _msum(frame: Frame) -> None:
    offset, size = frame.stack.pop(), frame.stack.pop()
    frame.charge(gas.keccak_cost(frame.context.rules, size))
    frame.expand(offset, size)
    frame.stack.append(sum(frame.read(offset, size)))


INSTRUCTIONS["MFILL"], INSTRUCTIONS["MSUM"] = _mfill, _msum
