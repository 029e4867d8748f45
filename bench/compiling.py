"""How long compiling Yul takes: fusevm with everything on, its exact mode, and solc's npm package, in the same run.

python bench/compiling.py FILE… --solc FOLDER [--rounds 3] [--json]

Seconds of processor time, the best of some rounds that take turns, each in a new process; starting the process and
loading the compiler count for neither. The folder has the npm package solc installed (default: FUSEVM_SOLC).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SOLC = """
const solc = require('solc'), given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const begun = process.cpuUsage();
const made = JSON.parse(solc.compile(JSON.stringify(given)));
const { user, system } = process.cpuUsage(begun);
const [object] = Object.values(Object.values(made.contracts ?? {})[0] ?? {});
if (!object) { console.error(made.errors[0].formattedMessage); process.exit(1); }
console.log(JSON.stringify([(user + system) / 1e6, object.evm.bytecode.object.length / 2]));
"""
OURS = """
import json, sys, time
from fusevm import yul
text, exact = sys.stdin.read(), sys.argv[1] == "exact"
begun = time.process_time()
made = yul.compile(yul.optimize(text), runs=None) if exact else yul.compile(text, runs=200)
print(json.dumps([time.process_time() - begun, len(made.code)]))
"""


def ours(text: str, mode: str) -> tuple[float, int]:
    command = [sys.executable, "-c", OURS, mode]
    seconds, size = json.loads(
        subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE, check=True).stdout
    )
    return seconds, size


def theirs(text: str, folder: Path) -> tuple[float, int]:
    optimizer = {"enabled": True, "runs": 200, "details": {"yul": True}}
    outputs = {"*": {"*": ["evm.bytecode.object"]}}
    settings = {"optimizer": optimizer, "evmVersion": "osaka", "outputSelection": outputs}
    given = json.dumps({"language": "Yul", "sources": {"a.yul": {"content": text}}, "settings": settings})
    command = ["node", "-e", SOLC]
    done = subprocess.run(command, input=given, text=True, stdout=subprocess.PIPE, check=True, cwd=folder)
    seconds, size = json.loads(done.stdout)
    return seconds, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--solc", type=Path, default=os.environ.get("FUSEVM_SOLC"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.solc is None:
        parser.error("--solc or FUSEVM_SOLC must name a folder with solc's npm package")
    if not options.json:
        print(f"{'':16}{'fusevm':>10}{'exact':>10}{'solc':>10}{'fusevm/solc':>13}{'bytes':>8}{'solc':>8}")
    for file in options.files:
        text = file.read_text("utf-8")
        rounds = [
            (ours(text, "optimised"), ours(text, "exact"), theirs(text, options.solc)) for _ in range(options.rounds)
        ]
        (best, size), (exact, _), (solc, solc_size) = map(min, zip(*rounds, strict=True))
        if options.json:
            found = {"fusevm": best, "exact": exact, "solc": solc, "bytes": size, "solc_bytes": solc_size}
            print(json.dumps({"file": file.stem, **found}), flush=True)
        else:
            row = f"{file.stem:16}{best:9.2f}s{exact:9.2f}s{solc:9.2f}s{best / solc:13.2f}{size:8,}{solc_size:8,}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
