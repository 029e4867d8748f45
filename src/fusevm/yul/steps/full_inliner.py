"""FullInliner (i): puts a function's body in place of a call.

Needs: Disambiguator, FunctionHoister, FunctionGrouper; ExpressionSplitter, so that calls are whole statements.
Does: first tiny functions, then those that are called once, are small, or get a constant argument; callees before
callers, never recursive functions nor ones with `leave`. Parameters become variables, last to first. Copies no more
than the context's budget for growth allows: functions that call each other twice double with every level.
Why: a call costs jumps, and constants that meet the body let other steps shrink it.
"""

from __future__ import annotations

from fusevm.yul.analysis.callgraph import MAIN, CallGraph, call_graph
from fusevm.yul.analysis.metrics import code_size
from fusevm.yul.analysis.ssa import ssa_values
from fusevm.yul.context import StepContext
from fusevm.yul.syntax import literals
from fusevm.yul.syntax.ast import (
    Assignment,
    Block,
    Expression,
    ExpressionStatement,
    FunctionCall,
    FunctionDefinition,
    Identifier,
    Leave,
    Literal,
    Statement,
    TypedName,
    VariableDeclaration,
)
from fusevm.yul.syntax.names import NameDispenser
from fusevm.yul.syntax.walk import RenamingCopier, Rewriter, calls_of, count_calls, nodes

_TINY = 1
_BIG_CALLER = 45
# Up to which size a callee is inlined: plainly, and with a constant argument. Where variables can be moved to memory
# (the program has a memoryguard) deep stacks do no harm, and more is inlined.
_CAREFUL = 6, 12
_EAGER = 8, 16


def run(context: StepContext, block: Block) -> None:
    inliner = _Inliner(context, block)
    inliner.run(tiny_only=True)
    inliner.run(tiny_only=False)


class _Inliner:
    """Decides which calls are inlined."""

    def __init__(self, context: StepContext, block: Block) -> None:
        self.block = block
        self.context = context
        self.dispenser = context.dispenser
        self.tiny_only = True
        self.recursive = call_graph(block).recursive()
        self.constants = {name for name, value in ssa_values(block).items() if isinstance(value, Literal)}
        self.has_memoryguard = bool(calls_of(block, "memoryguard"))
        calls = count_calls(block)
        self.functions = {each.name: each for each in block.statements if isinstance(each, FunctionDefinition)}
        self.called_once = {name for name in self.functions if calls.get(name) == 1}
        self.never = {name for name, function in self.functions.items() if _must_stay(function)}
        self.sizes = {name: code_size(function.body) for name, function in self.functions.items()}
        self.sizes[MAIN] = code_size(block)

    def run(self, tiny_only: bool) -> None:
        self.tiny_only = tiny_only
        depths = call_depths(call_graph(self.block))
        for function in sorted(self.functions.values(), key=lambda each: depths[each.name]):
            _CallInliner(self, function.name).block(function.body)
            self.sizes[function.name] = code_size(function.body)
            if self._calls_itself(function):
                self.never.add(function.name)
        for statement in self.block.statements:
            if isinstance(statement, Block):
                _CallInliner(self, MAIN).block(statement)

    @staticmethod
    def _calls_itself(function: FunctionDefinition) -> bool:
        return bool(calls_of(function.body, function.name))

    def shall_inline(self, call: FunctionCall, caller: str) -> bool:
        name = call.function.name
        if name == caller or name not in self.functions or name in self.never:
            return False
        if any(argument.__class__ is FunctionCall for argument in call.arguments):
            return False  # its evaluation would come after that of the arguments to its right
        size = self.sizes[name]
        if size <= _TINY:
            return True
        if self.tiny_only:
            return False
        eager = self.has_memoryguard and caller not in self.recursive
        if not eager and self.sizes[caller] > _BIG_CALLER:
            return False
        if name in self.called_once:
            return True
        plain, with_constant = _EAGER if eager else _CAREFUL
        return size < plain or (size < with_constant and any(self._is_constant(each) for each in call.arguments))

    def _is_constant(self, argument: Expression) -> bool:
        return isinstance(argument, Literal) or (isinstance(argument, Identifier) and argument.name in self.constants)


def _must_stay(function: FunctionDefinition) -> bool:
    """Functions with `leave` can't be inlined; those that call themselves would never be gone."""
    for node in nodes(function.body):
        if node.__class__ is Leave or (node.__class__ is FunctionCall and node.function.name == function.name):
            return True
    return False


def call_depths(graph: CallGraph) -> dict[str, int]:
    """How many calls deep a function goes; leaves have 0, recursive functions and their callers come last."""
    callers: dict[str, list[str]] = {name: [] for name in graph.calls}
    open_calls: dict[str, int] = {}  # of each function, calls of functions whose depth is not known yet
    for name, callees in graph.calls.items():
        inner = [each for each in callees if each in graph.calls]
        open_calls[name] = len(inner)
        for each in inner:
            callers[each].append(name)
    depths: dict[str, int] = {}
    leaves = [name for name, count in open_calls.items() if not count]
    depth = 0
    while leaves:
        depths.update(dict.fromkeys(leaves, depth))
        depth += 1
        above: list[str] = []
        for leaf in leaves:
            for caller in callers[leaf]:
                open_calls[caller] -= 1
                if not open_calls[caller]:
                    above.append(caller)
        leaves = above
    return {name: depths.get(name, depth + 1) for name in graph.calls if name != MAIN}


class _CallInliner(Rewriter):
    """Inlines the calls in one function's body, or in the main code."""

    def __init__(self, inliner: _Inliner, caller: str) -> None:
        super().__init__()
        self.inliner = inliner
        self.caller = caller

    def rewrite(self, statement: Statement) -> list[Statement] | None:
        if statement.__class__ is ExpressionStatement:
            value: Expression | None = statement.expression
        elif statement.__class__ is Assignment or statement.__class__ is VariableDeclaration:
            value = statement.value
        else:
            self.statement(statement)
            return None
        if isinstance(value, FunctionCall) and self.inliner.shall_inline(value, self.caller):
            function = self.inliner.functions[value.function.name]
            return self.inlined(statement, value, function) if self.inliner.context.may_copy(function) else None
        return None

    def inlined(self, statement: Statement, call: FunctionCall, function: FunctionDefinition) -> list[Statement]:
        self.inliner.sizes[self.caller] += self.inliner.sizes[function.name]
        copier = _BodyCopier(self.inliner.dispenser)
        place = call.location
        new: list[Statement] = []
        for parameter, argument in zip(reversed(function.parameters), reversed(call.arguments), strict=True):
            new.append(VariableDeclaration([TypedName(copier.renew(parameter.name), place)], argument, place))
        for variable in function.returns:
            name = TypedName(copier.renew(variable.name), place)
            new.append(VariableDeclaration([name], literals.zero(place), place))
        copied = copier.statements(function.body.statements)
        for each in copied:
            self.inliner.context.mark_inlined(each, place)
        new += copied
        results = [Identifier(copier.renamed[each.name], statement.location) for each in function.returns]
        if isinstance(statement, Assignment):
            for target, result in zip(statement.targets, results, strict=True):
                new.append(Assignment([target], result, statement.location))
        elif isinstance(statement, VariableDeclaration):
            for variable, result in zip(statement.variables, results, strict=True):
                new.append(VariableDeclaration([variable], result, statement.location))
        return new


class _BodyCopier(RenamingCopier):
    """Copies a function's body, giving what it declares new names as they come."""

    def __init__(self, dispenser: NameDispenser) -> None:
        super().__init__({})
        self.dispenser = dispenser

    def renew(self, name: str) -> str:
        new = self.renamed[name] = self.dispenser.new_name(name)
        return new

    def declaration(self, declaration: VariableDeclaration) -> VariableDeclaration:
        for variable in declaration.variables:
            self.renew(variable.name)
        return super().declaration(declaration)
