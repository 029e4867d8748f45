"""Code made to keep the compiler of regions busy: what is compiled is bounded, and nothing is answered wrongly."""

from __future__ import annotations

import random
from functools import partial

import pytest

from conftest import chosen
from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.ir.regions.find import MAX_STATES
from fusevm.native.host import engine as machinery
from fusevm.native.host import tier_policy
from fusevm.native.host.code_cache import CodeCache
from fusevm.native.host.settings import Setting
from fusevm.native.host.tier_policy import FIRST_WINDOW
from fusevm.native.host.tiers import engine, of_threads
from fusevm.native.region.build import placed_schedule, regions_of
from fusevm.native.region.choice import MOST, functions_and_loops, hot_parts
from regionprograms import ANSWER, Program

LARGEST = 24_576  # bytes of a contract


def straight_line(size: int = LARGEST) -> bytes:
    """Arithmetic that nothing folds."""
    piece = assemble("DUP1 CALLER ADD MUL NUMBER XOR")
    start, end = assemble("go: JUMPDEST PUSH0 CALLDATALOAD"), assemble(ANSWER)
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def nested_loops(depth: int = 1_000) -> bytes:
    """Each goes round once."""
    heads = [3 * level + 2 for level in range(depth)]
    code = b"\x60\x01\x5b" * depth
    for head in reversed(heads):
        code += assemble(f"PUSH1 1 SWAP1 SUB DUP1 PUSH2 {head} JUMPI POP")
    return code + b"\x00"


def maze(blocks: int = 2_000) -> bytes:
    """Every block leads to two others."""
    rng, size = random.Random(blocks), len(assemble("JUMPDEST PUSH2 0 CALLDATASIZE JUMPI PUSH2 0 JUMP"))
    ways = [(size * rng.randrange(blocks), size * rng.randrange(blocks)) for _ in range(blocks)]
    return b"".join(assemble(f"JUMPDEST PUSH2 {one} CALLDATASIZE JUMPI PUSH2 {two} JUMP") for one, two in ways)


def returns_everywhere(functions: int = 300) -> bytes:
    """Functions that call the next one twice: ways through them double with each."""
    text = "PUSH2 @end PUSH2 @f0 JUMP end: JUMPDEST STOP "
    for number in range(functions):
        following = f"PUSH2 @a{number} PUSH2 @f{number + 1} JUMP a{number}: JUMPDEST "
        text += f"f{number}: JUMPDEST {following}{following.replace(f'a{number}', f'b{number}')} JUMP "
    return assemble(text + f"f{functions}: JUMPDEST JUMP")


HOSTILE = {"a straight line": straight_line, "loops": nested_loops, "a maze": maze, "calls": returns_everywhere}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long
def test_it_runs_as_it_should_where_all_of_it_may_be_a_region(name: str) -> None:
    program = Program(HOSTILE[name](), choose=functions_and_loops)
    for gas in (100, 5_000, 40_000):
        program.agreed(gas)


@pytest.mark.parametrize("name", chosen(("a straight line", "calls"), HOSTILE))
def test_no_more_of_it_is_compiled_than_a_region_may_have(name: str) -> None:
    code = HOSTILE[name]()
    schedule = placed_schedule(code, LATEST)
    sections = [unit.section.pc for unit in schedule.units if unit.section is not None]
    for counts in (dict.fromkeys(sections, 1_000), {pc: 1_000 + number for number, pc in enumerate(sections)}):
        region = regions_of(schedule, LATEST, partial(hot_parts, counts=counts))
        blocks = [block for function in region.unit.functions.values() for block in function.blocks()]
        assert sum(len(block.instructions) for block in blocks) <= MOST
        assert len(blocks) <= 4 * MAX_STATES


COUNTED, UNSEEN = 0xC0DE, 0xCC << 152
CALLS_UNSEEN = (  # those from the number in the calldata on
    "PUSH0 loop: JUMPDEST PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 DUP6 PUSH0 CALLDATALOAD ADD GAS CALL POP"
    " PUSH1 1 ADD DUP1 PUSH1 20 GT PUSH1 @loop JUMPI"
)


def counting() -> tuple[EVM, CodeCache]:
    """A machine whose engine is new, and counts what runs."""
    of_threads(Setting(tiered=True)).engine = None
    evm = EVM(tier="native-tiered")
    evm.set_code(COUNTED, assemble(CALLS_UNSEEN))
    evm.call(COUNTED, UNSEEN.to_bytes(32, "big")).check()
    codes: CodeCache = engine(tiered=True).codes
    for _ in range(100):  # more than once where that call took so long that a window began with it
        if codes.hot_code.is_counting:
            return evm, codes
        codes.hot_code.worked(None, FIRST_WINDOW)
    raise AssertionError("nothing is counted")


def test_code_that_is_new_is_not_counted() -> None:
    evm, codes = counting()
    for number in range(20):
        evm.set_code(UNSEEN + number, number.to_bytes(8, "big") + bytes(LARGEST - 8))
    evm.call(COUNTED, UNSEEN.to_bytes(32, "big")).check()
    assert {code for code, _ in codes.hot_code.counting} <= {assemble(CALLS_UNSEEN)}


def test_a_frame_that_runs_long_goes_on_with_a_schedule_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began before its code was worth counting."""
    _, codes = counting()
    monkeypatch.setattr(tier_policy, "LONG_WINDOW", 1e9)  # or a busy machine ends the window before
    monkeypatch.setattr(machinery, "SLICE", 20_000)
    monkeypatch.setattr(machinery, "SHORT_SLICE", 20_000)
    monkeypatch.setattr(CodeCache, "is_worth_fusing", lambda self, code, seconds: seconds > 0)
    code = assemble(
        "PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH2 9000 GT PUSH1 @loop JUMPI PUSH0 MSTORE MSIZE PUSH0 RETURN"
    )
    results = []
    for tier in ("reference", "native-tiered"):
        evm = EVM(tier=tier)
        evm.set_code(COUNTED, code)
        results.append(evm.call(COUNTED, gas=1_000_000).check())
    assert results[0] == results[1]
    counted = codes.hot_code.counted((code, LATEST))
    assert 0 < counted[1][0] < 9_000
