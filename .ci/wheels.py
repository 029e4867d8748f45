"""Builds the wheels, all of them on any machine: a pure one, and one per platform that carries handlers for it.

python .ci/wheels.py [PLATFORM…]    (make wheel: this machine's platform; `all` for every one)

LLVM makes code for every platform. A platform's wheel is the pure one with its handlers, another tag and a new RECORD.
Where there is no wheel for a platform, pip takes the pure one, and handlers are built on first use.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from fusevm.native.cache.ready import FOLDER, LEVELS, TRIPLES, platform_of_host
from fusevm.native.emit.ready import make_all

ROOT = Path(__file__).resolve().parent.parent
INSIDE = FOLDER.relative_to(ROOT / "src").as_posix()
# What pip calls the platforms. Handlers call nothing but memmove and the like, so any libc and any system will do that
# a Python from 3.11 on runs on.
TAGS = {
    "linux-x86-64": ("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-aarch64": ("manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "macos-x86-64": ("macosx_10_13_x86_64",),
    "macos-aarch64": ("macosx_11_0_arm64",),
    "windows-x86-64": ("win_amd64",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ["all", "here", *TRIPLES]
    parser.add_argument("platforms", nargs="*", choices=choices, default="here", metavar="PLATFORM", help="(here)")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="a folder (dist)")
    given = parser.parse_args()
    wanted = [given.platforms] if isinstance(given.platforms, str) else given.platforms
    named = [platform_of_host() if each == "here" else each for each in wanted]
    for path in wheels(list(TRIPLES) if "all" in named else named, given.into):
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def wheels(platforms: Iterable[str], folder: Path) -> list[Path]:
    """The pure one, and one for each of these platforms, as far as handlers can be delivered for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        pure = pure_wheel(Path(place))
        made = [folder / pure.name]
        made[0].write_bytes(pure.read_bytes())
        for platform in platforms:
            levels = [name for name, level in LEVELS.items() if level.platform == platform]
            if levels:
                objects = Path(place) / platform
                make_all(levels, objects)
                made.append(platform_wheel(pure, platform, sorted(objects.iterdir()), folder))
    return made


def pure_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True)
    (made,) = folder.glob("*.whl")
    return made


def platform_wheel(pure: Path, platform: str, objects: Iterable[Path], folder: Path) -> Path:
    """The pure wheel with these files, for one platform."""
    tags = TAGS[platform]
    path = folder / pure.name.replace("-none-any.whl", f"-none-{'.'.join(tags)}.whl")
    with zipfile.ZipFile(pure) as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        record = next(each for each in given.infolist() if each.filename.endswith(".dist-info/RECORD"))
        contents = {each.filename: given.read(each) for each in given.infolist() if each is not record}
        about = record.filename.replace("RECORD", "WHEEL")
        contents[about] = _tagged(contents[about].decode(), tags).encode()
        contents |= {f"{INSIDE}/{each.name}": each.read_bytes() for each in objects}
        lines = [f"{name},{_digest(content)},{len(content)}" for name, content in contents.items()]
        contents[record.filename] = "\n".join([*lines, f"{record.filename},,", ""]).encode()
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, record.date_time)
            entry.external_attr = record.external_attr
            made.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def checked(wheel: Path) -> None:
    """Exits unless the wheel has the handlers of its platform, of all levels, and a RECORD of what is in it."""
    with zipfile.ZipFile(wheel) as given:
        contents = {name: given.read(name) for name in given.namelist()}
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    lines = {f"{name},{_digest(content)},{len(content)}" for name, content in contents.items() if name != record}
    if {line for line in contents[record].decode().splitlines() if line} != {*lines, f"{record},,"}:
        sys.exit(f"{wheel.name}: its RECORD does not fit what is in it; build it anew")
    found = {name.rpartition("/")[2].partition("-")[2] for name in contents if name.startswith(f"{INSIDE}/")}
    platform = next((name for name, tags in TAGS.items() if ".".join(tags) in wheel.name), None)
    wanted = {f"{name}.xz" for name, level in LEVELS.items() if level.platform == platform}
    if found != wanted:
        sys.exit(f"{wheel.name}: it has handlers for {sorted(found)}, and should for {sorted(wanted)}")


def _tagged(about: str, tags: Iterable[str]) -> str:
    about = about.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    return re.sub(r"Tag: (\S+)-any\n", lambda found: "".join(f"Tag: {found[1]}-{tag}\n" for tag in tags), about)


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
