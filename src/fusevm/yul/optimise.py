"""The whole optimiser: the suite that runs a sequence of steps over an object and its sub-objects.

Text in, text out: the result depends on nothing else. Steps that copy code (FullInliner, ExpressionInliner,
FunctionSpecializer, Rematerialiser, StackCompressor) together copy no more than `context.GROWTH` nodes and
`context.GROWTH_PER_NODE` for every node of the code; past that they leave things as they are.

What compiles as it is compiles optimised: where the default sequence gives a text that nests too deep for the parser,
or does not fit on the stack by any method of the code generator, though the code did, it is optimised without the steps
that make it so, and left as it is if that does not help either. A sequence that was asked for is run as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeAlias

from fusevm.yul.analysis.metrics import code_size, parser_depth
from fusevm.yul.context import StepContext
from fusevm.yul.generate import fits
from fusevm.yul.sequence import (
    DEFAULT_CLEANUP,
    DEFAULT_SEQUENCE,
    Names,
    Sequenced,
    named_sequence,
    parse_sequence,
    read_sequences,
)
from fusevm.yul.steps import BY_LETTER, BY_NAME, OptimiserStep
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.ast import Block, Object
from fusevm.yul.syntax.depth import MAX_PARSER_DEPTH, room_to_recurse
from fusevm.yul.syntax.dialect import Dialect, dialect_for

MAX_ROUNDS = 12  # of `[…]`

# What every step may rely on is made before the sequence, and what the last steps rely on after it.
_BEFORE = "hgfo"
_FINISHING = ("ConstantOptimiser",)
_FITTING = ("StackCompressor", "StackLimitEvader")  # for a code generator that leaves variables where they are declared
_NAMING = ("NameSimplifier", "VarNameCleaner")
# What is done without where the result would not compile: first what nests expressions, then also what nests blocks
# and what keeps more values on the stack.
_LEFT_OUT = ("jme", "jmeicLM")


@dataclass(frozen=True, slots=True)
class StepEvent:
    """A step has run on the code of an object; `block` is the code as it is now."""

    object_name: str
    step: OptimiserStep
    block: Block
    seconds: float


OnStep: TypeAlias = Callable[[StepEvent], None]


def run_sequence(
    context: StepContext, block: Block, sequence: Sequenced, after: Callable[[OptimiserStep, float], None]
) -> None:
    """Run the steps on the block, calling `after` after each with the seconds it took."""
    for each in sequence:
        if isinstance(each, OptimiserStep):
            started = perf_counter()
            each.run(context, block)
            after(each, perf_counter() - started)
        else:
            _run_until_stable(context, block, each, after)


def _run_until_stable(
    context: StepContext, block: Block, sequence: Sequenced, after: Callable[[OptimiserStep, float], None]
) -> None:
    size = 0
    for _ in range(MAX_ROUNDS):
        now = code_size(block, with_functions=True)
        if now == size:
            break
        size = now
        run_sequence(context, block, sequence, after)


# -- the suite --------------------------------------------------------------------------------------------------------


def optimize(
    obj: Object,
    dialect: Dialect | None = None,
    runs: int = 200,
    steps: str | Names | None = None,
    on_step: OnStep | None = None,
    runtime: bool | None = None,
    keep_calls: bool = False,
    fitting: bool = True,
) -> Object:
    """The object optimised, with everything in it; the one given is left as it is.

    `runs` is how often the deployed code is expected to run: few ask for small code, many for cheap code. The outermost
    object is creation code, objects in it named `…_deployed` are runtime code, unless `runtime` says what all are.
    With `keep_calls` inlined code remembers where it was called (`ast.Inlined`). Without `fitting` no variable is moved
    or made again to be in reach of the plain code generator.
    """
    sequences = read_sequences(steps)
    with room_to_recurse():
        suite = _Suite(dialect or dialect_for(), runs, sequences, on_step, runtime, steps is None, keep_calls, fitting)
        return suite.object(obj, obj.name, is_runtime=False)


@dataclass(slots=True)
class _Suite:
    dialect: Dialect
    runs: int
    sequences: tuple[Sequenced, Sequenced]
    on_step: OnStep | None
    runtime: bool | None
    falls_back: bool
    keep_calls: bool = False
    fitting: bool = True

    def object(self, obj: Object, path: str, is_runtime: bool) -> Object:
        children = [
            self.object(child, f"{path}.{child.name}", child.name.endswith("_deployed"))
            if isinstance(child, Object)
            else child
            for child in obj.children
        ]
        is_runtime = is_runtime if self.runtime is None else self.runtime
        code = self.compilable_code(obj.code, path, self.runs if is_runtime else None)
        return replace(obj, code=code, children=children)

    def compilable_code(self, block: Block, path: str, runs: int | None) -> Block:
        """The code optimised; less so where it would not compile, though it did before."""
        result = self.code(block, path, runs, self.sequences)
        if not self.falls_back or self.compiles(result) or not self.compiles(block):
            return result
        for letters in _LEFT_OUT:
            main, cleanup = (_without(each, letters) for each in (DEFAULT_SEQUENCE, DEFAULT_CLEANUP))
            result = self.code(block, path, runs, (parse_sequence(main), parse_sequence(cleanup)))
            if self.compiles(result):
                return result
        return disambiguated(self.dialect, block)

    def compiles(self, block: Block) -> bool:
        """Its text can be parsed again, and it fits on the stack."""

        return parser_depth(block) < MAX_PARSER_DEPTH and fits(block, self.dialect)

    def code(self, block: Block, path: str, runs: int | None, sequences: tuple[Sequenced, Sequenced]) -> Block:
        started = perf_counter()
        block = disambiguated(self.dialect, block)
        context = StepContext.for_block(self.dialect, block, runs)
        context.keeps_calls = self.keep_calls

        def after(step: OptimiserStep, seconds: float) -> None:
            if self.on_step is not None:
                self.on_step(StepEvent(path, step, block, seconds))

        after(BY_NAME["Disambiguator"], perf_counter() - started)
        main, cleanup = sequences
        run_sequence(context, block, parse_sequence(_BEFORE), after)
        run_sequence(context, block, [*main, BY_LETTER["g"], *cleanup, BY_LETTER["g"]], after)
        run_sequence(context, block, named_sequence(_FINISHING + _FITTING if self.fitting else _FINISHING), after)
        context.dispenser.reset(block)
        run_sequence(context, block, named_sequence(_NAMING), after)
        return block


def _without(sequence: str, letters: str) -> str:
    return "".join(letter for letter in sequence if letter not in letters)
