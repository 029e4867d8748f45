"""Builds the sdist and the wheels of all platforms, checks them with twine, and tries those that run here.

python .ci/release.py [--python PATH]…    (make release)

The sdist, the pure wheel and this platform's are tried in empty virtual environments, on every Python from 3.11 on that
is found: those named, those of pyenv, and python3.N on the path. Each gets a home of its own, so that nothing kept
elsewhere helps. `make test-aarch64` tries the wheel for AArch64. Nothing is published.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wheels import ROOT, TAGS, checked, wheels

from fusevm.native.cache.ready import platform_of_host

DIST = ROOT / "dist"
NEWEST, OLDEST = 20, 11  # of Python 3, to look for
FIRST_CALL = 5.0  # seconds, from starting Python to the first native result, generously
FIRST_MINUTES = """
from fusevm import EVM, yul
evm = EVM(tier="native")
source = "{ if iszero(calldatasize()) { mstore(0, shl(224, 0x4e487b71)) mstore(4, 0x11) revert(0, 36) } return(0, 32) }"
evm.set_code("0x" + "c0" * 20, yul.compile(source).code)
contract = evm.contract(["function f() returns (uint256)"], "0x" + "c0" * 20)
assert contract.f().value == 0
assert evm.call(contract).error == "reverted: Panic(0x11: arithmetic overflow or underflow)"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", type=Path, help="an interpreter to try; may be repeated")
    given = parser.parse_args().python
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = Environment(Path(sys.executable), Path(folder) / "tools")
        tools.pip("build>=1.2", "twine>=6")
        run([tools.python, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
        for wheel in wheels(TAGS, DIST):
            checked(wheel)
        built = sorted(DIST.iterdir())
        run([tools.python, "-m", "twine", "check", "--strict", *built])
        here = [archive for archive in built if runs_here(archive)]
        for number, python in enumerate(given or pythons()):
            for place, archive in enumerate(here):
                attempt(python, archive, Path(folder) / f"{number}-{place}")
    for archive in built:
        print(f"{archive.relative_to(ROOT)}: {archive.stat().st_size:,} bytes")


def runs_here(archive: Path) -> bool:
    tags = TAGS.get(platform_of_host(), ())
    return archive.suffix != ".whl" or "-none-any" in archive.name or any(tag in archive.name for tag in tags)


def pythons() -> list[Path]:
    """One of each version."""
    found: dict[str, Path] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(OLDEST, NEWEST):
        name = f"python3.{minor}"
        places = [*pyenv.glob(f"3.{minor}.*/bin/{name}"), *filter(None, [shutil.which(name)])]
        if places:
            found[name] = Path(places[0])
    return list(found.values())


class Environment:
    """A virtual environment with an empty home."""

    def __init__(self, python: Path, folder: Path) -> None:
        run([python, "-m", "venv", folder])
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        self.home = folder / "home"
        self.home.mkdir()

    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FUSEVM_", "XDG_", "PYTHON"))}
        return kept | {"HOME": str(self.home), "USERPROFILE": str(self.home)}

    def pip(self, *wanted: str) -> None:
        run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])

    def run(self, *command: str | Path) -> None:
        run(list(command), self.variables(), self.home)


def attempt(python: Path, archive: Path, folder: Path) -> None:
    """Installs without compiling anything but ourselves, and runs."""
    environment = Environment(python, folder)
    own = [] if archive.suffix == ".whl" else ["--no-binary", "fusevm"]
    environment.pip("--only-binary", ":all:", *own, str(archive))
    environment.run(environment.bin / "fusevm", "--version")
    started = time.perf_counter()
    environment.run(environment.python, "-c", FIRST_MINUTES)
    seconds = time.perf_counter() - started
    environment.run(environment.bin / "fusevm", "doctor")
    environment.run(environment.bin / "fusevm", "statetest", "--tier", "native")
    print(f"{archive.name} on {python.name}: the first call, from nothing, took {seconds:.2f} s", flush=True)
    if runs_here(archive) and "-none-any" not in archive.name and archive.suffix == ".whl" and seconds > FIRST_CALL:
        print(f"warning: more than {FIRST_CALL:g} s; are there handlers for this processor in the wheel?", flush=True)


def run(command: list[str | Path], variables: dict[str, str] | None = None, folder: Path | None = None) -> None:
    done = subprocess.run([str(part) for part in command], env=variables, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
