"""The table of docs/performance.md from a run of the bench.

fusevm bench --peers --limit 0.6 --repeat 7 --tier native --tier native-unfused --json | python bench/table.py
"""

from __future__ import annotations

import json
import sys
from typing import Any

from fusevm.lab.peers.bench import geometric_mean
from patterns import BOUND, LARGE


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
    large = [row["name"] for row in rows if row["ops"] >= LARGE]
    small = [row["name"] for row in rows if row["ops"] < LARGE]
    least = min(large, key=faster.__getitem__)
    unbound = [name for name in large if name not in BOUND]
    print("\n| over the files of 10,000 instructions and more | |\n| --- | --- |")
    mean = geometric_mean([faster[name] for name in large])
    print(f"| native against pyrevm, geometric mean | **{mean:.2f}** (least: {faster[least]:.2f}, {least}) |")
    print(f"| ten-thousand-hashes | {faster['ten-thousand-hashes']:.2f} |")
    all_of_them, some = geometric_mean([fusion[n] for n in large]), geometric_mean([fusion[n] for n in unbound])
    print(f"| fused against unfused | {all_of_them:.2f}; neither hash- nor storage-bound: {some:.2f} |")
    small.sort(key=faster.__getitem__)
    ends = " to ".join(f"{1 / faster[name]:.2f} ({name})" for name in (small[-1], small[0]))
    print(f"\nOn smaller files native takes {ends} times as long as pyrevm.")


if __name__ == "__main__":
    main()
