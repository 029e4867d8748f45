"""No dependency needs a compiler: on every platform and Python that is claimed, pip finds a wheel of each."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from environments import SKIPPED

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
WITHOUT = "macos-x86-64", "3.14"  # llvmlite's last wheels for Intel Macs are older
NEWEST = "3.14"  # for which coincurve has no wheels
EXTRAS = ("batch", "node", "prove", "web3")  # the others are other people's engines and tools
# What pip may take on a machine of some years ago: it does not derive older tags from newer ones.
PLATFORMS = {
    "linux-x86-64": ["manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in range(5, 35))],
    "linux-aarch64": ["manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 35))],
    "macos-x86-64": [f"macosx_{version}_x86_64" for version in ("10_9", "10_12", "10_13", "10_15", "11_0", "12_0")],
    "macos-aarch64": [f"macosx_{version}_0_arm64" for version in (11, 12, 13, 14)],
    "windows-x86-64": ["win_amd64"],
}


def asked_for(python: str, lines: list[str] = PROJECT["dependencies"]) -> list[str]:
    """The dependencies on that Python, without their markers: pip would judge these by the Python that runs it."""
    found = [Requirement(each) for each in lines]
    wanted = [each for each in found if each.marker is None or each.marker.evaluate({"python_version": python})]
    for each in wanted:
        each.marker = None
    return [str(each) for each in wanted]


def refused(wanted: list[str], *options: str) -> str:
    """Why pip would not install this without compiling; nothing where it would."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", *options, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    return "" if done.returncode == 0 else done.stderr[-2000:]


@pytest.fixture(scope="module")
def _index() -> None:
    problem = refused(["pip"])
    if problem:
        pytest.skip(f"{SKIPPED}: {problem.strip().splitlines()[-1]}")


@pytest.mark.long
@pytest.mark.usefixtures("_index")
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_pip_finds_a_wheel_of_every_dependency(platform: str, python: str, tmp_path: Path) -> None:
    extras = [each for name in EXTRAS for each in PROJECT["optional-dependencies"][name]]
    tags = [f"--platform={tag}" for tag in PLATFORMS[platform]]
    newest = extras if python == "3.13" else []  # once per platform: they take pip a minute
    place = f"--target={tmp_path / 'nothing'}"
    found = refused([*asked_for(python), *newest], place, f"--python-version={python}", *tags)
    if (platform, python) == WITHOUT:
        assert "No matching distribution found for llvmlite" in found
    else:
        assert found == ""


@pytest.mark.long
@pytest.mark.usefixtures("_index")
@pytest.mark.parametrize("python", PYTHONS)
def test_what_the_lock_pins_can_be_installed(python: str, tmp_path: Path) -> None:
    """As `make demo` and `make test` do it, on the first release of each Python and with no compiler."""
    pinned = [each for each in (ROOT / "requirements.lock").read_text("utf-8").splitlines() if each]
    options = "--no-deps", f"--target={tmp_path / 'nothing'}", f"--python-version={python}.0"
    tags = [f"--platform={tag}" for tag in PLATFORMS["linux-x86-64"]]
    assert refused(asked_for(python, pinned), *options, *tags) == ""


@pytest.mark.long
@pytest.mark.usefixtures("_index")
def test_a_package_without_wheels_is_found_out(tmp_path: Path) -> None:
    """What the test above would say: this one has sources alone."""
    place = f"--target={tmp_path / 'nothing'}"
    assert "No matching distribution" in refused(["blake2b-py==0.2.0"], place, "--platform=manylinux2014_aarch64")


def test_coincurve_is_asked_for_where_it_has_wheels() -> None:
    for python in PYTHONS:
        assert any(each.startswith("coincurve") for each in asked_for(python)) == (python != NEWEST)
