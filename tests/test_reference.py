"""The reference interpreter, instruction by instruction: stack, jumps, memory, hashing, copies, surroundings."""

from __future__ import annotations

import pytest

from fusevm import Block, HaltReason, Hooks, Result, Status
from fusevm.evm.forks import Fork
from fusevm.evm.gas import memory_cost
from fusevm.evm.keccak import keccak256
from fusevm.evm.opcodes import OPCODES_TABLE, opcodes_of
from fusevm.reference.instructions import INSTRUCTIONS
from programs import CALLER, HERE, NOBODY, OTHER, answer, call, gas_of, machine, push, run

MAX = (1 << 256) - 1


def assert_halts(result: Result, reason: HaltReason, pc: int | None = None, detail: str | None = None) -> None:
    """A halt names its reason and place, takes all gas and gives nothing back."""
    assert result.status is Status.HALT
    assert result.failure is not None
    assert result.failure.reason is reason
    assert (result.output, list(result.logs), result.gas_refunded) == (b"", [], 0)
    if pc is not None:
        assert result.failure.pc == pc
    if detail is not None:
        assert result.failure.detail == detail


# -- the table --------------------------------------------------------------------------------------------------------


def test_every_opcode_of_the_table_has_an_instruction() -> None:
    assert set(INSTRUCTIONS) == {op.name for op in OPCODES_TABLE} - {"INVALID"}


@pytest.mark.parametrize("fork", Fork, ids=lambda fork: fork.label)
def test_every_byte_a_fork_does_not_know_halts_and_takes_all_gas(fork: Fork) -> None:
    unknown = [byte for byte, op in enumerate(opcodes_of(fork)) if op is None or op.name == "INVALID"]
    for byte in unknown:
        evm = machine({HERE: bytes([byte])}, fork.label)
        result = evm.call(HERE, gas=50_000)
        assert_halts(result, HaltReason.INVALID_OPCODE, pc=0, detail=f"0x{byte:02x}")
        assert result.gas_used == 50_000


# -- stack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in OPCODES_TABLE if op.pops], ids=lambda op: op.name)
def test_one_word_too_few_is_an_underflow(op: object) -> None:
    name, pops = op.name, op.pops  # type: ignore[attr-defined]
    result = run("PUSH1 1 " * (pops - 1) + name)
    there = pops - 1
    assert_halts(result, HaltReason.STACK_UNDERFLOW, pc=2 * there, detail=f"{pops} words needed, {there} there")


@pytest.mark.parametrize("name", ["PUSH1 1", "PUSH32 1", "DUP1", "DUP16", "ADDRESS", "GAS", "MSIZE", "PC", "CALLVALUE"])
def test_the_stack_holds_1024_words_and_not_one_more(name: str) -> None:
    assert run("PUSH1 1 " * 1023 + name).ok
    assert_halts(run("PUSH1 1 " * 1024 + name), HaltReason.STACK_OVERFLOW, pc=2048, detail="1024 words are there")


@pytest.mark.parametrize("name", ["SWAP1", "SWAP16", "ADD", "MLOAD", "POP", "JUMPDEST"])
def test_a_full_stack_takes_instructions_that_add_nothing(name: str) -> None:
    assert run("PUSH1 1 " * 1024 + name).ok


def test_dup_and_swap_count_from_the_top() -> None:
    fill = " ".join(f"PUSH1 {n}" for n in range(1, 18))  # 17 is on top
    assert [answer(f"{fill} DUP{n}") for n in range(1, 17)] == [18 - n for n in range(1, 17)]
    assert [answer(f"{fill} SWAP{n}") for n in range(1, 17)] == [17 - n for n in range(1, 17)]
    assert answer(f"{fill} SWAP16 " + "POP " * 16) == 17  # and the top went down there


def test_operands_come_off_the_top_first() -> None:
    assert answer("PUSH1 2 PUSH1 7 SUB") == 5
    assert answer("PUSH1 3 PUSH1 2 EXP") == 8


# -- push data and jumps ----------------------------------------------------------------------------------------------


def test_push_reads_its_bytes_in_order_and_push0_none() -> None:
    assert answer("PUSH3 0x010203") == 0x010203
    assert answer(push(MAX)) == MAX
    assert answer("PUSH0") == 0


def test_push_data_cut_off_by_the_end_of_the_code_reads_as_zeros_on_the_right() -> None:
    evm = machine({HERE: bytes.fromhex("63aabb")})  # PUSH4 with two bytes
    frames: list[tuple[int, ...]] = []
    evm.hooks = Hooks(on_opcode=lambda step: frames.append(step.stack))
    assert evm.call(HERE).ok
    assert frames[-1] == (0xAABB0000,)


def test_running_off_the_end_is_stop() -> None:
    result = run("PUSH1 1")
    assert (result.status, result.output, result.gas_used) == (Status.SUCCESS, b"", 3)


def test_an_empty_account_is_called_with_success() -> None:
    result = machine({}).call(NOBODY)
    assert (result.status, result.gas_used) == (Status.SUCCESS, 0)


def test_a_jump_lands_on_a_jumpdest_which_costs_one() -> None:
    assert gas_of("PUSH1 @end JUMP INVALID end: JUMPDEST") == 3 + 8 + 1


@pytest.mark.parametrize(
    ("program", "pc"),
    [
        ("PUSH1 0 JUMP", 2),  # a PUSH is no JUMPDEST
        ("PUSH1 4 JUMP PUSH1 0x5b STOP", 2),  # 0x5b in push data is none either
        ("PUSH1 200 JUMP", 2),  # past the end
        (push(2**255) + " JUMP JUMPDEST", 33),  # whole words count, not their low bits
        (push(2**64 + 34) + " JUMP JUMPDEST", 33),
        ("PUSH1 1 PUSH1 0 JUMPI", 4),
    ],
)
def test_a_jump_elsewhere_halts_at_the_jump(program: str, pc: int) -> None:
    assert_halts(run(program), HaltReason.INVALID_JUMP, pc=pc)


def test_truncated_push_data_hides_a_jumpdest_too() -> None:
    evm = machine({HERE: bytes.fromhex("600456" + "62" + "5b")})  # PUSH1 4 JUMP PUSH3 5b, the end
    assert_halts(evm.call(HERE), HaltReason.INVALID_JUMP, pc=2)


def test_jumpi_looks_at_its_target_only_when_it_jumps() -> None:
    assert gas_of("PUSH1 0 PUSH1 99 JUMPI") == 3 + 3 + 10


def test_any_other_condition_than_zero_jumps() -> None:
    assert gas_of(f"{push(2**255)} PUSH1 @end JUMPI INVALID end: JUMPDEST") == 3 + 3 + 10 + 1


def test_a_loop_that_only_jumps_ends_when_gas_does() -> None:
    result = run("start: JUMPDEST PUSH1 @start JUMP", gas=121)  # ten rounds of 12, and one more JUMPDEST
    assert_halts(result, HaltReason.OUT_OF_GAS, pc=1, detail="3 needed, 0 left")


def test_pc_is_the_position_of_the_instruction_itself() -> None:
    assert answer("PUSH1 0 POP PC") == 3


# -- gas --------------------------------------------------------------------------------------------------------------


def test_gas_is_what_is_left_after_paying_for_asking() -> None:
    result = run("GAS PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN", gas=1_000)
    assert int.from_bytes(result.output, "big") == 998


def test_just_enough_gas_is_enough_and_one_less_is_not() -> None:
    assert run("PUSH1 1 PUSH1 2 ADD", gas=9).ok
    assert_halts(run("PUSH1 1 PUSH1 2 ADD", gas=8), HaltReason.OUT_OF_GAS, pc=4, detail="3 needed, 2 left")


@pytest.mark.parametrize(
    ("fork", "exponent", "price"),
    [
        ("osaka", 0, 10),
        ("osaka", 1, 60),
        ("osaka", 0xFF, 60),
        ("osaka", 0x100, 110),
        ("osaka", 2**255, 10 + 50 * 32),
        ("tangerine-whistle", 0x100, 30),  # 10 a byte before EIP-160
        ("spurious-dragon", 0x100, 110),
    ],
)
def test_exp_pays_for_each_byte_of_the_exponent(fork: str, exponent: int, price: int) -> None:
    assert gas_of(f"{push(exponent)} PUSH1 2 EXP", fork) == 6 + price


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "cost"),
    [(0, 0), (1, 3), (2, 6), (22, 66), (23, 70), (32, 98), (724, 3_195), (1_024, 5_120), (2**20, 2_150_629_376)],
)
def test_memory_costs_three_a_word_and_a_square(words: int, cost: int) -> None:
    assert memory_cost(words) == cost


@pytest.mark.parametrize(
    ("program", "gas"),
    [
        ("PUSH1 0 PUSH1 0 MSTORE", 9 + 3),
        ("PUSH1 0 PUSH1 1 MSTORE", 9 + 6),  # reaches into the second word
        ("PUSH1 0 PUSH1 31 MSTORE8", 9 + 3),
        ("PUSH1 0 PUSH1 32 MSTORE8", 9 + 6),
        ("PUSH2 0x2000 MLOAD", 6 + 900),  # 257 words: 771 + 66,049 / 512
        ("PUSH1 64 MLOAD PUSH1 64 MLOAD PUSH1 0 MLOAD", 18 + 9),  # growth is paid for once
        ("PUSH1 0 PUSH2 0x2000 RETURN", 6),  # a size of zero touches nothing
        (f"PUSH1 0 {push(MAX)} RETURN", 6),
        ("PUSH1 1 PUSH1 32 RETURN", 6 + 6),
    ],
)
def test_growing_memory_is_paid_for(program: str, gas: int) -> None:
    assert gas_of(program) == gas


@pytest.mark.parametrize(
    "program",
    [
        f"{push(MAX)} MLOAD",
        f"PUSH1 1 {push(MAX)} MSTORE",
        f"PUSH1 1 {push(MAX)} MSTORE8",
        f"{push(MAX)} PUSH1 0 RETURN",
        f"PUSH1 1 {push(MAX)} REVERT",
        f"{push(MAX)} PUSH1 0 KECCAK256",
        f"{push(MAX)} PUSH1 0 PUSH1 0 CALLDATACOPY",
        f"{push(MAX)} PUSH1 0 PUSH1 0 CODECOPY",
        f"{push(MAX)} PUSH1 0 PUSH1 0 MCOPY",
        f"PUSH1 1 {push(MAX)} PUSH1 0 MCOPY",
        f"{push(MAX)} PUSH1 0 LOG0",
    ],
    ids=lambda program: program.replace(push(MAX), "MAX"),
)
def test_memory_out_of_reach_is_out_of_gas(program: str) -> None:
    assert_halts(run(program), HaltReason.OUT_OF_GAS)


def test_msize_counts_whole_words_ever_touched() -> None:
    assert answer("MSIZE") == 0
    assert answer("PUSH1 0 MLOAD POP MSIZE") == 32
    assert answer("PUSH1 0 PUSH1 95 MSTORE8 MSIZE") == 96
    assert answer("PUSH1 0 PUSH2 500 PUSH1 0 CODECOPY MSIZE") == 0


def test_mstore8_writes_the_lowest_byte_alone() -> None:
    assert answer("PUSH2 0xabcd PUSH1 0 MSTORE8 PUSH1 0 MLOAD") == 0xCD << 248


def test_memory_is_big_endian_and_unaligned() -> None:
    assert answer("PUSH1 0xaa PUSH1 0 MSTORE PUSH1 1 MLOAD") == 0xAA00


@pytest.mark.parametrize(("size", "gas"), [(0, 30), (1, 30 + 6 + 3), (32, 30 + 6 + 3), (33, 30 + 12 + 6)])
def test_keccak_costs_six_a_word_and_memory(size: int, gas: int) -> None:
    assert gas_of(f"PUSH1 {size} PUSH1 0 KECCAK256") == 6 + gas


def test_keccak_hashes_memory() -> None:
    assert answer("PUSH1 0 PUSH1 0 KECCAK256") == int.from_bytes(keccak256(b""), "big")
    assert answer("PUSH1 7 PUSH1 0 MSTORE PUSH1 32 PUSH1 0 KECCAK256") == int.from_bytes(
        keccak256(bytes(31) + b"\7"), "big"
    )


@pytest.mark.parametrize(
    ("to", "source", "expected"),
    [
        (0, 8, "08090a0b0c0d0e0f08090a0b0c0d0e0f"),
        (8, 0, "00010203040506070001020304050607"),
        (4, 0, "0001020300010203040506070c0d0e0f"),  # overlapping
        (0, 4, "0405060708090a0b08090a0b0c0d0e0f"),
    ],
)
def test_mcopy_copies_as_if_through_a_buffer(to: int, source: int, expected: str) -> None:
    first_half = int.from_bytes(bytes(range(16)) + bytes(16), "big")
    word = answer(f"{push(first_half)} PUSH1 0 MSTORE PUSH1 8 PUSH1 {source} PUSH1 {to} MCOPY PUSH1 0 MLOAD")
    assert word.to_bytes(32, "big")[:16].hex() == expected


def test_mcopy_pays_for_the_further_end_of_both_ranges() -> None:
    assert gas_of("PUSH1 32 PUSH1 64 PUSH1 0 MCOPY") == gas_of("PUSH1 32 PUSH1 0 PUSH1 64 MCOPY") == 9 + 3 + 3 + 9


# -- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "gas"), [(0, 3), (1, 3 + 3 + 3), (33, 3 + 6 + 6)])
@pytest.mark.parametrize("name", ["CALLDATACOPY", "CODECOPY"])
def test_a_copy_costs_three_a_word_and_memory(name: str, size: int, gas: int) -> None:
    assert gas_of(f"PUSH1 {size} PUSH1 0 PUSH1 0 {name}") == 9 + gas


def test_calldata_past_its_end_reads_as_zeros() -> None:
    data = bytes([1, 2, 3])
    assert answer("PUSH1 1 CALLDATALOAD", data=data) == 0x0203 << 240
    assert answer(f"{push(MAX)} CALLDATALOAD", data=data) == 0
    assert answer("CALLDATASIZE", data=data) == 3
    assert answer("PUSH1 32 PUSH1 2 PUSH1 0 CALLDATACOPY PUSH1 0 MLOAD", data=data) == 3 << 248
    assert answer(f"PUSH1 32 {push(MAX)} PUSH1 0 CALLDATACOPY PUSH1 0 MLOAD", data=data) == 0


def test_codecopy_sees_the_code_without_padding() -> None:
    result = run("PUSH1 40 PUSH1 0 PUSH1 0 CODECOPY PUSH1 40 PUSH1 0 RETURN")
    assert result.output == bytes.fromhex("602860006000396028" + "6000f3").ljust(40, b"\0")
    assert answer("CODESIZE") == 9  # with the eight bytes that return it


def test_returndata_is_what_the_last_call_gave() -> None:
    caller = f"{call(OTHER)} RETURNDATASIZE PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"
    result = run(caller, others={OTHER: "PUSH1 5 PUSH1 0 RETURN"})
    assert int.from_bytes(result.output, "big") == 5


@pytest.mark.parametrize(
    ("start", "size", "ok"),
    [(0, 5, True), (5, 0, True), (2, 3, True), (0, 6, False), (6, 0, False), (MAX, 1, False)],
)
def test_returndatacopy_may_not_read_past_the_end(start: int, size: int, ok: bool) -> None:
    program = f"{call(OTHER)} {push(size)} {push(start)} PUSH1 0 RETURNDATACOPY"
    result = run(program, others={OTHER: "PUSH1 5 PUSH1 0 RETURN"})
    if ok:
        assert result.ok
    else:
        assert_halts(result, HaltReason.RETURNDATA_OUT_OF_BOUNDS, detail=f"{start} + {size} is over 5")


@pytest.mark.parametrize(
    "program",
    [
        f"{push(MAX)} PUSH1 1 PUSH1 0 RETURNDATACOPY",  # past the end
        f"{push(MAX)} PUSH1 0 PUSH1 0 CREATE",  # in a static call, and init code too large
        f"{push(MAX)} PUSH1 0 LOG0",
        "PUSH1 1 PUSH1 0 SSTORE",
        f"{push(NOBODY)} SELFDESTRUCT",
        f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 1 {push(NOBODY)} PUSH1 0 CALL",
    ],
)
def test_what_cannot_be_paid_for_is_out_of_gas_whatever_else_is_wrong(program: str) -> None:
    """As in the specification, where gas comes before everything but the stack."""
    assert_halts(run(program, gas=5_000, static=True), HaltReason.OUT_OF_GAS)


# -- surroundings -----------------------------------------------------------------------------------------------------

BLOCK = Block(
    number=1_000,
    timestamp=1_700_000_000,
    coinbase=b"\xcb" * 20,
    gas_limit=45_000_000,
    base_fee=7,
    prev_randao=2**255 + 1,
    difficulty=131_072,
    chain_id=1_337,
    hashes=lambda number: number.to_bytes(32, "big"),
)


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


@pytest.mark.parametrize(
    ("name", "fork", "expected"),
    [
        ("ADDRESS", "osaka", number(HERE)),
        ("CALLER", "osaka", number(CALLER)),
        ("ORIGIN", "osaka", number(CALLER)),
        ("CALLVALUE", "osaka", 12),
        ("SELFBALANCE", "osaka", 12),
        ("ADDRESS BALANCE", "osaka", 12),
        ("GASPRICE", "osaka", 0),
        ("COINBASE", "osaka", number(b"\xcb" * 20)),
        ("TIMESTAMP", "osaka", 1_700_000_000),
        ("NUMBER", "osaka", 1_000),
        ("GASLIMIT", "osaka", 45_000_000),
        ("BASEFEE", "osaka", 7),
        ("CHAINID", "osaka", 1_337),
        ("PREVRANDAO", "paris", 2**255 + 1),  # EIP-4399
        ("DIFFICULTY", "london", 131_072),
        ("BLOBBASEFEE", "osaka", 1),
        ("PUSH1 0 BLOBHASH", "osaka", 0),
    ],
)
def test_what_a_frame_can_ask(name: str, fork: str, expected: int) -> None:
    assert answer(name, fork, value=12, block=BLOCK) == expected


@pytest.mark.parametrize(
    ("asked", "known"),
    [(999, True), (744, True), (743, False), (1_000, False), (1_001, False), (0, False), (MAX, False)],
)
def test_blockhash_knows_the_last_256_blocks(asked: int, known: bool) -> None:
    assert answer(f"{push(asked)} BLOCKHASH", block=BLOCK) == (asked if known else 0)


def test_near_genesis_blockhash_knows_what_there_is() -> None:
    block = Block(number=2, hashes={0: b"\xaa" * 32})
    assert answer("PUSH1 0 BLOCKHASH", block=block) == number(b"\xaa" * 32)
    assert answer("PUSH1 1 BLOCKHASH", block=block) == 0  # a hash nobody gave


def test_extcode_opcodes_see_another_accounts_code() -> None:
    evm = machine(
        {HERE: f"PUSH1 3 PUSH1 0 PUSH1 0 {push(OTHER)} EXTCODECOPY PUSH1 3 PUSH1 0 RETURN", OTHER: b"\x01\x02"}
    )
    assert evm.call(HERE).output == b"\x01\x02\x00"


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (OTHER, number(keccak256(b"\x01\x02"))),
        (CALLER, number(keccak256(b""))),  # an account without code
        (NOBODY, 0),  # no account (EIP-1052)
        (b"\0" * 12 + b"\xff" * 8, 0),
    ],
)
def test_extcodehash(who: bytes, expected: int) -> None:
    evm = machine({HERE: f"{push(who)} EXTCODEHASH PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN", OTHER: b"\x01\x02"})
    assert number(evm.call(HERE).output) == expected


def test_an_address_is_the_low_20_bytes_of_a_word() -> None:
    evm = machine({HERE: f"{push(MAX - 2**160 + 1 + number(OTHER))} EXTCODESIZE PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN",
                   OTHER: b"\x01\x02"})  # fmt: skip
    assert number(evm.call(HERE).output) == 2


ACCESS_PRICES = {  # fork: price of the first and of the second look
    "frontier": (20, 20), "tangerine-whistle": (400, 400), "istanbul": (700, 700), "berlin": (2_600, 100),
}  # fmt: skip


@pytest.mark.parametrize("fork", ACCESS_PRICES)
def test_balance_is_cold_once(fork: str) -> None:
    first, second = ACCESS_PRICES[fork]
    look = f"{push(NOBODY)} BALANCE POP "
    assert gas_of(look, fork) == 5 + first
    assert gas_of(look * 2, fork) == 10 + first + second


@pytest.mark.parametrize("name", ["EXTCODESIZE", "EXTCODEHASH"])
def test_looking_at_code_warms_the_address_as_balance_does(name: str) -> None:
    assert gas_of(f"{push(NOBODY)} {name} POP {push(NOBODY)} BALANCE") == 3 + 2_600 + 2 + 3 + 100


# -- endings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "status"), [("RETURN", Status.SUCCESS), ("REVERT", Status.REVERT)])
def test_return_and_revert_hand_out_memory_and_keep_unused_gas(name: str, status: Status) -> None:
    result = run(f"PUSH1 0xab PUSH1 0 MSTORE PUSH1 2 PUSH1 30 {name}")
    assert (result.status, result.output, result.gas_used) == (status, b"\x00\xab", 18)


def test_what_came_before_a_revert_or_a_halt_is_undone() -> None:
    for end in ("PUSH1 0 PUSH1 0 REVERT", "INVALID"):
        evm = machine({HERE: f"PUSH1 1 PUSH1 1 SSTORE PUSH1 0 PUSH1 0 LOG0 {end}"})
        result = evm.call(HERE, caller=CALLER, value=5)
        assert list(result.logs) == []
        assert (evm.get_storage(HERE, 1), evm.get_balance(HERE)) == (0, 0)
