"""Pins everything in use: what `pip freeze` prints becomes requirements.lock.

Lines with a marker are kept as they are: they pin what has wheels for some Pythons only, which one environment cannot
tell.

python -m pip freeze --exclude-editable | python .ci/lock.py
"""

from __future__ import annotations

import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"


def name_of(line: str) -> str:
    return line.partition("==")[0].strip().lower().replace("_", "-")


def main() -> None:
    kept = [line for line in LOCK.read_text("utf-8").splitlines() if ";" in line]
    names = {name_of(line) for line in kept} | {"fusevm"}
    found = [line for line in sys.stdin.read().splitlines() if name_of(line) not in names]
    LOCK.write_text("\n".join(sorted(found + kept, key=name_of)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
