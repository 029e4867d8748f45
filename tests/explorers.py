"""A `fusevm explore` process for tests, started in an environment that has aiohttp, on a free port."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from started import Started

ROOT = Path(__file__).resolve().parent.parent


class Explorer(Started):
    """Running until the `with` block ends; `url` is what it printed."""

    def __init__(self, python: Path, *arguments: str) -> None:
        command = [*_command(python), "--no-browser", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_surroundings()
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("Exploring at "):
            self.stop()
            raise RuntimeError(f"the explorer ended before it listened: {self.errors}")
        self.url = line.removeprefix("Exploring at ").strip()

    def __enter__(self) -> Explorer:
        return self


def exported(python: Path, source: Path, target: Path) -> str:
    """What `fusevm explore --export` prints."""
    command = [*_command(python), str(source), "--export", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, env=_surroundings(), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _command(python: Path) -> list[str]:
    return [str(python), "-c", "from fusevm.cli.start import main; main()", "explore"]


def _surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
