"""Lowers switches to branches: linear search for a few cases, binary search for many."""

from __future__ import annotations

from fusevm.evm.assembler import Source
from fusevm.ir import analyses
from fusevm.ir.functions import BRANCH, JUMP, SWITCH, Arc, DependencyBlock, End, Function
from fusevm.ir.inline import FreshNumbers
from fusevm.ir.values import CONST, Value

LINEAR = 4  # up to this many cases are compared one after another


def lower_switches(function: Function, linear: int = LINEAR) -> None:
    numbers = FreshNumbers(function)
    for block in function.blocks():
        if block.end.op == SWITCH:
            lowering = _Lowering(numbers, block.end, linear)
            lowering.search(block, lowering.cases)


class _Lowering:
    def __init__(self, numbers: FreshNumbers, end: End, linear: int) -> None:
        self.numbers, self.linear = numbers, linear
        self.value = end.args[0]
        self.where = end.where
        self.default = end.arcs[-1]
        self.place = {case: place for place, case in enumerate(end.cases)}
        self.places: dict[int, Source] = dict(zip(end.cases, end.places, strict=True)) if end.places else {}
        self.cases = sorted(zip(end.cases, end.arcs, strict=False), key=lambda case: case[0])

    def search(self, block: DependencyBlock, cases: list[tuple[int, Arc]]) -> None:
        if len(cases) <= self.linear:
            self.compare(block, sorted(cases, key=lambda case: self.place[case[0]]))
            return
        middle = len(cases) // 2
        low, high = self.numbers.new_block(), self.numbers.new_block()
        greater = self.numbers.make(block, "GT", (Value(CONST, (), cases[middle][0]), self.value))
        greater.where = self.where
        block.end = End(BRANCH, (greater,), [Arc(low), Arc(high)], where=self.where)
        self.search(low, cases[:middle])
        self.search(high, cases[middle:])

    def compare(self, block: DependencyBlock, cases: list[tuple[int, Arc]]) -> None:
        if not cases:
            block.end = End(JUMP, (), [self.default], where=self.where)
        for number, (case, arc) in enumerate(cases):
            last = number == len(cases) - 1
            rest = Arc(self.default.target, list(self.default.args)) if last else Arc(self.numbers.new_block())
            where = self.places.get(case, self.where)
            if case:
                equal = self.numbers.make(block, "EQ", (Value(CONST, (), case), self.value))
                equal.where = where
                block.end = End(BRANCH, (equal,), [arc, rest], where=where)
            else:
                block.end = End(BRANCH, (self.value,), [rest, arc], where=where)
            block = rest.target


def split_critical_edges(function: Function) -> None:
    """Splits critical edges, and edges from a branch that pass arguments or lead to the entry."""
    numbers = FreshNumbers(function)
    predecessors = analyses.predecessors(function)
    for block in predecessors:
        if block.end.op != BRANCH:
            continue
        for arc in block.end.arcs:
            if len(predecessors[arc.target]) > 1 or arc.args or arc.target is function.entry:
                between = numbers.new_block()
                between.end = End(JUMP, (), [Arc(arc.target, arc.args)], where=block.end.where)
                arc.target, arc.args = between, []
