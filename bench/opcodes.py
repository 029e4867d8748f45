"""Every opcode many times in a row, natively and in pyrevm: nanoseconds each, the least favourable first.

python bench/opcodes.py [PART OF A NAME…]

What pushes the operands and drops the result is counted with it, on both sides.
"""

from __future__ import annotations

import sys

from fusevm.chain.environment import Block
from fusevm.chain.state import Account
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_BYTE
from fusevm.lab.peers.engines import engine_named
from fusevm.lab.peers.work import PeerEngine, PeerWork

HERE, CALLER, OTHER = b"\xcc" * 20, b"\x11" * 20, b"\x22" * 20
NOBODY = "0x" + "33" * 20
TIMES, RUNS = 500, 40
BIG = ("0x" + "e3" * 32, "0x" + "17" * 31, "0x0123456789abcdef0123456789abcdef")
BN254 = "0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47"  # primes of curves
SECP256K1 = hex(2**256 - 2**32 - 977)
ELSEWHERE = f"PUSH20 0x{OTHER.hex()}"
FOUR = "PUSH0 PUSH0 PUSH0 PUSH0"
ANSWER = "PUSH 32 PUSH0 PUSH 32 PUSH0"

SPECIAL = {
    "MLOAD": "PUSH 64 MLOAD POP",
    "MSTORE": "PUSH 7 PUSH 64 MSTORE",
    "MSTORE8": "PUSH 7 PUSH 64 MSTORE8",
    "MCOPY": "PUSH 64 PUSH0 PUSH 32 MCOPY",
    "MCOPY of 1 KB": "PUSH 1024 PUSH0 PUSH 32 MCOPY",
    "CALLDATACOPY": "PUSH 64 PUSH0 PUSH0 CALLDATACOPY",
    "CODECOPY": "PUSH 64 PUSH0 PUSH0 CODECOPY",
    "RETURNDATACOPY": "PUSH0 PUSH0 PUSH0 RETURNDATACOPY",
    "KECCAK256 of 32": "PUSH 32 PUSH0 KECCAK256 POP",
    "KECCAK256 of 64": "PUSH 64 PUSH0 KECCAK256 POP",
    "KECCAK256 of 1 KB": "PUSH 1024 PUSH0 KECCAK256 POP",
    "SLOAD": "PUSH 5 SLOAD POP",
    "SLOAD, cold": "GAS SLOAD POP",
    "SSTORE, no change": "PUSH 3 PUSH 5 SSTORE",
    "SSTORE, a change": "GAS PUSH 5 SSTORE",
    "SSTORE, a new slot": "GAS DUP1 SSTORE",
    "TLOAD": "PUSH 5 TLOAD POP",
    "TSTORE": "GAS PUSH 5 TSTORE",
    "BALANCE": f"{ELSEWHERE} BALANCE POP",
    "BALANCE, cold": "GAS BALANCE POP",
    "EXTCODESIZE": f"{ELSEWHERE} EXTCODESIZE POP",
    "EXTCODEHASH": f"{ELSEWHERE} EXTCODEHASH POP",
    "EXTCODECOPY": f"PUSH 32 PUSH0 PUSH0 {ELSEWHERE} EXTCODECOPY",
    "LOG0": "PUSH 32 PUSH0 LOG0",
    "LOG4": "PUSH 4 PUSH 3 PUSH 2 PUSH 1 PUSH 32 PUSH0 LOG4",
    "CALL": f"{FOUR} PUSH0 {ELSEWHERE} GAS CALL POP",
    "CALL with value": f"{FOUR} PUSH 1 {ELSEWHERE} GAS CALL POP",
    "CALL of nobody": f"{FOUR} PUSH0 PUSH20 {NOBODY} GAS CALL POP",
    "CALLCODE": f"{FOUR} PUSH0 {ELSEWHERE} GAS CALLCODE POP",
    "DELEGATECALL": f"{FOUR} {ELSEWHERE} GAS DELEGATECALL POP",
    "STATICCALL": f"{FOUR} {ELSEWHERE} GAS STATICCALL POP",
    "identity": f"{ANSWER} PUSH 4 GAS STATICCALL POP",
    "sha256": f"{ANSWER} PUSH 2 GAS STATICCALL POP",
    "CREATE": "PUSH0 PUSH0 PUSH0 CREATE POP",
    "CREATE2": "GAS PUSH0 PUSH0 PUSH0 CREATE2 POP",
    "EXP, 10 to the 18": "PUSH 18 PUSH 10 EXP POP",
    "DIV by 7": f"PUSH 7 PUSH {BIG[0]} DIV POP",
    "DIV by two limbs": f"PUSH {BIG[2]} PUSH {BIG[0]} DIV POP",
    "MULMOD, large": f"PUSH {BIG[0]} PUSH {BIG[1]} GAS MULMOD POP",
    "MULMOD, larger": f"PUSH {BIG[0]} PUSH {BIG[1]} GAS NOT MULMOD POP",
    "MULMOD, new moduli": f"GAS NOT PUSH {BIG[0]} PUSH {BIG[1]} MULMOD POP",
    "MULMOD, a curve's": f"PUSH {BN254} PUSH {BIG[1]} GAS PUSH {BIG[1]} XOR MULMOD POP",
    "MULMOD, secp256k1's": f"PUSH {SECP256K1} PUSH {BIG[1]} GAS PUSH {BIG[1]} XOR MULMOD POP",
    "MULMOD's operands": f"PUSH {SECP256K1} PUSH {BIG[1]} GAS PUSH {BIG[1]} XOR POP POP POP",
    "MULMOD by 2^256 - 1": f"PUSH0 NOT PUSH {BIG[1]} GAS NOT MULMOD POP",
    "MULMOD by two limbs": f"PUSH {BIG[2]} PUSH {BIG[1]} GAS NOT MULMOD POP",
    "DUP16": "DUP16 POP",
    "SWAP16": "SWAP16",
    "PUSH32": f"PUSH32 {BIG[0]} POP",
}
LEFT_OUT = {"STOP", "RETURN", "REVERT", "INVALID", "SELFDESTRUCT", "SUICIDE", "JUMP", "JUMPI", "JUMPDEST", "CLZ", "POP"}


def bodies() -> dict[str, str]:
    """What is repeated, by name. Operands are two large words and one nobody can foretell."""
    named = {name.split()[0].rstrip(",") for name in SPECIAL}
    found = dict(SPECIAL)
    for name, op in ((op.name, op) for op in BY_BYTE.values()):
        if name in LEFT_OUT | named or name.startswith(("PUSH", "DUP", "SWAP", "LOG")):
            continue
        operands = " ".join(f"PUSH {word}" for word in BIG[: op.pops - 1]) + " GAS" if op.pops else ""
        found[name] = f"{operands} {name} {'POP' if op.pushes else ''}"
    return found


def nanoseconds(engine: PeerEngine, body: str) -> float:
    before = " ".join(["PUSH 1"] * 17) + " PUSH 3 PUSH 5 SSTORE "
    taken = []
    for code in (assemble(before + f"{body} " * TIMES), assemble(before)):
        accounts = {
            HERE: Account(0, 10**9, code),
            CALLER: Account(0, 1 << 200),
            OTHER: Account(1, 5, assemble("PUSH0 POP STOP")),
        }
        tx = Transaction(CALLER, HERE, b"\1" * 64, 0, 10**10, gas_price=0)
        run = engine.stopwatch(PeerWork(Fork.CANCUN, accounts, Block(gas_limit=10**12), tx))
        assert run().status == "success", body
        taken.append(min(run().seconds for _ in range(RUNS)))
    return (taken[0] - taken[1]) / TIMES * 1e9


def main() -> None:
    ours, theirs = engine_named("native"), engine_named("pyrevm")
    wanted = sys.argv[1:]
    rows = []
    for name, body in bodies().items():
        if not wanted or any(part in name for part in wanted):
            native, pyrevm = nanoseconds(ours, body), nanoseconds(theirs, body)
            rows.append((native / max(pyrevm, 0.1), name, native, pyrevm))
    print(f"{'':20} {'native':>10} {'pyrevm':>10}  native takes")
    for ratio, name, native, pyrevm in sorted(rows, reverse=True):
        print(f"{name:20} {native:7.1f} ns {pyrevm:7.1f} ns  {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
