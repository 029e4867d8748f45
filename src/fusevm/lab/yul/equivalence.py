"""Does a step keep a program's meaning? Random programs are run before and after it, in a few worlds each.

`python -m fusevm.lab.yul.equivalence --programs N --seed S [--what steps|suite|sequences|compiled|all]` runs a
campaign. A finding names the seed and what was run, so that it can be reproduced.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from fusevm.lab.yul.generate import random_program
from fusevm.lab.yul.seeded_world import SeededWorld, Trace
from fusevm.yul.context import StepContext
from fusevm.yul.execution.host import Limits
from fusevm.yul.execution.interpreter import interpret
from fusevm.yul.generate import fits
from fusevm.yul.optimise import optimize, run_sequence
from fusevm.yul.sequence import parse_sequence
from fusevm.yul.steps import BY_LETTER, BY_NAME, STEPS
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.ast import Block, ExpressionStatement, FunctionCall, Identifier, Object
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_block
from fusevm.yul.syntax.walk import copy_block

WORLDS = 3
_STEPS_BEFORE = 4_000
_STEPS_AFTER = 80_000  # steps may make more and smaller statements of one

# These drop or add stores that cannot be seen from outside; all others leave memory as it was.
_CHANGE_MEMORY = frozenset({"UnusedStoreEliminator", "StackLimitEvader"})
_FORMS = ("", "", "xc", "xar", "xarc", "arc")  # what a single step is tried on, besides the plain program


@dataclass(frozen=True, slots=True)
class MeaningFinding:
    """A program whose meaning changed."""

    seed: int
    what: str
    reason: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.what}: {self.reason}\n--- before\n{self.before}\n--- after\n{self.after}\n"


@dataclass(slots=True)
class EquivalenceTally:
    programs: int = 0
    checked: int = 0  # comparisons of texts that differ
    runs: int = 0
    inconclusive: int = 0  # runs that our limits cut short before the step: they prove nothing
    findings: list[MeaningFinding] = field(default_factory=list)


class RunComparison:
    """Runs of one program, to hold others against."""

    def __init__(self, program: Block, dialect: Dialect, seed: int, tally: EquivalenceTally) -> None:
        self.program = program
        self.dialect = dialect
        self.seed = seed
        self.tally = tally
        self.text = print_block(program)
        self.expected: list[tuple[Trace, bytes]] | None = None

    def check(self, changed: Block, what: str, with_memory: bool) -> MeaningFinding | None:
        """Whether the changed program does the same; what differs if it does not."""
        text = print_block(changed)
        if text == self.text:
            return None
        self.tally.checked += 1
        if self.expected is None:
            self.expected = [self._run(self.program, number, _STEPS_BEFORE) for number in range(WORLDS)]
        for number, (trace, memory) in enumerate(self.expected):
            self.tally.runs += 1
            if not trace.conclusive:
                self.tally.inconclusive += 1
                continue
            try:
                now, memory_now = self._run(changed, number, _STEPS_AFTER)
            except KeyError as error:
                reason: str | None = f"{error} is not declared"
            else:
                reason = _difference(trace, now)
                if reason is None and with_memory and memory != memory_now:
                    reason = "memory differs"
            if reason is not None:
                finding = MeaningFinding(self.seed, what, f"world {number}: {reason}", self.text, text)
                self.tally.findings.append(finding)
                return finding
        return None

    def _run(self, block: Block, number: int, steps: int) -> tuple[Trace, bytes]:
        random = Random(f"{self.seed} {number}")
        calldata = b"" if number == 0 else random.randbytes(random.choice((4, 36, 68, 100)))
        world = SeededWorld(random.getrandbits(32), calldata, self.dialect.fork)
        outcome = interpret(block, world, self.dialect, Limits(steps=steps, calls=200))
        return world.trace(outcome), world.final_memory()


def _difference(before: Trace, after: Trace) -> str | None:
    for name, one, other in zip(Trace._fields, before, after, strict=True):
        if one != other:
            return f"{name} was {one!r}, is {other!r}"
    return None


# -- what is checked --------------------------------------------------------------------------------------------------


def prepared(dialect: Dialect, program: Block, needs: tuple[str, ...], form: str) -> Block:
    """The program after the steps needed, and in the given form besides."""
    block = disambiguated(dialect, program)
    context = StepContext.for_block(dialect, block)
    steps = [BY_NAME[name] for name in needs if name != "Disambiguator"]
    if form:
        steps = [BY_NAME["FunctionHoister"], BY_NAME["ForLoopInitRewriter"], *steps]
        steps += [BY_LETTER[letter] for letter in form]
    for step in steps:
        step.run(context, block)
    return block


def check_steps(dialect: Dialect, program: Block, seed: int, tally: EquivalenceTally) -> None:
    """Every single step, on the plain program or a prepared form of it."""
    form = Random(seed).choice(_FORMS)
    comparisons: dict[tuple[str, ...], RunComparison] = {}
    for step in STEPS:
        if step.needs not in comparisons:
            base = prepared(dialect, program, step.needs, form)
            comparisons[step.needs] = RunComparison(base, dialect, seed, tally)
        comparison = comparisons[step.needs]
        block = copy_block(comparison.program)
        step.run(StepContext.for_block(dialect, block), block)
        if step.name == "MainFunction":
            call = FunctionCall(Identifier("main"), [])
            block.statements.append(ExpressionStatement(call))  # main must be called to run
        comparison.check(block, f"{step.name} after {form!r}", step.name not in _CHANGE_MEMORY)


def check_suite(dialect: Dialect, program: Block, seed: int, tally: EquivalenceTally) -> None:
    """The whole suite with the default sequence."""
    random = Random(seed)
    runs, runtime = random.choice((1, 200, 1_000_000)), bool(random.randrange(2))
    result = optimize(Object("", program), dialect, runs, runtime=runtime)
    what = f"suite, {runs} runs, {'runtime' if runtime else 'creation'} code"
    RunComparison(program, dialect, seed, tally).check(result.code, what, with_memory=False)


def random_sequence(random: Random) -> str:
    letters = [random.choice(list(BY_LETTER)) for _ in range(random.randrange(3, 40))]
    if random.randrange(2):
        start = random.randrange(len(letters))
        letters.insert(start, "[")
        letters.insert(random.randrange(start + 2, len(letters) + 1), "]")
    return "".join(letters)


def check_sequences(dialect: Dialect, program: Block, seed: int, tally: EquivalenceTally) -> None:
    """A random sequence after the steps that the suite requires."""
    sequence = random_sequence(Random(seed))
    block = disambiguated(dialect, program)
    context = StepContext.for_block(dialect, block, Random(seed).choice((None, 1, 200)))
    run_sequence(context, block, parse_sequence("hgfo" + sequence), lambda step, seconds: None)
    RunComparison(program, dialect, seed, tally).check(block, f"sequence hgfo{sequence}", with_memory=False)


def check_compiled(dialect: Dialect, program: Block, seed: int, tally: EquivalenceTally) -> None:
    """What compiles as it is also compiles optimised."""
    tally.runs += 1
    if not fits(program, dialect):
        tally.inconclusive += 1
        return
    tally.checked += 1
    result = optimize(Object("", program), dialect, runtime=True).code
    if not fits(result, dialect):
        texts = print_block(program), print_block(result)
        tally.findings.append(MeaningFinding(seed, "suite", "the result does not compile", *texts))


CHECKS: dict[str, Callable[[Dialect, Block, int, EquivalenceTally], None]] = {
    "steps": check_steps,
    "suite": check_suite,
    "sequences": check_sequences,
    "compiled": check_compiled,
}


def campaign(what: str, programs: int, seed: int) -> Iterator[EquivalenceTally]:
    """One program after the other; the same tally each time, growing."""
    dialect = dialect_for()
    tally = EquivalenceTally()
    for number in range(seed, seed + programs):
        program = parse_object(random_program(number), dialect).code
        CHECKS[what](dialect, program, number, tally)
        tally.programs += 1
        yield tally


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.equivalence", description=__doc__)
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--what", choices=(*CHECKS, "all"), default="all")
    options = parser.parse_args(arguments)
    failed = False
    for what in CHECKS if options.what == "all" else (options.what,):
        failed |= _report(what, options.programs, options.seed)
    return int(failed)


def _report(what: str, programs: int, seed: int) -> bool:
    started = perf_counter()
    tally, shown = EquivalenceTally(), 0
    for tally in campaign(what, programs, seed):
        for finding in tally.findings[shown:]:
            print(finding, flush=True)
        shown = len(tally.findings)
        if sys.stderr.isatty():
            print(f"\r{what}: {tally.programs:,} of {programs:,}", end="", file=sys.stderr, flush=True)
    print(
        f"{what}: {tally.programs} programs from seed {seed}, {tally.checked} changes compared in {tally.runs} runs "
        f"({tally.inconclusive} inconclusive), {len(tally.findings)} findings, {perf_counter() - started:.0f} s"
    )
    return bool(tally.findings)


if __name__ == "__main__":
    sys.exit(main())
