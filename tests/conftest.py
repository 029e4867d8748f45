"""Shared test set-up: where the conformance data is, and one clear line where it is not."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Collection, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ("anvil", "fakenode", "realcontracts")  # nodes, and contracts to run on them

ROOT = Path(__file__).resolve().parent.parent
WHOLE = bool(os.environ.get("FUSEVM_WHOLE_CORPUS"))  # as in `.ci/run`, which has the time for all of it

# A shell starts background jobs with Ctrl-C ignored, and so would every process that the tests start. Workers of a
# cluster import this too, with what they are to run, in threads that may not say so.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fixtures-dir",
        default=os.environ.get("FUSEVM_FIXTURES", str(ROOT.parent / "shared" / "fixtures")),
        help="folder of the conformance data (default: $FUSEVM_FIXTURES, else ../shared/fixtures)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left to .ci/run, which sets FUSEVM_WHOLE_CORPUS")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and what they import stay to the end: the garbage collector need not look at them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not WHOLE:
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes long: set FUSEVM_WHOLE_CORPUS for it"))


TUNED = tuple(
    f"fusevm.native.host.{name}" for name in ("choice", "code_cache", "schedule_maker", "engine", "tier_policy")
)


def limits() -> dict[str, float]:
    """The numbers that tests change, so that a few calls do what otherwise takes thousands."""
    return {
        f"{module}.{name}": value
        for module in TUNED
        if module in sys.modules
        for name, value in vars(sys.modules[module]).items()
        if name.isupper() and isinstance(value, int | float)
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.limits_before = limits()  # type: ignore[attr-defined]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """A test that leaves a limit changed fails itself, not one that runs later in the same process."""
    try:
        return (yield)
    finally:
        before, after = item.limits_before, limits()  # type: ignore[attr-defined]
        changed = {name: after[name] for name, value in before.items() if after[name] != value}
        assert not changed, f"left changed: {changed}"


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Values to parametrise with: so many in every run, the others in `.ci/run` alone."""
    return [value if at < count else _long(value) for at, value in enumerate(values)]


def chosen(few: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Values to parametrise with: those few in every run, the others in `.ci/run` alone."""
    return [value if value in few else _long(value) for value in values]


def _long(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)


def fixtures_folder(config: pytest.Config) -> Path:
    return Path(config.getoption("--fixtures-dir")).resolve()


@pytest.fixture(scope="session")
def fixtures_dir(request: pytest.FixtureRequest) -> Path:
    folder = fixtures_folder(request.config)
    if not folder.is_dir():
        pytest.skip(f"conformance data not found at {folder} (set FUSEVM_FIXTURES or --fixtures-dir)")
    return folder
