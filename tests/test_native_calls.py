"""Calls on the native tiers: gas, return data, and what failure undoes, in native frames, Python's, and both mixed."""

from __future__ import annotations

import random
from itertools import product

import pytest

from fusevm import EVM, Block
from fusevm.chain.state import DELEGATION_PREFIX, Account
from fusevm.evm.assembly import assemble
from fusevm.native.host import engine as native_engine
from nativeprograms import NATIVE, Case, Seen, agreed, agreed_at_every_gas
from programs import CALLER, HERE, NOBODY, OTHER, call, deployer, push, store_initcode

THIRD = bytes.fromhex("3bad" * 10)
EMPTY = bytes.fromhex("e111" * 10)
RICH = bytes.fromhex("a1c4" * 10)
KINDS = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
ANSWER = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
ENDS = {"stops": "STOP", "reverts": "PUSH1 4 PUSH0 REVERT", "halts": "INVALID", "starves": "JUMPDEST PUSH1 {here} JUMP"}


# -- chains of calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outer", "inner"), list(product(KINDS, KINDS)))
def test_chains_of_every_kind_of_call_agree(outer: str, inner: str) -> None:
    report = "ADDRESS PUSH0 MSTORE CALLER PUSH1 32 MSTORE CALLVALUE PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
    middle = f"{call(THIRD, kind=inner, out=96)} PUSH1 96 MSTORE CALLER PUSH1 128 MSTORE PUSH1 160 PUSH0 RETURN"
    program = f"{call(OTHER, kind=outer, out=160)} PUSH1 160 MSTORE PUSH1 192 PUSH0 RETURN"
    seen = agreed(Case(program, {OTHER: middle, THIRD: report}, value=3))
    assert seen.output[-32:] == (1).to_bytes(32, "big")


@pytest.mark.parametrize("kind", KINDS)
def test_calls_nest_1024_deep_and_no_deeper(kind: str) -> None:
    program = f"{call(HERE, kind=kind, out=32)} PUSH1 @ok JUMPI STOP ok: JUMPDEST PUSH0 MLOAD PUSH1 1 ADD {ANSWER}"
    seen = agreed(Case(program), (1 << 63) - 1)
    assert seen.word == 1024


@pytest.mark.parametrize("kind", KINDS)
def test_a_callee_gets_all_but_a_64th_or_what_it_is_given(kind: str) -> None:
    for wanted in ("GAS", "PUSH2 5000", "PUSH1 20", "PUSH0", "PUSH32 0x" + "ff" * 32):
        program = (
            f"{call(OTHER, kind=kind, gas=wanted, out=32)} PUSH1 32 MSTORE GAS PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
        )
        for gas in (3_000, 10_000, 100_003, 5_000_000_001, (1 << 64) - 1):
            agreed(Case(program, {OTHER: "GAS" + ANSWER}), gas)


@pytest.mark.parametrize("kind", KINDS)
def test_starved_calls_agree_around_every_instruction(kind: str) -> None:
    callee = "PUSH1 1 PUSH0 MSTORE PUSH0 SLOAD PUSH1 64 PUSH0 REVERT"
    program = f"{call(OTHER, kind=kind, out=64)} PUSH1 96 MSTORE RETURNDATASIZE PUSH1 128 MSTORE PUSH1 160 PUSH0 RETURN"
    agreed_at_every_gas(Case(program, {OTHER: callee}), 20_000, most=0)


def test_a_call_that_grows_memory_and_then_cannot_pay_for_the_account_says_so_exactly() -> None:
    program = f"PUSH2 0x400 PUSH2 0x1000 PUSH2 0x200 PUSH2 0x600 PUSH0 {push(NOBODY)} PUSH1 9 CALL"
    agreed_at_every_gas(Case(program), 10_000, most=0)


# -- slices of gas --------------------------------------------------------------------------------------------------

SPIN = "PUSH2 {times} loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP "


@pytest.mark.parametrize("size", [1, 67, 1000])
def test_parent_and_child_agree_however_small_the_slices_of_gas(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_engine, "SLICE", size)
    callee = SPIN.format(times=200) + "GAS PUSH0 SSTORE GAS" + ANSWER
    program = (
        SPIN.format(times=90)
        + f"{call(OTHER, out=32)} PUSH1 32 MSTORE {SPIN.format(times=50)} GAS PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
    )
    program = program.replace("loop", "first", 2).replace("loop", "second", 2)
    for gas in (100_000, 45_000, 30_000, 20_000, 10_000, 4_000, 3_000):
        agreed(Case(program, {OTHER: callee}), gas)


def test_calls_agree_where_gas_is_more_than_many_slices() -> None:
    callee = SPIN.format(times=60_000) + "GAS" + ANSWER
    calls = f"{call(OTHER, out=32)} {call(OTHER, kind='DELEGATECALL', out=32)} ADD"
    program = f"{calls} PUSH1 32 MSTORE GAS PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
    agreed(Case(program, {OTHER: callee}), 10**12, ["native"])


# -- return data ----------------------------------------------------------------------------------------------------


def test_return_data_outlives_the_growth_of_memory_over_where_it_came_from() -> None:
    callee = "".join(f"PUSH1 {n + 1} PUSH2 {32 * n} MSTORE " for n in range(8)) + "PUSH2 256 PUSH0 RETURN"
    program = (
        f"{call(OTHER)} POP PUSH1 7 PUSH2 0x800 MSTORE RETURNDATASIZE PUSH0 PUSH0 RETURNDATACOPY "
        f"PUSH1 9 PUSH2 0x1000 MSTORE RETURNDATASIZE PUSH0 PUSH2 0x300 RETURNDATACOPY PUSH2 0x1020 PUSH0 RETURN"
    )
    seen = agreed(Case(program, {OTHER: callee}))
    assert seen.output[:256] == seen.output[0x300:0x400] == b"".join((n + 1).to_bytes(32, "big") for n in range(8))


@pytest.mark.parametrize("second", [NOBODY, EMPTY, RICH, (4).to_bytes(20, "big"), THIRD])
def test_every_call_replaces_the_return_data_of_the_last(second: bytes) -> None:
    callee = "PUSH1 5" + ANSWER
    program = f"{call(OTHER)} POP {call(second)} RETURNDATASIZE PUSH0 MSTORE PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN"
    seen = agreed(Case(program, {OTHER: callee, THIRD: "PUSH1 3 PUSH0 REVERT"}, prepare=_accounts))
    assert seen.word == (3 if second == THIRD else 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["RETURN", "REVERT"])
def test_output_is_cut_to_what_the_caller_has_room_for(kind: str, end: str) -> None:
    callee = f"PUSH32 0x{'ab' * 32} PUSH0 MSTORE PUSH1 32 PUSH0 {end}"
    for out in (0, 1, 31, 32, 40):
        program = f"PUSH32 0x{'11' * 32} PUSH1 16 MSTORE {call(OTHER, kind=kind, out=out)} POP MSIZE PUSH0 RETURN"
        agreed(Case(program, {OTHER: callee}))


@pytest.mark.parametrize("size", [0, 1, 32, 33])
def test_reading_past_the_end_of_return_data_halts(size: int) -> None:
    for start in (0, 1, 1 << 64, (1 << 256) - 1):
        program = f"{call(OTHER)} POP PUSH1 {size} PUSH32 {start} PUSH0 RETURNDATACOPY STOP"
        agreed(Case(program, {OTHER: "PUSH1 5" + ANSWER}))


def test_a_creation_leaves_return_data_only_if_it_reverts() -> None:
    for init in ("PUSH1 4 PUSH0 REVERT", "PUSH1 4 PUSH0 RETURN", "INVALID"):
        code = assemble(init)
        program = (
            f"{call(OTHER)} POP {store_initcode(code)} PUSH1 {len(code)} PUSH0 PUSH0 CREATE POP RETURNDATASIZE {ANSWER}"
        )
        seen = agreed(Case(program, {OTHER: "PUSH1 5" + ANSWER}))
        assert seen.word == (4 if "REVERT" in init else 0)


# -- what failure undoes --------------------------------------------------------------------------------------------


def _accounts(evm: EVM) -> None:
    evm.state.accounts[EMPTY] = Account()
    evm.set_balance(RICH, 77)
    evm.set_balance(HERE, 1000)
    evm.set_balance(OTHER, 1000)
    evm.set_balance(THIRD, 1000)
    for address in (HERE, OTHER, THIRD):
        for key in range(4):
            evm.set_storage(address, key, key)


INIT = deployer(assemble("PUSH1 1 PUSH0 SSTORE STOP"))
DEEDS = {
    "storage": "PUSH1 9 PUSH1 1 SSTORE PUSH0 PUSH1 2 SSTORE PUSH1 1 PUSH1 7 SSTORE",
    "transient": "PUSH1 1 TLOAD PUSH1 1 ADD PUSH1 1 TSTORE",
    "log": "PUSH1 7 PUSH1 32 PUSH0 LOG1 PUSH1 1 PUSH1 2 PUSH1 3 PUSH1 4 PUSH1 5 PUSH1 3 LOG4",
    "warmth": f"{push(NOBODY)} BALANCE POP {push(RICH)} EXTCODEHASH POP PUSH1 99 SLOAD POP",
    "value": f"{call(RICH, value=5)} POP",
    "touch": f"{call(EMPTY)} POP",
    "creation": f"{store_initcode(INIT)} PUSH2 {len(INIT)} PUSH0 PUSH0 CREATE PUSH1 64 MSTORE",
    "end of life": f"{push(NOBODY)} SELFDESTRUCT",
    "code": f"PUSH1 32 PUSH0 PUSH0 {push(OTHER)} EXTCODECOPY",
    "precompile": f"PUSH1 32 PUSH0 PUSH1 32 PUSH0 PUSH1 2 GAS STATICCALL POP {call((3).to_bytes(20, 'big'))} POP",
    "nothing": "",
}
LOOK = (
    "PUSH1 1 TLOAD PUSH0 MSTORE PUSH1 1 SLOAD PUSH1 32 MSTORE "
    f"GAS {push(NOBODY)} BALANCE POP GAS SWAP1 SUB PUSH1 64 MSTORE "
    f"GAS {push(RICH)} BALANCE POP GAS SWAP1 SUB PUSH1 96 MSTORE GAS PUSH1 99 SLOAD POP GAS SWAP1 SUB PUSH1 128 MSTORE "
    "SELFBALANCE PUSH1 160 MSTORE RETURNDATASIZE PUSH1 192 MSTORE PUSH1 224 PUSH0 RETURN"
)


def _ended(end: str) -> str:
    return {"stops": "PUSH1 8 PUSH0 RETURN", "reverts": "PUSH1 4 PUSH0 REVERT", "halts": "INVALID"}[end]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_failed_callee_did_is_undone_and_what_it_warmed_is_cold_again(kind: str, deed: str) -> None:
    for end in ("stops", "reverts", "halts"):
        program = f"{call(OTHER, kind=kind)} POP {LOOK}"
        agreed(Case(program, {OTHER: f"{DEEDS[deed]} {_ended(end)}"}, prepare=_accounts))


@pytest.mark.parametrize("deed", DEEDS)
def test_failures_at_each_level_of_nested_calls_undo_what_is_below(deed: str) -> None:
    rng = random.Random(deed)
    for ends in product(("stops", "reverts", "halts"), repeat=2):
        kinds = rng.choices(("CALL", "DELEGATECALL", "CALLCODE"), k=3)
        before, after = (
            rng.choice(list(DEEDS.values())),
            rng.choice([DEEDS["storage"], DEEDS["log"], DEEDS["transient"], ""]),
        )
        if "SELFDESTRUCT" in before:
            before = ""
        inner = f"{DEEDS[deed]} {_ended(ends[0])}"
        calls = f"{call(THIRD, kind=kinds[0])} POP {DEEDS['storage']} {call(THIRD, kind=kinds[1])} POP"
        middle = f"{before} {calls} {after} {_ended(ends[1])}"
        program = f"{DEEDS['log']} {call(OTHER, kind=kinds[2])} POP {call(OTHER)} POP {LOOK}"
        agreed(Case(program, {OTHER: middle, THIRD: inner}, prepare=_accounts), 5_000_000)


def test_random_trees_of_calls_and_deeds_agree() -> None:
    """Native frames and Python's in any order, starved of gas at random places."""
    rng = random.Random(11)
    deeds = list(DEEDS.values())
    for _ in range(50):
        others = {}
        for address, callees in ((OTHER, (THIRD,)), (THIRD, (NOBODY, RICH, (4).to_bytes(20, "big")))):
            parts = [
                rng.choice([*deeds, *[call(rng.choice(callees), kind=rng.choice(KINDS)) + "POP"] * 6]) for _ in range(5)
            ]
            others[address] = " ".join(parts) + " " + _ended(rng.choice(["stops", "stops", "reverts", "halts"]))
        program = " ".join(f"{call(OTHER, kind=rng.choice(KINDS))} POP" for _ in range(3)) + " " + LOOK
        case = Case(program, others, prepare=_accounts)
        seen = agreed(case, 3_000_000)
        for _ in range(4):
            agreed(case, rng.randrange(2000, max(seen.gas_used, 2001)))


def test_static_mode_is_inherited_by_every_kind_of_call() -> None:
    for kind in KINDS:
        for deed in DEEDS.values():
            middle = f"{call(THIRD, kind=kind)} {ANSWER}"
            program = f"{call(OTHER, kind='STATICCALL', out=32)} PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN"
            agreed(Case(program, {OTHER: middle, THIRD: f"{deed} PUSH0 PUSH0 RETURN"}, prepare=_accounts))
            agreed(Case(f"{call(OTHER, kind=kind)} {ANSWER}", {OTHER: deed}, static=True, prepare=_accounts))


def test_a_contract_may_call_itself() -> None:
    program = (
        f"PUSH1 1 SLOAD PUSH1 1 ADD DUP1 PUSH1 1 SSTORE PUSH1 9 LT PUSH1 @end JUMPI {call(HERE)} POP end: JUMPDEST"
    )
    seen = agreed(Case(program))
    assert seen.accounts[HERE][3] == {1: 10}


# -- accounts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fork", ["frontier", "homestead", "tangerine", "spurious", "byzantium", "berlin", "london", "cancun", "osaka"]
)
def test_calls_of_nobody_and_of_empty_accounts_agree_in_every_fork(fork: str) -> None:
    for target in (NOBODY, EMPTY, RICH, OTHER):
        for kind in ("CALL", "CALLCODE"):
            amount = "PUSH1 0"
            gas = "PUSH2 5000"
            text = f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 {amount} {push(target)} {gas} {kind}"
            program = f"{text} POP {text} PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"
            agreed(Case(program, {OTHER: "PUSH1 1 PUSH1 0 MSTORE"}, fork=fork, prepare=_accounts))


@pytest.mark.parametrize("name", ["BALANCE", "EXTCODESIZE", "EXTCODEHASH"])
@pytest.mark.parametrize("fork", ["constantinople", "istanbul", "berlin", "osaka"])
def test_looking_at_an_account_costs_more_the_first_time(name: str, fork: str) -> None:
    for target in (NOBODY, EMPTY, RICH, OTHER, HERE, CALLER, (2).to_bytes(20, "big"), b"\xff" * 20):
        dirty = push(int.from_bytes(b"\xff" * 12 + target, "big"))
        program = f"{dirty} {name} PUSH1 0 MSTORE {push(target)} {name} PUSH1 32 MSTORE PUSH1 64 PUSH1 0 RETURN"
        agreed_at_every_gas(Case(program, {OTHER: "STOP"}, fork=fork, prepare=_accounts), 20_000, most=0)


def test_an_access_list_warms_accounts_and_slots() -> None:
    listed = ((OTHER, (1, 5)), (RICH, ()))
    program = f"{call(OTHER)} POP {LOOK}"
    for access in (None, listed):
        agreed(
            Case(
                program,
                {OTHER: "PUSH1 1 SLOAD PUSH1 5 SSTORE PUSH1 2 SLOAD"},
                prepare=_accounts,
                transact={"access_list": access},
            ),
            500_000,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_delegation_runs_the_code_it_points_at_and_pays_for_looking_there(kind: str) -> None:
    for target in (THIRD, NOBODY, (2).to_bytes(20, "big"), HERE, OTHER):
        designator = DELEGATION_PREFIX + target
        calls = f"{call(OTHER, kind=kind, out=32)} PUSH1 32 MSTORE {call(OTHER, kind=kind, out=32)} POP"
        program = f"{calls} {push(OTHER)} EXTCODESIZE PUSH1 64 MSTORE PUSH1 96 PUSH0 RETURN"
        agreed(
            Case(program, {OTHER: designator, THIRD: "PUSH1 1 PUSH1 3 SSTORE ADDRESS" + ANSWER}, prepare=_accounts),
            200_000,
        )
    agreed(Case(DELEGATION_PREFIX + THIRD, {THIRD: "ADDRESS PUSH0 SSTORE CODESIZE" + ANSWER}))


def test_a_contract_made_in_a_transaction_can_be_called_in_it() -> None:
    runtime = assemble(f"PUSH0 SLOAD PUSH1 1 ADD DUP1 PUSH0 SSTORE {ANSWER}")
    init = deployer(runtime)
    calls = "PUSH1 32 PUSH0 PUSH0 PUSH0 PUSH0 DUP6 GAS CALL POP " * 3
    creation = f"{store_initcode(init)} PUSH2 {len(init)} PUSH0 PUSH0 CREATE"
    program = f"{creation} DUP1 EXTCODEHASH PUSH1 96 MSTORE {calls} PUSH1 128 PUSH0 RETURN"
    assert agreed(Case(program)).word == 3


def test_a_creation_that_reverts_leaves_nobody_to_call() -> None:
    init = assemble("PUSH1 1 PUSH0 SSTORE PUSH0 PUSH0 REVERT")
    text = f"{store_initcode(init)} PUSH1 5 PUSH2 {len(init)} PUSH0 PUSH0 CREATE2"
    agreed(Case(f"{text} POP {text} PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"))


def test_block_hashes_are_asked_for_once_and_only_of_the_last_256_blocks() -> None:
    asked: list[int] = []

    def hashes(number: int) -> bytes:
        asked.append(number)
        return number.to_bytes(32, "big")

    program = "".join(
        f"PUSH3 {n} BLOCKHASH PUSH2 {32 * i} MSTORE " for i, n in enumerate((1000, 999, 744, 743, 999, 2000))
    )
    case = Case(program + "PUSH2 192 PUSH0 RETURN", block=Block(number=1000, hashes=hashes))
    seen = case.seen("native", 100_000)
    assert asked == [999, 744]
    assert seen == case.seen("reference", 100_000)


def test_another_evm_may_run_while_block_hashes_are_looked_up() -> None:
    for tier in NATIVE:
        inner = EVM(tier=tier)
        inner.set_code(OTHER, assemble("PUSH1 9 PUSH1 9 SSTORE PUSH1 7" + ANSWER))
        before, after = "PUSH1 5 PUSH1 5 SSTORE PUSH1 3 PUSH1 32 MSTORE", "PUSH1 5 SLOAD PUSH1 64 MSTORE"
        program = f"{before} PUSH1 8 BLOCKHASH PUSH0 MSTORE {after} PUSH1 96 PUSH0 RETURN"
        block = Block(number=10, hashes=lambda number, inner=inner: inner.call(OTHER).output)
        seen = Case(program, block=block).seen(tier, 100_000)
        assert [int.from_bytes(seen.output[at : at + 32], "big") for at in (0, 32, 64)] == [7, 3, 5]
        assert seen.accounts[HERE][3] == {5: 5}


# -- logs -----------------------------------------------------------------------------------------------------------


def _logs(seen: Seen) -> list[tuple[bytes, tuple[int, ...], bytes]]:
    return seen.logs


@pytest.mark.parametrize("topics", range(5))
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 32, 33, 100])
def test_logs_are_read_back_as_the_reference_writes_them(topics: int, size: int) -> None:
    words = "".join(f"PUSH32 0x{n:02x}{'ab' * 31} " for n in range(topics))
    program = f"PUSH32 0x{'cd' * 32} PUSH0 MSTORE {words} PUSH2 {size} PUSH1 3 LOG{topics} PUSH0 PUSH0 LOG0"
    seen = agreed(Case(program))
    assert len(_logs(seen)) == 2
    assert len(_logs(seen)[0][2]) == size


def test_starved_logs_agree() -> None:
    agreed_at_every_gas(Case("PUSH1 1 PUSH1 2 PUSH1 40 PUSH2 300 LOG2 STOP"), most=0)


# -- a block that cannot end well ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["STOP", "PUSH0 PUSH0 REVERT", "INVALID", "loop: JUMPDEST PUSH1 @loop JUMP"])
def test_words_missing_behind_a_call_are_missed_there_unless_something_else_happens_before(what: str) -> None:
    """The bounds of a block are checked before the calls in it."""
    calling = f"{call(OTHER)} POP"
    for gas in (3_000, 30_000, 100_000):
        for after in ("POP", "DUP5", "PUSH0 MSTORE POP POP", "PUSH32 0xffffffffff MLOAD POP POP"):
            agreed_at_every_gas(Case(f"{calling} {after}", {OTHER: what}), gas, most=6)


def test_of_a_call_too_long_to_be_replayed_only_the_words_are_counted() -> None:
    spinning = "PUSH3 50000 loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI"
    result = Case(f"{call(OTHER)} POP POP", {OTHER: spinning}).seen("native", 30_000_000)
    assert "stack underflow at pc 46 (1 words needed, 0 there)" in str(result.error)


@pytest.mark.parametrize("number", [2, 3, 5, 6, 8, 9, 10, 12, 15])
def test_a_precompile_with_a_long_input_is_paid_for_or_not(number: int) -> None:
    after = "PUSH2 9000 MSTORE GAS PUSH2 9032 MSTORE RETURNDATASIZE PUSH2 9064 MSTORE PUSH2 9200 PUSH0 RETURN"
    for size in (4_096, 4_097, 7_200):
        for gas in (0, 400, 2_000, 100_000):
            data = f"PUSH1 1 PUSH2 {size - 9} MSTORE8 PUSH1 32 PUSH0 PUSH2 {size} PUSH0"
            agreed(f"{data} PUSH1 {number} PUSH3 {gas} STATICCALL {after}")
