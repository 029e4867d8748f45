"""Straight-line code that pays for one instruction at a time: a block that must fail runs to the very instruction here.

A section charges its gas, and a block checks the stack, before anything in them is done. So when native code finds that
a block must fail, or an instruction in it cannot be paid, the instructions before the one that really fails have not
run. The frame continues here, and fails where the reference tier fails.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from fusevm.evm.bytecode import JUMPDEST
from fusevm.evm.forks import Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.native.host.arena import Arena
from fusevm.native.host.plain import plain_form
from fusevm.native.host.tables import NativeLimit
from fusevm.schedule.build import LIMB_MASK, METERED, Handlers, Marks
from fusevm.schedule.sections import (
    ENDS_BLOCK,
    ROLE_ASK,
    ROLE_DEEP,
    ROLE_PC,
    ROLE_PUSH,
    TELLING,
    SectionOpcode,
    kinds_of,
    variant_at,
    variants_of,
)

PART = 16  # instructions that are written at once: a frame that fails has not paid for more


class ExactCode:
    """Exact code of blocks that failed, in an arena of its own."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._used = 0
        self._places: dict[tuple[bytes, Fork, int], int] = {}

    def __contains__(self, ip: int) -> bool:
        return 0 <= ip - self._arena.address < self._arena.size

    def forget(self) -> None:
        """Only between calls."""
        self._used = 0
        self._places.clear()

    @property
    def written(self) -> int:
        """Instructions."""
        return len(self._places)

    @property
    def is_crowded(self) -> bool:
        return self._used > self._arena.size // 2

    def place(self, code: bytes, fork: Fork, pc: int, handlers: Handlers, marks: Marks | None) -> int:
        """Where the code from an instruction on is: to the end of its block, or to where more must be written."""
        found = self._places.get((code, fork, pc))
        if found is None:
            writer = _Writer(code, fork, handlers, marks)
            start = self._arena.address + self._used
            writer.write(pc, start, lambda at: self._places.get((code, fork, at)))
            words = array("Q", writer.words).tobytes()
            if self._used + len(words) > self._arena.size:
                raise NativeLimit("blocks that failed are too long")
            self._arena.write(self._used, words)
            self._used += len(words)
            for at, place in writer.places.items():
                self._places[code, fork, at] = place
            found = self._places[code, fork, pc]
        return found


class _Writer:
    def __init__(self, code: bytes, fork: Fork, handlers: Handlers, marks: Marks | None) -> None:
        self._code = code
        self._at = handlers.addresses
        self._kinds, self._variants = kinds_of(fork, handlers.native), variants_of(fork)
        self._marks = marks
        self.words: list[int] = []
        self.places: dict[int, int] = {}

    def write(self, pc: int, start: int, known: Callable[[int], int | None]) -> None:
        code, first, written = self._code, pc, 0
        while pc == first or pc >= len(code) or code[pc] != JUMPDEST:
            before = known(pc)
            if before is not None:
                self._put("JUMP@", before)
                return
            if written == PART:
                self._put("PROBE", pc)  # Python writes on from there
                return
            written += 1
            self.places[pc] = start + 8 * len(self.words)
            self._put("AT", pc)
            if self._marks is not None:
                self._put("TALLY", self._marks.exact(code, pc))
            kind = self._kinds[code[pc]] or variant_at(self._variants, code, pc) if pc < len(code) else None
            if kind is None:
                self._put("STOP" if pc >= len(code) else "INVALID")
                return
            grows = max(kind.delta, 0)
            self._put("SECTION", kind.gas | kind.pops << 32 | STACK_LIMIT - grows - kind.pops << 48)
            self._instruction(kind, pc)
            if kind.ending == ENDS_BLOCK and kind.name != "JUMPI":
                return
            pc += 1 + kind.immediate
        self._put("PUSH", pc)  # back to the schedule, should the block not fail
        self._put("JUMP")

    def _put(self, name: str, *operands: int) -> None:
        self.words += (self._at[name,], *operands)

    def _instruction(self, kind: SectionOpcode, pc: int) -> None:
        name, _ = plain_form(kind)
        if not name:
            return
        cell = self._marks.meter(self._code, pc) if self._marks is not None and name in METERED else 0
        if cell:
            self._put("METER", cell)
        if kind.role == ROLE_PUSH:
            pushed = int.from_bytes(self._code[pc + 1 : pc + 1 + kind.immediate].ljust(kind.immediate, b"\0"), "big")
            limbs = 1 if name == "PUSH" else 4
            self._put(name, *(pushed >> 64 * limb & LIMB_MASK for limb in range(limbs)))
        elif kind.role in (ROLE_ASK, ROLE_PC) or kind.name in TELLING:
            self._put(name, pc)
        elif kind.role == ROLE_DEEP:
            self._put(name, kind.operand)
        else:
            self._put(name)
        if cell:
            self._put("UNMETER")
