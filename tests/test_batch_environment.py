"""The parts of batches that need NumPy, pyarrow and Dask, in an environment that has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import environment, pytest_inside

pytestmark = pytest.mark.long  # real tools, installed for it

TESTS = Path(__file__).resolve().parent
FILES = ("test_batch_cluster.py", "test_batch_sweep.py", "test_many_api.py")


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_skipped_where_the_extra_is_installed(name: str) -> None:
    counts = pytest_inside(environment("batch"), str(TESTS / name), cwd=TESTS, paths=(TESTS,))
    assert set(counts) == {"passed"}
