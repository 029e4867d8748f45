"""The campaign on regions: its programs are reproducible and run, and it reports errors, crashes and silent reruns."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import LATEST
from fusevm.lab.regions.campaign import CampaignOptions, check, main, run_parent, shrunk
from fusevm.lab.regions.cases import case, mutated, real_code
from fusevm.lab.regions.engines import engine_for, reached_blocks
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.tables import NativeLimit
from fusevm.native.region.build import placed_schedule
from fusevm.native.region.choice import every_block, hot_parts, layout_of
from fusevm.native.region.emit import FunctionEmitter
from programs import NOBODY, call
from regionprograms import SUM

QUICK = CampaignOptions(1, limits=2, way="every", shrink=60)


@pytest.mark.parametrize("kind", ["random", "loops", "functions"])
def test_programs_agree_with_regions_at_every_jumpdest(kind: str) -> None:
    for number in range(2):
        found, done = check(case(f"test.{number}", None, kind), QUICK)
        assert found is None, str(found)
        assert done["runs"] > 1


@pytest.mark.parametrize("way", ["reached", "every-1", "chosen", "hot", "lockstep"])
def test_programs_agree_with_regions_chosen_in_every_way(way: str) -> None:
    found, done = check(case("test.5", None, "functions"), CampaignOptions(1, limits=1, way=way))
    assert found is None, str(found)
    assert done["regions"] > 0


def test_regions_begin_where_a_run_came_to() -> None:
    """Code that is not reached is not compiled: of a branch only the side that was taken."""
    code = assemble("CALLVALUE PUSH1 @a JUMPI PUSH1 @b JUMP a: JUMPDEST STOP b: JUMPDEST PUSH1 1 POP STOP")
    schedule = placed_schedule(code, LATEST)
    chosen = reached_blocks(schedule, LATEST, places=frozenset((0, 1, 3, 4, 6, 9, 10, 12, 13)), most=5)
    assert chosen.entries == [0, 9]
    assert len(every_block(schedule, LATEST).entries) == 3


AFTER_A_CALL = f"""PUSH1 32 CALLDATALOAD PUSH1 @leaf JUMPI {call(NOBODY)} POP
    leaf: JUMPDEST PUSH0 CALLDATALOAD again: JUMPDEST DUP1 ISZERO PUSH1 @end JUMPI PUSH1 1 SWAP1 SUB PUSH1 @again JUMP
    end: JUMPDEST STOP"""


@pytest.mark.parametrize("calls", [1, 1_000])
def test_a_loop_is_entered_where_the_schedule_comes_to_it_after_a_side_exit(calls: int) -> None:
    """Its header is in the region that begins the code; a frame that left that for a call comes back to the loop."""
    code = assemble(AFTER_A_CALL)
    loop = code.index(b"\x5b\x80\x15")  # JUMPDEST DUP1 ISZERO
    schedule = placed_schedule(code, LATEST)
    counts = {pc: 100_000 if pc >= loop else 1_000 for pc in layout_of(schedule).places}
    before = [pc for pc in counts if 0 < pc < loop - 3]
    assert loop in hot_parts(schedule, LATEST, counts | dict.fromkeys(before, calls)).entries
    assert hot_parts(schedule, LATEST, counts | dict.fromkeys(before, 0)).entries == [0]


def test_small_programs_are_small_and_have_loops_calls_and_exits(fixtures_dir: Path) -> None:
    done: Counter[str] = Counter()
    sizes = []
    for number in range(12):
        made = case(f"small.{number}", fixtures_dir, small=True)
        sizes.append(sum(len(account.code.encode()) for account in made.accounts.values()))
        found, exercised = check(made, CampaignOptions(1, limits=1, way="reached"))
        assert found is None, str(found)
        done += exercised
    assert sorted(sizes)[6] < 600
    assert min(done[name] for name in ("regions", "loops in regions", "calls in regions", "exits")) > 0


def test_the_same_seed_makes_the_same_program() -> None:
    for kind in ("random", "loops", "functions"):
        assert case("test.9", None, kind).as_json() == case("test.9", None, kind).as_json()


def test_real_code_is_found_and_mutated_to_code_as_long(fixtures_dir: Path) -> None:
    assert len(real_code(fixtures_dir)) > 20
    made = case("test.1", fixtures_dir, "mutated")
    assert made.size() == 1
    code = assemble(SUM)
    changed = [mutated(code, Random(seed)) for seed in range(20)]
    assert all(len(each) == len(code) for each in changed)
    assert any(each != code for each in changed)
    assert all(list(instructions(each))[-1].next_pc >= len(code) for each in changed)


@pytest.mark.long
def test_a_wrong_charge_of_gas_is_found_and_its_program_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FunctionEmitter._block

    def cheaper(self: FunctionEmitter, block: object) -> None:
        block.gas -= block.gas > 0  # type: ignore[attr-defined]
        whole(self, block)  # type: ignore[arg-type]

    monkeypatch.setattr(FunctionEmitter, "_block", cheaper)
    for number in range(9):
        made = case(f"test.{number}", None, "loops")
        found, _ = check(made, QUICK)
        if found is not None:
            break
    assert found is not None
    assert "gas" in found.what
    smallest, again = shrunk(made, found, 60)
    assert smallest.size() < made.size()
    assert "gas" in again.what
    assert "transaction:" in again.listing


def test_a_silent_rerun_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    made = case("test.2", None, "loops")
    assert engine_for("every", made.work()).reruns == 0

    def over(self: NativeEngine, *arguments: object) -> None:
        raise NativeLimit("too much")

    monkeypatch.setattr(NativeEngine, "_execute_code", over)
    found, _ = check(made, QUICK)
    assert found is not None
    assert found.what == "1 silent reruns"


def test_a_process_that_crashes_is_a_finding_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho \'{"begins": "0.0"}\'\nkill -SEGV $$\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    seen = list(run_parent(CampaignOptions(2), []))
    assert [found for _, found in seen] == [f"seed 0.{number}: the process ended with -11" for number in range(2)]


def test_it_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "1", "--kind", "loops", "--limits", "1", "--seed", "3", "--way", "every"]) == 0
    assert "1 programs" in capsys.readouterr().out
