"""What must work in the imagined fork. Run by `test_new_opcodes`, in a process that has imported it first."""

from __future__ import annotations

import random
from functools import partial

import pytest

from fusevm import EVM, Block, Hooks
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome, Status
from fusevm.chain.state import State
from fusevm.codegen.yul import compile_object
from fusevm.control_flow.graph import control_flow
from fusevm.evm.assembly import AssemblyError, assemble, disassemble
from fusevm.evm.bytecode import basic_blocks, decode
from fusevm.evm.opcodes import BY_NAME
from fusevm.ir.fold.block import fold_block
from fusevm.ir.fold.stages import EVERYTHING
from fusevm.ir.lift import lift_block
from fusevm.ir.recovery.unit import recover
from fusevm.lab.ir.functions import functions_of
from fusevm.lab.ir.region_tier import RegionTier
from fusevm.tiers import executor_for
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object
from imagined_fork import IMAGINED

ADDRESS = b"\xc0" * 20
BLOCK = Block(number=7, excess_blob_gas=12_345)
TIERS = ("native", "native-unfused", "native-tiered", "auto", "lockstep")
RETURN = " PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"
PUSHES = " ".join(f"PUSH2 {1000 + n}" for n in range(240))
WORD = (1 << 256) - 1


def on(tier: str, code: bytes, gas: int, data: bytes = b"") -> Outcome:
    message = Message(b"\xa1" * 20, ADDRESS, code, data, gas=gas, code_address=ADDRESS)
    return executor_for(tier)(message, State(), Context(IMAGINED, BLOCK), None)


def lifted(code: bytes, gas: int, data: bytes = b"", *, folds: bool) -> Outcome:
    message = Message(b"\xa1" * 20, ADDRESS, code, data, gas=gas, code_address=ADDRESS)
    tier = RegionTier(partial(functions_of, stages=EVERYTHING if folds else None))
    return tier(message, State(), Context(IMAGINED, BLOCK))


def compiled(text: str, *, optimised: bool = True) -> bytes:
    tree = parse_object(text, dialect_for(IMAGINED))
    if optimised:
        tree = optimize(tree, dialect_for(IMAGINED))
    return compile_object(tree, dialect_for(IMAGINED)).code


def summary(outcome: Outcome) -> tuple[object, ...]:
    return outcome.status, outcome.gas_left, outcome.output


def agreed(text: str, data: bytes = b"") -> Outcome:
    """On every tier, lifted and folded, with gas to spare and with too little; what the reference tier says."""
    code = assemble(text, IMAGINED)
    plenty = on("reference", code, 1_000_000, data)
    used = 1_000_000 - plenty.gas_left
    for gas in (1_000_000, used, used - 1, used // 2):
        expected = on("reference", code, gas, data)
        for tier in TIERS:
            found = on(tier, code, gas, data)
            assert (summary(found), found.failure) == (summary(expected), expected.failure), (tier, gas)
        for folds in (False, True):
            assert summary(lifted(code, gas, data, folds=folds)) == summary(expected), (folds, gas)
    return plenty


def word(text: str, data: bytes = b"") -> int:
    outcome = agreed(text + RETURN, data)
    assert outcome.status is Status.SUCCESS, outcome.failure
    return int.from_bytes(outcome.output, "big")


def data_of(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


# -- a pure opcode ----------------------------------------------------------------------------------------------------


def test_pure_opcode_means_the_same_everywhere() -> None:
    rng = random.Random(1)
    for _ in range(20):
        x, y = (rng.choice((0, 1, WORD, rng.getrandbits(256))) for _ in range(2))
        given = "PUSH1 0 CALLDATALOAD PUSH1 32 CALLDATALOAD AVERAGE"
        assert word(given, data_of(x, y)) == (x + y) // 2
        assert word(f"PUSH32 {x} PUSH32 {y} AVERAGE") == (x + y) // 2


def test_pure_opcode_is_folded_and_shared() -> None:
    def steps(text: str) -> list[str]:
        block, _ = fold_block(lift_block(basic_blocks(assemble(text, IMAGINED), IMAGINED)[0], IMAGINED), IMAGINED)
        return [value.op for value in block.instructions]

    assert steps("PUSH1 4 PUSH1 8 AVERAGE PUSH1 0 SSTORE STOP").count("AVERAGE") == 0
    once = "CALLER CALLVALUE AVERAGE PUSH1 0 SSTORE CALLVALUE CALLER AVERAGE PUSH1 1 SSTORE STOP"
    assert steps(once).count("AVERAGE") == 1  # it commutes


def test_pure_opcode_is_computed_by_jump_analysis() -> None:
    code = assemble("PUSH1 4 PUSH1 10 AVERAGE JUMP INVALID dest: JUMPDEST STOP", IMAGINED)
    cfg = control_flow(code, IMAGINED)
    assert cfg.nodes[0].successors == (7,)
    assert not cfg.has_unknown_jumps


def test_pure_opcode_is_a_builtin_of_yul() -> None:
    code = compiled("{ mstore(0, average(calldataload(0), 6)) return(0, 32) }")
    outcome = on("native", code, 100_000, data_of(4))
    assert int.from_bytes(outcome.output, "big") == 5


# -- a word of the block ----------------------------------------------------------------------------------------------


def test_block_word_is_answered() -> None:
    assert word("EXCESSBLOBGAS") == 12_345
    assert word("NUMBER EXCESSBLOBGAS ADD") == 12_352


def test_block_word_follows_the_block() -> None:
    evm = EVM(IMAGINED, "native", block=Block(excess_blob_gas=1))
    evm.set_code(ADDRESS, assemble("EXCESSBLOBGAS" + RETURN, IMAGINED))
    assert int.from_bytes(evm.call(ADDRESS).output, "big") == 1
    evm.block.excess_blob_gas = 2
    assert int.from_bytes(evm.call(ADDRESS).output, "big") == 2


def test_block_word_is_a_builtin_of_yul() -> None:
    code = compiled("{ mstore(0, excessblobgas()) return(0, 32) }")
    assert int.from_bytes(on("native", code, 100_000).output, "big") == 12_345


# -- opcodes on memory ------------------------------------------------------------------------------------------------


def test_memory_is_written_and_paid_for() -> None:
    outcome = agreed("PUSH1 7 PUSH1 40 PUSH1 3 MFILL PUSH1 64 PUSH1 0 RETURN")
    assert outcome.output == bytes(3) + b"\7" * 40 + bytes(21)
    assert 1_000_000 - outcome.gas_left == 3 * 5 + 3 + 2 * 5 + 2 * 3  # pushes, static, two words copied, two of memory


def test_memory_is_read_and_paid_for() -> None:
    assert word("PUSH1 9 PUSH1 100 PUSH1 0 MFILL PUSH1 10 PUSH1 95 MSUM") == 5 * 9


def test_a_load_is_not_forwarded_across_a_write() -> None:
    assert word("PUSH1 1 PUSH1 0 MSTORE PUSH1 2 PUSH1 32 PUSH1 0 MFILL PUSH1 0 MLOAD") == int("02" * 32, 16)


def test_a_store_is_not_dropped_before_a_read() -> None:
    assert word("PUSH1 5 PUSH1 0 MSTORE PUSH1 32 PUSH1 0 MSUM PUSH1 6 PUSH1 0 MSTORE") == 5


def test_memory_at_a_distance_leaves_a_load_known() -> None:
    text = "PUSH1 1 PUSH1 0 MSTORE PUSH1 2 PUSH1 32 PUSH1 64 MFILL PUSH1 0 MLOAD PUSH1 0 SSTORE STOP"
    block, stats = fold_block(lift_block(basic_blocks(assemble(text, IMAGINED), IMAGINED)[0], IMAGINED), IMAGINED)
    assert stats.forwarded == 1
    assert "MLOAD" not in [value.op for value in block.instructions]


def test_memory_of_sizes_only_known_at_run_time() -> None:
    given = "PUSH1 7 PUSH1 0 CALLDATALOAD PUSH1 32 CALLDATALOAD MFILL PUSH1 0 CALLDATALOAD PUSH1 32 CALLDATALOAD MSUM"
    for size, offset in ((0, 0), (0, WORD), (1, 31), (33, 5), (1_000, 200)):
        assert word(given, data_of(size, offset)) == 7 * size
    assert agreed(given, data_of(1 << 60, 0)).status is Status.HALT


def test_memory_opcodes_are_builtins_of_yul_that_keep_stores() -> None:
    text = "{ mstore(0, 1) mfill(32, 32, 1) let s := msum(0, 64) mstore(0, s) return(0, 32) }"
    for optimised in (False, True):
        code = compiled(text, optimised=optimised)
        assert int.from_bytes(on("native", code, 100_000).output, "big") == 33


# -- opcodes with an immediate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("immediate", [0, 1, 90, 128, 144, 255])
def test_dupn_copies_from_as_deep_as_its_immediate_says(immediate: int) -> None:
    depth = immediate + 17 if immediate <= 90 else immediate - 20
    assert word(f"{PUSHES} DUPN {immediate}") == 1_240 - depth


@pytest.mark.parametrize("immediate", [0, 90, 128, 255])
def test_swapn_exchanges_the_top_with_a_deep_word(immediate: int) -> None:
    depth = immediate + 17 if immediate <= 90 else immediate - 20
    assert word(f"{PUSHES} SWAPN {immediate}") == 1_239 - depth
    assert word(f"{PUSHES} PUSH1 1 ADD SWAPN {immediate} DUPN {immediate} DUPN 3 ADD") == 1_240 - depth + 1 + 1_240 - 20


@pytest.mark.parametrize("immediate", [0x01, 0x0F, 0x1E, 0x9A])
def test_exchange_swaps_two_words_below_the_top(immediate: int) -> None:
    one, other = (immediate >> 4) + 2, (immediate & 15) + 2
    drops = "POP " * (one - 1)
    assert word(f"{PUSHES} EXCHANGE {immediate} {drops}") == 1_240 - other


def test_exchange_is_followed_where_functions_are_recovered() -> None:
    stores = " ".join(f"PUSH1 {slot} SSTORE" for slot in range(3))
    unit = recover(assemble(f"CALLER ORIGIN CALLVALUE EXCHANGE 1 {stores} STOP", IMAGINED), IMAGINED).unit
    stored = [each.args[1].op for each in unit.functions[""].instructions() if each.op == "SSTORE"]
    assert stored == ["CALLVALUE", "CALLER", "ORIGIN"]


def test_too_low_a_stack_is_an_underflow_at_the_same_place() -> None:
    low = " ".join(["PUSH1 1"] * 16)
    outcome = agreed(f"{low} DUPN 0 STOP")
    assert outcome.failure is not None
    assert (outcome.failure.reason.name, outcome.failure.pc) == ("STACK_UNDERFLOW", 32)


def test_an_immediate_that_is_none_is_invalid_and_may_be_a_jumpdest() -> None:
    code = bytes.fromhex("600456e65b00")  # PUSH1 4 JUMP, DUPN 0x5b: the 0x5b is a JUMPDEST
    assert [each.name for each in decode(code, IMAGINED)] == ["PUSH1", "JUMP", "UNKNOWN_E6", "JUMPDEST", "STOP"]
    for tier in ("reference", *TIERS):
        assert on(tier, code, 1_000).status is Status.SUCCESS
        assert on(tier, code[3:], 1_000).status is Status.HALT


@pytest.mark.parametrize(
    ("pushed", "gas", "reason"), [(0, 2, "OUT_OF_GAS"), (0, 3, "INVALID_OPCODE"), (1024, 9_999, "STACK_OVERFLOW")]
)
def test_gas_and_stack_are_looked_at_before_the_immediate(pushed: int, gas: int, reason: str) -> None:
    code = bytes.fromhex("6001" * pushed + "e65f")
    for tier in ("reference", *TIERS):
        failure = on(tier, code, gas).failure
        assert failure is not None
        assert (failure.reason.name, failure.pc) == (reason, 2 * pushed), tier


def test_code_that_ends_before_the_immediate_reads_a_zero() -> None:
    code = assemble(PUSHES, IMAGINED) + bytes([BY_NAME["DUPN"].byte])
    expected = on("reference", code, 100_000)
    assert expected.status is Status.SUCCESS
    for tier in TIERS:
        assert summary(on(tier, code, 100_000)) == summary(expected)
    assert assemble(disassemble(code, IMAGINED), IMAGINED) == code


def test_disassembly_and_assembly_agree_on_any_bytes() -> None:
    rng = random.Random(2)
    for _ in range(200):
        code = bytes(rng.choice((0xE6, 0xE7, 0xE8, 0x5B, 0x60, rng.randrange(256))) for _ in range(rng.randrange(20)))
        assert assemble(disassemble(code, IMAGINED), IMAGINED) == code


def test_the_assembler_refuses_an_immediate_that_is_none() -> None:
    with pytest.raises(AssemblyError, match="'0x5b' is not an immediate of DUPN"):
        assemble("DUPN 0x5b", IMAGINED)


def test_jump_analysis_follows_a_deep_copy() -> None:
    below = " ".join(["PUSH1 1"] * 16)
    code = assemble(f"PUSH2 @dest {below} DUPN 0 JUMP dest: JUMPDEST STOP", IMAGINED)
    cfg = control_flow(code, IMAGINED)
    assert not cfg.has_unknown_jumps
    assert cfg.nodes[0].successors == (len(code) - 2,)


def test_random_arrangements_agree_on_all_tiers() -> None:
    rng = random.Random(3)
    for _ in range(25):
        parts = [PUSHES]
        for _ in range(rng.randrange(1, 12)):
            name, byte = rng.choice(("DUPN", "SWAPN", "EXCHANGE")), rng.randrange(256)
            if BY_NAME[name].variants[byte] is not None:
                parts.append(f"{name} {byte}")
            parts.append(rng.choice(("", "ADD", "DUP16", "SWAP16", "PUSH1 3 MUL", "AVERAGE", "POP")))
        parts.append("XOR " * 20)
        word(" ".join(parts))


def test_opcodes_with_an_immediate_are_not_builtins_but_reserved() -> None:
    dialect = dialect_for(IMAGINED)
    assert all(dialect.builtin(name) is None and dialect.is_reserved(name) for name in ("dupn", "swapn", "exchange"))


def test_random_bytes_agree_on_all_tiers() -> None:
    rng = random.Random(4)
    ours = (0x0C, 0x4B, 0xB0, 0xB1, 0xE6, 0xE7, 0xE8)
    for _ in range(150):
        body = bytes(rng.choice((*ours, 0x5B, 0x60, 0x5F, 0x80, 0x90, 0x20, rng.randrange(256))) for _ in range(40))
        code = b"\x60\x07" * rng.choice((0, 3, 30)) + body
        for gas in (rng.randrange(300), 50_000):
            expected = on("reference", code, gas)
            for tier in TIERS:
                found = on(tier, code, gas)
                assert (summary(found), found.failure) == (summary(expected), expected.failure), (tier, gas, code.hex())


# -- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gas"),
    [
        ("PUSH1 64 PUSH1 0 KECCAK256 POP", 2 * 3 + 30 + 2 * 9 + 2 * 3 + 2),
        ("PUSH1 33 PUSH1 0 PUSH1 0 CALLDATACOPY", 3 * 3 + 3 + 2 * 5 + 2 * 3),
        ("PUSH1 32 PUSH1 0 PUSH1 32 MCOPY", 3 * 3 + 3 + 5 + 2 * 3),
        ("PUSH1 10 PUSH1 0 LOG0", 2 * 3 + 375 + 10 * 11 + 3),
        ("PUSH1 1 PUSH1 0 SSTORE", 2 * 3 + 22_000 + 2_100),
    ],
)
def test_prices_changed_at_the_fork_are_charged_by_every_tier(text: str, gas: int) -> None:
    assert 1_000_000 - agreed(text + " STOP").gas_left == gas


def test_prices_in_a_loop_that_is_charged_at_once() -> None:
    """Loops are charged in bulk where they can be left early, with a bound on what words may cost."""
    loop = """
        PUSH1 0 top: JUMPDEST
        PUSH1 64 PUSH1 0 KECCAK256 PUSH1 0 MSTORE PUSH1 32 PUSH1 0 PUSH1 64 MCOPY
        CALLVALUE PUSH @out JUMPI
        PUSH1 1 ADD DUP1 PUSH1 100 GT PUSH @top JUMPI
        out: JUMPDEST STOP"""
    assert agreed(loop).status is Status.SUCCESS


def test_traces_show_the_fork_prices() -> None:
    seen: list[tuple[str, int]] = []
    evm = EVM(IMAGINED, "reference", hooks=Hooks(on_opcode=lambda step: seen.append((step.name, step.gas_cost))))
    evm.set_code(ADDRESS, assemble("PUSH1 64 PUSH1 0 KECCAK256 AVERAGE", IMAGINED))
    evm.call(ADDRESS)
    assert ("KECCAK256", 30 + 2 * 9 + 2 * 3) in seen
