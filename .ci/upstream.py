"""Tests the adapters on what their tools are going to be: `python .ci/upstream.py [boa vyper eth_tester web3 ape]`.

The newest versions of the package index are taken, pre-releases too and past the upper pins of our extras; `boa=FOLDER`
and `vyper=FOLDER` test a checkout of the tool's own repository, with its own tests. What fails here, users meet next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = {"boa": "titanoboa", "vyper": "vyper", "eth_tester": "eth-tester", "web3": "web3", "ape": "eth-ape"}


def surroundings(asked: list[str], environments: str) -> dict[str, str]:
    """For the tests: which tools, and where their sources are."""
    found = {**os.environ, "FUSEVM_UPSTREAM": "1", "FUSEVM_WHOLE_CORPUS": "1", "FUSEVM_ENVIRONMENTS": environments}
    for each in asked:
        name, _, folder = each.partition("=")
        if name not in TOOLS:
            sys.exit(f"upstream: {name!r} is not a tool with an adapter; expected some of {', '.join(TOOLS)}")
        if folder:
            if not Path(folder).is_dir():
                sys.exit(f"upstream: {folder} is not a folder; expected a checkout of {TOOLS[name]}'s repository")
            found[f"FUSEVM_CHECKOUT_{TOOLS[name].upper().replace('-', '_')}"] = str(Path(folder).resolve())
    return found


def main() -> None:
    asked = sys.argv[1:] or list(TOOLS)
    with tempfile.TemporaryDirectory() as environments:  # made anew: the newest of today
        given = surroundings(asked, environments)
        tests = [f"tests/test_adapters_{each.partition('=')[0]}.py" for each in asked]
        sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-rs", *tests], cwd=ROOT, env=given).returncode)


if __name__ == "__main__":
    main()
