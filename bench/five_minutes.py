"""A new user's first five minutes, timed: from `pip install` of a wheel to a decoded revert of OpenZeppelin's token.

python bench/five_minutes.py [WHEEL]

In an empty home folder and a new virtual environment. The wheel is this platform's in dist/ (`make wheel`), if none is
named. The token is compiled by npm's solc: FUSEVM_CONTRACTS names a folder with `solc` and `@openzeppelin/contracts`
(npm install solc@0.8 @openzeppelin/contracts@5).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = Path(os.environ.get("FUSEVM_CONTRACTS", Path.home() / ".cache" / "fusevm-ci" / "contracts-1"))
TIMES = 7  # of what is short, after the first
SOURCE = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Coin is ERC20 {
    constructor(uint256 supply) ERC20("Coin", "CN") { _mint(msg.sender, supply); }
}"""
COMPILE = """const fs = require('fs'), path = require('path'), solc = require('solc');
const find = name => ({contents: fs.readFileSync(path.join(process.cwd(), 'node_modules', name), 'utf8')});
const made = JSON.parse(solc.compile(fs.readFileSync(0, 'utf8'), {import: find})).contracts['Coin.sol'].Coin;
console.log(JSON.stringify({abi: made.abi, bytecode: made.evm.bytecode.object}));"""
# What a user would write first.
FIRST_CALL = """
import sys
from fusevm import EVM
evm = EVM(tier=sys.argv[1])
evm.set_code("0x" + "c0" * 20, "0x600160020160005260206000f3")
print(int.from_bytes(evm.call("0x" + "c0" * 20).output, "big"))
"""
REVERT = """
import sys
from fusevm import EVM
alice, bob = "0x" + "a1" * 20, "0x" + "b0" * 20
evm = EVM()
token = evm.deploy_contract(sys.argv[1], 1000, caller=alice)
assert token.transfer(bob, 7, caller=alice).ok
assert token.balanceOf(bob).value == 7
print(token.transfer(alice, 8, caller=bob).error)
"""


def main() -> None:
    wheel = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else own_wheel()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("FUSEVM_", "XDG_", "PYTHON"))}
        surroundings = kept | {"HOME": name, "USERPROFILE": name}
        binaries = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python, command = str(binaries / "python"), str(binaries / "fusevm")

        def timed(what: str, *arguments: str, times: int = 1) -> str:
            taken: list[tuple[float, float]] = []
            for _ in range(times):
                before = os.times()
                done = subprocess.run(arguments, env=surroundings, cwd=home, capture_output=True, text=True)
                after = os.times()
                cpu = sum(after[2:4]) - sum(before[2:4])  # of processes that have ended
                taken.append((after.elapsed - before.elapsed, cpu))
                if done.returncode:
                    sys.exit(f"five minutes: {what} failed:\n{done.stdout}{done.stderr}")
            seconds, cpu = map(min, zip(*taken[1:], strict=True)) if times > 1 else taken[0]
            print(f"{what:42} {taken[0][0]:6.2f} s {seconds:8.2f} s {cpu:8.2f} s", flush=True)
            return done.stdout.strip()

        print(f"{'':44} first     later   CPU time (best of {TIMES - 1} where it is short)")
        began = time.perf_counter()
        timed("python -m venv", sys.executable, "-m", "venv", str(home / "venv"))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:")
        timed(f"pip install {wheel.name[:29]}…", *pip, str(wheel))
        for tier in ("native", "auto"):
            timed(f"a first call, from starting Python, {tier}", python, "-c", FIRST_CALL, tier, times=TIMES)
        timed("fusevm --version", command, "--version", times=TIMES)
        bare = [timed(what, python, "-c", code, times=TIMES) for what, code in IMPORTS.items()]
        assert bare == ["", ""]
        artifact = home / "Coin.json"
        artifact.write_text(compiled(), "utf-8")
        told = timed("OpenZeppelin's token: deploy, pay, revert", python, "-c", REVERT, str(artifact), times=TIMES)
        print(f"  {told}")
        print(f"all of it {time.perf_counter() - began:35.2f} s")


IMPORTS = {"python -c pass": "pass", "python -c 'import fusevm'": "import fusevm"}


def own_wheel() -> Path:
    from fusevm.native.cache.ready import platform_of_host

    sign = {"linux-x86-64": "manylinux*x86_64", "linux-aarch64": "manylinux*aarch64", "macos-x86-64": "macosx*x86_64"}
    sign |= {"macos-aarch64": "macosx*arm64", "windows-x86-64": "win_amd64"}
    found = sorted((ROOT / "dist").glob(f"fusevm-*{sign.get(platform_of_host(), 'any')}*.whl"))
    if not found:
        sys.exit("five minutes: dist/ has no wheel for this platform; `make wheel` builds it, or name one")
    return found[-1]


def compiled() -> str:
    """The token's artifact, as JSON."""
    if shutil.which("node") is None or not (CONTRACTS / "node_modules" / "@openzeppelin").is_dir():
        sys.exit(f"five minutes: node, or npm's solc and @openzeppelin/contracts in {CONTRACTS}, are missing")
    wanted = {
        "language": "Solidity",
        "sources": {"Coin.sol": {"content": SOURCE}},
        "settings": {
            "optimizer": {"enabled": True, "runs": 200},
            "outputSelection": {"*": {"*": ["abi", "evm.bytecode.object"]}},
        },
    }
    command = ["node", "-e", COMPILE]
    done = subprocess.run(command, input=json.dumps(wanted), cwd=CONTRACTS, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
