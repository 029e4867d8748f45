"""Translation validation: wrong passes are caught where they do harm, and the code that comes out is right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from fusevm.api import EVM
from fusevm.cli.yul import app
from fusevm.codegen import backend, pipeline, proofs, trials
from fusevm.codegen.blocks import StackProgram
from fusevm.codegen.snapshots import copied, shape
from fusevm.codegen.validation import Validation
from fusevm.codegen.yul import CompiledObject, StepOrder, compile_object
from fusevm.codegen.yul_functions import unit_of
from fusevm.evm.assembler import Assembly
from fusevm.evm.forks import LATEST
from fusevm.ir import jump_threading, share_constants
from fusevm.ir.fold import forward, stores
from fusevm.ir.fold.functions import FunctionFolder
from fusevm.ir.functions import Function
from fusevm.ir.values import CONST, Value
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check
from fusevm.yul.syntax.dialect import dialect_for

HERE = "0x" + "c0" * 20


def parsed(source: str) -> Object:
    tree, errors = check(source)
    assert tree is not None, errors
    return tree


def validated(source: str) -> tuple[CompiledObject, Validation]:
    validation = Validation()
    return compile_object(parsed(source), order=StepOrder.AS_WRITTEN, validation=validation), validation


def behaviour(code: bytes, inputs: list[bytes]) -> list[tuple[object, ...]]:
    found = []
    for data in inputs:
        evm = EVM(tier="reference")
        evm.set_code(HERE, code)
        result = evm.call(HERE, data)
        found.append((result.ok, result.output, dict(evm.state.account(bytes.fromhex(HERE[2:])).storage)))
    return found


def inputs_for(*selectors: int) -> list[bytes]:
    random = Random(7)
    words = [b"".join(random.randbytes(32) for _ in range(3)) for _ in range(6)]
    small = [b"".join(random.randrange(9).to_bytes(32, "big") for _ in range(3)) for _ in range(8)]
    if not selectors:
        return [b"", *words, *small]
    return [b"", *(each.to_bytes(4, "big") + data for each in selectors for data in (*words[:2], *small[:4]))]


ARITHMETIC = """{
    sstore(0, f(calldataload(0), 2)) sstore(1, f(calldataload(32), 3)) sstore(2, f(calldataload(64), sload(9)))
    function f(a, b) -> c { c := sub(mul(a, 8), b) if lt(a, b) { c := div(a, add(b, 1)) } }
}"""
MEMORY = """{
    mstore(0, calldataload(0)) mstore(32, calldataload(32)) let a := mload(0)
    mstore(0, 7) sstore(a, mload(0)) if mload(32) { mstore(0, mload(32)) }
    sstore(1, mload(0)) return(0, 64)
}"""
DISPATCH = """{
    switch shr(224, calldataload(0))
    case 0x11111111 { if callvalue() { revert(0, 0) } sstore(0, add(calldataload(4), 1)) }
    case 0x22222222 { if callvalue() { revert(0, 0) } sstore(1, 0x1234567890123456) sstore(2, 0x1234567890123456) }
    case 0x33333333 { if callvalue() { revert(0, 0) } let x := mul(calldataload(4), 3) if x { sstore(3, x) } }
    default { revert(0, 0) }
}"""


# -- planted errors ---------------------------------------------------------------------------------------------------


def wrong_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """x - y becomes x + y."""
    right = FunctionFolder.fold_by_ranges

    def wrong(self: FunctionFolder, op: str, args: tuple[Value, ...]) -> Any:
        return ("ADD", args) if op == "SUB" else right(self, op, args)

    monkeypatch.setattr(FunctionFolder, "fold_by_ranges", wrong)


def wrong_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """x < y is always true."""
    monkeypatch.setattr(FunctionFolder, "is_less", lambda *_: True)


def wrong_forwarding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory always holds zero."""
    monkeypatch.setattr(forward, "load_memory", lambda folder, _: folder.const(0))


def wrong_dead_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every store to memory stores nothing new."""
    monkeypatch.setattr(stores, "stores_nothing_new", lambda *_: True)


def wrong_inlining(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of inlined functions change places."""
    right = pipeline.inline_what_pays

    def wrong(unit: Any, *rest: Any) -> bool:
        for function in unit.functions.values():
            for value in function.instructions():
                if value.op == "CALLFN":
                    value.args = value.args[::-1]
        return right(unit, *rest)

    monkeypatch.setattr(pipeline, "inline_what_pays", wrong)


def wrong_sinking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches go the other way."""

    def wrong(function: Function) -> None:
        for block in function.blocks():
            if block.end.op == "BRANCH":
                block.end.arcs.reverse()

    monkeypatch.setattr(pipeline, "sink_values", wrong)


def wrong_hoisting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a payment was refused, everything is."""
    right = jump_threading.hoist_value_check

    def wrong(function: Function) -> None:
        right(function)
        for block in function.blocks():
            if block.end.op == "BRANCH" and block.end.args[0].op == "CALLVALUE":
                block.end.args = (Value(CONST, (), 1),)

    monkeypatch.setattr(pipeline, "hoist_value_check", wrong)


def wrong_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared constant is another one."""
    right = share_constants.share_constants

    def wrong(function: Function, reach_of: Callable[..., share_constants.Reach | None]) -> None:
        right(function, reach_of)
        for value in function.instructions():
            if value.op == "LITERAL":
                value.number ^= 1

    monkeypatch.setattr(pipeline, "share_constants", wrong)


def wrong_peephole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stack code that stores where it should not: only the last check, of all the code, can see it."""
    right = pipeline.peephole

    def wrong(program: StackProgram) -> None:
        right(program)
        for block in program.blocks.values():
            block.code = [code._replace(op="SUB") if code.op == "ADD" else code for code in block.code]

    monkeypatch.setattr(pipeline, "peephole", wrong)


@pytest.mark.parametrize(
    ("plant", "source", "name"),
    [
        (wrong_fold, ARITHMETIC, "fold"),
        (wrong_comparison, ARITHMETIC, "fold"),
        (wrong_forwarding, MEMORY, "fold"),
        (wrong_dead_stores, MEMORY, "fold"),
        (wrong_inlining, ARITHMETIC, "inline"),
        (wrong_sinking, ARITHMETIC, "sink"),
        (wrong_hoisting, DISPATCH, "hoist value check"),
        (wrong_sharing, DISPATCH, "share constants"),
        (wrong_peephole, DISPATCH, "layout"),
    ],
)
def test_a_planted_error_is_caught_and_the_code_behaves_as_the_source(
    plant: Callable[[pytest.MonkeyPatch], None], source: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = inputs_for(*([0x11111111, 0x22222222, 0x33333333] if source is DISPATCH else []))
    expected = behaviour(compile_object(parsed(source), runs=None).code, inputs)
    with monkeypatch.context() as patched:
        plant(patched)
        planted = compile_object(parsed(source), order=StepOrder.AS_WRITTEN)
        code, validation = validated(source)
    assert behaviour(planted.code, inputs) != expected, "the error does no harm: it shows nothing"
    assert behaviour(code.code, inputs) == expected
    assert name in {dropped.name for dropped in validation.dropped}


@pytest.mark.parametrize("source", [ARITHMETIC, MEMORY, DISPATCH])
def test_right_passes_are_kept(source: str) -> None:
    code, validation = validated(source)
    assert validation.dropped == []
    assert validation.tried > 0
    assert code.code == compile_object(parsed(source), order=StepOrder.AS_WRITTEN).code


def test_names_of_data_immutables_gas_and_calls_do_not_look_like_errors() -> None:
    source = """object "A" {
        code {
            datacopy(0, dataoffset("B"), datasize("B")) setimmutable(0, "i", caller()) sstore(dataoffset("B"), gas())
            return(0, datasize("B"))
        }
        object "B" { code {
            sstore(loadimmutable("i"), linkersymbol("L")) sstore(datasize("A"), datasize("d"))
            mstore(0, add(sload(1), 3)) pop(call(gas(), calldataload(0), 0, 0, 32, 32, 32))
            log1(32, 32, returndatasize()) datacopy(64, dataoffset("d"), datasize("d")) return(0, 96)
        } data "d" "abc" }
    }""".replace('datasize("A")', "codesize()")
    _, validation = validated(source)
    assert validation.dropped == []


@pytest.mark.parametrize(
    "copies", ["codecopy(0, 0, codesize())", "extcodecopy(address(), 0, 0, 64)", "mstore(0, extcodehash(address()))"]
)
def test_code_that_looks_at_itself_does_not_look_like_an_error(copies: str) -> None:
    _, validation = validated(f"{{ sstore(0, mul(calldataload(0), 2)) {copies} return(0, 64) }}")
    assert validation.dropped == []
    assert validation.tried > 0


def test_what_does_not_fit_on_the_stack_counts_in_the_end_only() -> None:
    """Deep recursions fit by one layout and not by another: no fault of the pass being checked."""
    stops, overflows = Assembly(LATEST), Assembly(LATEST)
    stops.raw(bytes.fromhex("00"), 0)
    overflows.raw(bytes.fromhex("5b5f5f56"), 0)  # back to the start, with one more on the stack
    inputs = list(trials.trials_for([], [], 4, None))
    assert trials.difference(stops, overflows, [], iter(inputs), final=False) is None
    assert trials.difference(stops, overflows, [], iter(inputs)) == inputs[0]


# -- proofs -----------------------------------------------------------------------------------------------------------


def function_of(source: str) -> Function:
    return unit_of(parsed(source).code, dialect_for()).functions["f"]


PURE = "{{ sstore(0, f(1, 2)) function f(a, b) -> c {{ {} }} }}"


@pytest.mark.parametrize(
    ("one", "two", "verdict"),
    [
        ("c := mul(a, 8)", "c := shl(3, a)", True),
        ("c := mul(a, 8)", "c := shl(4, a)", False),
        ("if lt(a, b) { revert(0, 0) } c := sub(a, b)", "c := sub(a, b) if gt(b, a) { revert(0, 0) }", True),
        ("if lt(a, b) { revert(0, 0) } c := sub(a, b)", "c := sub(a, b) if gt(a, b) { revert(0, 0) }", False),
        ("switch a case 1 { c := 2 } default { c := b }", "c := b if eq(a, 1) { c := 2 }", True),
        ("if a { revert(0, 0) } c := b", "if a { revert(b, 0) } c := b", True),
        ("if a { return(0, 0) } c := b", "if a { stop() } c := b", True),
        ("if a { stop() } c := b", "if a { revert(0, 0) } c := b", False),
        ("if a { g() } function g() { revert(0, 0) }", "if a { revert(0, 0) }", None),
        ("c := caller()", "c := caller()", True),
        ("c := caller()", "c := origin()", False),
        ("c := sload(a)", "c := sload(a)", None),
        ("for {} a { a := sub(a, 1) } { c := add(c, b) }", "for {} a { a := sub(a, 1) } { c := add(c, b) }", None),
    ],
)
def test_functions_of_words_alone_are_proved(one: str, two: str, verdict: bool | None) -> None:
    pytest.importorskip("z3")
    assert proofs.same(function_of(PURE.format(one)), function_of(PURE.format(two))) is verdict


def test_without_z3_functions_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    wrong_fold(monkeypatch)
    _, validation = validated(ARITHMETIC)
    assert validation.proved == 0
    assert all(dropped.data is not None for dropped in validation.dropped)
    assert {dropped.function for dropped in validation.dropped} >= {"f"}


# -- the parts --------------------------------------------------------------------------------------------------------


def test_no_two_questions_about_the_surroundings_have_the_same_answer() -> None:
    names = "caller origin address coinbase timestamp number gasprice basefee gaslimit prevrandao chainid callvalue"
    programs = [parsed(f"{{ sstore(0, {name}()) }}").code for name in names.split()]
    codes = [backend.generate(program, dialect_for()).assembly for program in programs]
    for one in codes:
        for two in codes:
            found = trials.difference(one, two, [], trials.trials_for([], [], 8, None))
            assert (found is None) is (one is two)


def test_a_copy_of_a_function_has_its_shape_and_shares_nothing_that_changes() -> None:
    function = function_of(PURE.format("if a { c := add(b, sload(a)) } mstore(0, c)"))
    copy = copied(function)
    assert shape(copy) == shape(function)
    next(copy.instructions()).op = "TLOAD"
    assert shape(copy) != shape(function)
    assert not {id(value) for value in copy.instructions()} & {id(value) for value in function.instructions()}


def test_inputs_know_selectors_and_constants_and_are_the_same_each_time() -> None:
    found = list(trials.trials_for([0xABCDEF], [0x11111111, 0x22222222], 40, None))
    assert found == list(trials.trials_for([0xABCDEF], [0x11111111, 0x22222222], 40, None))
    assert {trial.data[:4].hex() for trial in found} >= {"11111111", "22222222"}
    assert any((0xABCDEF).to_bytes(32, "big") in trial.data for trial in found)
    assert all(len(trial.data) == 64 for trial in trials.trials_for([], [], 10, 2))


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_reports_what_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_fold(monkeypatch)
    result = CliRunner().invoke(app, ["compile", "-", "--validate", "--json"], input=ARITHMETIC)
    assert result.exit_code == 0
    told = json.loads(result.stdout)["validation"]
    assert {(each["pass"], each["function"]) for each in told["dropped"]} >= {("fold", "f")}
    lines = result.stderr.splitlines()
    assert len(lines) == len(told["dropped"])
    assert all(line.startswith('fusevm: pass "fold" changed what ') for line in lines)


def test_the_command_says_nothing_where_all_is_well() -> None:
    result = CliRunner().invoke(app, ["compile", "-", "--validate", "--bin"], input=ARITHMETIC)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == CliRunner().invoke(app, ["compile", "-", "--bin"], input=ARITHMETIC).stdout
