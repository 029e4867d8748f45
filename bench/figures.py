"""Every figure that the documentation states, printed by a command and kept in docs/figures.json.

python bench/figures.py [SECTION…] [--again] [--render] [--list]

Runs the sections that the file does not have yet, one after another, and writes it after each of them, so that a run
that was stopped goes on where it was; `--again` measures anew what is there. Then the pages are written from their
templates in `bench/pages`, with the charts, and the numbers of README.md; `--render` only does that. The data is where
`FUSEVM_FIXTURES` says, anvil's npm package where `FUSEVM_ANVIL` says. Takes an hour on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from figure_pages import FIGURES, ROOT, Figures, render

FIXTURES = Path(os.environ.get("FUSEVM_FIXTURES", ROOT.parent / "shared" / "fixtures"))
LAB = "python -m fusevm.lab"


class Section(NamedTuple):
    """Figures that come together. Commands name programs of the virtual environment; FIXTURES and ANVIL are folders."""

    commands: tuple[str, ...]
    read: Callable[[str], Any] = json.loads


def last_line(text: str) -> str:
    """How campaigns and suites end."""
    return text.strip().splitlines()[-1].strip()


def of_suite(command: str, *tiers: str) -> Section:
    return Section(tuple(f"fusevm {command} --tier {tier}" for tier in tiers), last_line)


def campaign(*commands: str) -> Section:
    return Section(commands, last_line)


SECTIONS: dict[str, Section] = {
    # what performance.md shows
    "contracts": Section(("fusevm bench --dir FIXTURES/bench --tier auto --tier native --tier pyrevm --json",)),
    "calls": Section(("python bench/calls.py --json",)),
    "lives": Section(("python bench/lives.py --json",)),
    "bytecode": Section(("python bench/codegen.py --runs 200 --json",)),
    "optimize": Section((f"{LAB}.optimize --kind corpus --json",)),
    "node": Section(("python bench/node.py --anvil ANVIL --json",)),
    # what reliability.md shows
    "state tests": of_suite(
        "statetest FIXTURES/state_tests.tar.xz", "reference", "native", "native-tiered", "auto", "regions"
    ),
    "blockchain tests": of_suite("blocktest FIXTURES/blockchain_tests.tar.xz", "reference", "native", "auto"),
    "programs against peers": campaign(
        "fusevm fuzz --programs 2000 --seed 20261120 --peer pyrevm",
        "fusevm fuzz --programs 100 --seed 20261121 --peer spec",
    ),
    "programs on all tiers": campaign(
        "fusevm fuzz --programs 5000 --seed 20261122 --tier reference --tier native --tier auto --limits 2",
        f"{LAB}.regions.campaign --programs 300 --seed 20261123",
        f"{LAB}.soak --seconds 120 --seed 20261124",
    ),
    "compilers": campaign(
        f"{LAB}.yul.compiled --programs 300 --seed 20261125",
        f"{LAB}.yul.equivalence --programs 300 --seed 20261126 --what suite",
        f"{LAB}.optimize --kind mutated --programs 100 --seed 20261127 --first 0",
        f"{LAB}.ir.campaign blocks 4000 --seed 20261128",
        f"{LAB}.ir.campaign programs 200 --seed 20261129",
    ),
    "rules": campaign("fusevm rules --prove"),
}


def program(command: str) -> list[str]:
    """A command as the system needs it."""
    folders = {"FIXTURES": str(FIXTURES), "ANVIL": os.environ.get("FUSEVM_ANVIL", "anvil")}
    words = command.split()
    for name, folder in folders.items():
        words = [folder + word.removeprefix(name) if word.split("/")[0] == name else word for word in words]
    here = Path(sys.executable).parent
    return [str(here / words[0]), *words[1:]]


def measured(section: Section) -> dict[str, Any]:
    """Raises CalledProcessError where a command fails: nothing is kept then. One that has findings exits with 1."""
    began, results = time.monotonic(), []
    for command in section.commands:
        print(f"  {command}", file=sys.stderr, flush=True)
        done = subprocess.run(program(command), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode > 1 or not done.stdout:
            done.check_returncode()
        results.append({"command": command, "result": section.read(done.stdout)})
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": revision(),
        "machine": machine(),
        "seconds": round(time.monotonic() - began),
        "results": results,
    }


def revision() -> str:
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def machine() -> str:
    """What a reader needs to compare figures: the processor and Python."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{os.cpu_count()} processors ({processor}), {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all of them otherwise")
    parser.add_argument("--again", action="store_true", help="measure also what the file has")
    parser.add_argument("--render", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--list", action="store_true", help="print the sections and their commands")
    given = parser.parse_args()
    if given.list:
        for name, section in SECTIONS.items():
            print(name, *section.commands, sep="\n  ")
        return
    unknown = set(given.sections) - SECTIONS.keys()
    if unknown:
        parser.error(f"no section is called {', '.join(sorted(unknown))}; --list names them")
    figures: Figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    for name in [] if given.render else given.sections or SECTIONS:
        if name in figures and not given.again:
            continue
        print(name, file=sys.stderr, flush=True)
        figures[name] = measured(SECTIONS[name])
        FIGURES.write_text(json.dumps({each: figures[each] for each in SECTIONS if each in figures}, indent=1) + "\n")
    for path, text in render(figures).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
