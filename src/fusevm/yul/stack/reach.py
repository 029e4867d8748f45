"""Which variables the plain stack generator cannot reach with DUP and SWAP."""

from __future__ import annotations

from fusevm.evm.assembler import Assembly
from fusevm.yul.stack.plain import Generator, TooDeep
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect, dialect_for


def by_function(reports: list[TooDeep]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for report in reports:
        variables = found.setdefault(report.function, {})
        if report.variable:
            variables[report.variable] = None
    return {function: list(variables) for function, variables in found.items()}


def unreachable_variables(block: Block, dialect: Dialect | None = None) -> dict[str, list[str]]:
    """Function name ('' for the main code) to the variables out of reach, in the order in which they are found.

    The list is empty for a function whose parameters and return variables are too many to be put in order.
    """
    return by_function(plainly(block, dialect or dialect_for()).too_deep)


def plainly(block: Block, dialect: Dialect) -> Generator:
    generator = Generator(dialect, Assembly(dialect.fork))
    generator.program(block)
    return generator
