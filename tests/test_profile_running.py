"""Functions that run inside a frame, followed over jumps."""

from __future__ import annotations

import pytest

from fusevm.tracing.sources.contracts import CompiledCode, Known, SourceContract
from fusevm.tracing.sources.files import SourceFile, SourcePlace
from fusevm.tracing.sources.maps import CodeMap
from fusevm.tracing.sources.running import DEEPEST, FunctionStack

TEXT = "contract C { function a() { b(); } function b() { c(); } function c() { x; } }"
FILE = SourceFile("c.sol", TEXT.encode())


def whole(name: str) -> SourcePlace:
    function = next(each for each in FILE.functions if each.name == f"C.{name}")
    return FILE.place(function.start, function.end)


def part(text: str) -> SourcePlace:
    return FILE.place(TEXT.index(text), TEXT.index(text) + len(text))


PLACES = {
    1: part("b();"), 2: part("b();"),  # a: the jump is at 2
    10: whole("b"), 11: part("c();"), 12: part("c();"), 13: whole("b"),
    20: whole("c"), 21: part("x;"), 22: whole("c"),
}  # fmt: skip


def stack(jumps: dict[int, str]) -> FunctionStack:
    code = CompiledCode(bytes(40), CodeMap(dict(PLACES), jumps))
    return FunctionStack(Known(SourceContract("C", FILE, CompiledCode(), code), code.map))


def names(functions: FunctionStack, pc: int) -> list[str]:
    return [call.name for call in functions.calls(pc)]


@pytest.fixture(params=[{2: "i", 12: "i", 22: "o", 13: "o"}, {2: "i", 12: "i"}], ids=["marked", "unmarked returns"])
def functions(request: pytest.FixtureRequest) -> FunctionStack:
    return stack(request.param)


def test_a_jump_into_a_function_adds_the_one_that_jumps(functions: FunctionStack) -> None:
    assert names(functions, 1) == ["C.a"]
    assert functions.jumped(2, 10)
    assert names(functions, 11) == ["C.a", "C.b"]
    assert functions.jumped(12, 20)
    assert names(functions, 21) == ["C.a", "C.b", "C.c"]


def test_a_return_goes_back_to_after_the_jump(functions: FunctionStack) -> None:
    functions.jumped(2, 10)
    functions.jumped(12, 20)
    assert functions.jumped(22, 13)
    assert names(functions, 11) == names(functions, 13) == ["C.a", "C.b"]
    assert functions.jumped(13, 3)
    assert names(functions, 1) == ["C.a"]


def test_a_return_may_go_over_several_functions(functions: FunctionStack) -> None:
    """The last call of a function may jump with the return address of its caller."""
    functions.jumped(2, 10)
    functions.jumped(12, 20)
    assert functions.jumped(30, 3)
    assert functions.callers == []


def test_code_of_a_whole_function_belongs_to_it_only_while_it_runs() -> None:
    """Another function may share it, so that its place is of the wrong one."""
    functions = stack({2: "i", 12: "i"})
    functions.jumped(2, 10)
    assert names(functions, 13) == ["C.a", "C.b"]
    assert names(functions, 22) == ["C.a"]  # made from all of `c`, which is not running
    functions.jumped(12, 20)
    assert names(functions, 22) == ["C.a", "C.b", "C.c"]
    assert names(functions, 13) == ["C.a", "C.b"]


def test_a_jump_inside_a_function_changes_nothing(functions: FunctionStack) -> None:
    assert not functions.jumped(5, 8)
    assert names(functions, 1) == ["C.a"]


def test_a_return_that_nobody_waits_for_is_passed_over() -> None:
    functions = stack({22: "o"})
    assert not functions.jumped(22, 9)


def test_stacks_are_bounded() -> None:
    functions = stack({2: "i"})
    for _ in range(2 * DEEPEST):
        functions.jumped(2, 1)
    assert len(functions.callers) == DEEPEST


def test_code_without_sources_has_no_functions() -> None:
    functions = FunctionStack(None)
    assert not functions.jumped(2, 10)
    assert functions.calls(2) == []
