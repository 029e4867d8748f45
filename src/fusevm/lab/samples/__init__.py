"""Bench files and state tests that the project wrote itself (`bench/samples.py`), for users who have no others."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
BENCH = FOLDER / "bench"
STATE_TESTS = FOLDER / "state_tests"
# Where the public ones are, for a line at the end of a run on these.
MORE_STATE_TESTS = "Ethereum's own: fixtures_stable.tar.gz, from github.com/ethereum/execution-spec-tests/releases"
MORE_BENCHES = "docs/files.md tells the form of others, and where the public ones come from"
