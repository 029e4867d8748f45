"""How values came to be: what folding did to each, for whoever wants to explain code. Nobody pays for it who does not.

Every value carries the place it was written for (`where`), and what is made of it inherits that. The recorder puts a
number after the place, new in each round of folding, and keeps what the engine did under that number. So a history
survives inlining, copies and the code generator without any of them knowing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.evm.assembler import Source
from fusevm.ir.functions import End, Unit
from fusevm.ir.values import CONST, PHI, Value
from fusevm.rules.pattern import Rule

MOST_EVENTS = 24  # of one instruction in one round
MOST_CALLERS = 16  # of one instruction
MOST_REMOVED = 4_000  # instructions of a unit
PLACE = 2  # numbers of a place that are kept beside the recorder's
NOWHERE = (-1, -1)
SHOWN_DEPTH = 3  # operands of operands
SHOWN_SIZE = 160  # characters

Result = Value | tuple[str, tuple[Value, ...]] | None


class Event(NamedTuple):
    """A change: why, the instruction before and what stands for it, as text; the rule, if it was one."""

    why: str
    before: str
    after: str
    rule: Rule | None = None


class Removed(NamedTuple):
    """An instruction with an effect or a price that is not there any more: its number, text, and why."""

    number: int
    text: str
    why: str
    after: int  # the number of the instruction before it; -1: it was the first of its block


@dataclass(slots=True)
class Numbered:
    """What is kept under a number."""

    where: Source  # the place as it was before numbers
    parent: int = -1  # the number in the round before
    caller: int = -1  # the number of the call that it was inlined for, after that round
    events: list[Event] = field(default_factory=list)


class Tag(int):
    """A number of the recorder, which is told apart from the numbers that places are made of."""


def number_of(where: Source | None) -> int | None:
    return where[-1] if where and isinstance(where[-1], Tag) else None


class Within(tuple[int, ...]):
    """The place of an instruction that was copied to where its function is called."""

    caller: Source


def within(where: Source | None, caller: Source | None) -> Source | None:
    if where is None or caller is None:
        return where or caller
    made = Within(where)
    made.caller = caller
    return made


class Recorder:
    def __init__(self) -> None:
        self.numbered: list[Numbered] = []
        self.removed: list[Removed] = []
        self._calls: dict[int, tuple[Source, int]] = {}  # calls with their numbers, by the identity of their places
        self.others: dict[int, set[int]] = {}  # numbers whose code was equal and is written once, by the one it is

    # -- units --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new unit: what is known of others is forgotten."""
        self.numbered.clear()
        self.removed.clear()
        self.others.clear()

    def number(self, unit: Unit) -> None:
        """Gives a number of its own to every instruction and end."""
        seen: set[int] = set()
        self._calls.clear()
        for thing in _things(unit):
            if id(thing) not in seen:
                seen.add(id(thing))
                thing.where = self._fresh(thing.where)
                if isinstance(thing, End):  # a case is part of its switch
                    thing.places = tuple([(*place[:PLACE], thing.where[-1]) for place in thing.places])

    def numbered_place(self, place: Source) -> Source:
        """A place with a number of its own, for code that is folded as it is read: bytecode, by block and pc."""
        return self._fresh(place)

    def finish(self, unit: Unit) -> None:
        """Nothing is folded any more. Whoever wants the unit as it is now looks at it here: it is changed in place."""
        self.number(unit)

    def merged(self, pairs: Iterable[tuple[Source, Source]]) -> None:
        """Code for the first place of each stands for code of the second, too."""
        for kept, gone in pairs:
            one, other = number_of(kept), number_of(gone)
            if one is not None and other is not None and one != other:
                self.others.setdefault(one, set()).update((other, *self.others.get(other, ())))

    def written_for(self, number: int) -> set[int]:
        """All numbers that the code of one stands for."""
        return {number, *self.others.get(number, ())}

    def _fresh(self, where: Source | None) -> Source:
        before = number_of(where)
        place = where or NOWHERE
        caller = self._call(where.caller) if isinstance(where, Within) else None
        origin = place if before is None else self.numbered[before].where
        self.numbered.append(Numbered(origin, -1 if before is None else before, -1 if caller is None else caller))
        return (*place[:PLACE], Tag(len(self.numbered) - 1))

    def _call(self, where: Source) -> int | None:
        """The number of a call that was inlined; one that stands in inlined code itself gets a new one, once."""
        if not isinstance(where, Within):
            return number_of(where)
        known = self._calls.get(id(where))
        if known is None:  # the place is kept, or another could have its identity
            known = self._calls[id(where)] = where, self._fresh(where)[-1]
        return known[1]

    # -- what the engine tells ----------------------------------------------------------------------------------------

    def changed(
        self, where: Source | None, why: str, op: str, args: tuple[Value, ...], result: Result, rule: Rule | None = None
    ) -> None:
        """An instruction became something else, for this place; if that stands elsewhere already, for that as well."""
        event = Event(why, shown(op, args), _shown_result(result), rule)
        numbers = {number_of(where), number_of(result.where) if isinstance(result, Value) else None}
        for number in numbers - {None}:
            self._add(number, [event])  # type: ignore[arg-type]

    def absorbed(self, where: Source | None, operand: Source | None) -> None:
        """An operand became a literal: what made it is part of the history of who uses it."""
        into, source = number_of(where), number_of(operand)
        if into is not None and source is not None and into != source:
            self._add(into, self.numbered[source].events)

    def dropped(self, where: Source | None, why: str, op: str, args: tuple[Value, ...], before: Value | None) -> None:
        """A store that is not made, or a load that is not needed; `before` is what the block did last."""
        number = number_of(where)
        after = number_of(before.where) if before is not None else None
        if number is not None and len(self.removed) < MOST_REMOVED:
            self.removed.append(Removed(number, shown(op, args), why, -1 if after is None else after))

    def _add(self, number: int, events: list[Event]) -> None:
        known = self.numbered[number].events
        known += [event for event in events if event not in known][: MOST_EVENTS - len(known)]

    # -- what is asked afterwards -------------------------------------------------------------------------------------

    def lineage(self, number: int) -> Iterator[int]:
        """The number and those it had in the rounds before, the newest first."""
        while number >= 0:
            yield number
            number = self.numbered[number].parent

    def history(self, number: int) -> list[Event]:
        """What led to it, the oldest first."""
        rounds = [self.numbered[each].events for each in self.lineage(number)]
        return [event for events in reversed(rounds) for event in events]

    def callers(self, number: int) -> list[int]:
        """The calls that it was inlined for, innermost first."""
        found: list[int] = []
        work = [number]
        while work and len(found) < MOST_CALLERS:
            calls = [self.numbered[each].caller for each in self.lineage(work.pop())]
            inner = [call for call in reversed(calls) if call >= 0 and call not in found]
            found += inner
            work += inner
        return found

    def place(self, number: int) -> Source:
        """The place in the source."""
        return self.numbered[number].where


def shown(op: str, args: tuple[Value, ...], depth: int = SHOWN_DEPTH) -> str:
    """An instruction with what it is computed from, as Yul writes it."""
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
