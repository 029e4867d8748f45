"""`fusevm optimize` on code: it does what it did, for no more gas, or it is left as it is and the report says why."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from conftest import WHOLE, chosen
from fusevm.api import EVM
from fusevm.codegen import bytecode, pipeline
from fusevm.codegen.bytecode import optimize
from fusevm.codegen.gas_trials import max_gas_increase
from fusevm.codegen.yul import compile_object
from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import decode
from fusevm.evm.forks import LATEST
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import Unit
from fusevm.lab.optimize import campaign, mutated_case, random_case
from fusevm.lab.optimize_corpus import CorpusRow, measured_corpus
from fusevm.lab.optimize_transactions import transaction_problem
from fusevm.lab.peers.bench import bench_files
from fusevm.yul.syntax.parser import parse_object

# What is left as it is, and why: SoladySort (via IR) has functions that call themselves and would raise the stack more,
# as legacy code a loop whose turns would cost more; Orders (legacy) keeps functions in variables, and the runtime of
# Gov is filled in from memory after it was copied.
KEPT = {
    ("Gov", "via_ir_opt"),
    ("Orders", "legacy_opt"),
    ("SoladySort", "legacy_opt"),
    ("SoladySort", "via_ir_opt"),
}
OLD_CONTRACT = "0x" + "c0" * 20


def run(code: bytes, data: bytes = b"", value: int = 0) -> tuple[str, bytes, int]:
    evm = EVM(tier="reference")
    evm.set_code(OLD_CONTRACT, code)
    evm.set_balance("0x" + "a1" * 20, 10**18)
    result = evm.call(OLD_CONTRACT, data, caller="0x" + "a1" * 20, value=value)
    return result.status.value, result.output, result.gas_used


# -- contracts --------------------------------------------------------------------------------------------------------


whole_corpus = pytest.mark.skipif(not WHOLE, reason="set FUSEVM_WHOLE_CORPUS for all contracts")
FEW = ("Token", "Numbers")  # optimising all of them takes a minute


@pytest.fixture(scope="module")
def measured(fixtures_dir: Path) -> list[CorpusRow]:
    return list(measured_corpus(fixtures_dir, only=() if WHOLE else FEW))


def test_contracts_of_solc_answer_as_before_for_no_more_gas(measured: list[CorpusRow]) -> None:
    assert measured
    assert {(row.name, row.kind): row.wrong for row in measured if row.wrong} == {}


@whole_corpus
def test_contracts_of_solc_get_smaller_and_cheaper(measured: list[CorpusRow]) -> None:
    assert mean(row.size for row in measured) <= 0.90
    assert mean(row.reducible for row in measured) <= 0.88
    assert all(row.size <= 1 and row.reducible <= 1 for row in measured)


@whole_corpus
def test_the_contracts_that_are_left_as_they_are_are_known(measured: list[CorpusRow]) -> None:
    assert {(row.name, row.kind) for row in measured if row.size == 1} == KEPT


SMALL_BENCHES = (
    "erc20-mint", "evmone-structarray_alloc", "evmone-sha1_shifts", "revmc-airdrop", "revmc-bswap64_opt",
    "revmc-counter", "revmc-factorial", "revmc-fibonacci-calldata", "revmc-hash_10k", "revmc-weth",
    "revm-subcall_1000", "evmone-snailtracer", "ten-thousand-hashes",
)  # fmt: skip


@pytest.mark.parametrize("name", chosen(set(SMALL_BENCHES) - {"evmone-snailtracer"}, SMALL_BENCHES))
def test_contracts_that_are_benches_answer_as_before_for_no_more_gas(name: str, fixtures_dir: Path) -> None:
    (file,) = bench_files(fixtures_dir / "bench", [name])
    for account in file.work.accounts.values():
        if account.code:
            account.code = optimize(account.code, file.work.fork).code
    evm, tx = EVM(file.work.fork, "auto", block=file.work.block, state=file.work.state()), file.work.transaction
    assert tx.to is not None
    result = evm.call(tx.to, tx.data, value=tx.value, caller=tx.sender, gas=tx.gas_limit)
    assert (result.status.value, result.output) == (file.status, file.output)
    assert result.gas_used <= file.gas_used


# -- random code ------------------------------------------------------------------------------------------------------


def test_random_programs_do_what_they_did() -> None:
    tally = campaign(random_case(100, number) for number in range(150))
    assert tally.failures == []
    assert tally.refused < 0.7 * tally.cases


def test_random_transactions_of_optimised_contracts_end_as_before() -> None:
    found = [transaction_problem(100, number) for number in range(12)]
    assert [problem for problem, _, _ in found if problem] == []
    assert sum(optimised for _, _, optimised in found) > 6


TWO_ENTRIES = (  # a and b are a loop; the way from outside to one of them is never taken, which only folding finds out
    "PUSH1 0 CALLDATALOAD PUSH1 3 CALLDATASIZE CALLDATASIZE {never} PUSH1 @{first} JUMPI PUSH1 @{second} JUMP "
    "a: JUMPDEST DUP2 ADD PUSH1 @b JUMP "
    "b: JUMPDEST DUP1 PUSH1 100 GT PUSH1 @a JUMPI {tell}"
)


@pytest.mark.parametrize("never", ["XOR", "EQ"])
@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_a_loop_with_two_entries_of_which_one_is_never_used_does_what_it_did(
    never: str, first: str, second: str
) -> None:
    code = assemble(TWO_ENTRIES.format(never=never, first=first, second=second, tell=RETURN_TOP))
    made = optimize(code, always=True)
    assert made.code != code
    for number in (1, 7, 99, 1000):
        data = number.to_bytes(32, "big")
        assert run(made.code, data)[:2] == run(code, data)[:2]


@pytest.mark.long
@pytest.mark.usefixtures("fixtures_dir")
def test_mutated_contracts_are_refused_or_do_what_they_did() -> None:
    tally = campaign(mutated_case(100, number) for number in range(16))
    assert tally.failures == []


@pytest.mark.long
def test_a_campaign_finds_an_optimiser_that_swaps_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    true = pipeline.fold_unit

    def wrong(unit: Unit, *given: Any) -> Stats:
        stats = true(unit, *given)
        for function in unit.functions.values():
            for value in function.instructions():
                if value.op in ("SUB", "LT", "MSTORE8", "SSTORE"):
                    value.args = value.args[::-1]
        return stats

    monkeypatch.setattr(pipeline, "fold_unit", wrong)
    tally = campaign((random_case(100, number) for number in range(150)), most=1)
    assert len(tally.failures) == 1
    assert "random 100/" in tally.failures[0]


# -- what is left alone -----------------------------------------------------------------------------------------------

RETURN_TOP = "PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("GAS " + RETURN_TOP, "GAS is used for more than a call"),
        ("CODESIZE " + RETURN_TOP, "CODESIZE is used for more than the size of what is appended"),
        ("PUSH 8 PUSH 0 PUSH 0 CODECOPY PUSH 8 PUSH 0 RETURN", "CODECOPY copies code that is run"),
        ("PUSH 8 CALLDATASIZE PUSH 0 CODECOPY PUSH 8 PUSH 0 RETURN", "CODECOPY from an offset that is not known"),
        ("CALLDATASIZE PUSH 9 PUSH 0 CODECOPY PUSH 8 PUSH 0 RETURN", "CODECOPY of a size that is not known"),
        ("ADDRESS EXTCODEHASH " + RETURN_TOP, "EXTCODEHASH looks at the code itself"),
        ("PUSH20 0xffffffffffffffffffffffffffffffffffffffff ADDRESS AND EXTCODESIZE " + RETURN_TOP, "EXTCODESIZE"),
        ("PC " + RETURN_TOP, "PC reads the place of its own code"),
        ("PUSH 0 CALLDATALOAD JUMP", "a jump to an address that is not known"),
        ("DATA 0xef0100" + "c0" * 20, "code that begins with 0xef is a delegation"),
        ("STOP DATA 0x1122334455667788", "most of the code is never run"),
    ],
)
def test_code_that_looks_at_itself_or_its_gas_is_left_as_it_is(text: str, reason: str) -> None:
    code = assemble(text)
    made = optimize(code)
    assert made.code == code
    assert not made.report.changed
    assert made.report.left_alone[0].startswith(reason)


@pytest.mark.parametrize(
    "body",
    [
        "sstore(0, f(address())) function f(a) -> s { s := extcodesize(a) }",
        "sstore(0, f(address())) function f(a) -> s { if sload(1) { s := f(a) } s := extcodehash(a) }",
        "let a := caller() if sload(1) { a := address() } sstore(0, extcodehash(a))",
        "sstore(0, extcodesize(shr(96, shl(96, f())))) function f() -> a { if sload(1) { leave } a := address() }",
    ],
)
def test_its_own_address_is_followed_through_joins_and_functions(body: str) -> None:
    code = compile_object(parse_object(f"{{ {body} }}"), runs=None).code
    made = optimize(code, always=True)
    assert made.code == code
    assert "looks at the code itself" in made.report.left_alone[0]


def test_gas_that_is_handed_to_a_call_is_no_reason_to_leave_code_alone() -> None:
    code = assemble("PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 2 PUSH1 3 ADD GAS CALL " + RETURN_TOP)
    made = optimize(code)
    assert made.report.changed
    assert run(made.code)[:2] == run(code)[:2]


def test_code_that_asks_whether_it_has_code_is_optimised() -> None:
    code = assemble("ADDRESS EXTCODESIZE ISZERO PUSH1 1 PUSH1 2 ADD ADD " + RETURN_TOP)
    made = optimize(code)
    assert made.report.changed
    assert run(made.code)[:2] == run(code)[:2]


def test_code_that_cannot_get_better_is_returned_as_it_is() -> None:
    code = assemble("PUSH 0 CALLDATALOAD PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN")
    made = optimize(code)
    assert made.code == code
    assert made.report.left_alone == [f"no better: {len(code)} bytes, static gas 15"]


# -- data, metadata, creation code ------------------------------------------------------------------------------------

WORK = "PUSH1 1 PUSH1 2 ADD PUSH1 3 ADD "  # something to fold
METADATA = bytes.fromhex("a2646970667358221220" + "11" * 32 + "64736f6c63430008250033")


def test_data_that_is_copied_moves_with_the_code() -> None:
    text = "{work} POP PUSH1 4 PUSH1 @data PUSH1 0 CODECOPY PUSH 32 PUSH 0 RETURN INVALID data: DATA 0x5bc0ffee"
    code = assemble(text.format(work=WORK))
    made = optimize(code)
    assert len(made.code) < len(code)
    assert run(made.code)[:2] == run(code)[:2]
    assert run(code)[1][:4] == bytes.fromhex("5bc0ffee")


def test_metadata_stays_at_the_end() -> None:
    code = assemble(WORK + RETURN_TOP + " INVALID") + METADATA
    made = optimize(code)
    assert made.report.changed
    assert made.code.endswith(METADATA)


def deployed(creation: bytes) -> tuple[bytes, bytes]:
    """What is deployed, and what it answers."""
    evm = EVM(tier="reference")
    result = evm.deploy(creation, caller="0x" + "a1" * 20)
    assert result.address is not None
    return evm.state.account(result.address).code, evm.call(result.address).output


def creation_of(runtime: bytes, before: str = "", stores: str = "") -> bytes:
    """A constructor that deploys the runtime after `before`; `stores` may write words to the copy."""
    size = len(runtime)
    text = (
        f"{before} PUSH2 {size} PUSH2 @runtime PUSH1 0 CODECOPY {stores} PUSH2 {size} PUSH1 0 RETURN INVALID runtime:"
    )
    return assemble(f"{text} DATA 0x{runtime.hex()}")


def test_a_deployed_runtime_is_optimised_and_its_size_told_to_the_constructor() -> None:
    runtime = assemble(WORK + RETURN_TOP)
    creation = creation_of(runtime)
    made = optimize(creation)
    assert made.report.kind == "creation"
    code, output = deployed(made.code)
    assert (code, output) == (optimize(runtime).code, deployed(creation)[1])
    assert made.deployed == (runtime, code)


def test_immutables_are_stored_where_the_new_runtime_has_them() -> None:
    runtime = assemble(WORK + "PUSH32 0 ADD " + RETURN_TOP)
    place = next(each.pc for each in decode(runtime) if each.size == 33) + 1
    creation = creation_of(runtime, stores=f"CALLER PUSH1 {place} MSTORE")
    made = optimize(creation)
    code, output = deployed(made.code)
    assert len(code) < len(runtime)
    assert output == deployed(creation)[1] == (6 + int("a1" * 20, 16)).to_bytes(32, "big")


@pytest.mark.parametrize(
    "stores",
    [
        "CALLER PUSH1 1 MSTORE",  # not where something is left to be filled in
        "CALLER PUSH1 0 MSTORE8",
        "PUSH1 0 MLOAD PUSH1 0 SSTORE",  # the copy is read
    ],
)
def test_a_runtime_that_is_changed_in_another_way_is_kept_byte_for_byte(stores: str) -> None:
    runtime = assemble("PUSH1 0 POP " + WORK + "PUSH32 0 ADD " + RETURN_TOP)
    creation = creation_of(runtime, before=WORK + "POP", stores=stores)
    made = optimize(creation)
    assert runtime in made.code
    assert deployed(made.code) == deployed(creation)


TELLS_SLOT = "5f545f5260205ff3"  # runtime code that returns what slot 0 holds
STORES_ARGUMENT = assemble(
    f"{WORK} POP PUSH1 @end CODESIZE SUB PUSH1 @end PUSH1 0x80 CODECOPY PUSH1 0x80 MLOAD PUSH1 0 SSTORE "
    "PUSH1 8 PUSH1 @runtime PUSH1 0 CODECOPY PUSH1 8 PUSH1 0 RETURN INVALID "
    f"runtime: DATA 0x{TELLS_SLOT} end: "
)


@pytest.mark.parametrize("argument", [b"", (77).to_bytes(32, "big")])
def test_constructor_arguments_are_found_after_the_new_code(argument: bytes) -> None:
    creation = STORES_ARGUMENT + argument
    made = optimize(creation)
    assert len(made.code) < len(creation)
    assert made.code.endswith(argument)
    assert deployed(made.code)[1] == deployed(creation)[1]


def test_code_optimised_without_its_arguments_takes_them_later() -> None:
    argument = (78).to_bytes(32, "big")
    made = optimize(STORES_ARGUMENT)
    assert made.report.changed
    assert deployed(made.code + argument)[1] == deployed(STORES_ARGUMENT + argument)[1] == argument


def test_an_empty_loop_costs_no_more_than_before() -> None:
    """A loop is tested at its bottom, where it saves a jump for each turn, and at its top as well."""
    code = assemble(
        "PUSH1 0 CALLDATALOAD PUSH1 0 loop: JUMPDEST DUP2 DUP2 LT ISZERO PUSH1 @end JUMPI DUP1 PUSH1 0 SLOAD ADD "
        "PUSH1 0 SSTORE PUSH1 1 ADD PUSH1 @loop JUMP end: JUMPDEST " + RETURN_TOP
    )
    made = optimize(code)
    for turns in (0, 1, 5):
        data = turns.to_bytes(32, "big")
        before, after = run(code, data), run(made.code, data)
        assert after[:2] == before[:2]
        assert after[2] <= before[2]


# n → n! mod 2^256, and the n-th Fibonacci number: functions that call themselves once, and twice.
FACTORIAL = (
    "PUSH2 @back PUSH1 0 CALLDATALOAD PUSH2 @f JUMP back: JUMPDEST PUSH1 1 PUSH1 0 ADD ADD {tell}"
    "f: JUMPDEST DUP1 PUSH2 @more JUMPI POP PUSH1 1 SWAP1 JUMP "
    "more: JUMPDEST PUSH2 @after PUSH1 1 DUP3 SUB PUSH2 @f JUMP after: JUMPDEST MUL SWAP1 JUMP"
)
FIBONACCI = (
    "PUSH2 @back PUSH1 0 CALLDATALOAD PUSH2 @f JUMP back: JUMPDEST {tell}"
    "f: JUMPDEST PUSH1 2 DUP2 LT ISZERO PUSH2 @more JUMPI SWAP1 JUMP "
    "more: JUMPDEST PUSH2 @one PUSH1 1 DUP3 SUB PUSH2 @f JUMP one: JUMPDEST PUSH2 @two PUSH1 2 DUP4 SUB PUSH2 @f JUMP "
    "two: JUMPDEST ADD SWAP1 POP SWAP1 JUMP"
)


@pytest.mark.parametrize("text", [FACTORIAL, FIBONACCI])
def test_a_function_that_calls_itself_does_what_it_did(text: str) -> None:
    code = assemble(text.format(tell=RETURN_TOP))
    made = optimize(code)
    assert made.report.changed
    for number in (0, 1, 2, 3, 7, 10):
        data = number.to_bytes(32, "big")
        assert run(made.code, data)[:2] == run(code, data)[:2]


def test_a_function_that_calls_itself_reaches_as_deep_as_before() -> None:
    code = assemble(FACTORIAL.format(tell=RETURN_TOP))
    deepest = next(n for n in range(600, 0, -1) if run(code, n.to_bytes(32, "big"))[0] == "success")
    assert run(optimize(code).code, deepest.to_bytes(32, "big"))[0] == "success"


def test_a_result_whose_calls_of_itself_raise_the_stack_more_is_not_taken() -> None:
    code = assemble(FACTORIAL.format(tell=RETURN_TOP))
    found = bytecode.recover(code)
    assert found.growth is not None
    deeper = bytecode.Recovered(found.unit, found.reached, found.sources, found.highest, (9, 9))
    assert bytecode._grows_faster(deeper, found)
    assert not bytecode._grows_faster(found, found)


def test_a_shifted_word_that_is_there_anyway_is_what_is_compared() -> None:
    """A dispatcher that halves its cases: the selector is compared, and not the whole word with a longer constant."""
    code = assemble(
        "PUSH1 0 CALLDATALOAD PUSH1 224 SHR DUP1 PUSH4 0x89abcdef GT PUSH1 @low JUMPI DUP1 PUSH4 0x90000001 EQ "
        "PUSH1 @high JUMPI DUP1 PUSH4 0x90000011 EQ PUSH1 @high JUMPI STOP low: JUMPDEST DUP1 PUSH4 0x10000001 EQ "
        f"PUSH1 @high JUMPI PUSH1 1 {RETURN_TOP} high: JUMPDEST PUSH1 2 {RETURN_TOP}"
    )
    made = optimize(code, always=True)
    assert "SHL" not in [each.name for each in decode(made.code)]
    for selector in (0, 0x10000001, 0x89ABCDEE, 0x89ABCDEF, 0x90000001, 0x90000002, 0xFFFFFFFF):
        data = selector.to_bytes(4, "big") + b"\xff" * 28
        assert run(made.code, data)[:2] == run(code, data)[:2]


# -- gas of every path ------------------------------------------------------------------------------------------------

ADDRESS_MASK = (1 << 160) - 1


def test_a_word_that_was_pushed_at_once_still_is_where_gas_counts() -> None:
    code = assemble(f"PUSH20 {ADDRESS_MASK} PUSH1 0 CALLDATALOAD AND PUSH1 0 SSTORE PUSH1 1 POP STOP")
    made = optimize(code, runs=200)
    assert ADDRESS_MASK.to_bytes(20, "big") in made.code
    assert len(made.code) < len(code)


def test_a_branch_falls_into_an_end_of_its_own_rather_than_turning() -> None:
    """Two equal ends are not shared where that would cost the branch an ISZERO on every run."""
    check = "PUSH1 {0} CALLDATALOAD PUSH1 3 AND PUSH1 @ok{0} JUMPI STOP ok{0}: JUMPDEST "
    code = assemble(check.format(0) + check.format(32) + "PUSH1 7 PUSH1 8 ADD PUSH1 0 SSTORE STOP")
    made = optimize(code, runs=200)
    assert made.report.changed
    for data in (b"", (1).to_bytes(32, "big"), (1).to_bytes(32, "big") * 2):
        assert run(made.code, data)[2] <= run(code, data)[2]


def test_random_programs_cost_no_more_on_any_input_that_is_tried() -> None:
    cases = [random_case(7, number) for number in range(150)]
    for case in cases:
        case.runs = 200
    tally = campaign(iter(cases))
    assert tally.runs > 150
    assert tally.dearer == []


# A word that is compared at once, and stored on one way only: to keep it would cost the other way a DUP.
KEPT_FOR_ONE_WAY = (
    "PUSH0 CALLDATALOAD PUSH1 0xe0 SHR PUSH4 0xbc163c49 DUP2 EQ PUSH1 @one JUMPI PUSH0 PUSH0 REVERT "
    "one: JUMPDEST POP PUSH0 CALLDATALOAD PUSH0 MSTORE PUSH0 MLOAD DUP1 PUSH0 SSTORE POP PUSH1 @end JUMP "
    "end: JUMPDEST STOP"
)


def test_what_only_one_way_needs_is_computed_there_again_rather_than_kept_for_it() -> None:
    code = assemble(KEPT_FOR_ONE_WAY)
    made = optimize(code)
    assert made.report.changed
    for data in (b"", bytes.fromhex("bc163c49") + bytes(32), bytes(36)):
        assert run(made.code, data)[:2] == run(code, data)[:2]
        assert run(made.code, data)[2] <= run(code, data)[2]


def test_code_of_which_a_run_would_cost_more_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting that computes values again there is nothing better than the code itself."""
    code = assemble(KEPT_FOR_ONE_WAY)
    monkeypatch.setattr(bytecode, "SETTINGS", (bytecode.AttemptSetting(),))
    made = optimize(code)
    assert (made.code, made.report.left_alone) == (code, ["a run would cost 1 gas more"])
    assert optimize(code, runs=1).report.changed  # bytes come first


def test_trial_runs_find_the_selector_whose_way_became_dearer() -> None:
    cheap = "PUSH0 CALLDATALOAD PUSH1 0xe0 SHR PUSH4 0x12345678 EQ PUSH1 @one JUMPI STOP one: JUMPDEST STOP"
    assert max_gas_increase(assemble(cheap), assemble(cheap), LATEST) == 0
    assert max_gas_increase(assemble(cheap), assemble(cheap + " STOP"), LATEST) == 0
    dear = cheap.replace("one: JUMPDEST", "one: JUMPDEST CALLER POP")
    assert max_gas_increase(assemble(cheap), assemble(dear), LATEST) == 4
    assert max_gas_increase(assemble(dear), assemble(cheap), LATEST) == 0


def test_runs_are_tried_with_arrays() -> None:
    def summing(body: str) -> bytes:
        """Counts the items of an array that ends where the data ends."""
        return assemble(
            "PUSH1 4 CALLDATALOAD PUSH1 4 ADD DUP1 CALLDATALOAD SWAP1 DUP2 PUSH1 5 SHL ADD PUSH1 32 ADD "
            "CALLDATASIZE EQ PUSH1 @loop JUMPI STOP loop: JUMPDEST DUP1 ISZERO PUSH1 @out JUMPI "
            f"{body} PUSH1 1 SWAP1 SUB PUSH1 @loop JUMP out: JUMPDEST PUSH4 0x12345678 STOP"
        )

    assert max_gas_increase(summing(""), summing("JUMPDEST"), LATEST) >= 5


def test_a_tight_loop_whose_turns_would_cost_more_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    code = assemble(
        "PUSH1 0 CALLDATALOAD PUSH1 1 PUSH1 2 ADD POP loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI "
        + RETURN_TOP
    )
    assert optimize(code).report.changed
    monkeypatch.setattr("fusevm.codegen.tight_loops._BRANCH_GAS", 20)
    made = optimize(code)
    assert (made.code, made.report.left_alone) == (code, ["a turn of a loop would cost 6 gas more"])
