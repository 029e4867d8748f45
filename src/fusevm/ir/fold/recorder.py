"""Records the history of values, what folding did to each, to explain the code. Without a recorder it costs nothing.

Every value carries its source location (`where`), and values made from it inherit that. The recorder appends a number
to the location, new in each round of folding, and stores what the engine did under that number. So a history survives
inlining, copying and code generation, none of which know about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.ir.functions import End, Unit
from fusevm.ir.values import CONST, PHI, Value
from fusevm.rules.pattern import Rule

MAX_EVENTS = 24  # of one instruction in one round
MAX_CALLERS = 16  # of one instruction
MAX_REMOVED = 4_000  # instructions of a unit
PLACE = 2  # how many numbers of a location are kept before the recorder's
NOWHERE = (-1, -1)
SHOWN_DEPTH = 3  # operands of operands
SHOWN_SIZE = 160  # characters

Result = Value | tuple[str, tuple[Value, ...]] | None


class FoldEvent(NamedTuple):
    """A change: why, the instruction and its replacement as text, and the rule, if one was applied."""

    why: str
    before: str
    after: str
    rule: Rule | None = None


class Removed(NamedTuple):
    """A removed instruction that had an effect or a price: its number, text, and why it was removed."""

    number: int
    text: str
    why: str
    after: int  # the number of the instruction before it; -1: it was the first of its block


@dataclass(slots=True)
class Numbered:
    """The record stored under a number."""

    where: Source  # the source location, without numbers
    parent: int = -1  # the number in the previous round
    caller: int = -1  # the number of the call whose inlining, after that round, copied it
    events: list[FoldEvent] = field(default_factory=list)


class Tag(int):
    """A number of the recorder; its type distinguishes it from the numbers of a source location."""


def number_of(where: Source | None) -> int | None:
    return where[-1] if where and isinstance(where[-1], Tag) else None


class Within(tuple[int, ...]):
    """The location of an inlined instruction, with that of the call."""

    caller: Source


def within(where: Source | None, caller: Source | None) -> Source | None:
    if where is None or caller is None:
        return where or caller
    made = Within(where)
    made.caller = caller
    return made


class FoldRecorder:
    def __init__(self) -> None:
        self.numbered: list[Numbered] = []
        self.removed: list[Removed] = []
        self._calls: dict[int, tuple[Source, int]] = {}  # calls with their numbers, by the id() of their locations
        self.others: dict[int, set[int]] = {}  # number whose code was kept, to those of equal code merged into it

    # -- units --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts a new unit: the records of previous ones are discarded."""
        self.numbered.clear()
        self.removed.clear()
        self.others.clear()

    def number(self, unit: Unit) -> None:
        """Gives every instruction and terminator a new number."""
        seen: set[int] = set()
        self._calls.clear()
        for thing in _things(unit):
            if id(thing) not in seen:
                seen.add(id(thing))
                thing.where = self._fresh(thing.where)
                if isinstance(thing, End):  # a case is part of its switch
                    thing.places = tuple([(*place[:PLACE], thing.where[-1]) for place in thing.places])

    def numbered_place(self, place: Source) -> Source:
        """The location with a new number, for code that is folded while it is lifted: bytecode, by block and pc."""
        return self._fresh(place)

    def finish(self, unit: Unit) -> None:
        """Called after the last round of folding. Subclasses may read the unit here, before it is changed in place."""
        self.number(unit)

    def merged(self, pairs: Iterable[tuple[Source, Source]]) -> None:
        """The code at the first location of each pair now represents the second, too."""
        for kept, gone in pairs:
            one, other = number_of(kept), number_of(gone)
            if one is not None and other is not None and one != other:
                self.others.setdefault(one, set()).update((other, *self.others.get(other, ())))

    def written_for(self, number: int) -> set[int]:
        """All numbers that the code of this one represents."""
        return {number, *self.others.get(number, ())}

    def _fresh(self, where: Source | None) -> Source:
        before = number_of(where)
        place = where or NOWHERE
        caller = self._call(where.caller) if isinstance(where, Within) else None
        origin = place if before is None else self.numbered[before].where
        self.numbered.append(Numbered(origin, -1 if before is None else before, -1 if caller is None else caller))
        return (*place[:PLACE], Tag(len(self.numbered) - 1))

    def _call(self, where: Source) -> int | None:
        """The number of an inlined call; a call inside inlined code gets a new number, once."""
        if not isinstance(where, Within):
            return number_of(where)
        known = self._calls.get(id(where))
        if known is None:  # the location is kept alive, so that its id() is not reused
            known = self._calls[id(where)] = where, self._fresh(where)[-1]
        return known[1]

    # -- called by the engine -----------------------------------------------------------------------------------------

    def changed(
        self, where: Source | None, why: str, op: str, args: tuple[Value, ...], result: Result, rule: Rule | None = None
    ) -> None:
        """An instruction was replaced at this location; recorded for the location of the replacement as well."""
        event = FoldEvent(why, shown(op, args), _shown_result(result), rule)
        numbers = {number_of(where), number_of(result.where) if isinstance(result, Value) else None}
        for number in numbers - {None}:
            self._add(number, [event])  # type: ignore[arg-type]

    def absorbed(self, where: Source | None, operand: Source | None) -> None:
        """An operand became a literal: its history becomes part of the user's."""
        into, source = number_of(where), number_of(operand)
        if into is not None and source is not None and into != source:
            self._add(into, self.numbered[source].events)

    def dropped(self, where: Source | None, why: str, op: str, args: tuple[Value, ...], before: Value | None) -> None:
        """A store or load was removed; `before` is the instruction before it in the block."""
        number = number_of(where)
        after = number_of(before.where) if before is not None else None
        if number is not None and len(self.removed) < MAX_REMOVED:
            self.removed.append(Removed(number, shown(op, args), why, -1 if after is None else after))

    def _add(self, number: int, events: list[FoldEvent]) -> None:
        known = self.numbered[number].events
        known += [event for event in events if event not in known][: MAX_EVENTS - len(known)]

    # -- queries afterwards -------------------------------------------------------------------------------------------

    def lineage(self, number: int) -> Iterator[int]:
        """The number and its predecessors in earlier rounds, the newest first."""
        while number >= 0:
            yield number
            number = self.numbered[number].parent

    def history(self, number: int) -> list[FoldEvent]:
        """The events that led to it, the oldest first."""
        rounds = [self.numbered[each].events for each in self.lineage(number)]
        return [event for events in reversed(rounds) for event in events]

    def callers(self, number: int) -> list[int]:
        """The calls whose inlining created it, innermost first."""
        found: list[int] = []
        work = [number]
        while work and len(found) < MAX_CALLERS:
            calls = [self.numbered[each].caller for each in self.lineage(work.pop())]
            inner = [call for call in reversed(calls) if call >= 0 and call not in found]
            found += inner
            work += inner
        return found

    def place(self, number: int) -> Source:
        """The source location."""
        return self.numbered[number].where


def shown(op: str, args: tuple[Value, ...], depth: int = SHOWN_DEPTH) -> str:
    """An instruction with its operands, in Yul notation."""
    inner = ", ".join(_operand(arg, depth - 1) for arg in args)
    text = f"{op.lower()}({inner})"
    return text if len(text) <= SHOWN_SIZE else f"{text[: SHOWN_SIZE - 1]}…"


def _operand(value: Value, depth: int) -> str:
    if value.op == CONST:
        return hex(value.number) if value.number > 9 else str(value.number)
    if value.op == PHI or (depth <= 0 and value.args):
        return f"${value.id}"
    return shown(value.op, value.args, depth)


def _shown_result(result: Result) -> str:
    if result is None:
        return "nothing"
    return shown_value(result) if isinstance(result, Value) else shown(*result)


def shown_value(value: Value) -> str:
    return _operand(value, SHOWN_DEPTH)


def _things(unit: Unit) -> Iterator[Value | End]:
    for function in unit.functions.values():
        for block in function.blocks():
            yield from block.params
            yield from block.instructions
            yield block.end
