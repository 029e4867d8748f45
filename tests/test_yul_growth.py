"""Wide and deep programs: no phase does work that grows faster than n log n, and nothing ends in a RecursionError."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commands import Command, fusevm_command  # noqa: F401
from conftest import chosen, first
from fusevm.codegen.yul import compile_object
from fusevm.lab.yul.growth import grown, main, phases, prepared
from fusevm.lab.yul.growth_families import FAMILIES
from fusevm.yul.analysis.metrics import parser_depth
from fusevm.yul.context import GROWTH, GROWTH_PER_NODE, StepContext
from fusevm.yul.optimise import StepEvent, optimize
from fusevm.yul.stack.layout import Layouts
from fusevm.yul.steps import BY_LETTER, STEPS
from fusevm.yul.syntax import statements as parser_code
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.depth import room_to_recurse
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object
from fusevm.yul.syntax.walk import count_nodes

# Up to its budget the search for stack layouts takes longer on tall stacks; see stack_layout.py.
BUDGETED = {"StackCompressor", "StackLimitEvader"}
WIDE = ("switch", "switch assigning", "mstores", "mstores computed", "sstores", "stores and ifs", "let chain", "ifs")


def work_of(phase: str, family: str, size: int) -> int:
    """Calls of functions, counted exactly; once without counting, for what is made once and kept."""
    phases()[phase](dialect_for(), FAMILIES[family].source(8))()
    run = phases()[phase](dialect_for(), FAMILIES[family].source(size))
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_a_valid_program(family: str) -> None:
    size, source = FAMILIES[family]
    assert not [error for error in check(source(size))[1] if not error.is_warning]


LONG = {"compile": pytest.mark.long}  # half of the time of all phases


@pytest.mark.parametrize("family", chosen(("switch", "stores and ifs", "let chain"), WIDE))
@pytest.mark.parametrize("phase", [pytest.param(each, marks=LONG.get(each, ())) for each in sorted(phases())])
def test_four_times_the_program_is_little_more_than_four_times_the_work(phase: str, family: str) -> None:
    if phase.split()[0] in BUDGETED and family != "switch":
        pytest.skip("tall stacks cost more, up to the budget")
    if phase == "suite":
        pytest.skip("rounds until stable differ; its steps are here one by one")
    if phase.startswith("Rematerialiser") and family == "let chain":
        pytest.skip("its text is that long: it grows up to the budget for growth")
    size = 160 if phase == "compile" else 40  # stores look back at up to 48 others
    assert work_of(phase, family, 4 * size) <= 6 * work_of(phase, family, size) + 2_000


def test_four_times_the_blocks_of_a_function_are_little_more_than_four_times_the_work() -> None:
    """Which of them may return was asked block by block, from the front."""
    assert work_of("compile", "ifs in a function", 320) <= 6 * work_of("compile", "ifs in a function", 80)


@pytest.mark.long
@pytest.mark.parametrize(
    ("phase", "family"),
    [
        ("StackCompressor", "switch"),
        ("LoadResolver after xarc", "mstores"),
        ("LoadResolver after xarc", "sstores computed"),
        ("EqualStoreEliminator after xarc", "stores and ifs"),
        ("UnusedStoreEliminator after xarc", "mstores computed"),
        ("UnusedAssignEliminator", "assignments of many"),
        ("CommonSubexpressionEliminator after xarc", "switch ending"),
        ("VarNameCleaner after xarc", "sstores"),
        ("DeadCodeEliminator", "function chain"),
        ("compile", "let chain"),
    ],
)
def test_four_times_the_program_is_less_than_nine_times_the_time(phase: str, family: str) -> None:
    seconds = grown(phase, family).seconds
    assert seconds[-1] < 9 * seconds[0] + 0.05


def test_the_survey_prints_exponents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--family", "switch", "--phase", "parse", "--scale", "0.1", "--above", "-9", "--least", "0"]) == 1
    assert "1 measured, 1 steeper than n^-9.0" in capsys.readouterr().out


# -- depth ------------------------------------------------------------------------------------------------------------

NESTED = [family for family in FAMILIES if "nested" in family]


def deepest(family: str) -> str:
    """The family at its greatest depth that the parser takes, and solc's with it."""
    source = FAMILIES[family].source
    for depth in (570, 500, 390, 290, 190):
        if not any(error.code == 7319 for error in check(source(depth))[1]):
            return source(depth)
    raise AssertionError(family)


@pytest.mark.parametrize("family", ["blocks nested", "ifs nested", "expression nested", "calls nested"])
def test_five_hundred_levels_parse(family: str) -> None:
    assert check(FAMILIES[family].source(500))[0] is not None


@pytest.mark.long
@pytest.mark.parametrize("family", NESTED)
def test_every_step_takes_what_the_parser_takes(family: str) -> None:
    source, dialect = deepest(family), dialect_for()
    with room_to_recurse():
        for step in STEPS:
            block = prepared(dialect, source, step.needs, "")
            step.run(StepContext.for_block(dialect, block), block)


@pytest.mark.long
@pytest.mark.parametrize("command", ["check", "format", "compile", "optimize", "run"])
@pytest.mark.parametrize("family", ["blocks nested", "expression nested", "calls nested", "functions nested"])
def test_no_command_runs_out_of_recursion(fusevm: Command, tmp_path: Path, family: str, command: str) -> None:
    file = tmp_path / "deep.yul"
    file.write_text(deepest(family))
    ran = fusevm("yul", command, str(file))
    assert "Traceback" not in ran.err
    assert "Recursion" not in ran.err


def test_deeper_than_the_parser_takes_is_one_line(fusevm: Command, tmp_path: Path) -> None:
    file = tmp_path / "deep.yul"
    file.write_text("{" * 700 + "}" * 700)
    ran = fusevm("yul", "optimize", str(file))
    assert (ran.code, ran.err) == (
        1,
        f"{file}:1:601: too deeply nested: blocks and calls may nest about 600 deep\n",
    )


def test_a_chain_of_variables_joined_into_one_expression_prints_and_compiles() -> None:
    lines = (f"let x{i + 1} := {'div' if i % 2 else 'xor'}(x{i}, {i + 3})" for i in range(5_000))
    source = "{ let x0 := calldataload(0)\n" + "\n".join(lines) + "\nsstore(0, x5000) }"
    result = optimize(parse_object(source), steps="[j]:")
    assert "xor(div(xor(div(" in print_object(result)
    assert compile_object(result).code


@pytest.mark.parametrize("length", first(1, [550, 700]))
def test_a_chain_of_variables_optimises_to_a_text_that_can_be_read_again(length: int) -> None:
    lines = (f"let x{i + 1} := {'div' if i % 2 else 'xor'}(x{i}, {i + 3})" for i in range(length))
    source = "{ let x0 := calldataload(0)\n" + "\n".join(lines) + f"\nsstore(0, x{length}) }}"
    assert compile_object(parse_object(print_object(optimize(parse_object(source))))).code


@pytest.mark.long
def test_inlined_blocks_nest_no_deeper_than_can_be_read_again() -> None:
    functions = (f"function f{i}(x) {{ if sload(x) {{ f{i - 1}(add(x, 1)) }} }}" for i in range(1, 700))
    first = "function f0(x) { sstore(x, 1) }"
    source = f"{{ mstore(64, memoryguard(128)) f699(calldataload(0)) {first} {' '.join(functions)} }}"
    assert compile_object(parse_object(print_object(optimize(parse_object(source))))).code


@pytest.mark.parametrize("family", NESTED)
@pytest.mark.parametrize("depth", [20, 100, 150])
def test_the_depth_of_a_tree_is_what_the_parser_counts(
    family: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FAMILIES[family].source(depth)
    needed = parser_depth(parse_object(source).code)
    monkeypatch.setattr(parser_code, "MAX_PARSER_DEPTH", needed)
    assert check(source)[0] is None
    monkeypatch.setattr(parser_code, "MAX_PARSER_DEPTH", needed + 4)
    assert check(source)[0] is not None


# -- growth of the program --------------------------------------------------------------------------------------------


def doubling(levels: int, guard: str = "") -> str:
    functions = (f"function f{i}(x) -> y {{ y := f{i - 1}(f{i - 1}(x)) }}" for i in range(1, levels + 1))
    first = "function f0(x) -> y { y := add(x, sload(x)) }"
    return f"{{ {guard} sstore(0, f{levels}(calldataload(0))) {first} {' '.join(functions)} }}"


@pytest.mark.parametrize("guard", ["", "mstore(64, memoryguard(128))"])
def test_functions_that_double_stay_within_the_budget_for_growth(guard: str) -> None:
    program = parse_object(doubling(18, guard))
    largest = 0

    def watch(event: StepEvent) -> None:
        nonlocal largest
        largest = max(largest, count_nodes(event.block))

    result = optimize(program, on_step=watch)
    before = count_nodes(program.code)
    assert largest <= 4 * (GROWTH + (1 + GROWTH_PER_NODE) * before)
    assert compile_object(result).code


@pytest.mark.parametrize("letter", "ieFm")
def test_steps_that_copy_do_nothing_without_budget(letter: str) -> None:
    source = """{
        let a := f(1) let b := f(a) sstore(g(3), add(a, b))
        function f(x) -> y { y := sload(x) sstore(y, add(x, mul(x, 5))) }
        function g(x) -> y { y := add(x, 1) }
    }"""
    dialect = dialect_for()
    block = prepared(dialect, source, ("Disambiguator", "FunctionHoister", "FunctionGrouper"), "")
    before = count_nodes(block)
    context = StepContext.for_block(dialect, block)
    context.growth = 0
    BY_LETTER[letter].run(context, block)
    assert count_nodes(block) <= before


def test_layouts_of_a_switch_spend_work_in_proportion_to_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[int] = []
    monkeypatch.setattr(Layouts, "_spend", lambda self, work: spent.append(work))
    counts = []
    for cases in (50, 200):
        spent.clear()
        phases()["StackCompressor"](dialect_for(), FAMILIES["switch"].source(cases))()
        counts.append(len(spent))
    assert counts[1] <= 5 * counts[0]
