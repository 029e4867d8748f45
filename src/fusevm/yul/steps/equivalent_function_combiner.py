"""EquivalentFunctionCombiner (v): calls one of several equal functions everywhere.

Needs: Disambiguator, FunctionHoister.
Does: where two functions differ only in the names of their variables, calls of the later become calls of the earlier.
Why: the later one is unused then, and UnusedPruner removes it.
"""

from __future__ import annotations

from typing import Any

from fusevm.yul.analysis.equality import function_key
from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block, FunctionCall, FunctionDefinition, Identifier
from fusevm.yul.syntax.walk import nodes


def run(context: StepContext, block: Block) -> None:
    first: dict[tuple[Any, ...], str] = {}
    same: dict[str, str] = {}
    for statement in block.statements:
        if isinstance(statement, FunctionDefinition):
            earlier = first.setdefault(function_key(statement), statement.name)
            if earlier != statement.name:
                same[statement.name] = earlier
    if same:
        for node in nodes(block):
            if node.__class__ is FunctionCall and node.function.name in same:
                node.function = Identifier(same[node.function.name], node.function.location)
