"""The table of docs/performance.md from a run of the bench.

fusevm bench --peers --limit 0.6 --repeat 7 --tier native --tier native-unfused --json | python bench/table.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from fusevm.lab.peers.bench import GROUPS, LARGE, geometric_mean
from patterns import BOUND


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def main() -> None:
    rows: list[dict[str, Any]] = json.load(sys.stdin)
    print("| file | instructions | native | unfused | pyrevm | native is faster by | fusion brings |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    faster, fusion = {}, {}
    for row in rows:
        native, unfused, peer = (row["seconds"][name] for name in ("native", "native-unfused", "pyrevm"))
        faster[row["name"]], fusion[row["name"]] = peer / native, unfused / native
        times = " | ".join(shown(each) for each in (native, unfused, peer))
        print(f"| {row['name']} | {row['ops']:,} | {times} | {peer / native:.2f} | {unfused / native:.2f} |")
    for line in summary({row["name"]: row["group"] for row in rows}, faster):
        print(line)
    large = [row["name"] for row in rows if row["ops"] >= LARGE]
    unbound = [name for name in large if name not in BOUND]
    every, some = geometric_mean([fusion[name] for name in large]), geometric_mean([fusion[name] for name in unbound])
    print(f"\nFused against unfused: {every:.2f}; neither hash- nor storage-bound: {some:.2f}.")


def summary(groups: dict[str, str], faster: dict[str, float]) -> Iterator[str]:
    """The means of docs/performance.md, contracts and synthetic files apart."""
    yield "\n| group | files | native against pyrevm, geometric mean | least | most |"
    yield "| --- | --- | --- | --- | --- |"
    for group in (*GROUPS, "all"):
        names = sorted((name for name in faster if group in (groups[name], "all")), key=faster.__getitem__)
        ends = (f"{faster[name]:.2f} ({name})" for name in (names[0], names[-1]))
        mean = geometric_mean([faster[name] for name in names])
        yield f"| {group} | {len(names)} | {mean:.2f} | {' | '.join(ends)} |"


if __name__ == "__main__":
    main()
