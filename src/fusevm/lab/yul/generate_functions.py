"""Small functions of random programs that steps have an eye on: counters, functions that may not return, formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusevm.lab.yul.generate import ProgramGenerator


@dataclass(slots=True)
class YulFunction:
    name: str
    parameters: int
    returns: int
    bounded: bool = False  # its first parameter says how deep it may still recurse
    busy: bool = False  # it does something the outside sees whenever it is called


def busy(g: ProgramGenerator) -> YulFunction:
    """Counts its calls in storage or memory: evaluated in another order, the counts differ."""
    function = YulFunction(g.name("f"), 1, 1, busy=True)
    place = "0x20" if g.guarded else hex(32 * g.random.randrange(8))
    load, store = g.random.choice((("sload(1)", "sstore(1, {})"), (f"mload({place})", f"mstore({place}, {{}})")))
    parameter, result = g.name("p"), g.name("r")
    with g.braces(f"function {function.name}({parameter}) -> {result}"):
        g.write(f"{result} := {load}")
        g.write(store.format(f"add({result}, add({parameter}, 1))"))
    return function


def ender(g: ProgramGenerator) -> YulFunction:
    """Sometimes does not return."""
    function = YulFunction(g.name("f"), 1, 0, busy=True)
    parameter = g.name("p")
    ways = ("return(0, 0x20)", "revert(0, 0x20)", "stop()", "invalid()", "revert(0, 0)", "return(0, 0)")
    with g.braces(f"function {function.name}({parameter})"):
        condition = g.random.choice((parameter, f"iszero({parameter})", f"eq({parameter}, 3)", "calldataload(4)"))
        g.write(f"if {condition} {{ {g.random.choice(ways)} }}")
    return function


def formula(g: ProgramGenerator) -> YulFunction:
    """A single expression of its parameters, each mentioned any number of times."""
    function = YulFunction(g.name("f"), g.random.randrange(1, 4), 1)
    parameters = [g.name("p") for _ in range(function.parameters)]
    result = g.name("r")
    with g.braces(f"function {function.name}({', '.join(parameters)}) -> {result}"):
        g.scope.variables, g.scope.fixed = parameters, []
        g.write(f"{result} := {g.expression(2)}")
    return function


TEMPLATES: tuple[Callable[[ProgramGenerator], YulFunction], ...] = (busy, ender, formula)
