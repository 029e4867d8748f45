"""One list of passes: every way to bytecode runs it, and each order of passes that competes is tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import Command, fusevm_command  # noqa: F401
from conftest import chosen, first
from fusevm import EVM, explain
from fusevm.chain.outcome import Status
from fusevm.cli.yul import app
from fusevm.codegen.measure import StaticCost
from fusevm.codegen.pipeline import NAMES, NEEDED, PIPELINE, flat
from fusevm.codegen.standard_json import compile_request
from fusevm.codegen.yul import CompiledObject, StepOrder, _Part, cheapest, compile_object, objects_of
from fusevm.evm.assembler import Assembly
from fusevm.evm.forks import LATEST
from fusevm.lab.yul.compiled import random_case
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.parser import parse_object

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.yul"))
CORPUS = [f"corpus/{name}" for name in ("Amm", "Merkle", "Nft", "Numbers", "Text", "Timelock", "Token", "Vault")]
CORPUS += [f"corpus_new/{name}" for name in ("Gov", "Machine", "Orders", "SoladySort")]
HERE = "0x" + "c0" * 20


def objects(compiled: CompiledObject) -> list[CompiledObject]:
    return [compiled, *(inner for child in compiled.children.values() for inner in objects(child))]


def explains_what_is_compiled(text: str) -> None:
    tree, _ = check(text)
    assert tree is not None
    for compiled in objects(compile_object(tree)):
        assert explain(text, language="yul", object=compiled.name).code == compiled.code


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_explorer_explains_the_code_that_the_compiler_makes_of_an_example(path: Path) -> None:
    explains_what_is_compiled(path.read_text())


@pytest.mark.parametrize("name", chosen([CORPUS[1], CORPUS[6]], CORPUS))
@pytest.mark.parametrize("suffix", [".yul", ".opt.yul"])
def test_the_explorer_explains_the_code_that_the_compiler_makes_of_a_contract(
    name: str, suffix: str, fixtures_dir: Path
) -> None:
    explains_what_is_compiled((fixtures_dir / f"{name}{suffix}").read_text())


@pytest.mark.parametrize("seed", first(10, range(40)))
def test_the_explorer_explains_the_code_that_the_compiler_makes_of_a_random_program(seed: int) -> None:
    try:
        explains_what_is_compiled(random_case(seed).source)
    except YulError:
        pytest.skip("does not compile")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_standard_json_and_the_command_make_the_code_that_the_library_makes(path: Path) -> None:
    code = compile_object(parse_object(path.read_text())).code.hex()
    command = CliRunner().invoke(app, ["compile", str(path), "--bin"])
    settings = {"optimizer": {"enabled": True}, "outputSelection": {"*": {"*": ["evm.bytecode.object"]}}}
    request = {"language": "Yul", "sources": {"a": {"content": path.read_text()}}, "settings": settings}
    (contract,) = compile_request(request)["contracts"]["a"].values()
    assert command.stdout.strip() == contract["evm"]["bytecode"]["object"] == code


LOOP = (
    "{ for { let i := 0 } lt(i, calldataload(0)) { i := add(i, 1) } { sstore(i, f(i)) } function f(a) -> b { b := a } }"
)


def test_the_cheaper_order_is_kept_and_both_are_reported() -> None:
    tree = parse_object(EXAMPLES[0].read_text())
    compiled = compile_object(tree)
    each = {order: compile_object(tree, order=order) for order in (StepOrder.AS_WRITTEN, StepOrder.STEPS)}
    assert set(compiled.costs) == set(each)
    assert compiled.code == each[compiled.order].code
    for order, made in each.items():
        assert compiled.costs[order] == made.costs[order]


@pytest.mark.parametrize(
    ("written", "steps", "runs", "kept"),
    [
        (StaticCost(900, 900), StaticCost(1_000, 1_000), 200, StepOrder.AS_WRITTEN),
        (StaticCost(960, 1_020), StaticCost(1_000, 1_000), 200, StepOrder.STEPS),  # gas for bytes
        (StaticCost(800, 1_020), StaticCost(1_000, 1_000), 200, StepOrder.AS_WRITTEN),  # for many bytes
        (StaticCost(1_050, 500), StaticCost(1_000, 1_000), 200, StepOrder.STEPS),  # bytes for gas
        (StaticCost(995, 1_050), StaticCost(1_000, 1_000), 0, StepOrder.AS_WRITTEN),
        (StaticCost(1_050, 500), StaticCost(1_000, 1_000), 10_000, StepOrder.AS_WRITTEN),
        (StaticCost(1_000, 1_000), StaticCost(1_000, 999.9), 200, StepOrder.AS_WRITTEN),  # as good as equal
    ],
)
def test_between_orders_neither_bytes_nor_gas_are_given_up_for_the_other(
    written: StaticCost, steps: StaticCost, runs: int, kept: StepOrder
) -> None:
    tree = parse_object("{ }")
    costs = {StepOrder.AS_WRITTEN: written, StepOrder.STEPS: steps}
    parts = [_Part(tree, order, Assembly(LATEST), cost) for order, cost in costs.items()]
    assert cheapest(parts, runs).order is kept


def test_the_command_says_which_order_was_kept() -> None:
    told = json.loads(CliRunner().invoke(app, ["compile", "-", "--json"], input=LOOP).stdout)
    assert told["order"] in told["costs"]
    assert all(cost["bytes"] > 0 and cost["static_gas"] > 0 for cost in told["costs"].values())


def test_steps_before_compilation_keep_what_a_static_call_sees() -> None:
    """A store that is overwritten still makes a static call fail."""
    source = (
        "{ sstore(0, 1) f(calldataload(0)) sstore(0, 2) function f(n) { if n { revert(0, 0) } if eq(n, 7) { f(n) } } }"
    )
    for order in (StepOrder.AS_WRITTEN, StepOrder.STEPS):
        evm = EVM()
        evm.set_code(HERE, compile_object(parse_object(source), order=order).code)
        assert evm.call(HERE, b"\x01" * 32, static=True).status is Status.HALT


def test_large_programs_are_compiled_in_one_order_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusevm.codegen.yul.MAX_TRIED", 3)
    assert set(compile_object(parse_object(LOOP)).costs) == {StepOrder.AS_WRITTEN}


def test_a_pass_that_is_left_out_does_not_run() -> None:
    tree = parse_object("{ sstore(0, add(calldataload(0), sub(7, 7))) }")
    assert len(compile_object(tree, order=StepOrder.AS_WRITTEN, without={"fold"}).code) > len(compile_object(tree).code)


def test_the_command_lists_the_passes_in_their_order(fusevm: Command) -> None:
    told = json.loads(fusevm("passes", "--json").out)

    def names(passes: list[dict[str, object]]) -> list[object]:
        return [name for each in passes for name in (names(each["passes"]) if "passes" in each else [each["name"]])]  # type: ignore[arg-type]

    assert names(told["passes"]) == [each.name for each in flat(PIPELINE)]
    text = fusevm("passes").out
    assert all(name in text for name in NAMES)


def test_a_pass_that_does_not_exist_or_is_needed_is_refused_by_name(fusevm: Command) -> None:
    path = str(EXAMPLES[0])
    assert "did you mean 'sink'?" in fusevm("yul", "compile", path, "--without", "sinks").err
    assert set(NAMES) >= NEEDED
    for name in NEEDED:
        assert "cannot be written without" in fusevm("yul", "compile", path, "--without", name).err


def test_every_object_has_the_code_of_its_own_cheaper_order() -> None:
    tree = parse_object(EXAMPLES[-1].read_text())
    assert [each.name for each in objects(compile_object(tree))] == [each.name for each in objects_of(tree)]
