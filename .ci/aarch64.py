"""Runs the AArch64 wheel: Ethereum's state tests on native code, the bench files' values, regions, the first call.

python .ci/aarch64.py [--sample N] [--regions N] [--jobs N] [--folder FOLDER]    (make test-aarch64)

On another processor everything runs in qemu-user: with Debian's Python for arm64 and the AArch64 wheels of what
requirements.lock pins, both unpacked into a folder. Nothing is installed, and root is not needed. On AArch64 itself
this Python runs the wheel. Only values are judged: times in emulation say nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wheels import ROOT, wheels

PLATFORM = "linux-aarch64"
FIXTURES = Path(os.environ.get("FUSEVM_FIXTURES", ROOT.parent / "shared" / "fixtures")).resolve()
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fusevm-ci" / "aarch64-1"
GLIBC = range(17, 37)  # of the manylinux wheels that Debian's Python can load: up to its own
# The product's parts that make or hold machine code.
TESTS = ["test_native_words.py", "test_native_moduli.py", "test_native_precompiles.py", "test_regions_programs.py"]
UNEMULATED = "far_apart"  # that test fills the holes between mappings; in qemu there is no end of them
COMMAND = "from fusevm.cli.start import main; main()"
FIRST_CALL = """
from fusevm import EVM
evm = EVM(tier="native")
evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")
assert evm.call("0x" + "c0" * 20).output[-1] == 3
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="so many state tests on native code (all)")
    parser.add_argument("--regions", type=int, help="so many with regions, and all bench files (own files)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one per core)")
    parser.add_argument("--folder", type=Path, default=CACHE, help=f"for all that is fetched ({CACHE})")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = machine(folder)
    with tempfile.TemporaryDirectory() as place:
        paths = [installed_wheel(Path(place)), dependencies(folder, python)]
        for name, arguments in checks(given.sample, given.regions, given.jobs):
            home = Path(place) / ("first" if name == "first call" else "home")
            run(name, [python, *arguments], paths, home)


def checks(sample: int | None, regions: int | None, jobs: int) -> Iterator[tuple[str, list[str]]]:
    """What is run, in words and as Python's arguments. Without the fixtures, on what the project wrote itself.

    Regions of one file take LLVM up to a second, and many times that in emulation: these run on the project's own
    files, unless a number is given.
    """
    archive, bench = FIXTURES / "state_tests.tar.xz", FIXTURES / "bench"
    tests = [str(archive)] if archive.exists() else []
    files = ["--dir", str(bench)] if bench.is_dir() else []
    some = [] if sample is None else ["--sample", str(sample)]
    few = [] if regions is None else [*tests, "--sample", str(regions)]
    statetest = ["-c", COMMAND, "statetest", "--jobs", str(jobs), "--tier"]
    timed = ["-c", COMMAND, "bench", "--repeat", "1", "--cold", "--tier"]
    yield "what is here", ["-c", COMMAND, "doctor"]
    yield "first call", ["-c", FIRST_CALL]
    yield "state tests, native", [*statetest, "native", *tests, *some]
    yield "state tests, regions", [*statetest, "regions", *few]
    yield "bench files, native", [*timed, "native", *files]
    yield "bench files, regions", [*timed, "regions", *([] if regions is None else files)]
    names = [str(ROOT / "tests" / name) for name in TESTS]
    yield "tests", ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not {UNEMULATED}", *names]


def run(name: str, command: list[str | Path], paths: list[Path], home: Path) -> None:
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FUSEVM_", "XDG_", "PYTHON"))}
    surroundings = {"HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    print(f"-- {name}", flush=True)
    started = time.monotonic()
    done = subprocess.run(list(map(str, command)), env=kept | surroundings, cwd=home)
    print(f"   {'failed after' if done.returncode else 'took'} {time.monotonic() - started:.1f} s", flush=True)
    if done.returncode:
        sys.exit(f"make test-aarch64: {name} failed")


# -- the wheel and what it needs


def installed_wheel(place: Path) -> Path:
    """The AArch64 wheel of the sources, made here and unpacked as pip does."""
    print("-- the wheel", flush=True)
    wheel = wheels([PLATFORM], place / "dist")[-1]
    unpacked = place / "fusevm"
    ask("pip", [*pip_install(unpacked), "--no-deps", *tags("3"), str(wheel)])
    return unpacked


def dependencies(folder: Path, python: Path) -> Path:
    """What pyproject.toml asks for and what tests need, in the versions of the lock."""
    version = ask("python", [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    wanted = [*needed, "hypothesis", "py-ecc", "pytest"]
    lock = ROOT / "requirements.lock"
    digest = hashlib.sha256(f"{version} {wanted} {lock.read_text('utf-8')}".encode()).hexdigest()[:12]
    with complete(folder / f"packages-{digest}") as place:
        if place is not None:
            ask("pip", [*pip_install(place), "--constraint", lock, *tags(version), *wanted])
    return folder / f"packages-{digest}"


def pip_install(place: Path) -> list[str | Path]:
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", place]


def tags(version: str) -> list[str]:
    platforms = ["manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in GLIBC)]
    return ["--only-binary=:all:", "--python-version", version, *(f"--platform={each}" for each in platforms)]


# -- the machine


def machine(folder: Path) -> Path:
    """A Python for AArch64: this one, or a wrapper of an emulated one, which is what `sys.executable` names there."""
    if platform.machine() in ("aarch64", "arm64"):
        return Path(sys.executable)
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    root = folder / "root"
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None and not (qemu and root.is_dir()):
            sys.exit(f"make test-aarch64: {tool} is missing; it needs Debian or Ubuntu, or a machine with AArch64")
    if qemu is None:
        with complete(folder / "qemu") as place:
            if place is not None:
                ask("apt-get", ["apt-get", "-qq", "download", "qemu-user-static"], place)
                unpack(place, place)
        qemu = str(folder / "qemu" / "usr" / "bin" / "qemu-aarch64-static")
    with complete(root) as place:
        if place is not None:
            fetch_python(place, folder)
    (program,) = (each for each in (root / "usr" / "bin").iterdir() if re.fullmatch(r"python3\.\d+", each.name))
    wrapper = root / "usr" / "bin" / "emulated-python"
    wrapper.write_text(f'#!/bin/sh\nexec "{qemu}" -0 "$0" -L "{root}" "{program}" "$@"\n', "utf-8")
    wrapper.chmod(0o755)
    return wrapper


def fetch_python(place: Path, folder: Path) -> None:
    """Python and all it depends on, as apt would install them on an empty arm64 machine."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        apt = Path(name)
        for part in ("lists/partial", "cache/archives/partial"):
            (apt / part).mkdir(parents=True)
        (apt / "status").touch()
        settings = {
            "APT::Architecture": "arm64",
            "APT::Architectures": "arm64",
            "APT::Sandbox::User": "root",
            "Debug::NoLocking": "1",
            "Dir::Cache": apt / "cache",
            "Dir::State": apt,
            "Dir::State::status": apt / "status",
        }
        command = ["apt-get", "-qq", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]
        ask("apt-get", [*command, "update"])
        install = ["install", "--yes", "--no-install-recommends", "--download-only"]
        ask("apt-get", [*command, *install, "python3", "libstdc++6"])
        unpack(apt / "cache" / "archives", place)


def unpack(packages: Path, place: Path) -> None:
    for package in sorted(packages.glob("*.deb")):
        ask("dpkg-deb", ["dpkg-deb", "--extract", package, place])
        package.unlink()


@contextmanager
def complete(folder: Path) -> Iterator[Path | None]:
    """Where to put what the folder lacks, which appears as a whole or not at all; None where it is there."""
    if folder.is_dir():
        yield None
        return
    place = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        yield place
        place.chmod(0o755)
        place.rename(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def ask(name: str, command: list[str | Path], folder: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=folder)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        sys.exit(f"make test-aarch64: {name} failed: {last}")
    return done.stdout


if __name__ == "__main__":
    main()
