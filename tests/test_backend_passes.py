"""Every pass of the back end can be left out: the code is right without it, and no better for it."""

from __future__ import annotations

import pytest

from conftest import WHOLE
from fusevm.codegen.backend import LEFT_OUT
from fusevm.codegen.pipeline import NAMES, NEEDED
from fusevm.lab.yul.compiled import CompiledTally, check, random_case

SEEDS = [seed for seed in range(40) if len(random_case(seed).source) < 3_000][:12]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEEDED | LEFT_OUT])
def test_code_is_right_without_a_pass(name: str) -> None:
    """Whatever a pass makes of a program, the next ones must not rely on its having been there."""
    for seed in SEEDS[:: (2 if name in ("fold", "inline") else 3) * (1 if WHOLE else 2)]:
        found = check(random_case(seed), CompiledTally(), runs=(200,), without={name})
        assert found is None or "gas was" in found, seed


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_compile_rightly_at_all_runs(seed: int) -> None:
    assert check(random_case(seed), CompiledTally()) is None
