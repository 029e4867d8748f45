"""Which fusions some code holds: the seed's patterns, in its order of priority, by the pc where each begins."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import LATEST
from fusevm.schedule import FusionInfo, FusionType, fusions_in

FOLD, PUSHES, POPS = FusionType.CONSTANT_FOLD, FusionType.MULTI_PUSH, FusionType.MULTI_POP
ISZERO_JUMPI, STORE, THREAD = FusionType.ISZERO_JUMPI, FusionType.DUP2_MSTORE_PUSH, FusionType.JUMP_THREAD
WORD = 1 << 256


def found(text: str) -> dict[int, FusionInfo]:
    return fusions_in(assemble(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PUSH1 3 PUSH1 10 ADD", FusionInfo(FOLD, 5, 13)),
        ("PUSH1 3 PUSH1 10 SUB", FusionInfo(FOLD, 5, 7)),  # the top first
        ("PUSH1 3 PUSH1 10 MUL", FusionInfo(FOLD, 5, 30)),
        ("PUSH1 1 PUSH1 1 PUSH1 0xa0 SHL SUB", FusionInfo(FOLD, 8, (1 << 160) - 1)),
        ("PUSH0 NOT", FusionInfo(FOLD, 2, WORD - 1)),
        ("PUSH1 1 PUSH2 2 PUSH3 3", FusionInfo(PUSHES, 9, None, 3)),
        ("PUSH1 1 PUSH2 2", FusionInfo(PUSHES, 5, None, 2)),
        (f"PUSH32 {WORD - 1} PUSH1 1 PUSH9 {1 << 64}", FusionInfo(PUSHES, 33 + 2 + 10, None, 3)),
        ("POP POP POP", FusionInfo(POPS, 3, None, 3)),
        ("POP POP", FusionInfo(POPS, 2, None, 2)),
        ("ISZERO PUSH2 9 JUMPI", FusionInfo(ISZERO_JUMPI, 5)),
        ("DUP2 MSTORE PUSH1 5", FusionInfo(STORE, 4)),
        (f"DUP2 MSTORE PUSH32 {1 << 255}", FusionInfo(STORE, 35)),
    ],
)
def test_a_pattern_of_the_seed_is_found_with_its_length_value_and_count(text: str, expected: FusionInfo) -> None:
    assert found(text + " JUMPDEST STOP")[0] == expected


def test_patterns_come_in_the_seeds_order_of_priority() -> None:
    code = "PUSH1 1 PUSH1 2 PUSH1 3 PUSH1 4 PUSH1 5 CALLER PUSH1 1 PUSH1 2 ADD POP POP POP POP POP JUMPDEST STOP"
    assert [(pc, info.fusion_type, info.count) for pc, info in found(code).items()] == [
        (0, PUSHES, 3),
        (6, PUSHES, 2),
        (11, FOLD, None),
        (16, POPS, 3),
        (19, POPS, 2),
    ]


def test_a_folded_constant_ends_a_run_of_pushes() -> None:
    code = found("PUSH1 1 PUSH1 2 PUSH1 3 ADD CALLER JUMPDEST STOP")
    assert code == {2: FusionInfo(FOLD, 5, 5)}


@pytest.mark.parametrize("hop", ["PUSH1 @end JUMP", "PUSH1 1 PUSH1 @end JUMPI"])
def test_a_block_that_only_jumps_on_tells_where_the_jumps_end(hop: str) -> None:
    text = f"PUSH1 @a JUMP a: JUMPDEST PUSH1 @b JUMP b: JUMPDEST {hop} end: JUMPDEST STOP"
    end = len(assemble(text)) - 2
    assert found(text) == {3: FusionInfo(THREAD, 4, end), 7: FusionInfo(THREAD, end - 7, end)}


def test_what_the_table_has_beyond_the_seed_is_a_sequence() -> None:
    info = found("NUMBER PUSH1 3 ADD JUMPDEST STOP")[1]
    assert (info.fusion_type, info.count) == (FusionType.SEQUENCE, 2)


def test_truncated_push_data_counts_as_far_as_the_code_goes() -> None:
    assert fusions_in(bytes.fromhex("600161ff")) == {0: FusionInfo(PUSHES, 4, None, 2)}


def test_what_cannot_be_reached_is_not_told() -> None:
    assert found("STOP PUSH1 1 PUSH1 2 ADD") == {}


def test_empty_code_has_none() -> None:
    assert fusions_in(b"") == {}


@pytest.mark.parametrize("seed", range(20))
def test_fusions_begin_and_end_at_instructions_and_do_not_overlap(seed: int) -> None:
    rng = random.Random(seed)
    names = [
        "PUSH1 7",
        "PUSH0",
        f"PUSH20 {1 << 90}",
        "POP",
        "DUP2",
        "MSTORE",
        "ISZERO",
        "ADD",
        "JUMPDEST",
        "PUSH1 9 JUMPI",
    ]
    code = assemble(" ".join(rng.choices(names, k=60)))
    starts = {each.pc for each in instructions(code, LATEST)} | {len(code)}
    end = 0
    for pc, info in fusions_in(code).items():
        assert pc >= end
        end = pc + info.original_length
        assert {pc, end} <= starts


def test_real_code_holds_every_kind(fixtures_dir: Path) -> None:
    import json

    facts = json.loads((fixtures_dir / "corpus_new" / "Gov.json").read_text())
    code = bytes.fromhex(facts["solc"]["via_ir_opt"]["creation"].removeprefix("0x"))
    assert {info.fusion_type for info in fusions_in(code).values()} == set(FusionType)
