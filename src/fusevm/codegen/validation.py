"""Translation validation: every pass that changes a function is checked at once, and undone if it is wrong.

Functions that only compute words are compared by z3 if that is installed (`proofs.py`), all others by running both
versions on inputs made from the code's constants (`trials.py`). A function is run on its own, called with words from
calldata; the main code as a contract. Finally all of the code is compared with the plain translation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from fusevm.codegen import proofs
from fusevm.codegen.assembling import assembly_of
from fusevm.codegen.pipeline import LOWER, Work, run_passes
from fusevm.codegen.snapshots import copied, copied_unit, shape
from fusevm.codegen.trials import TrialInput, difference, trials_for
from fusevm.codegen.writing import Spills, write
from fusevm.codegen.yul_functions import unit_of
from fusevm.evm.assembler import WORD_BYTES, Assembly
from fusevm.ir import analyses
from fusevm.ir.functions import NEVER, SWITCH, DependencyBlock, End, Function, Unit
from fusevm.ir.values import CONST, Value
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.ast import Block
from fusevm.yul.syntax.dialect import Dialect

Changed = TypeVar("Changed")

RESULTS_AT = 0x2000  # the address of the results of the function under test, after the memory it may write
SPILLS_AT = 0x4000  # the address of spilled values: outside the memory that is compared
TRIALS, TRIALS_PER_CASE, MAX_TRIALS = 12, 3, 60
MAX_CONSTANTS = 64
FREE_POINTER, FREE_MEMORY = 0x40, 0x80
LAYOUT = "layout"  # the pass name of the final check of all of the code


class Dropped(NamedTuple):
    """A change that was undone: the pass, the function, and the calldata on which the versions differ, if known."""

    name: str
    object_name: str
    function: str
    data: bytes | None

    def __str__(self) -> str:
        where = f"function '{self.function}'" if self.function else "the main code"
        shown = "proved by z3" if self.data is None else f"calldata 0x{self.data.hex()}"
        return f'pass "{self.name}" changed what {where} of "{self.object_name}" does ({shown}); the change was dropped'


@dataclass(slots=True)
class Validation:
    """Replaces `pipeline.just_run`: checks every pass."""

    proved: int = 0
    tried: int = 0
    unchecked: int = 0  # versions that could not be laid out, so not run
    dropped: list[Dropped] = field(default_factory=list)
    object_name: str = ""

    def run(self, name: str, unit: Unit, change: Callable[[], Changed]) -> Changed:
        before = copied_unit(unit)
        result = change()
        for each, function in list(unit.functions.items()):
            old = before.functions[each]
            if shape(old) != shape(function) and not self.accepts(name, before, old, function):
                unit.functions[each] = old
            else:
                analyses.check(function)
        return result

    def accepts(self, name: str, unit: Unit, old: Function, new: Function) -> bool:
        """Whether the new version of a function is equivalent to the old one, with the old versions of all others."""
        verdict = proofs.same(old, new)
        if verdict is not None:
            self.proved += verdict
            if not verdict:
                self.dropped.append(Dropped(name, self.object_name, old.name, None))
            return verdict
        return self.agree(name, unit, old.name, _alone(unit, old), _alone(unit, new))

    def whole(self, code: Block, dialect: Dialect, made: Assembly, plain: Callable[[], Assembly]) -> Assembly:
        """The optimised code, or the plain translation if they differ."""
        try:
            other = plain()
        except StackTooDeep:
            self.unchecked += 1
            return made
        unit = unit_of(code, dialect)
        return made if self.agree(LAYOUT, unit, "", other, made) else other

    def agree(self, name: str, unit: Unit, function: str, before: Assembly | None, after: Assembly | None) -> bool:
        if before is None or after is None:
            self.unchecked += 1
            return True
        self.tried += 1
        inputs = _trials(unit, unit.functions[function])
        found = difference(before, after, _names_in(unit), inputs, final=name == LAYOUT)
        if found is not None:
            self.dropped.append(Dropped(name, self.object_name, function, found.data))
        return found is None


def _names_in(unit: Unit) -> list[str]:
    """The names of data, immutables and libraries, without the object's own, each once."""
    return list(dict.fromkeys(symbol.name for symbol in unit.symbols))


def _trials(unit: Unit, function: Function) -> Iterator[TrialInput]:
    functions = [function, *(unit.functions[name] for name in _needed(unit, function) if name != function.name)]
    constants = list(dict.fromkeys(number for each in functions for number in _constants(each)))[:MAX_CONSTANTS]
    cases = list(dict.fromkeys(number for each in functions for number in _cases(each)))
    if function.name:
        return trials_for(constants, (), TRIALS, len(function.params))
    return trials_for(constants, cases, min(TRIALS + TRIALS_PER_CASE * len(cases), MAX_TRIALS), None)


def _constants(function: Function) -> Iterator[int]:
    for block in function.blocks():
        for value in block.instructions:
            yield from (arg.number for arg in value.args if arg.op == CONST)
        yield from block.end.cases


def _cases(function: Function) -> Iterator[int]:
    """Constants that may be selectors."""
    for block in function.blocks():
        found = list(block.end.cases) if block.end.op == SWITCH else []
        for value in block.instructions:
            if value.op in ("EQ", "SUB", "XOR"):
                found += [arg.number for arg in value.args if arg.op == CONST]
        yield from (number for number in found if 1 << 16 <= number < 1 << 32)


def _needed(unit: Unit, function: Function) -> list[str]:
    """The functions it may call, directly or indirectly; itself only if it is recursive."""
    found: dict[str, None] = {}
    work = [function]
    while work:
        for name in sorted(analyses.callees(work.pop(), unit)):
            if name not in found:
                found[name] = None
                work.append(unit.functions[name])
    return list(found)


def _alone(unit: Unit, function: Function) -> Assembly | None:
    """The function, or the main code, as runnable code; None if its values do not fit on the stack."""
    functions = {name: copied(unit.functions[name]) for name in _needed(unit, function)}
    if function.name:
        unit.number_of(function.name)
        functions = {"": _driver(unit, function), **functions}
    functions[function.name] = copied(function)
    main = functions.pop("")
    alone = replace(unit, functions={"": main, **functions}, guard=SPILLS_AT)
    run_passes(Work(alone), LOWER)
    try:
        program = write(alone, 1, Spills(), beam=1)
    except StackTooDeep:
        return None
    program.order = list(program.blocks)
    return assembly_of(program, alone, 1)


def _driver(unit: Unit, function: Function) -> Function:
    """Main code that calls a function with words from calldata, and returns its memory and its results."""
    block = DependencyBlock(0)

    def make(op: str, *args: Value, number: int = 0) -> Value:
        block.instructions.append(Value(op, args, number, len(block.instructions), 0))
        return block.instructions[-1]

    def word(number: int) -> Value:
        return Value(CONST, (), number)

    make("MSTORE", word(FREE_POINTER), word(unit.guard or FREE_MEMORY))
    given = [make("CALLDATALOAD", word(WORD_BYTES * place)) for place in range(len(function.params))]
    call = make("CALLFN", *given, number=unit.number_of(function.name))
    if not function.returns:
        block.end = End(NEVER)
        return Function("", block)
    results = [make("RESULT", call, number=place) for place in range(function.results)]
    for place, result in enumerate(results):
        make("MSTORE", word(RESULTS_AT + WORD_BYTES * place), result)
    block.end = End("RETURN", (word(0), word(RESULTS_AT + WORD_BYTES * len(results))))
    return Function("", block)
