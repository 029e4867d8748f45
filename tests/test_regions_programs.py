"""Regions, entered and left: small programs that must end as on the reference tier, with any amount of gas."""

from __future__ import annotations

import pytest

from conftest import chosen
from fusevm.native.host import engine as host
from fusevm.native.region.build import Choose
from fusevm.native.region.choice import every_block, functions_and_loops, hot_parts
from programs import OTHER
from regionprograms import ANSWER, SUM, TRIPLE, Program, word

TWICE = (  # [return address, argument]: a function that calls another, twice
    f"twice: JUMPDEST PUSH1 @one SWAP1 PUSH1 @triple JUMP one: JUMPDEST PUSH1 @two SWAP1 PUSH1 @triple JUMP "
    f"two: JUMPDEST SWAP1 JUMP {TRIPLE}"
)
COUNTDOWN = (  # [return address, n] -> [n + (n - 1) + ... + 0], by calling itself
    "count: JUMPDEST DUP1 PUSH1 @more JUMPI SWAP1 JUMP more: JUMPDEST PUSH1 @add PUSH1 1 DUP3 SUB "
    "PUSH1 @count JUMP add: JUMPDEST ADD SWAP1 JUMP"
)
NEXT = "PUSH1 @next JUMP next: JUMPDEST"  # a block that ends the frame is in no region, so what it needs is not either


def loop(times: int, body: str) -> str:
    """The body finds the count, which falls to one, on top of the stack."""
    return f"PUSH2 {times} loop: JUMPDEST {body} PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP "


# -- entering and leaving -------------------------------------------------------------------------------------------


def test_a_region_is_entered_where_a_jump_lands() -> None:
    program = Program(SUM, data=10)
    assert word(program.agreed()) == 45
    assert program.code.index(b"\x5b") in program.patched


def test_every_amount_of_gas_ends_a_loop_where_it_should() -> None:
    Program(SUM, data=4).agreed_at_every_gas()


def test_every_amount_of_gas_ends_nested_functions_where_it_should() -> None:
    program = Program(f"PUSH1 @back PUSH1 7 PUSH1 @twice JUMP back: JUMPDEST {ANSWER} {TWICE}")
    assert word(program.agreed_at_every_gas()) == 63


def test_a_function_may_leave_several_results() -> None:
    """Three words in place of its two arguments."""
    function = "f: JUMPDEST DUP2 DUP2 MUL DUP2 DUP4 MOD SWAP3 DIV SWAP3 SWAP2 SWAP1 SWAP3 SWAP2 JUMP"
    found = "PUSH1 32 MSTORE PUSH0 MSTORE PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
    for data in (17, 5, 1 << 200):
        given = "PUSH0 CALLDATALOAD"
        program = Program(
            f"PUSH1 @back {given} PUSH1 3 PUSH1 @f JUMP back: JUMPDEST JUMPDEST {found} {function}", data=data
        )
        program.agreed_at_every_gas()
        words = [int.from_bytes(program.agreed()[2][at : at + 32], "big") for at in (0, 32, 64)]
        assert len(set(words)) == 3


def test_every_amount_of_gas_ends_recursion_where_it_should() -> None:
    program = Program(f"PUSH1 @back PUSH1 6 PUSH1 @count JUMP back: JUMPDEST {ANSWER} {COUNTDOWN}")
    assert word(program.agreed_at_every_gas()) == 21


def test_recursion_goes_as_deep_as_the_stack_allows_and_no_deeper() -> None:
    code = f"PUSH1 @back PUSH0 CALLDATALOAD PUSH1 @count JUMP back: JUMPDEST {ANSWER} {COUNTDOWN}"
    assert Program(code, data=300).agreed()[0] == "SUCCESS"
    assert "stack overflow" in Program(code, data=600).agreed()[3]


def test_code_compiled_by_llvm_with_optimisation_does_the_same() -> None:
    Program(SUM, data=3, speed=1).agreed_at_every_gas()
    Program(f"PUSH1 @back PUSH1 7 PUSH1 @twice JUMP back: JUMPDEST {ANSWER} {TWICE}", speed=1).agreed_at_every_gas()


@pytest.mark.parametrize("modulus", [2**256 - 2**32 - 977, 2**255 - 19, 2**192 + 1])
def test_products_modulo_a_literal_are_done_in_regions(modulus: int) -> None:
    code = "PUSH0 CALLDATALOAD " + loop(4, f"PUSH32 0x{modulus:064x} DUP3 DUP1 MULMOD SWAP2 POP") + ANSWER
    for data in (3, modulus - 1, modulus, (1 << 256) - 1):
        assert word(Program(code, data=data, speed=1).agreed_at_every_gas()) == pow(data, 16, modulus)


def test_a_call_leaves_a_region_and_its_loop_comes_back_into_it() -> None:
    body = f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH20 0x{OTHER.hex()} PUSH2 0xffff CALL POP"
    program = Program(loop(5, body) + "PUSH0 SLOAD" + ANSWER, others={OTHER: "PUSH0 SLOAD PUSH1 1 ADD PUSH0 SSTORE"})
    used = 1_000_000 - program.agreed()[1]
    program.agreed_at(range(used - 40, used, 3))


def test_functions_and_loops_are_found_from_the_start_of_the_code() -> None:
    code = (
        f"PUSH1 @go JUMP go: JUMPDEST {loop(3, 'PUSH1 @on PUSH1 2 PUSH1 @triple JUMP on: JUMPDEST POP')} STOP {TRIPLE}"
    )
    program = Program(code, choose=functions_and_loops)
    program.agreed_at_every_gas()
    landings = [at for at, byte in enumerate(program.code) if byte == 0x5B]
    assert set(program.patched) <= set(landings)
    assert {landings[1], landings[-1]} <= set(program.patched)


def test_only_what_ran_often_becomes_regions_where_runs_were_counted() -> None:
    def hot(schedule, fork):  # type: ignore[no-untyped-def]
        return hot_parts(schedule, fork, counts)

    code = (
        "PUSH1 9 PUSH1 @seldom JUMPI INVALID seldom: JUMPDEST " + loop(500, "NUMBER POP") + "STOP never: JUMPDEST STOP"
    )
    plain = Program(code)
    landings = [at for at, byte in enumerate(plain.code) if byte == 0x5B]
    counts = dict.fromkeys([0, *landings], 1) | {landings[1]: 500}
    program = Program(code, choose=hot)
    program.agreed()
    assert program.patched == [landings[1]]


@pytest.mark.parametrize("gas", [60, 333, 1_000])
def test_slices_of_gas_shorter_than_a_loop_are_refilled_in_it(gas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SLICE", gas)
    program = Program(SUM, data=60)
    used = 100_000 - program.agreed(100_000)[1]
    program.agreed_at([used, used - 1, used // 2, used // 2 + 1, used // 3])


# -- what fails, and where ------------------------------------------------------------------------------------------


def test_a_write_in_a_static_call_fails_in_the_function_that_does_it() -> None:
    write = "PUSH1 @back PUSH1 @write JUMP back: JUMPDEST STOP write: JUMPDEST PUSH1 1 PUSH1 2 {} JUMP"
    for op in ("SSTORE", "TSTORE", "LOG0"):
        assert "static" in Program(write.format(op), static=True).agreed_at_every_gas()[3]


def test_sstore_fails_where_no_more_than_the_stipend_is_left() -> None:
    program = Program("JUMPDEST PUSH1 1 PUSH0 SSTORE PUSH1 2 PUSH0 SSTORE JUMPDEST STOP")
    program.agreed_at([*range(2_290, 2_330), *range(22_100, 22_140), *range(22_400, 22_500), 24_415, 24_416])


def test_a_function_on_a_way_that_is_never_gone_needs_no_region() -> None:
    """The condition is an ISZERO whose copy is zero on that way: known when ways were looked for, not afterwards."""
    program = Program(
        "PUSH0 CALLDATALOAD ISZERO PUSH1 @test JUMP test: JUMPDEST DUP1 PUSH1 @out JUMPI "
        "again: JUMPDEST ISZERO PUSH1 @out JUMPI PUSH1 @back PUSH1 @double JUMP "
        "back: JUMPDEST PUSH1 @other PUSH1 @double JUMP other: JUMPDEST POP STOP "
        "double: JUMPDEST PUSH1 2 SWAP1 JUMP out: JUMPDEST STOP"
    )
    for gas in (30_000, 100):
        program.agreed(gas)


LEAVES = "PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH2 0x777 GAS CALL POP"  # what regions leave to the schedule


def test_what_leaves_in_a_function_leaves_the_words_of_its_callers_too() -> None:
    """They were on no stack in memory until then."""
    inner = (  # [return address, n]: leaves if the third word of the data says so
        "inner: JUMPDEST PUSH1 64 CALLDATALOAD PUSH1 @far JUMPI PUSH1 3 MUL SWAP1 JUMP "
        f"far: JUMPDEST {LEAVES} PUSH1 5 MUL SWAP1 JUMP"
    )
    outer = (  # [return address, n]
        "outer: JUMPDEST DUP1 DUP1 MUL PUSH1 @one PUSH1 9 PUSH1 @inner JUMP one: JUMPDEST ADD "
        "PUSH1 @two PUSH1 8 PUSH1 @inner JUMP two: JUMPDEST ADD MUL SWAP1 JUMP"
    )
    main = (
        "PUSH1 @on JUMP on: JUMPDEST PUSH0 CALLDATALOAD PUSH1 32 CALLDATALOAD PUSH1 @back PUSH1 7 PUSH1 @outer JUMP "
        f"back: JUMPDEST PUSH1 @again PUSH1 6 PUSH1 @outer JUMP again: JUMPDEST ADD MUL ADD {ANSWER}"
    )
    for leaves in (0, 1):
        data = bytes(range(64)) + leaves.to_bytes(32, "big")
        program = Program(f"{main} {outer} {inner}", data=data)
        program.agreed()
        program.agreed_at(range(0, 6_000, 37))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_argument_that_is_replaced_by_the_number_of_its_place_is_not_the_argument(number: int) -> None:
    """`if (x) a = 2`, with `a` the second word from the top: region code took both for the same."""
    swaps = ["SWAP1 POP", "SWAP2 POP", "SWAP3 POP"][number - 1]
    function = (  # [return address, c, b, a]: one of them becomes the number where the data says so
        f"f: JUMPDEST PUSH0 CALLDATALOAD ISZERO PUSH1 @kept JUMPI PUSH1 {number} {swaps} "
        "kept: JUMPDEST PUSH1 10 MUL ADD PUSH1 10 MUL ADD SWAP1 JUMP"
    )
    for data in (0, 1):
        program = Program(
            "PUSH1 @back PUSH1 7 PUSH1 8 PUSH1 9 PUSH1 @f JUMP back: JUMPDEST PUSH1 @again SWAP1 PUSH1 5 PUSH1 6 "
            f"PUSH1 @f JUMP again: JUMPDEST {ANSWER} {function}",
            data=data,
        )
        program.agreed_at_every_gas()


def test_ways_back_that_differ_are_left_but_for_those_that_most_take() -> None:
    """A function that returns to either of two addresses, with stacks of different heights."""
    function = (
        "f: JUMPDEST DUP1 PUSH1 @first JUMPI DUP1 PUSH1 5 EQ PUSH1 @first JUMPI POP POP JUMP "
        "first: JUMPDEST DUP1 PUSH1 9 EQ PUSH1 @same JUMPI SWAP1 JUMP same: JUMPDEST PUSH1 1 ADD SWAP1 JUMP"
    )
    for data in (0, 1, 5, 9):
        program = Program(
            f"PUSH1 @second PUSH1 @back PUSH0 CALLDATALOAD PUSH1 @f JUMP back: JUMPDEST {ANSWER} "
            f"second: JUMPDEST PUSH1 77 {ANSWER} {function}",
            data=data,
        )
        program.agreed_at_every_gas()


def test_a_jump_back_to_what_is_not_a_jumpdest_fails_at_the_jump() -> None:
    for place in ("1", "3", "0xffff", "0x10000000000000000", "0x1" + "00" * 31):
        program = Program(f"PUSH32 {place} PUSH1 5 PUSH1 @triple JUMP {TRIPLE}")
        assert "invalid jump" in program.agreed_at_every_gas()[3]


def computed(before: str, function: str) -> Program:
    """The function is entered from the schedule, by a jump nobody can follow beforehand."""
    code = f"{before} PUSH0 CALLDATALOAD JUMP back: JUMPDEST {ANSWER} {function}"
    program = Program(code)
    program.data = (program.code.rindex(b"\x5b")).to_bytes(32, "big")
    return program


def test_a_function_entered_from_the_schedule_goes_on_in_it_where_it_should() -> None:
    program = computed("PUSH1 @back PUSH1 5", TRIPLE)
    assert word(program.agreed_at_every_gas()) == 15
    assert len(program.patched) == 1


def test_a_function_entered_from_the_schedule_fails_where_its_way_back_is_none() -> None:
    for place in ("1", "7", "0xffff", "0x10000000000000000", "0x1" + "00" * 31, "0x10000000000000026"):
        assert "invalid jump" in computed(f"PUSH32 {place} PUSH1 5", TRIPLE).agreed(500)[3]


def test_a_function_entered_from_the_schedule_with_too_few_words_fails_where_it_misses_them() -> None:
    assert "stack underflow" in computed("PUSH1 5", TRIPLE).agreed(500)[3]
    assert "stack underflow" in computed("", TRIPLE).agreed(500)[3]


def test_words_that_changed_places_are_written_back_where_a_region_is_left() -> None:
    for moves in ("SWAP1", "SWAP2 SWAP1", "DUP2 SWAP1 POP", "POP DUP2", "SWAP1 DUP2"):
        code = f"PUSH1 3 PUSH1 5 PUSH1 7 PUSH0 CALLDATALOAD JUMP leave: JUMPDEST {moves} NUMBER JUMPDEST ADD MUL SUB"
        program = Program(code + ANSWER)
        program.data = program.code.index(b"\x5b").to_bytes(32, "big")
        program.agreed_at_every_gas()


def test_a_word_whose_place_an_operand_took_is_written_back() -> None:
    """LOG0 finds its operands on the stack, where the last word was before."""
    code = "PUSH1 1 PUSH1 2 PUSH1 9 PUSH0 CALLDATALOAD JUMP leave: JUMPDEST SWAP2 LOG0 DUP1 DUP1 JUMPDEST ADD MUL"
    program = Program(code + ANSWER)
    program.data = program.code.index(b"\x5b").to_bytes(32, "big")
    assert word(program.agreed()) == 162


def test_a_revert_in_a_nested_function_hands_out_its_memory() -> None:
    program = Program(
        "PUSH1 @back PUSH1 @outer JUMP back: JUMPDEST STOP outer: JUMPDEST PUSH1 9 PUSH0 MSTORE PUSH1 @on PUSH1 @inner "
        "JUMP on: JUMPDEST JUMP inner: JUMPDEST PUSH1 77 PUSH1 32 MSTORE PUSH1 64 PUSH0 REVERT"
    )
    seen = program.agreed_at_every_gas()
    assert (seen[0], seen[2][31], seen[2][63]) == ("REVERT", 9, 77)


def test_what_was_stored_before_a_failure_is_undone() -> None:
    program = Program("JUMPDEST PUSH1 1 PUSH1 5 SSTORE PUSH1 1 PUSH4 0xffffffff MSTORE JUMPDEST STOP")
    seen = program.agreed()
    assert "out of gas at pc" in seen[3]
    assert seen[5] == {}


def test_too_few_words_in_the_middle_of_a_basic_block_fail_where_they_are_missed() -> None:
    for code in (
        "JUMPDEST PUSH1 1 PUSH1 2 SSTORE POP STOP",
        "JUMPDEST NUMBER PUSH0 MSTORE ADD STOP",
        "PUSH1 @f JUMP f: JUMPDEST PUSH1 1 PUSH0 SSTORE SWAP2 JUMP",
        f"PUSH1 @back PUSH1 @triple JUMP back: JUMPDEST STOP {TRIPLE}",
    ):
        assert "stack underflow" in Program(code).agreed(50_000)[3]


@pytest.mark.parametrize("height", [1_010, 1_019, 1_020, 1_021, 1_022])
def test_too_many_words_fail_in_the_function_that_pushes_them(height: int) -> None:
    fill = f"PUSH2 {height} fill: JUMPDEST CALLVALUE SWAP1 PUSH1 1 SWAP1 SUB DUP1 PUSH1 @fill JUMPI POP "
    code = f"{fill} PUSH1 @back PUSH1 3 PUSH1 @triple JUMP back: JUMPDEST STOP {TRIPLE}"
    seen = Program(code).agreed()
    assert ("stack overflow" in seen[3]) == (height > 1_021)


def test_words_deep_below_a_function_stay_as_they_are() -> None:
    code = (
        "".join(f"PUSH1 {number} " for number in range(40)) + "PUSH2 @back PUSH1 3 PUSH2 @triple JUMP back: JUMPDEST "
    )
    code += "PUSH0 " + "ADD PUSH1 3 MUL " * 41 + ANSWER + TRIPLE
    program = Program(code)
    used = 1_000_000 - program.agreed()[1]
    program.agreed_at(range(0, used, 7))


def test_returndata_out_of_bounds_fails_where_it_is_copied() -> None:
    seen = Program("JUMPDEST PUSH1 7 PUSH0 SSTORE PUSH1 1 PUSH0 PUSH0 RETURNDATACOPY JUMPDEST STOP").agreed()
    assert "return data" in seen[3] or "returndata" in seen[3]


# -- gas that is not static -----------------------------------------------------------------------------------------


def test_memory_that_grows_in_a_loop_is_paid_for_as_it_grows() -> None:
    program = Program(loop(6, "DUP1 DUP1 PUSH1 8 SHL MSTORE") + "MSIZE" + ANSWER)
    program.agreed_at_every_gas()


def test_an_offset_no_gas_can_pay_for_ends_the_frame() -> None:
    for op in ("MLOAD POP", "PUSH1 1 SWAP1 MSTORE", "PUSH1 1 SWAP1 MSTORE8", "PUSH1 32 SWAP1 KECCAK256 POP"):
        for offset in ("0xffffffffffffffff", "0x10000000000000000", "0xffffffff", "0x1" + "00" * 31):
            assert "out of gas" in Program(f"JUMPDEST PUSH32 {offset} {op} JUMPDEST STOP").agreed(40_000)[3]


def test_hashes_of_known_and_of_unknown_size_cost_what_they_should() -> None:
    Program("JUMPDEST PUSH1 64 PUSH1 3 KECCAK256 JUMPDEST" + ANSWER).agreed_at_every_gas()
    Program("JUMPDEST PUSH0 CALLDATALOAD PUSH1 3 KECCAK256 JUMPDEST" + ANSWER, data=70).agreed_at_every_gas()
    Program("JUMPDEST PUSH0 PUSH4 0xffffffff KECCAK256 JUMPDEST" + ANSWER).agreed_at_every_gas()


@pytest.mark.parametrize("hashes", ["PUSH1 64 PUSH0 KECCAK256 PUSH0 MSTORE", "PUSH2 0x400 PUSH0 KECCAK256 POP"])
@pytest.mark.parametrize("fails", ["PUSH1 1 PUSH0 TSTORE", "PUSH2 0x8000 MLOAD POP", "PUSH1 1 PUSH2 0x8000 MSTORE"])
def test_what_a_block_paid_beforehand_does_not_count_in_the_next(hashes: str, fails: str) -> None:
    Program(f"JUMPDEST {hashes} JUMPDEST {fails} JUMPDEST STOP", static=True).agreed_at_every_gas(700)


def test_exponents_cost_what_they_should() -> None:
    for exponent in (0, 1, 255, 256, 1 << 255):
        Program("JUMPDEST PUSH0 CALLDATALOAD PUSH1 3 EXP JUMPDEST" + ANSWER, data=exponent).agreed_at(
            range(0, 1_800, 11)
        )


def test_copies_cost_what_they_should() -> None:
    for op in ("CALLDATACOPY", "CODECOPY"):
        Program(
            f"JUMPDEST PUSH1 70 PUSH1 2 PUSH1 9 {op} JUMPDEST PUSH1 32 MLOAD" + ANSWER, data=99
        ).agreed_at_every_gas()
    Program("JUMPDEST PUSH1 70 PUSH1 2 PUSH1 9 MCOPY JUMPDEST MSIZE" + ANSWER).agreed_at_every_gas()


def test_slots_are_cold_once() -> None:
    program = Program("JUMPDEST PUSH1 1 SLOAD PUSH1 1 SLOAD ADD PUSH1 2 SLOAD ADD JUMPDEST" + ANSWER, storage={1: 7})
    used = 1_000_000 - program.agreed()[1]
    program.agreed_at(range(0, used + 2, 13))


def test_refunds_are_counted() -> None:
    assert Program("JUMPDEST PUSH0 PUSH1 1 SSTORE JUMPDEST STOP", storage={1: 7}).agreed()[4] == 4_800


def test_logs_are_written_with_their_topics() -> None:
    code = "JUMPDEST PUSH1 9 PUSH0 MSTORE " + "".join(
        "".join(f"PUSH1 {topic} " for topic in range(count)) + f"PUSH1 33 PUSH1 1 LOG{count} " for count in range(5)
    )
    program = Program(code + "JUMPDEST STOP")
    seen = program.agreed()
    assert [len(log[1]) for log in seen[6]] == [0, 1, 2, 3, 4]
    program.agreed_at(range(0, 1_000_000 - seen[1], 31))


def test_gas_memory_size_and_place_are_told_as_they_are() -> None:
    ask = "GAS PUSH0 MSTORE PC PUSH1 32 MSTORE MSIZE PUSH1 64 MSTORE GAS PUSH1 96 MSTORE PUSH1 128 PUSH0 RETURN"
    program = Program(f"JUMPDEST NUMBER POP {ask.replace(' PUSH1 128', ' JUMPDEST PUSH1 128')}")
    program.agreed_at_every_gas()


@pytest.mark.parametrize("slice_", [30, 110, 125, 140, 160])
def test_memory_size_is_told_as_it_was_before_the_block_let_memory_grow(
    slice_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is left after memory grew, since gas is short for those that follow, is begun again."""
    monkeypatch.setattr(host, "SLICE", slice_)
    work = "NUMBER POP NUMBER POP NUMBER POP"
    program = Program(f"JUMPDEST MSIZE PUSH1 1 PUSH2 0x400 MSTORE JUMPDEST {work} JUMPDEST" + ANSWER)
    assert word(program.agreed(5_000)) == 0


def test_gas_is_told_with_what_the_next_slices_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SLICE", 500)
    Program(loop(20, "GAS PUSH0 MSTORE") + "PUSH1 32 PUSH0 RETURN").agreed(30_000)


@pytest.mark.parametrize("op", ["ADDRESS", "CALLER", "CALLVALUE", "CALLDATASIZE", "CODESIZE", "NUMBER", "GASLIMIT"])
def test_words_of_the_surroundings_are_the_same(op: str) -> None:
    Program(f"JUMPDEST {op} JUMPDEST{ANSWER}", data=1).agreed()


def test_balances_and_hashes_of_blocks_are_the_same() -> None:
    for op in ("BALANCE", "EXTCODESIZE", "EXTCODEHASH", "BLOCKHASH", "BLOBHASH"):
        Program(f"JUMPDEST PUSH1 255 {op} ADDRESS {op} ADD SELFBALANCE ADD JUMPDEST{ANSWER}").agreed()


# -- narrow words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, (1 << 64) - 2, (1 << 64) - 1, (1 << 128) - 1, (1 << 256) - 2])
def test_a_counter_that_outgrows_a_machine_word_goes_on(start: int) -> None:
    code = (
        f"PUSH32 {start:#x} PUSH1 5 loop: JUMPDEST SWAP1 PUSH1 1 ADD SWAP1 PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP"
    )
    assert word(Program(code + ANSWER).agreed()) == (start + 5) % (1 << 256)


@pytest.mark.parametrize("mask", ["0xff", "0xffffffffffffffff", "0x1ffffffffffffffff"])
def test_what_is_masked_later_may_be_cut_only_where_the_mask_says_so(mask: str) -> None:
    body = f"SWAP1 PUSH8 0xfedcba9876543210 MUL PUSH1 3 ADD DUP1 PUSH1 60 SHR XOR PUSH32 {mask} AND SWAP1"
    code = f"PUSH32 0x{'9e37' * 16} PUSH1 9 loop: JUMPDEST {body} PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP"
    Program(code + ANSWER).agreed()


@pytest.mark.parametrize("op", ["DIV", "SDIV", "MOD", "SMOD", "LT", "SGT", "BYTE", "SAR", "SIGNEXTEND", "SHR", "EQ"])
def test_operations_that_look_at_high_bits_see_them(op: str) -> None:
    for data in (1 << 255, (1 << 64) + 1, (1 << 256) - 5, 31):
        given = "PUSH0 CALLDATALOAD"
        code = f"JUMPDEST {given} PUSH1 2 {op} {given} PUSH1 200 {op} XOR PUSH1 3 {given} {op}"
        Program(f"{code} PUSH8 0xffffffffffffffff AND ADD JUMPDEST {ANSWER}", data=data).agreed()


def test_nothing_is_compiled_where_nothing_can_be() -> None:
    program = Program("STOP", choose=every_block)
    assert program.agreed()[0] == "SUCCESS"
    assert program.patched == []


@pytest.mark.parametrize(
    "words",
    [
        "PUSH1 200 PUSH1 100 KECCAK256 POP",
        "PUSH1 1 PUSH1 2 PUSH1 200 PUSH1 185 LOG2",
        "PUSH2 600 PUSH0 PUSH1 200 CALLDATACOPY",
        "PUSH2 600 PUSH0 PUSH1 200 MCOPY",
    ],
)
def test_a_price_of_two_parts_that_ends_a_slice_fails_with_the_gas_that_there_was(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first part took from the reserve, the second was too much: what is left is told from before both."""
    program = Program(f"{words} PUSH1 @on JUMP on: JUMPDEST STOP")
    for slice_ in (30, 60, 150, 900, 1_600):
        monkeypatch.setattr(host, "SLICE", slice_)
        program.agreed_at_every_gas()


@pytest.mark.parametrize(
    "words",
    [
        "PUSH2 600 PUSH0 PUSH1 200 PUSH2 0x777 EXTCODECOPY",
        "PUSH2 600 PUSH1 200 PUSH2 900 PUSH0 PUSH1 1 PUSH2 0x777 PUSH2 500 CALL POP",
        "PUSH2 600 PUSH1 200 PUSH2 900 PUSH0 PUSH2 0x777 GAS STATICCALL POP",
        "PUSH1 7 PUSH2 600 PUSH1 200 PUSH0 CREATE2 POP",
    ],
)
def test_a_high_price_that_ends_a_slice_fails_with_the_gas_that_there_was(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(f"{words} PUSH1 @on JUMP on: JUMPDEST STOP")
    for slice_ in (30, 900, 2_600, 9_100, 31_900):
        monkeypatch.setattr(host, "SLICE", slice_)
        needed = 1_000_000 - program.agreed(1_000_000)[1]
        program.agreed_at([*range(20, needed, 61), *range(needed - 240, needed + 2, 3)])


@pytest.mark.parametrize("data", [1 << 64, (1 << 128) + 1, 1 << 255])
def test_a_place_in_memory_is_more_than_its_last_limb(data: int) -> None:
    """No gas pays for it, though its last 64 bits are those of a place that is there."""
    use = f"on: JUMPDEST PUSH0 CALLDATALOAD MLOAD {NEXT} PUSH0 SSTORE STOP"
    assert Program(f"PUSH1 1 PUSH0 MSTORE PUSH1 @on JUMP {use}", data=data).agreed()[0] == "HALT"


@pytest.mark.parametrize("op", ["ADD", "MUL", "SUB"])
def test_a_word_of_which_65_bits_are_looked_at_is_not_computed_in_64(op: str) -> None:
    data = ((1 << 64) - 1).to_bytes(32, "big") + (3).to_bytes(32, "big")
    use = f"on: JUMPDEST PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD {op} PUSH9 0x1ffffffffffffffff AND {NEXT} {ANSWER}"
    Program(f"PUSH1 @on JUMP {use}", data=data).agreed()


@pytest.mark.parametrize("op", ["AND", "OR", "XOR"])
def test_a_word_of_which_bit_64_alone_is_looked_at_is_not_computed_in_64(op: str) -> None:
    data = (1 << 64).to_bytes(32, "big") + ((1 << 64) + 5 if op == "AND" else 5).to_bytes(32, "big")
    use = f"on: JUMPDEST PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD {op} PUSH9 0x10000000000000000 AND {NEXT} {ANSWER}"
    assert word(Program(f"PUSH1 @on JUMP {use}", data=data).agreed()) == 1 << 64


@pytest.mark.parametrize("words", chosen((1_008, *range(1_015, 1_019), 1_023), range(1_008, 1_024)))
def test_a_function_that_is_called_in_a_region_must_have_room_on_the_stack(words: int) -> None:
    inner = "f: JUMPDEST PUSH1 1 PUSH1 2 PUSH1 3 PUSH1 4 PUSH1 5 PUSH1 6 ADD ADD ADD ADD ADD SWAP1 JUMP"
    code = (
        f"{'CALLVALUE ' * words} PUSH2 @on JUMP on: JUMPDEST PUSH2 @back PUSH2 @f JUMP back: JUMPDEST {ANSWER} {inner}"
    )
    Program(code).agreed()


@pytest.mark.parametrize("words", chosen((1_014, 1_016, 1_018), range(1_012, 1_024, 2)))
def test_a_block_that_is_left_in_its_middle_must_have_room_for_all_of_it(words: int) -> None:
    block = f"on: JUMPDEST PUSH1 1 PUSH1 7 SSTORE {'NUMBER ' * 7} STOP"
    for before in ("", "PUSH2 @far JUMP far: JUMPDEST PUSH0 POP "):
        Program(f"{'CALLVALUE ' * words} {before} PUSH2 @on JUMP {block}").agreed()


def test_an_access_of_no_bytes_tells_nothing_of_where_it_is() -> None:
    for access in ("PUSH0 DUP2 KECCAK256 POP", "PUSH0 DUP1 DUP3 CALLDATACOPY", "PUSH0 DUP2 LOG0"):
        use = f"on: JUMPDEST PUSH0 CALLDATALOAD {access} PUSH1 100 SHR {NEXT} {ANSWER}"
        assert word(Program(f"PUSH1 @on JUMP {use}", data=1 << 200).agreed()) == 1 << 100


@pytest.mark.parametrize("data", [0, 1])
def test_a_jump_to_where_a_block_begins_without_a_jumpdest_fails(data: int) -> None:
    here = "here: PUSH1 7 PUSH0 SSTORE STOP far: JUMPDEST PUSH1 @here JUMP"
    code = f"PUSH1 @on JUMP on: JUMPDEST PUSH0 CALLDATALOAD PUSH1 @far JUMPI {here}"
    assert Program(code, data=data).agreed()[0] == ("HALT" if data else "SUCCESS")


@pytest.mark.parametrize("choose", [every_block, functions_and_loops])
def test_numbers_that_turn_out_not_to_be_addresses_one_after_another_end_no_search(choose: Choose) -> None:
    pushed = " ".join(f"PUSH2 @x{each}" for each in (6, 5, 4, 3, 2, 1))
    compared = " ".join(f"PUSH2 @x{each} EQ PUSH2 @live{each} JUMPI JUMP live{each}: JUMPDEST" for each in range(1, 6))
    ends = " ".join(f"x{each}: JUMPDEST PUSH1 {each} PUSH0 MSTORE8 STOP" for each in range(1, 7))
    Program(f"JUMPDEST {pushed} {compared} POP STOP {ends}", choose=choose).agreed()


@pytest.mark.parametrize("more", ["", "DUP1 "])
def test_a_function_that_returns_to_itself_is_left_alone(more: str) -> None:
    Program(f"PUSH1 @f PUSH1 @f JUMP f: JUMPDEST DUP1 {more}JUMP").agreed(5_000)


@pytest.mark.parametrize("data", [0, 1, 13])
def test_a_jump_back_to_a_word_of_which_a_copy_was_tested_is_made(data: int) -> None:
    """The copy was made in another block: what builds the function knows that both are zero, what finds it does not."""
    ways = "f: JUMPDEST DUP1 g: JUMPDEST PUSH1 @t JUMPI JUMP t: JUMPDEST JUMPDEST JUMP"
    program = Program(f"PUSH0 CALLDATALOAD PUSH1 @f JUMP {ways}", data=data)
    program.agreed_at_every_gas(5_000)
    assert program.patched


@pytest.mark.parametrize("data", [0, 1])
def test_a_function_that_takes_and_adds_more_words_than_a_stack_holds_is_left_alone(data: int) -> None:
    """It takes 600 on one way and adds 500 on another."""
    code = (
        "PUSH0 " * 700
        + "PUSH0 CALLDATALOAD PUSH2 @f JUMP f: JUMPDEST PUSH2 @b JUMPI "
        + "POP " * 600
        + "PUSH2 @e JUMP b: JUMPDEST "
        + "PUSH0 " * 500
        + "PUSH0 SLOAD POP PUSH2 @e JUMP e: JUMPDEST STOP"
    )
    assert Program(code, data=data).agreed()[0] == ("HALT" if data else "SUCCESS")
