"""Virtual environments for tests of adapters: the other tool and fusevm's dependencies, kept in a cache folder.

The tools conflict with the versions that development uses, so they never share an environment with it. fusevm itself is
taken from `src`. `FUSEVM_ENVIRONMENTS` names the folder; the default is in the user's cache.

`.ci/upstream.py` tests what comes next: with `FUSEVM_UPSTREAM` the tools are the newest there are, pre-releases too,
and `FUSEVM_CHECKOUT_VYPER` (or `…_TITANOBOA`, …) names a folder with the tool's own sources to take instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOREIGN = ROOT / "tests" / "foreign"
INSTALL_SECONDS = 400
RUN_SECONDS = 590
TOOLS = ("eth-ape", "eth-tester", "titanoboa", "vyper", "web3")  # that have adapters
ALONE = ("wake",)  # that never import fusevm, and want other versions of what it needs
SKIPPED = "the package index has no environment for us"  # .ci/run looks for this


def cache_folder() -> Path:
    given = os.environ.get("FUSEVM_ENVIRONMENTS")
    if given is not None:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fusevm-environments"


def checkout(package: str) -> Path | None:
    """The folder with the sources of a package that are to be tested, if one was given."""
    given = os.environ.get(f"FUSEVM_CHECKOUT_{package.upper().replace('-', '_')}")
    return None if given is None else Path(given).resolve()


def newest(requirement: str) -> str:
    """Of a tool, the newest version there is: a lower bound that is a pre-release admits others."""
    found = re.match(r"([\w-]+)[=>]=([\d.]+)((?:a|b|rc)\d+)?", requirement)
    if found is None or found[1] not in TOOLS:
        return requirement
    return f"{found[1]}>={found[2]}{found[3] or 'rc0'}"


def requirements_of(name: str, *more: str) -> list[str]:
    """What fusevm and the extra of that name, if there is one, need; and pytest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tools = [*project["optional-dependencies"].get(name, []), *more]
    if os.environ.get("FUSEVM_UPSTREAM"):
        tools = [newest(each) for each in tools]
    return sorted(tools if name in ALONE else [*project["dependencies"], "pytest>=8,<9", *tools])


def environment(name: str, *more: str) -> Path:
    """The Python of an environment for a tool; made anew where its requirements have changed."""
    wanted = requirements_of(name, *more)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(json.dumps([version, wanted]).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{name}-{digest}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "complete").exists():
        _make(folder, python, wanted)
    return python


def _make(folder: Path, python: Path, wanted: list[str]) -> None:
    """Another process may do the same; whoever is first is taken."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        subprocess.run([sys.executable, "-m", "venv", made], check=True, capture_output=True, timeout=INSTALL_SECONDS)
        inside = made / python.relative_to(folder)
        command = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
        for each in wanted:
            _install_checkout(inside, re.split(r"[^\w.-]", each)[0], folder)
        (made / "complete").touch()
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    except (subprocess.SubprocessError, OSError) as error:
        detail = (getattr(error, "stderr", None) or b"").decode(errors="replace")
        last = [line for line in detail.strip().splitlines() if not line.startswith("WARNING:")][-1:]
        late = isinstance(error, subprocess.TimeoutExpired)
        pytest.skip(f"{SKIPPED}: {error if late or not last else last[0]}")
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _install_checkout(python: Path, package: str, folder: Path) -> None:
    """A copy of the sources that are to be tested, in the place of what the package index has."""
    given = checkout(package)
    if given is None:
        return
    copied = _copy_of(folder, package)
    shutil.copytree(given, copied, symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", str(copied)]
    version = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "99.0"}  # a copy has no history to tell it by
    subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS, env=version)


def _copy_of(folder: Path, package: str) -> Path:
    return folder.parent / f"{folder.name}-{package}"


def sources(python: Path, package: str) -> Path:
    """The unpacked source distribution of a package, of the version that the environment has."""
    if checkout(package) is not None:
        return _copy_of(python.parent.parent, package)
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    folder = cache_folder() / f"{package}-{version}-sources"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
            exact = f"{package}=={version}"
            command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", made]
            try:
                subprocess.run([*command, exact], check=True, capture_output=True, timeout=INSTALL_SECONDS)
            except subprocess.SubprocessError as error:
                pytest.skip(f"{SKIPPED}: {error}")
            (archive,) = Path(made).glob("*.tar.gz")
            shutil.unpack_archive(archive, Path(made) / "unpacked", filter="data")
            (unpacked,) = (Path(made) / "unpacked").iterdir()
            if not folder.is_dir():
                unpacked.rename(folder)
    return folder


def run_inside(python: Path, *arguments: str, cwd: Path, paths: tuple[Path, ...] = ()) -> str:
    """What Python prints there, fusevm's sources on its path."""
    search = os.pathsep.join(map(str, (ROOT / "src", *paths)))
    surroundings = {**os.environ, "PYTHONPATH": search, "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, env=surroundings, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    return done.stdout + done.stderr


def failed_inside(python: Path, *arguments: str, cwd: Path, paths: tuple[Path, ...] = ()) -> tuple[set[str], int]:
    """Which tests failed, and how many passed."""
    printed = run_inside(
        python, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", *arguments, cwd=cwd, paths=paths
    )
    passed = re.search(r"(\d+) passed", printed)
    assert passed, printed[-5_000:]
    print(printed[-20_000:])
    return set(re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", printed, re.MULTILINE)), int(passed[1])


def pytest_inside(python: Path, *arguments: str, cwd: Path, paths: tuple[Path, ...] = ()) -> dict[str, int]:
    """How many tests passed, failed and so on. What failed is printed, and so in the report of the test that asks."""
    plain = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(cwd))
    printed = run_inside(python, *plain, *arguments, cwd=cwd, paths=paths)
    counts = {
        kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed)", printed)
    }
    if set(counts) - {"passed"}:
        print(printed[-20_000:])
    assert counts, printed[-5_000:]
    return counts
