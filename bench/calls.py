"""What a call from outside costs, against pyrevm in the same process: STOP, one SLOAD, a token; fresh contracts.

python bench/calls.py [--tier T]… [--repeat N] [--fixtures FOLDER] [--json]

Times are the best of many short batches, in microseconds. `FUSEVM_WITHOUT=direct,kept,keccak` switches ideas off.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from fusevm import EVM
from fusevm.evm.assembly import assemble

HERE, ALICE, BOB = b"\xc0" * 20, b"\xa1" * 20, b"\xb0" * 20
BATCH = 50
CODES = {
    "STOP": "STOP",
    "RETURN of a word": "PUSH0 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN",
    "one SLOAD": "PUSH1 1 SLOAD STOP",
    "one SSTORE": "PUSH1 1 SLOAD PUSH1 1 ADD PUSH1 1 SSTORE STOP",
    "BALANCE": f"PUSH20 0x{BOB.hex()} BALANCE STOP",
}
BALANCE_OF, TRANSFER = "70a08231", "a9059cbb"


def best(run: Callable[[], object], batches: int, batch: int = BATCH) -> float:
    """Microseconds a run, in the batch that was disturbed least."""
    clock, fastest = time.perf_counter, float("inf")
    for _ in range(batches):
        started = clock()
        for _ in range(batch):
            run()
        fastest = min(fastest, clock() - started)
    return fastest / batch * 1e6


def word(address: bytes) -> str:
    return address.hex().rjust(64, "0")


def token_of(folder: Path) -> str:
    """Creation code of a token."""
    contract = json.loads((folder / "corpus" / "Token.json").read_text())["solc"]["via_ir_opt"]
    return str(contract["creation"])


class Ours:
    def __init__(self, tier: str) -> None:
        self.evm = EVM(tier=tier)
        self.evm.set_balance(ALICE, 10**24)

    def put(self, code: bytes) -> None:
        self.evm.set_code(HERE, code)
        self.evm.set_storage(HERE, 1, 5)
        self.evm.set_balance(BOB, 7)

    def deploy(self, code: bytes) -> Any:
        return self.evm.deploy(code, caller=ALICE).check().address

    def call(self, to: Any, data: bytes) -> Callable[[], object]:
        evm = self.evm
        return lambda: evm.call(to, data, caller=ALICE)


class Revm:
    def __init__(self) -> None:
        import pyrevm

        self.evm = pyrevm.EVM()
        self._set_balance(ALICE, 10**24)

    def _set_balance(self, address: bytes, balance: int) -> None:
        self.evm.set_balance("0x" + address.hex(), balance)

    def put(self, code: bytes) -> None:
        from pyrevm import AccountInfo

        self.evm.insert_account_info("0x" + HERE.hex(), AccountInfo(code=code))
        self.evm.insert_account_storage("0x" + HERE.hex(), 1, 5)
        self._set_balance(BOB, 7)

    def deploy(self, code: bytes) -> Any:
        return self.evm.deploy("0x" + ALICE.hex(), code)

    def call(self, to: Any, data: bytes) -> Callable[[], object]:
        evm, caller, where = self.evm, "0x" + ALICE.hex(), to if isinstance(to, str) else "0x" + to.hex()
        return lambda: evm.message_call(caller, where, data)


def fresh_codes(size: int) -> Iterator[bytes]:
    """Contracts of so many bytes, none of them seen before: they dispatch, loop a little, hash and store."""
    body = (
        "PUSH0 CALLDATALOAD PUSH1 0xe0 SHR DUP1 PUSH4 0x12345678 EQ PUSH1 @found JUMPI PUSH0 PUSH0 REVERT "
        "found: JUMPDEST "
        "PUSH1 4 CALLDATALOAD PUSH0 MSTORE PUSH1 64 PUSH0 KECCAK256 DUP1 SLOAD PUSH1 1 ADD SWAP1 SSTORE "
        "PUSH1 20 loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI PUSH1 32 PUSH0 RETURN "
    )
    head = assemble(body)
    block = assemble("JUMPDEST PUSH1 1 PUSH2 0x1234 ADD DUP1 MUL PUSH1 3 SWAP1 DIV POP STOP")
    filler = block * (size // len(block) + 1)
    for number in count():
        yield head + (filler + b"")[: size - len(head) - 8] + (number + time.time_ns()).to_bytes(8, "big")


def creation_of(runtime: bytes) -> bytes:
    head = assemble(f"PUSH2 {len(runtime):#06x} DUP1 PUSH1 11 PUSH0 CODECOPY PUSH0 RETURN")
    return head.ljust(11, b"\0") + runtime


def steady(machines: dict[str, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name, code in CODES.items():
        row: dict[str, Any] = {"what": name}
        for label, machine in machines.items():
            machine.put(assemble(code))
            row[label] = best(machine.call(HERE, b""), options.repeat)
        yield row
    creation = token_of(options.fixtures)
    runs = {"balanceOf": BALANCE_OF + word(BOB), "transfer": TRANSFER + word(BOB) + f"{1:064x}"}
    tokens = {label: machine.deploy(bytes.fromhex(creation.removeprefix("0x"))) for label, machine in machines.items()}
    for name, data in runs.items():
        row = {"what": f"ERC-20 {name}"}
        for label, machine in machines.items():
            row[label] = best(machine.call(tokens[label], bytes.fromhex(data)), options.repeat)
        yield row


def first_calls(machines: dict[str, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The median of many contracts: a deployment of 5 KB never seen before, and its first three calls."""
    data = bytes.fromhex("12345678") + bytes(31) + b"\1"
    deployed: dict[str, Any] = {"what": "a new contract of 5 KB: deployment"}
    called: dict[str, Any] = {"what": "a new contract of 5 KB: first three calls, each"}
    for label, machine in machines.items():
        codes, spent, calls = fresh_codes(5_000), [], []
        for _ in range(options.fresh):
            creation = creation_of(next(codes))
            started = time.perf_counter()
            to = machine.deploy(creation)
            spent.append(time.perf_counter() - started)
            call = machine.call(to, data)
            started = time.perf_counter()
            for _ in range(3):
                call()
            calls.append((time.perf_counter() - started) / 3)
        deployed[label] = sorted(spent)[len(spent) // 4] * 1e6
        called[label] = sorted(calls)[len(calls) // 4] * 1e6
    yield deployed
    yield called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", action="append", help="native and auto unless given; may be repeated")
    parser.add_argument("--repeat", type=int, default=400)
    parser.add_argument("--fresh", type=int, default=100, help="new contracts")
    fixtures = os.environ.get("FUSEVM_FIXTURES", "../shared/fixtures")
    parser.add_argument("--fixtures", type=Path, default=Path(fixtures))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    machines: dict[str, Any] = {tier: Ours(tier) for tier in options.tier or ("native", "auto")}
    machines["pyrevm"] = Revm()
    rows = [*steady(machines, options), *first_calls(machines, options)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'µs':50}" + "".join(f"{label:>10}" for label in machines) + f"{'/ pyrevm':>10}")
    for row in rows:
        cells = "".join(f"{row[label]:>10.2f}" for label in machines)
        shares = "".join(f"{row[label] / row['pyrevm']:>10.2f}" for label in machines if label != "pyrevm")
        print(f"{row['what']:50}{cells}{shares}", flush=True)


if __name__ == "__main__":
    main()
