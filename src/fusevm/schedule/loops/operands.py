"""The operands after the address of a loop's handler: declared here, written by the schedule, read by native code.

Numbers that are narrower than 64 bits share a word. Depths are in bytes below the stack pointer; differences are
signed, and wrap.
"""

from __future__ import annotations

from typing import NamedTuple

HIGH = 32  # where the upper of two numbers in a word begins
ROOM = 16  # where the room begins, above the words needed
HALF_MASK = (1 << HIGH) - 1
QUARTER_MASK = (1 << ROOM) - 1
LIMB = (1 << 64) - 1
WORD_MASK = (1 << 256) - 1
MIRRORED = 4  # added to a relation: both sides, and the step, are mirrored
SIGNED = 8  # added to a relation
RELATIONS = {"LT": 0, "LE": 1, "EQ": 2, "NE": 3}
RELATIONS |= {"GT": RELATIONS["LT"] | MIRRORED, "GE": RELATIONS["LE"] | MIRRORED}
RELATIONS |= {f"S{name}": RELATIONS[name] | SIGNED for name in ("LT", "LE", "GT", "GE")}


class LoopOperands(NamedTuple):
    """The operands of an entry, or of a side exit, which needs no bounds. One word each; the limit has four."""

    check: int  # words needed, room above them, and from HIGH on the relation
    places: int  # depth of the counter, and from HIGH on of the limit; 0: the limit is a literal
    each: int  # gas of an iteration, and from HIGH on what else it may be charged at most
    once: int  # gas up to the test, and from HIGH on what may be charged once; for a side exit what is left, signed
    step: int  # signed
    addend: int  # what is added to the counter, signed
    limit: int  # a literal, or what is added to it

    def words(self) -> tuple[int, ...]:
        limbs = tuple(self.limit >> shift & LIMB for shift in (0, 64, 128, 192))
        return (*self[:4], self.step & LIMB, self.addend & LIMB, *limbs)


def check_of(relation: int, needs: int = 0, room: int = 0) -> int:
    return needs | room << ROOM | relation << HIGH


def pair_of(low: int, high: int) -> int:
    """Two numbers of 32 bits in one word."""
    return low | high << HIGH
