"""The first call of a contract in a new process: with empty caches, and with what an earlier process left on disk.

python bench/cold.py [FOLDER OF BENCH FILES]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_CALL = """
import sys, time
started = time.perf_counter()
from fusevm import EVM
from fusevm.cli.execution import Request, prepare
prepared = prepare(Request(sys.argv[1], tier="native"))
ready = time.perf_counter()
prepared.run()
first = time.perf_counter()
prepared.run()
print(ready - started, first - ready, time.perf_counter() - first)
"""


def main() -> None:
    folder = (
        Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")) / "bench"
    )
    print("file                            caches   import   first call   next call")
    with tempfile.TemporaryDirectory() as cache:
        for name in sorted(path.stem for path in folder.glob("*.json")):
            for state in ("empty", "warm"):
                where = str(Path(cache) / name)
                command = [sys.executable, "-c", ONE_CALL, str(folder / f"{name}.json")]
                done = subprocess.run(
                    command, env=os.environ | {"FUSEVM_CACHE": where}, capture_output=True, text=True, check=True
                )
                imported, first, following = (float(word) * 1e3 for word in done.stdout.split())
                print(f"{name:31} {state:7} {imported:6.0f} ms {first:9.1f} ms {following:8.2f} ms", flush=True)


if __name__ == "__main__":
    main()
