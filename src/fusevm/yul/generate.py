"""Code for one block of Yul, by the first method that fits on the stack.

In this order, until one reaches every variable:
1. the plain generator (`stack/plain.py`), in which a variable stays where it was declared;
2. the same without functions that are never called;
3. the same with variables in memory (StackLimitEvader), where the code has a memoryguard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusevm.evm.assembler import Assembly
from fusevm.yul.context import StepContext
from fusevm.yul.stack.layout import stack_too_deep
from fusevm.yul.stack.reach import by_function, plainly, unreachable_variables
from fusevm.yul.steps import circular_references_pruner, function_hoister
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.steps.stack_limit_evader import evade
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.errors import ErrorKind, YulError
from fusevm.yul.syntax.walk import calls_of

_MAX_EVASIONS = 4  # moving variables to memory needs stack itself, so that once may not be enough
_TALL = 256  # slots of one function from which on calls may meet the limit of 1,024


class StackTooDeep(YulError):
    """Variables that DUP and SWAP cannot reach, by function."""

    def __init__(self, unreachable: Mapping[str, list[str]]) -> None:
        self.unreachable = dict(unreachable)
        super().__init__(ErrorKind.CODE_GENERATION, 0, "; ".join(_describe(unreachable)))


def _describe(unreachable: Mapping[str, list[str]]) -> Iterator[str]:
    for function, variables in unreachable.items():
        where = f"function '{function}'" if function else "the main code"
        if variables:
            yield f"stack too deep in {where}: cannot reach {', '.join(variables)}"
        else:
            yield f"stack too deep in {where}: too many parameters and return variables"


def generate(code: Block, dialect: Dialect) -> Assembly:
    """The code of a block, or StackTooDeep."""
    plain = plainly(code, dialect)
    if not plain.too_deep and plain.assembly.highest <= _TALL:
        return plain.assembly
    for variant in _variants(disambiguated(dialect, code), dialect):
        found = plainly(variant, dialect)
        if not found.too_deep and found.assembly.highest <= _TALL:
            return found.assembly
    if plain.too_deep:
        raise StackTooDeep(by_function(plain.too_deep))
    return plain.assembly


def fits(code: Block, dialect: Dialect) -> bool:
    """Whether any method can compile the block: those above, or the back end, which moves words as layouts do."""
    try:
        generate(code, dialect)
    except StackTooDeep:
        return any(not any(stack_too_deep(each, dialect)) for each in _variants(disambiguated(dialect, code), dialect))
    return True


def _variants(code: Block, dialect: Dialect) -> Iterator[Block]:
    """The code without functions that are never called, and with more and more in memory."""
    context = StepContext.for_block(dialect, code)
    function_hoister.run(context, code)  # or a function inside a block could keep calling one that goes
    circular_references_pruner.run(context, code)
    yield code
    if not calls_of(code, "memoryguard"):
        return
    for _ in range(_MAX_EVASIONS):
        code = _with_memory(code, dialect)
        yield code


def _with_memory(code: Block, dialect: Dialect) -> Block:
    """A copy in which StackLimitEvader has moved what the plain generator cannot reach to memory, as far as it can."""
    copy = disambiguated(dialect, code)
    evade(StepContext.for_block(dialect, copy), copy, unreachable_variables(copy, dialect))
    return copy
