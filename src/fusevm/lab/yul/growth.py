"""How the time of every part of the Yul compiler grows with the size of its program.

`python -m fusevm.lab.yul.growth [--family F] [--phase P] [--above E] [--scale S] [--json]` runs each phase (parser,
printer, checks, every step, the code generator, the whole suite) on each family of wide or deep programs at sizes n,
2n and 4n, and prints the exponent e of time = n^e. 1 is linear; n log n measures about 1.1; 2 is quadratic.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from time import process_time
from typing import Any

from fusevm.codegen.yul import compile_object
from fusevm.lab.yul.growth_families import FAMILIES
from fusevm.yul.context import StepContext
from fusevm.yul.optimise import optimize
from fusevm.yul.steps import BY_LETTER, BY_NAME, STEPS
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.checks import analyze
from fusevm.yul.syntax.depth import room_to_recurse
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object
from fusevm.yul.syntax.walk import copy_block

FORMS = ("", "xarc")  # what a step is run on: the program with no more than the step needs, and in split SSA form
STEADY = 1.3  # exponents above this are worse than n log n


@dataclass(frozen=True, slots=True)
class Growth:
    phase: str
    family: str
    size: int
    seconds: tuple[float, ...]  # at size, twice and four times the size

    @property
    def exponent(self) -> float:
        return math.log(self.seconds[-1] / self.seconds[0], 4)


# A phase makes its input from a source text, and gives what is to be timed.
Phase = Callable[[Dialect, str], Callable[[], Any]]


def prepared(dialect: Dialect, source: str, needs: tuple[str, ...], form: str) -> Block:
    """The program after the steps needed, and in the given form besides."""
    return copy_block(_prepared(dialect, source, needs, form))


@lru_cache(64)
def _prepared(dialect: Dialect, source: str, needs: tuple[str, ...], form: str) -> Block:
    block = disambiguated(dialect, parse_object(source, dialect).code)
    context = StepContext.for_block(dialect, block)
    steps = [BY_NAME[name] for name in needs if name != "Disambiguator"]
    if form:
        names = ("FunctionHoister", "FunctionGrouper", "ForLoopInitRewriter")
        steps = [BY_NAME[name] for name in names] + [BY_LETTER[letter] for letter in form]
    for step in steps:
        step.run(context, block)
    return block


def _step(name: str, form: str) -> Phase:
    step = BY_NAME[name]

    def phase(dialect: Dialect, source: str) -> Callable[[], Any]:
        block = prepared(dialect, source, step.needs, form)
        context = StepContext.for_block(dialect, block)
        return lambda: step.run(context, block)

    return phase


def _compile(dialect: Dialect, source: str) -> Callable[[], Any]:
    obj = parse_object(source, dialect)

    def run() -> None:
        with suppress(YulError):  # that the stack is too deep takes as long to find
            compile_object(obj, dialect)

    return run


@cache
def phases() -> dict[str, Phase]:
    table: dict[str, Phase] = {
        "parse": lambda dialect, source: lambda: parse_object(source, dialect),
        "check": lambda dialect, source: (lambda obj: lambda: analyze(obj, dialect))(parse_object(source, dialect)),
        "print": lambda dialect, source: (lambda obj: lambda: print_object(obj))(parse_object(source, dialect)),
        "compile": _compile,
    }
    for step in STEPS:
        for form in FORMS:
            table[f"{step.name} after {form}" if form else step.name] = _step(step.name, form)
    table["suite"] = lambda dialect, source: (lambda obj: lambda: optimize(obj, dialect))(parse_object(source, dialect))
    return table


def measure(phase: Phase, sources: list[str]) -> tuple[float, ...]:
    return tuple(_timed(phase(dialect_for(), source)) for source in sources)


def _timed(run: Callable[[], Any]) -> float:
    gc.disable()
    try:
        started = process_time()
        run()
        return process_time() - started
    finally:
        gc.enable()


def grown(phase: str, family: str, scale: float = 1.0, repeats: int = 3) -> Growth:
    """One measurement; what looks steep is measured again, for a disturbance makes times longer, never shorter."""
    size, source = FAMILIES[family]
    first = max(1, round(size * scale))
    sources = [source(first * factor) for factor in (1, 2, 4)]
    found = Growth(phase, family, first, measure(phases()[phase], sources))
    for _ in range(repeats):
        if found.exponent < STEADY:
            break
        again = measure(phases()[phase], sources)
        found = Growth(phase, family, first, tuple(map(min, found.seconds, again)))
    return found


def survey(families: list[str], wanted: list[str], scale: float) -> Iterator[Growth]:
    for family in families:
        for phase in wanted:
            yield grown(phase, family, scale)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.growth", description=__doc__)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="default: all; may be repeated")
    parser.add_argument("--phase", action="append", choices=sorted(phases()), help="default: all; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on every family's size")
    parser.add_argument("--above", type=float, default=STEADY, help="show exponents above this")
    parser.add_argument("--least", type=float, default=0.02, help="and of at least so many seconds at the largest size")
    parser.add_argument("--json", action="store_true", help="every measurement as data")
    options = parser.parse_args(arguments)
    found = survey(options.family or list(FAMILIES), options.phase or list(phases()), options.scale)
    with room_to_recurse():
        return _report(found, options.above, options.least, options.json)


def _report(found: Iterator[Growth], above: float, least: float, as_json: bool) -> int:
    count, steep, rows = 0, 0, []
    for each in found:
        count += 1
        is_steep = each.exponent > above and each.seconds[-1] >= least
        steep += is_steep
        if as_json:
            row = {"phase": each.phase, "family": each.family, "size": each.size, "seconds": each.seconds}
            rows.append(row | {"exponent": round(each.exponent, 2), "steep": is_steep})
        elif is_steep:
            times = " ".join(f"{1000 * seconds:.1f}" for seconds in each.seconds)
            print(f"{each.exponent:5.2f}  {each.phase:45} {each.family:24} n = {each.size}: {times} ms", flush=True)
    print(json.dumps(rows) if as_json else f"{count} measured, {steep} steeper than n^{above}")
    return int(steep > 0)


if __name__ == "__main__":
    sys.exit(main())
