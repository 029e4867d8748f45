"""VarNameCleaner: variables without the numbers that steps appended to them.

Needs: Disambiguator, FunctionHoister, FunctionGrouper. Names are unique only within a function afterwards.
Does: `x_7` becomes `x`, or `x_1`, `x_2`, … where that is taken in the function; every function starts again.
Why: readers. No other step may follow.
"""

from __future__ import annotations

import re

from fusevm.yul.context import StepContext
from fusevm.yul.steps.name_simplifier import Renamer
from fusevm.yul.syntax.ast import Block, FunctionDefinition, TypedName, VariableDeclaration
from fusevm.yul.syntax.dialect import Dialect

_SUFFIX = re.compile(r"(_+[0-9]+)+$")


def run(context: StepContext, block: Block) -> None:
    functions = {each.name for each in block.statements if isinstance(each, FunctionDefinition)}
    _Cleaner(context.dialect, frozenset(functions | context.reserved)).block(block)


class _Cleaner(Renamer):
    def __init__(self, dialect: Dialect, kept: frozenset[str]) -> None:
        super().__init__({})
        self.dialect = dialect
        self.kept = kept
        self.used: set[str] = set()
        self.tried: dict[str, int] = {}  # by stem, up to which number its names are taken

    def function(self, function: FunctionDefinition) -> None:
        outer = self.used, self.renamed, self.tried
        self.used, self.renamed, self.tried = set(), {}, {}
        function.parameters = self.cleaned(function.parameters)
        function.returns = self.cleaned(function.returns)
        self.block(function.body)
        self.used, self.renamed, self.tried = outer

    def declaration(self, declaration: VariableDeclaration) -> None:
        if declaration.value is not None:
            declaration.value = self.expression(declaration.value)
        declaration.variables = self.cleaned(declaration.variables)

    def cleaned(self, variables: list[TypedName]) -> list[TypedName]:
        new: list[TypedName] = []
        for variable in variables:
            name = self.clean_name(variable.name)
            self.used.add(name)
            if name != variable.name:
                self.renamed[variable.name] = name
            new.append(TypedName(name, variable.location))
        return new

    def clean_name(self, name: str) -> str:
        stem = _SUFFIX.sub("", name)
        number = self.tried.get(stem, 0)
        clean = f"{stem}_{number}" if number else stem
        while clean in self.used or clean in self.kept or self.dialect.is_restricted(clean):
            number += 1
            clean = f"{stem}_{number}"
        self.tried[stem] = number
        return clean
