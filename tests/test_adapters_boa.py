"""titanoboa on fusevm: its features on py-evm and here, compared, in an environment of its own."""

from __future__ import annotations

import json

from environments import FOREIGN, ROOT, environment, pytest_inside, run_inside


def test_contracts_traces_dumps_and_anchors_are_as_with_py_evm() -> None:
    counts = pytest_inside(environment("boa"), "check_boa.py", cwd=FOREIGN)
    assert set(counts) == {"passed"}
    assert counts["passed"] >= 29


def test_the_bench_measures_both_engines() -> None:
    printed = run_inside(environment("boa"), str(ROOT / "bench" / "boa.py"), "--json", "--quick", cwd=FOREIGN)
    rows = json.loads(printed.strip().splitlines()[-1])
    assert {row["name"] for row in rows} >= {"a loop of 3,000 turns", "a view"}
    assert all(row["py-evm"] > 0 and row["fusevm"] > 0 for row in rows)
