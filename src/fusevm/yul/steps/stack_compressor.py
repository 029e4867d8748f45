"""StackCompressor: computes values again rather than keep them where the stack is too deep.

Needs: Disambiguator, FunctionHoister, FunctionGrouper, ForLoopInitRewriter.
Does: asks where the stack is too deep, rematerialises there the cheapest variables whose value can be computed again,
and removes what is unused then. With the old code generator (before Tangerine Whistle) it tries up to 16 times.
Why: the EVM reaches only 16 slots down its stack; StackLimitEvader's memory is the more expensive remedy.
"""

from __future__ import annotations

from fusevm.evm.forks import Fork
from fusevm.yul.analysis.dataflow import DataFlowAnalyzer
from fusevm.yul.analysis.effects import builtin_effects
from fusevm.yul.analysis.metrics import code_cost
from fusevm.yul.context import DeepPlace, StackReport, StepContext
from fusevm.yul.stack.layout import stack_too_deep
from fusevm.yul.stack.reach import unreachable_variables
from fusevm.yul.steps.rematerialiser import rematerialise
from fusevm.yul.steps.unused_pruner import prune_variables
from fusevm.yul.syntax.ast import Assignment, Block, Expression, Identifier, VariableDeclaration
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.printer import print_block
from fusevm.yul.syntax.walk import functions_of

MAX_ROUNDS = 16


def run(context: StepContext, block: Block) -> None:
    rounds = MAX_ROUNDS if _is_old(context.dialect) else 1
    for _ in range(rounds):
        if not compress(context, block, stack_report(context, block)):
            break


def stack_report(context: StepContext, block: Block) -> StackReport:
    """Where the code generator that solc has for the fork finds the stack too deep. The last answer is kept."""
    text = print_block(block)
    if context.report is None or context.report[0] != text:
        context.report = text, _report(context.dialect, block)
    return context.report[1]


def _report(dialect: Dialect, block: Block) -> StackReport:
    if _is_old(dialect):
        return _simple_report(dialect, block)
    report, unknown = stack_too_deep(block, dialect)
    if unknown:
        simple = _simple_report(dialect, block)
        report |= {function: simple[function] for function in unknown if function in simple}
    return report


def _simple_report(dialect: Dialect, block: Block) -> dict[str, list[DeepPlace]]:
    """By a generator that gives every variable its slot: quicker to ask, and sooner too deep."""
    found = unreachable_variables(block, dialect)
    return {function: [DeepPlace(1, [name]) for name in names] for function, names in found.items()}


def _is_old(dialect: Dialect) -> bool:
    return dialect.fork < Fork.TANGERINE_WHISTLE


def compress(context: StepContext, block: Block, report: StackReport) -> bool:
    """One round. Says whether anything could be done."""
    if not any(report.values()):
        return False
    selector = _Selector(context.dialect)
    selector.block(block)
    names = _chosen(report, selector.costs())
    if not names:
        return False
    rematerialise(context, block, names)
    prune_variables(context.dialect, block, {each.name for each in functions_of(block)})
    return True


def _chosen(report: StackReport, costs: dict[str, int]) -> set[str]:
    """For each place the cheapest candidates, as many as it is too deep."""
    chosen: set[str] = set()
    for places in report.values():
        for place in places:
            needed = place.deficit - sum(name in chosen for name in place.choices)
            candidates = [name for name in place.choices if name in costs and name not in chosen]
            chosen.update(sorted(candidates, key=costs.__getitem__)[: max(0, needed)])
    return chosen


class _Selector(DataFlowAnalyzer):
    """Finds variables whose value is known wherever they are mentioned, and what computing it each time would cost."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect, builtin_effects(dialect))
        self.cost: dict[str, int] = {}
        self.mentioned: dict[str, int] = {}

    def costs(self) -> dict[str, int]:
        return {name: cost * self.mentioned.get(name, 0) for name, cost in self.cost.items()}

    def declaration(self, declaration: VariableDeclaration) -> None:
        super().declaration(declaration)
        name = declaration.variables[0].name
        if len(declaration.variables) == 1 and name in self.values:
            self.cost[name] = code_cost(self.dialect, self.values[name])

    def assignment(self, assignment: Assignment) -> None:
        for target in assignment.targets:
            self.cost.pop(target.name, None)
        super().assignment(assignment)

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Identifier):
            if expression.name not in self.values:
                self.cost.pop(expression.name, None)
            else:
                self.mentioned[expression.name] = self.mentioned.get(expression.name, 0) + 1
            return expression
        return super().expression(expression)
