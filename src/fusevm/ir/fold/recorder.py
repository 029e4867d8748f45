"""How values came to be: what folding did to each, for whoever wants to explain code. Nobody pays for it who does not.

Every value carries the place it was written for (`where`), and what is made of it inherits that. The recorder puts a
number after the place, new in each round of folding, and keeps what the engine did under that number. So a history
survives inlining, copies and the code generator without any of them knowing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.ir.functions import End, Unit
from fusevm.ir.values import Value
from fusevm.rules.pattern import Rule

MOST_EVENTS = 40  # of one value; what comes after is counted, not kept
PLACE = 2  # numbers in a place: what the recorder adds comes after them
NOWHERE = (-1, -1)


class Event(NamedTuple):
    """A change: a rule, or the reason why there is none; the instruction before, and what stands for it."""

    reason: str
    op: str
    args: tuple[Value, ...]
    result: Value | tuple[str, tuple[Value, ...]] | None
    rule: Rule | None = None


class Removed(NamedTuple):
    """An instruction with an effect or a price that is not there any more, after what it stood, and why."""

    reason: str
    op: str
    args: tuple[Value, ...]
    number: int
    after: int  # the number of what was made before it, -1 at the beginning of a block


@dataclass(slots=True)
class Numbered:
    """What is kept under a number."""

    where: Source  # the place as it was before numbers
    parent: int = -1  # the number in the round before
    events: list[Event] = field(default_factory=list)
    lost: int = 0  # events past the limit


@dataclass(slots=True)
class Recorder:
    numbered: list[Numbered] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    unit: Unit | None = None  # as it was numbered last

    # -- what units are made of -----------------------------------------------------------------------------------

    def start(self) -> None:
        """A new unit: what is known of others is forgotten."""
        self.numbered.clear()
        self.removed.clear()
        self.unit = None

    def number(self, unit: Unit) -> None:
        """Gives a number of its own to every instruction and end."""
        self.unit = unit
        seen: set[int] = set()
        for thing in _things(unit):
            if id(thing) not in seen:
                seen.add(id(thing))
                thing.where = self._fresh(thing.where)

    def finish(self, unit: Unit) -> None:
        """Nothing is folded any more. Whoever wants the unit as it is now looks at it here: it is changed in place."""
        self.number(unit)

    def _fresh(self, where: Source | None) -> Source:
        number = number_of(where)
        place = NOWHERE if where is None else where
        if number is not None and number < len(self.numbered) and self.unit is not None:
            self.numbered.append(Numbered(self.numbered[number].where, number))
        else:
            self.numbered.append(Numbered(place))
        return (*place[:PLACE], Tag(len(self.numbered) - 1))

    # -- what is asked afterwards -----------------------------------------------------------------------------------

    def history(self, number: int) -> list[Event]:
        """What led to it, the oldest first."""
        found: list[list[Event]] = []
        while number >= 0:
            found.append(self.numbered[number].events)
            number = self.numbered[number].parent
        return [event for events in reversed(found) for event in events]

    def place(self, number: int) -> Source:
        """The place in the source."""
        return self.numbered[number].where


class Tag(int):
    """A number of the recorder, which is told apart from the numbers that places are made of."""


def number_of(where: Source | None) -> int | None:
    return where[-1] if where is not None and where and isinstance(where[-1], Tag) else None


def _things(unit: Unit) -> Iterator[Value | End]:
    for function in unit.functions.values():
        for block in function.blocks():
            yield from block.params
            yield from block.instructions
            yield block.end
