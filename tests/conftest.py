"""Shared test set-up: where the conformance data is, and one clear line where it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ("anvil", "fakenode", "realcontracts")  # fixtures of a real node, and of contracts to run on it

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fixtures-dir",
        default=os.environ.get("FUSEVM_FIXTURES", str(ROOT.parent / "shared" / "fixtures")),
        help="folder of the conformance data (default: $FUSEVM_FIXTURES, else ../shared/fixtures)",
    )


def fixtures_folder(config: pytest.Config) -> Path:
    return Path(config.getoption("--fixtures-dir")).resolve()


@pytest.fixture(scope="session")
def fixtures_dir(request: pytest.FixtureRequest) -> Path:
    folder = fixtures_folder(request.config)
    if not folder.is_dir():
        pytest.skip(f"conformance data not found at {folder} (set FUSEVM_FIXTURES or --fixtures-dir)")
    return folder
