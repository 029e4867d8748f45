"""Stack layouts: moves that turn one stack into another, and where the stack is too deep for solc's generator."""

from __future__ import annotations

from random import Random

import pytest

from fusevm.yul.stack.flowgraph import JUNK, LayoutSlot, SlotKind, Stack, flow_graphs, reachable
from fusevm.yul.stack.layout import stack_too_deep
from fusevm.yul.stack.shuffler import REACH, StackShuffle, shuffle
from fusevm.yul.steps.disambiguator import disambiguated
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_block


def variables(names: str) -> dict[str, LayoutSlot]:
    return {name: LayoutSlot(SlotKind.VARIABLE, name) for name in names}


def moves(source: Stack, target: Stack) -> list[str]:
    """The moves that make the target of the source, which is changed on the way."""
    made: list[str] = []

    def bring(slot: LayoutSlot) -> None:
        depth = next((d for d, other in enumerate(reversed(source)) if other is slot), None)
        made.append("push" if depth is None else f"dup{depth + 1}")

    shuffle(StackShuffle(source, target, lambda n: made.append(f"swap{n}"), bring, lambda: made.append("pop")))
    return made


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("", "", []),
        ("ab", "ab", []),
        ("ab", "ba", ["swap1"]),
        ("ab", "a", ["pop"]),
        ("ab", "b", ["swap1", "pop"]),
        ("a", "aa", ["dup1"]),
        ("abc", "cab", ["swap2", "swap1"]),
        ("abc", "c", ["swap2", "pop", "pop"]),
    ],
)
def test_few_moves_are_enough(source: str, target: str, expected: list[str]) -> None:
    slots = variables("abc")
    assert moves([slots[name] for name in source], [slots[name] for name in target]) == expected


def test_junk_may_be_anything() -> None:
    slots = variables("ab")
    assert moves([slots["a"], slots["b"]], [JUNK, slots["b"]]) == []


@pytest.mark.parametrize("seed", range(60))
def test_moves_lead_to_the_target(seed: int) -> None:
    random = Random(seed)
    slots = list(variables("abcdefghijkl").values())
    source = random.sample(slots, random.randrange(1, 12))
    target = [random.choice([*source, JUNK]) for _ in range(random.randrange(0, 14))]
    stack = list(source)
    moves(stack, target)
    assert len(stack) == len(target)
    assert all(wanted is JUNK or have is wanted for have, wanted in zip(stack, target, strict=True))


def too_deep(count: int) -> dict[str, int]:
    """How deep the stack is beyond reach, by function, if so many variables are used in the order they are declared."""
    names = [f"x{number}" for number in range(count)]
    declared = " ".join(f"let {name} := calldataload({number})" for number, name in enumerate(names))
    used = " ".join(f"sstore({number}, {name})" for number, name in enumerate(names))
    again = " ".join(f"sstore({number}, {name})" for number, name in enumerate(names))
    block = disambiguated(dialect_for(), parse_block(f"{{ f() function f() {{ {declared} {used} {again} }} }}"))
    report, unknown = stack_too_deep(block, dialect_for())
    assert unknown == []
    return {name: max(place.deficit for place in places) for name, places in report.items()}


def test_as_many_variables_as_can_be_reached_are_fine() -> None:
    assert too_deep(REACH - 2) == {}


def test_more_are_too_deep_and_the_function_is_named() -> None:
    assert too_deep(REACH + 6).keys() == {"f"}


def test_a_function_that_takes_too_long_is_said_to_be_unknown() -> None:
    block = parse_block("{ if calldataload(0) { sstore(0, 1) } f() function f() { if callvalue() { sstore(1, 1) } } }")
    assert stack_too_deep(block, dialect_for(), budget=0) == ({}, ["", "f"])


def test_a_graph_has_the_main_code_and_every_function() -> None:
    block = parse_block("{ f(1) function f(x) -> y { y := x } }")
    graphs = list(flow_graphs(dialect_for(), block))
    assert [graph.name for graph in graphs] == ["", "f"]
    assert [slot.name for slot in graphs[1].exit_stack] == ["y", "f"]


def test_a_loop_jumps_back_and_a_branch_has_two_targets() -> None:
    block = parse_block("{ for { let i := 0 } lt(i, 9) { i := add(i, 1) } { if i { mstore(i, 1) } } }")
    (graph,) = flow_graphs(dialect_for(), block)
    blocks = reachable(graph.entry)
    assert sum(each.jumps_back for each in blocks) == 1
    assert sum(len(each.targets) == 2 for each in blocks) == 2
