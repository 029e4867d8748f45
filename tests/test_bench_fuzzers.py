"""The fuzzer and forge find the same planted bugs. Needs npm, for forge and solc; without it, skipped with a reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anvil import npm_folder

pytestmark = pytest.mark.long  # real tools, installed for it

BENCH = Path(__file__).resolve().parent.parent / "bench" / "fuzzers.py"
CALLS = 3_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the bench prints, of one seed."""
    forge = npm_folder(tmp_path_factory, "FUSEVM_FORGE", ["@foundry-rs/forge@1"])
    solc = npm_folder(tmp_path_factory, "FUSEVM_SOLC", ["solc@0.8"])
    if not list((forge / "node_modules" / "@foundry-rs").glob("forge-*/bin/forge*")):
        pytest.skip("forge has no program for this platform")
    given = ["--forge", str(forge), "--solc", str(solc), "--seeds", "1", "--calls", str(CALLS), "--json"]
    run = subprocess.run([sys.executable, str(BENCH), *given], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("name", ["Magic", "TwoStep", "Shares"])
def test_both_find_the_planted_bug(rows: dict[str, dict[str, Any]], name: str) -> None:
    assert [each["found"] for each in rows[name]["fuzz"]] == [True]
    assert [each["found"] for each in rows[name]["forge"]] == [True]


@pytest.mark.parametrize("name", ["Magic", "TwoStep", "Shares"])
def test_neither_finds_one_where_the_property_always_holds(rows: dict[str, dict[str, Any]], name: str) -> None:
    for what in ("speed of fuzz", "speed of forge"):
        assert not any(each["found"] for each in rows[name][what])
        assert all(each["calls"] >= CALLS // 2 for each in rows[name][what])
