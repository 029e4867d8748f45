"""What regions some code gets: where they begin, what is in them, where they are left, and what was refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from fusevm.chain.environment import Context
from fusevm.chain.outcome import Outcome
from fusevm.chain.processing import load_code, run_top, top_message, warm_up
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.ir.functions import Function, Unit
from fusevm.ir.regions.build import EXIT, RegionUnit
from fusevm.ir.text import function_text
from fusevm.lab.regions.engines import CountingEngine
from fusevm.native.emit.jit import optimised
from fusevm.native.region.build import placed_schedule, regions_of, why_refused
from fusevm.native.region.choice import ExitPlaces, functions_and_loops, hot_parts, layout_of
from fusevm.native.region.compiled import handler_name
from fusevm.native.region.emit import region_module
from fusevm.schedule.build import Schedule


@dataclass(slots=True)
class Entry:
    """One function of a region, which the schedule enters where it begins."""

    pc: int
    count: int | None  # how often control came there; None where nothing was run
    kind: str  # function, or code
    takes: int  # words of the stack it reads
    leaves: int | None  # words in place of those, if it returns
    blocks: int
    instructions: int  # once folded
    loops: list[int] = field(default_factory=list)  # pcs of their headers
    calls: list[int] = field(default_factory=list)  # pcs of functions
    exits: list[int] = field(default_factory=list)  # pcs where it is left to the schedule


@dataclass(slots=True)
class CodeRegions:
    code: bytes
    fork: Fork
    schedule: Schedule
    unit: RegionUnit
    counts: Mapping[int, int]
    entries: list[Entry]
    failure: str = ""  # why there are no regions at all, if the compiler failed

    @property
    def layout(self) -> ExitPlaces:
        return layout_of(self.schedule)

    @property
    def refused(self) -> dict[int, str]:
        return self.unit.refused

    def ir(self, at: int | None) -> str:
        """The folded functions, or the one that begins there."""
        unit = self.unit.unit
        names = unit.functions if at is None else [self.unit.entries[at]]
        return "\n".join(function_text(unit.functions[name], unit, region=True) for name in names)

    def llvm(self, at: int | None) -> str:
        """LLVM's text of all of it, or of one function and its handler, optimised as it is compiled."""
        parsed, _ = optimised(region_module(self.unit, self.layout), 1, scattered=True)
        if at is None:
            return str(parsed)
        wanted = {self.unit.entries[at], handler_name(at)}
        return "\n".join(str(each).rstrip() + "\n" for each in parsed.functions if each.name in wanted)

    def assembly(self, at: int | None) -> str:
        parsed, machine = optimised(region_module(self.unit, self.layout), 1, scattered=True)
        text = str(machine.emit_assembly(parsed))
        if at is None:
            return text
        found = [part for name in (self.unit.entries[at], handler_name(at)) for part in _labelled(text, name)]
        return "\n".join(found)


def _labelled(text: str, name: str) -> list[str]:
    """The lines from a function's label to its end."""
    found = re.search(rf"^{re.escape(name)}:.*?^\.Lfunc_end", text, re.MULTILINE | re.DOTALL)
    return [found.group(0).rsplit("\n", 1)[0] + "\n"] if found else []


def regions_in(code: bytes, fork: Fork, counts: Mapping[int, int] | None) -> CodeRegions:
    """Of what was counted, or of all functions and loops."""
    schedule = placed_schedule(code, fork)
    choose = functions_and_loops if counts is None else partial(hot_parts, counts=counts)
    try:
        unit = regions_of(schedule, fork, choose)
        region_module(unit, layout_of(schedule))
    except Exception as error:
        return CodeRegions(code, fork, schedule, RegionUnit(Unit(fork)), counts or {}, [], why_refused(error))
    entries = [_entry(unit, pc, name, counts) for pc, name in sorted(unit.entries.items())]
    return CodeRegions(code, fork, schedule, unit, counts or {}, entries)


def _entry(region: RegionUnit, pc: int, name: str, counts: Mapping[int, int] | None) -> Entry:
    function, shape = region.unit.functions[name], region.shapes[name]
    blocks = function.blocks()
    called = {value.number for block in blocks for value in block.instructions if value.op == "CALLFN"}
    return Entry(
        pc,
        None if counts is None else counts.get(pc, 0),
        "function" if shape.returns else "code",
        shape.taken,
        shape.left if shape.returns else None,
        sum(block.end.op != EXIT for block in blocks),
        sum(len(block.instructions) for block in blocks),
        sorted(_headers(function)),
        sorted(region.shapes[region.unit.names[number]].entry for number in called),
        sorted({block.end.cases[0] for block in blocks if block.end.op == EXIT}),
    )


def _headers(function: Function) -> set[int]:
    seen: set[int] = set()
    found: set[int] = set()
    for block in function.blocks():
        seen.add(block.start)
        found |= {to.pc for to in block.targets if to.start in seen and to.pc >= 0}
    return found


def counted_call(
    state: State, context: Context, caller: bytes, to: bytes, data: bytes, value: int, gas: int
) -> tuple[Outcome, CountingEngine]:
    """Runs a call, natively, and counts what it runs. Only what it did to the state tells that it ran."""
    counting = CountingEngine()
    state.begin_transaction()
    warm_up(state, context, caller, to)
    message = top_message(caller, to, data, value, gas)
    load_code(message, state, context.rules)
    outcome = run_top(message, state, context, counting.execute)
    return outcome, counting
