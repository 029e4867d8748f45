"""Analyses of a function: computed when a pass asks for them, and kept with the function.

A pass says in the pipeline's list (`codegen/pipeline.py`) what still holds after it: nothing, the graph, or everything.
Other changes, and those in the middle of a pass, forget what was known. `--validate` compares what is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from fusevm.analysis import graphs
from fusevm.ir.functions import DependencyBlock, Function, Unit
from fusevm.ir.values import CONST, Value

T = TypeVar("T")


class Keeps(IntEnum):
    """What a change leaves as it is."""

    NOTHING = 0
    GRAPH = 1  # the blocks, their numbers and edges
    EVERYTHING = 2


class StaleAnalysis(AssertionError):
    """A pass changed what it says it keeps: a bug in fusevm."""


class Analysis(Generic[T]):
    def __init__(self, compute: Callable[[Function], T], holds: Keeps) -> None:
        self.compute, self.holds = compute, holds
        self.name = compute.__name__
        ANALYSES[self.name] = self

    def __call__(self, function: Function) -> T:
        kept = function.kept
        if self.name not in kept:
            kept[self.name] = self.compute(function)
        found: T = kept[self.name]
        return found


ANALYSES: dict[str, Analysis[Any]] = {}


def of_graph(compute: Callable[[Function], T]) -> Analysis[T]:
    """Holds as long as blocks and edges stay as they are."""
    return Analysis(compute, Keeps.GRAPH)


def of_values(compute: Callable[[Function], T]) -> Analysis[T]:
    return Analysis(compute, Keeps.EVERYTHING)


def forget(function: Function, keeps: Keeps = Keeps.NOTHING) -> None:
    """To be called after a change of the function."""
    if keeps is not Keeps.EVERYTHING:
        function.kept = {name: kept for name, kept in function.kept.items() if ANALYSES[name].holds <= keeps}


def check(function: Function) -> None:
    """Compares what is kept with what is computed anew."""
    kept, function.kept = function.kept, {}
    for name, found in kept.items():
        if ANALYSES[name](function) != found:
            raise StaleAnalysis(f"{name} of function '{function.name}' was kept, and has changed")
    function.kept = kept


# -- of the graph -----------------------------------------------------------------------------------------------------


@of_graph
def order(function: Function) -> list[DependencyBlock]:
    """The reachable blocks in reverse postorder, the entry first."""
    return function.blocks()


@of_graph
def successors(function: Function) -> dict[int, tuple[int, ...]]:
    """By number, as graph algorithms take them."""
    return {block.start: tuple([target.start for target in block.targets]) for block in order(function)}


@of_graph
def predecessors(function: Function) -> dict[DependencyBlock, list[DependencyBlock]]:
    """A block that has two edges to another one is in its list twice."""
    found: dict[DependencyBlock, list[DependencyBlock]] = {block: [] for block in order(function)}
    for block in found:
        for target in block.targets:
            found[target].append(block)
    return found


@of_graph
def dominators(function: Function) -> graphs.DominatorTree:
    return graphs.DominatorTree(successors(function), function.entry.start)


@of_graph
def loops(function: Function) -> graphs.Loops:
    return graphs.natural_loops(successors(function), function.entry.start, tree=dominators(function))


# -- of values --------------------------------------------------------------------------------------------------------


@of_values
def arguments(function: Function) -> dict[int, list[Value]]:
    """What each PHI receives, an argument per edge."""
    found: dict[int, list[Value]] = {}
    for block in order(function):
        for arc in block.end.arcs:
            for param, arg in zip(arc.target.params, arc.args, strict=True):
                found.setdefault(param.id, []).append(arg)
    return found


class ValueUse(NamedTuple):
    block: DependencyBlock
    user: Value | None  # None: the end of the block
    operand: int  # its index; -1: it is passed along an edge

    @property
    def op(self) -> str:
        if self.user is not None:
            return self.user.op
        return "PHI" if self.operand < 0 else self.block.end.op


@of_values
def uses(function: Function) -> dict[int, list[ValueUse]]:
    """The uses of each value but literals, operand by operand."""
    found: dict[int, list[ValueUse]] = {}

    def note(args: tuple[Value, ...], block: DependencyBlock, user: Value | None) -> None:
        for operand, arg in enumerate(args):
            if arg.op != CONST:
                found.setdefault(arg.id, []).append(ValueUse(block, user, operand))

    for block in order(function):
        for value in block.instructions:
            note(value.args, block, value)
        note(block.end.args, block, None)
        for arc in block.end.arcs:
            for arg in arc.args:
                if arg.op != CONST:
                    found.setdefault(arg.id, []).append(ValueUse(block, None, -1))
    return found


@of_values
def calls(function: Function) -> list[tuple[DependencyBlock, Value]]:
    """The calls of functions, in order."""
    return [(block, value) for block in order(function) for value in block.instructions if value.op == "CALLFN"]


@of_values
def use_counts(function: Function) -> Counter[int]:
    """How often each value but literals is used."""
    found: Counter[int] = Counter()
    for block in order(function):
        for value in block.instructions:
            found.update([arg.id for arg in value.args if arg.op != CONST])
        found.update([arg.id for arg in block.end.args if arg.op != CONST])
        for arc in block.end.arcs:
            found.update([arg.id for arg in arc.args if arg.op != CONST])
    return found


def callees(function: Function, unit: Unit) -> set[str]:
    return {unit.names[call.number] for _, call in calls(function)}


def call_graph(unit: Unit) -> dict[str, set[str]]:
    return {name: callees(function, unit) for name, function in unit.functions.items()}
