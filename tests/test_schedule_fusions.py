"""The seed's fusion patterns, and every line of the table of fusions: as fast as they like, but never otherwise."""

from __future__ import annotations

import random
from functools import cache
from itertools import groupby, pairwise, product

import pytest

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.evm.opcodes import BY_NAME
from fusevm.native.emit.build import library
from fusevm.native.host import engine as native_engine
from fusevm.native.host.engine import NativeEngine
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.schedule.build import ScheduleUnit, build_schedule
from fusevm.schedule.fusions import SEED, FusionType, fused_sequences, fusions
from fusevm.schedule.sections import FOLDED, PUSHES
from nativeprograms import Case, agreed, agreed_at_every_gas
from programs import CALLER, HERE

WORD = 1 << 256
RETURN = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"


def units_of(program: str | bytes, *only: str) -> list[ScheduleUnit]:
    code = program if isinstance(program, bytes) else assemble(program)
    handlers = library().handlers
    if only:
        handlers = handlers.only(frozenset(tuple(each.split()) for each in only))
    return build_schedule(code, LATEST, handlers, keep_units=True).units


def sequences_of(program: str | bytes, *only: str) -> list[str]:
    return [" ".join(unit.sequence) for unit in units_of(program, *only)]


# -- the table ------------------------------------------------------------------------------------------------------


def test_the_seed_comes_first_in_its_own_order_of_priority() -> None:
    """A constant of any width counts as a PUSH."""
    seed = [fusion.sequence for fusion in fusions()[: len(SEED)]]
    assert seed == [fusion.sequence for fusion in SEED]
    narrow = [" ".join(name.replace("PUSHW", "PUSH") for name in sequence) for sequence in seed]
    assert list(dict.fromkeys(narrow)) == [
        "PUSH PUSH PUSH",
        "POP POP POP",
        "ISZERO JUMPI@",
        "DUP2 MSTORE PUSH",
        "PUSH PUSH",
        "POP POP",
    ]
    assert [each for each, _ in groupby(fusion.fusion_type for fusion in SEED)] == [
        FusionType.MULTI_PUSH,
        FusionType.MULTI_POP,
        FusionType.ISZERO_JUMPI,
        FusionType.DUP2_MSTORE_PUSH,
        FusionType.MULTI_PUSH,
        FusionType.MULTI_POP,
    ]


@pytest.mark.parametrize("length", [2, 3])
def test_constants_of_any_width_are_pushed_by_one_handler(length: int) -> None:
    for sequence in product(("PUSH", "PUSHW"), repeat=length):
        assert sequence in fused_sequences()
        text = " ".join(f"PUSH32 {1 << 200}" if name == "PUSHW" else "PUSH1 7" for name in sequence)
        assert sequences_of(f"{text} CALLER", " ".join(sequence))[1] == " ".join(sequence)


def test_no_fusion_stands_in_the_table_twice() -> None:
    assert len(fused_sequences()) == len(set(fused_sequences()))


def test_every_fusion_has_a_handler_and_can_be_switched_off() -> None:
    handlers = library().handlers
    assert set(fused_sequences()) <= set(handlers.addresses)
    assert all(len(sequence) == 1 for sequence in handlers.only(frozenset()).addresses)


def test_no_fusion_goes_on_behind_the_end_of_a_section() -> None:
    ends = {"JUMP", "JUMPI", "JUMP@", "JUMPI@", "JUMPI@HOP", "STOP", "RETURN", "REVERT", "INVALID", "GAS", "SSTORE"}
    for sequence in fused_sequences():
        assert not ends & set(sequence[:-1]), sequence
        assert "SECTION" not in sequence[1:], sequence


# Each fusion alone, in a program around it. Words below it are mostly the place behind it: a good place to jump to, and
# as an offset cheap enough.

BEHIND = 0xC0
HOP = 0x120  # two blocks that only jump on, the second by a JUMPI


@cache
def _engine() -> NativeEngine:
    return NativeEngine()


def _only(sequence: tuple[str, ...]) -> NativeEngine:
    engine = _engine()
    wanted = {sequence, (*sequence[:-1], "JUMPI@")} if sequence[-1] == "JUMPI@HOP" else {sequence}
    handlers = library().handlers.only(frozenset(wanted))
    engine.codes.record(handlers, None, frozenset())
    return engine


def _outcome(engine: NativeEngine | None, code: bytes, gas: int) -> tuple[object, ...]:
    state = State()
    state.set_code(HERE, code)
    for key in range(0, 8, 2):
        state.set_storage(HERE, key, key + 1)
    state.begin_transaction()
    message = Message(CALLER, HERE, code, bytes(range(1, 100)), gas=gas, code_address=HERE)
    context = Context(LATEST, Block(number=3, timestamp=4, prev_randao=5, hashes={2: b"\2" * 32}))
    execute = execute_reference if engine is None else engine.execute
    outcome: Outcome = execute(message, state, context)
    storage = {address: dict(account.storage) for address, account in state.items()}
    return outcome.status, outcome.gas_left, outcome.output, outcome.failure, state.refund, list(state.logs), storage


def _program(sequence: tuple[str, ...], rng: random.Random, height: int = 20) -> bytes:
    parts = []
    for _ in range(height):
        word = BEHIND if rng.random() < 0.7 else rng.choice([0, 1, 2, 31, 64, rng.randrange(300)])
        parts.append(f"PUSH2 {word}")
    parts.append(
        "JUMPDEST" if sequence[0] == "SECTION" else "GAS" if sequence[0] == "GASSECTION" else "JUMPDEST NUMBER"
    )
    for name in sequence:
        parts.append(_text(name, rng))
    code = assemble(" ".join(parts) + " PUSH1 0xee")
    assert len(code) < BEHIND
    dump = "".join(f" PUSH2 {0x400 + 32 * each} MSTORE" for each in range(8))
    ending = assemble(f"JUMPDEST {dump} PUSH2 0x500 PUSH0 RETURN")
    hops = assemble(f"JUMPDEST PUSH2 {HOP + 5} JUMP JUMPDEST PUSH1 1 PUSH2 {BEHIND} JUMPI")
    return code + b"\x5b" * (BEHIND - len(code)) + ending.ljust(HOP - BEHIND, b"\xfe") + hops


def _text(name: str, rng: random.Random) -> str:
    if name in ("SECTION", "GASSECTION"):
        return ""
    if name == "PUSH":
        value = rng.choice([0, 1, 2, 0x20, 0x40, rng.randrange(256), rng.randrange(1 << rng.choice([8, 12, 16]))])
        return (
            f"PUSH{max(1, (value.bit_length() + 7) // 8) + rng.randrange(3)} {value}" if rng.random() < 0.8 else "PUSH0"
        )
    if name == "PUSHW":
        return f"PUSH32 {rng.randrange(1 << 64, WORD)}" if rng.random() < 0.7 else f"PUSH20 {(1 << 160) - 1}"
    if name in ("JUMP@", "JUMPI@"):
        target = BEHIND if rng.random() < 0.85 else rng.choice([BEHIND - 1, 1, 0xFFFF])
        return f"PUSH2 {target} {name[:-1]}"
    if name == "JUMPI@HOP":
        return f"PUSH2 {rng.choice([HOP, HOP + 5])} JUMPI"
    return name


def _reachable(sequence: tuple[str, ...]) -> bool:
    """A constant condition makes of a JUMPI a JUMP, before fusions are looked for."""
    return not any(one in PUSHES and other.startswith("JUMPI@") for one, other in pairwise(sequence))


@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_each_fusion_alone_agrees_with_the_reference_with_gas_enough_and_without(part: int) -> None:
    rng = random.Random(part)
    for sequence in fused_sequences()[part::6]:
        engine = _only(sequence)
        for trial in range(4):
            code = _program(sequence, rng, rng.randrange(6) if trial == 3 else 20)
            units = build_schedule(code, LATEST, engine.handlers, keep_units=True).units
            assert sequence in [unit.sequence for unit in units] or not _reachable(sequence), sequence
            expected = _outcome(None, code, 100_000)
            assert _outcome(engine, code, 100_000) == expected, (sequence, code.hex())
            if trial:
                continue
            used = 100_000 - int(str(expected[1]))
            start = 3 * 20
            limits = range(start, used) if used < start + 40 else sorted(rng.sample(range(start, used), 40))
            for gas in (*limits, used):
                assert _outcome(engine, code, gas) == _outcome(None, code, gas), (sequence, gas, code.hex())


@pytest.mark.parametrize("part", range(3))
def test_fusions_agree_where_gas_is_handed_out_in_tiny_slices(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_engine, "SLICE", 67)
    rng = random.Random(100 + part)
    for sequence in fused_sequences()[part::6]:
        engine = _only(sequence)
        code = _program(sequence, rng)
        for gas in (100_000, *(rng.randrange(60, 400) for _ in range(4))):
            ours, theirs = _outcome(engine, code, gas), _outcome(None, code, gas)
            assert ours == theirs, (sequence, gas, code.hex())


# -- 3-PUSH, 2-PUSH, 3-POP, 2-POP -----------------------------------------------------------------------------------


def test_pushes_and_pops_are_fused_by_threes_then_by_twos() -> None:
    pushes = " ".join(f"PUSH1 {n}" for n in range(1, 6))
    program = f"{pushes} PUSH0 MSTORE POP POP POP POP CALLER"
    only = ("PUSH PUSH PUSH", "PUSH PUSH", "POP POP POP", "POP POP")
    assert sequences_of(program, *only) == [
        "SECTION",
        "PUSH PUSH PUSH",
        "PUSH PUSH PUSH",
        "MSTORE",
        "POP POP POP",
        "POP",
        "CALLER",
        "STOP",
    ]
    assert sequences_of("PUSH1 1 PUSH2 2 CALLER POP POP", *only)[1:4] == ["PUSH PUSH", "CALLER", "POP POP"]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_pushes_of_every_width_push_in_order_for_the_sum_of_their_gas(count: int) -> None:
    rng = random.Random(count)
    for _ in range(20):
        widths = [rng.randrange(33) for _ in range(count)]
        values = [rng.randrange(1 << 8 * width) if width else 0 for width in widths]
        text = " ".join(f"PUSH{w} {v}" if w else "PUSH0" for w, v in zip(widths, values, strict=True))
        stores = "".join(f" PUSH2 {32 * n} MSTORE" for n in range(count))
        seen = agreed(f"{text} {stores} PUSH2 {32 * count} PUSH0 RETURN")
        assert seen.output == b"".join(value.to_bytes(32, "big") for value in reversed(values))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_pops_need_as_many_words_as_they_drop(count: int) -> None:
    for height in range(count + 2):
        seen = agreed_at_every_gas(f"{'NUMBER ' * height} JUMPDEST {'POP ' * count} STOP")
        assert (seen.status == "SUCCESS") == (height >= count)


@pytest.mark.parametrize("height", [1021, 1022, 1023, 1024])
@pytest.mark.parametrize(
    "run", ["PUSH1 1 PUSH1 2 PUSH1 3 POP POP POP", "PUSH1 1 PUSH1 2 POP POP", "PUSH0 DUP1 POP POP"]
)
def test_a_run_overflows_at_its_highest_point_not_at_its_end(height: int, run: str) -> None:
    needed = run.count("PUSH") + run.count("DUP")
    seen = agreed(f"{'NUMBER ' * height} {run} STOP", 100_000)
    assert (seen.status == "SUCCESS") == (height + needed <= 1024)
    if height + needed > 1024:
        assert "overflow" in str(seen.error)


# -- ISZERO PUSH JUMPI ----------------------------------------------------------------------------------------------


def test_iszero_push_jumpi_is_one_handler() -> None:
    assert "ISZERO JUMPI@" in sequences_of("NUMBER ISZERO PUSH1 @end JUMPI INVALID end: JUMPDEST", "ISZERO JUMPI@")


@pytest.mark.parametrize("value", [0, 1, 2, 1 << 64, 1 << 255, WORD - 1])
@pytest.mark.parametrize("twice", [False, True])
def test_iszero_push_jumpi_jumps_if_the_word_is_zero_and_charges_for_all_three(value: int, twice: bool) -> None:
    again = "ISZERO" if twice else ""
    program = f"PUSH0 CALLDATALOAD ISZERO {again} PUSH1 @yes JUMPI PUSH1 7 {RETURN} yes: JUMPDEST PUSH1 9 {RETURN}"
    seen = agreed_at_every_gas(Case(program, data=value.to_bytes(32, "big")))
    jumps = (value == 0) != twice
    assert seen.word == (9 if jumps else 7)
    ahead = 2 + 3 + 3 * (1 + twice) + 3 + 10
    assert seen.gas_used == ahead + (1 if jumps else 0) + 3 + (2 + 3 + 3 + 2 + 3)


@pytest.mark.parametrize(
    "target", ["PUSH1 0xff", "PUSH1 1", "PUSH2 0xffff", "PUSH5 0x0100000001", "PUSH32 0x01" + "00" * 31]
)
def test_a_static_jump_to_a_bad_place_fails_only_when_it_is_taken(target: str) -> None:
    for condition in (0, 1):
        program = f"PUSH0 CALLDATALOAD ISZERO {target} JUMPI PUSH1 1 PUSH0 SSTORE STOP"
        seen = agreed_at_every_gas(Case(program, data=condition.to_bytes(32, "big")), 100_000, most=60)
        assert (seen.status == "SUCCESS") == bool(condition)
        if not condition:
            assert "invalid jump" in str(seen.error)
            assert f"{int(target.split()[1], 16):#x}" in str(seen.error)


# -- DUP2 MSTORE PUSH -----------------------------------------------------------------------------------------------


def test_dup2_mstore_push_is_one_handler() -> None:
    program = "NUMBER NUMBER DUP2 MSTORE PUSH1 5 CALLER"
    assert sequences_of(program, "DUP2 MSTORE PUSH")[3] == "DUP2 MSTORE PUSH"


@pytest.mark.parametrize("offset", [0, 1, 31, 32, 0x1000, 0x20000])
def test_dup2_mstore_push_stores_grows_memory_and_pushes(offset: int) -> None:
    program = f"PUSH3 {offset} PUSH0 CALLDATALOAD DUP2 MSTORE PUSH1 0x2a MSIZE PUSH3 {offset} MLOAD"
    full = f"{program} PUSH0 MSTORE PUSH1 32 MSTORE PUSH1 64 MSTORE PUSH1 96 MSTORE PUSH1 128 PUSH0 RETURN"
    seen = agreed_at_every_gas(Case(full, data=b"\x77" * 32), 200_000, most=150)
    words = [int.from_bytes(seen.output[at : at + 32], "big") for at in range(0, 128, 32)]
    assert words == [int.from_bytes(b"\x77" * 32, "big"), (offset + 32 + 31) // 32 * 32, 0x2A, offset]


@pytest.mark.parametrize("height", [0, 1, 2, 3])
def test_dup2_mstore_push_needs_two_words(height: int) -> None:
    seen = agreed_at_every_gas(f"{'NUMBER ' * height} JUMPDEST DUP2 MSTORE PUSH1 1 STOP")
    assert (seen.status == "SUCCESS") == (height >= 2)


# -- jump threading -------------------------------------------------------------------------------------------------


def _chain(length: int, end: str) -> str:
    hops = " ".join(f"h{n}: JUMPDEST PUSH2 @h{n + 1} JUMP" for n in range(length))
    return f"PUSH2 @h0 JUMP INVALID {hops} INVALID h{length}: {end}"


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 40])
def test_a_chain_of_jumps_charges_1_and_3_and_8_for_every_hop(length: int) -> None:
    program = _chain(length, f"JUMPDEST PUSH1 5 {RETURN}")
    seen = agreed_at_every_gas(program)
    assert seen.word == 5
    assert seen.gas_used == 11 + 12 * length + 1 + 3 + (2 + 3 + 3 + 2 + 3)


def test_a_chain_of_jumps_is_one_jump_in_the_schedule() -> None:
    first = units_of(_chain(3, "JUMPDEST STOP"))[0]
    assert first.tokens[-1].name == "JUMP@"
    assert first.tokens[-1].operand == len(assemble(_chain(3, "JUMPDEST STOP"))) - 2
    assert first.steps == 2 + 3 * 3


@pytest.mark.parametrize("length", [1, 2, 17])
def test_a_chain_that_ends_nowhere_fails_when_it_is_taken_at_the_last_hop(length: int) -> None:
    seen = agreed_at_every_gas(_chain(length, "INVALID"))
    assert "invalid jump" in str(seen.error)


@pytest.mark.parametrize("cycle", ["a: JUMPDEST PUSH1 @a JUMP", "a: JUMPDEST PUSH1 @b JUMP b: JUMPDEST PUSH1 @a JUMP"])
def test_jumps_in_a_circle_end_with_their_gas(cycle: str) -> None:
    for gas in (*range(40), 999, 12_345):
        seen = agreed(cycle, gas)
        assert (seen.status, seen.gas_used) == ("HALT", gas)
        assert "out of gas" in str(seen.error)


def test_a_jump_to_a_hop_over_a_full_stack_overflows_at_the_push() -> None:
    for height in (1022, 1023, 1024):
        seen = agreed("NUMBER " * height + _chain(2, "JUMPDEST STOP"), 100_000)
        assert (seen.status == "SUCCESS") == (height < 1024)


def test_a_hop_reached_by_a_dynamic_jump_over_a_full_stack_overflows_too() -> None:
    for height in (1022, 1023, 1024):
        hop = "PUSH0 CALLDATALOAD {fill} JUMP INVALID hop: JUMPDEST PUSH2 @end JUMP end: JUMPDEST STOP"
        program = hop.format(fill="NUMBER SWAP1 " * (height - 1))
        place = assemble(program).index(b"\xfe") + 1
        seen = agreed(Case(program, data=place.to_bytes(32, "big")), 100_000)
        assert (seen.status == "SUCCESS") == (height <= 1024)


@pytest.mark.parametrize("condition", [0, 1, WORD - 1])
def test_jumpdest_push_condition_push_target_jumpi_goes_straight_on_or_falls_through(condition: int) -> None:
    # the second PUSH is the target, the first the condition: JUMPI pops the target first
    hop = f"PUSH1 @hop JUMP hop: JUMPDEST PUSH32 {condition} PUSH1 @yes JUMPI"
    program = f"{hop} PUSH1 3 {RETURN} yes: JUMPDEST PUSH1 4 {RETURN}"
    seen = agreed_at_every_gas(program)
    assert seen.word == (4 if condition else 3)
    assert "JUMPI" not in " ".join(sequences_of(program))


def test_a_known_condition_that_does_not_hold_never_looks_at_its_target() -> None:
    assert agreed_at_every_gas("PUSH0 PUSH2 0xffff JUMPI PUSH1 1" + RETURN).word == 1
    assert "invalid jump" in str(agreed_at_every_gas("PUSH1 1 PUSH2 0xffff JUMPI PUSH1 1" + RETURN).error)


@pytest.mark.parametrize("height", [1021, 1022, 1023, 1024])
def test_a_jumpi_of_a_known_condition_pushes_two_words(height: int) -> None:
    program = f"{'NUMBER ' * height} PUSH2 @hop JUMP hop: JUMPDEST PUSH1 1 PUSH2 @end JUMPI end: JUMPDEST STOP"
    seen = agreed(program, 100_000)
    assert (seen.status == "SUCCESS") == (height <= 1022)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 9, 20, 32])
def test_jump_targets_are_compared_as_whole_words_whatever_their_width(width: int) -> None:
    good = f"PUSH{width} @end JUMP INVALID end: JUMPDEST PUSH1 1 {RETURN}"
    assert agreed_at_every_gas(good).word == 1
    if width > 4:  # the low bytes are a good target, the high ones are not zero
        place = assemble(good).index(b"\xfe") + 1
        bad = assemble(good).replace(place.to_bytes(width, "big"), b"\1" + place.to_bytes(width - 1, "big"), 1)
        assert "invalid jump" in str(agreed(bad).error)


# -- jumps into a pattern, and its neighbours -----------------------------------------------------------------------


@pytest.mark.parametrize("into", [1, 2, 3, 4])
def test_a_jump_into_push_data_is_invalid_even_where_the_byte_is_a_jumpdest(into: int) -> None:
    code = assemble("PUSH1 5 JUMP") + b"\xfe" * 2 + b"\x60\x5b\x60\x5b\x01\x00"  # PUSH1 5b PUSH1 5b ADD
    code = code[:1] + bytes([4 + into]) + code[2:]
    assert "invalid jump" in str(agreed(code).error)


def test_a_jumpdest_in_the_middle_of_a_pattern_splits_it() -> None:
    program = "PUSH1 1 PUSH1 2 a: JUMPDEST PUSH1 3 NUMBER POP POP b: JUMPDEST POP POP"
    found = sequences_of(program, "PUSH PUSH PUSH", "PUSH PUSH", "POP POP POP", "POP POP")
    assert found == ["SECTION", "PUSH PUSH", "SECTION", "PUSH", "NUMBER", "POP POP", "SECTION", "POP POP", "STOP"]
    agreed_at_every_gas(program)


@pytest.mark.parametrize("condition", [0, 1])
def test_a_jumpdest_between_iszero_and_its_jump_splits_it(condition: int) -> None:
    split = "PUSH0 CALLDATALOAD ISZERO mid: JUMPDEST PUSH1 @yes JUMPI PUSH1 1 PUSH1 @mid JUMP"
    program = f"{split} yes: JUMPDEST PUSH1 2 {RETURN}"
    seen = agreed_at_every_gas(Case(program, data=condition.to_bytes(32, "big")))
    assert seen.word == 2


def test_neighbouring_patterns_do_not_disturb_each_other() -> None:
    rng = random.Random(3)
    pieces = [
        "PUSH1 1 PUSH1 2 ADD",
        "PUSH1 9 PUSH2 300 PUSH3 70000",
        "POP POP",
        "POP POP POP",
        "DUP2 MSTORE PUSH1 4",
        "DUP1 ISZERO PUSH2 @end JUMPI",
        "PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB AND",
        "PUSH1 0x40 MLOAD",
        "SWAP1 POP",
        "PUSH1 3 DUP2 ADD",
        "JUMPDEST",
        "PUSH0 PUSH2 @end JUMPI",
        "NUMBER SWAP2 SUB",
    ]
    for _ in range(60):
        body = " ".join(rng.choice(pieces) for _ in range(12))
        program = f"{'PUSH1 0x60 ' * 6} {body} end: JUMPDEST MSIZE PUSH0 MSTORE PUSH1 32 MSTORE PUSH1 64 PUSH0 RETURN"
        seen = agreed(program)
        for gas in sorted(rng.sample(range(min(seen.gas_used, 4000) + 1), 8)):
            agreed(program, gas)


# -- constant folding -----------------------------------------------------------------------------------------------

EDGES = (0, 1, 2, 31, 32, 127, 255, 256, (1 << 64) - 1, 1 << 64, 1 << 160, 1 << 255, WORD - 2, WORD - 1)


@pytest.mark.parametrize("name", sorted(FOLDED))
def test_every_pure_opcode_of_constants_is_folded_to_the_word_it_would_compute(name: str) -> None:
    rng = random.Random(name)
    for _ in range(12):
        operands = [
            rng.choice([rng.choice(EDGES), rng.randrange(WORD), rng.randrange(300)]) for _ in range(BY_NAME[name].pops)
        ]
        pushes = " ".join(f"PUSH{max(1, (word.bit_length() + 7) // 8)} {word}" for word in reversed(operands))
        program = f"{pushes} {name} {RETURN}"
        assert [token.name for unit in units_of(program) for token in unit.tokens if token.name == name] == []
        seen = agreed(program)
        assert seen.word == FOLDED[name](*operands)
        assert seen.gas_used == 3 * len(operands) + BY_NAME[name].gas_at(LATEST) + 2 + 3 + 3 + 3 + 2


def test_sub_takes_the_top_first() -> None:
    assert agreed_at_every_gas(f"PUSH1 3 PUSH1 10 SUB {RETURN}").word == 7


def test_the_address_mask_is_one_constant_of_eight_bytes_of_code() -> None:
    program = f"PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB {RETURN}"
    folded = units_of(program)[0].tokens[1]
    assert (folded.name, folded.operand, folded.steps) == ("PUSHW", (1 << 160) - 1, 5)
    assert agreed_at_every_gas(program).word == (1 << 160) - 1


@pytest.mark.parametrize(("a", "b", "s"), [(1, 1, 0xA0), (5, 3, 4), (0, 1, 255), (7, 0, 0), (200, 255, 255), (1, 1, 0)])
def test_push_push_push_shl_sub_is_b_shifted_less_a(a: int, b: int, s: int) -> None:
    assert agreed_at_every_gas(f"PUSH1 {a} PUSH1 {b} PUSH1 {s} SHL SUB {RETURN}").word == ((b << s) - a) % WORD


@pytest.mark.parametrize("depth", [1, 2, 5, 20, 200])
def test_constants_fold_at_any_depth(depth: int) -> None:
    program = f"{'PUSH1 3 ' * (depth + 1)} {'MUL ' * depth} {RETURN}"
    seen = agreed_at_every_gas(program, most=300)
    assert seen.word == pow(3, depth + 1, WORD)
    assert len(units_of(f"{'PUSH1 3 ' * (depth + 1)} {'MUL ' * depth}")) == 2  # SECTION PUSH, STOP


def test_push0_and_pc_and_a_duplicated_constant_are_constants_too() -> None:
    assert agreed_at_every_gas(f"PUSH0 PUSH0 NOT SUB {RETURN}").word == WORD - 1
    assert agreed_at_every_gas(f"PUSH1 5 DUP1 ADD {RETURN}").word == 10
    assert agreed_at_every_gas(f"PUSH1 5 PC ADD {RETURN}").word == 7


def test_exp_is_not_folded_since_its_gas_depends_on_its_exponent() -> None:
    program = f"PUSH2 0x1234 PUSH1 3 EXP {RETURN}"
    assert any("EXP" in unit.sequence for unit in units_of(program))
    assert agreed_at_every_gas(program).gas_used == 3 + 3 + 10 + 50 * 2 + 13


def test_folding_stops_at_a_jumpdest() -> None:
    program = f"PUSH1 1 PUSH1 2 JUMPDEST ADD {RETURN}"
    assert any("ADD" in unit.sequence for unit in units_of(program))
    assert agreed_at_every_gas(program).word == 3


@pytest.mark.parametrize("height", [1020, 1021, 1022, 1023, 1024])
def test_folded_constants_overflow_where_they_would_have(height: int) -> None:
    seen = agreed(f"{'NUMBER ' * height} PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB STOP", 100_000)
    assert (seen.status == "SUCCESS") == (height <= 1021)


def test_a_folded_constant_may_be_the_target_of_a_jump() -> None:
    assert agreed_at_every_gas(f"PUSH1 @end PUSH0 ADD JUMP INVALID end: JUMPDEST PUSH1 6 {RETURN}").word == 6


# -- the end of the code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 4, 8, 9, 20, 32])
def test_truncated_push_data_is_padded_with_zeros_on_the_right(width: int) -> None:
    for there in range(width + 1):
        code = assemble("NUMBER NUMBER") + bytes([0x5F + width]) + b"\xab" * there
        token = units_of(code)[0].tokens[-1] if len(units_of(code)) == 1 else units_of(code)[-2].tokens[-1]
        assert token.operand == int.from_bytes((b"\xab" * there).ljust(width, b"\0"), "big")
        agreed_at_every_gas(code)


@pytest.mark.parametrize("pattern", [
    "PUSH1 1 PUSH1 2 ADD", "PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB", "PUSH1 1 PUSH2 2 PUSH3 3",
    "NUMBER NUMBER NUMBER POP POP POP",
    "NUMBER ISZERO PUSH2 0 JUMPI", "NUMBER NUMBER DUP2 MSTORE PUSH2 1", "PUSH1 1 PUSH1 2", "NUMBER NUMBER POP POP",
    "JUMPDEST PUSH1 0 JUMP", "JUMPDEST PUSH1 1 PUSH1 0 JUMPI", "NUMBER PUSH4 0x01020304 EQ PUSH2 0 JUMPI",
])  # fmt: skip
def test_a_pattern_may_be_cut_off_by_the_end_of_the_code_anywhere(pattern: str) -> None:
    code = assemble(pattern)
    for size in range(len(code) + 1):
        for gas in (*range(40), 500):
            agreed(code[:size], gas)
