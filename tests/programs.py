"""Small programs for tests: readable mnemonics, put at an address and run (on tier $FUSEVM_TIER, else reference)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fusevm import EVM, Block, Hooks, Result
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import fork_named

TIER = os.environ.get("FUSEVM_TIER", "reference")

HERE = bytes.fromhex("c0de" * 10)  # where the program under test lives
OTHER = bytes.fromhex("0bee" * 10)  # a second contract
CALLER = bytes.fromhex("ca11" * 10)
NOBODY = bytes.fromhex("0dd0" * 10)  # an address without an account

RETURN_TOP = " PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"


def machine(
    programs: Mapping[bytes, str | bytes],
    fork: str = "osaka",
    *,
    block: Block | None = None,
    hooks: Hooks | None = None,
) -> EVM:
    """An EVM whose accounts hold these programs (text is assembled) and whose caller is rich."""
    evm = EVM(fork, TIER, block=block, hooks=hooks)
    for address, program in programs.items():
        code = program if isinstance(program, bytes) else assemble(program, fork_named(fork))
        evm.set_code(address, code)
    evm.set_balance(CALLER, 10**30)
    return evm


def run(
    program: str,
    fork: str = "osaka",
    *,
    data: bytes = b"",
    value: int = 0,
    gas: int = 10_000_000,
    static: bool = False,
    others: Mapping[bytes, str | bytes] | None = None,
    storage: Mapping[int, int] | None = None,
    block: Block | None = None,
) -> Result:
    """Calls the program once."""
    evm = machine({HERE: program, **(others or {})}, fork, block=block)
    for key, word in (storage or {}).items():
        evm.set_storage(HERE, key, word)
    return evm.call(HERE, data, caller=CALLER, value=value, gas=gas, static=static)


def answer(program: str, fork: str = "osaka", *, data: bytes = b"", value: int = 0, block: Block | None = None) -> int:
    """The word a program leaves on top of the stack."""
    result = run(program + RETURN_TOP, fork, data=data, value=value, block=block).check()
    return int.from_bytes(result.output, "big")


def gas_of(program: str, fork: str = "osaka") -> int:
    """What a program that succeeds uses."""
    return run(program, fork).check().gas_used


def push(data: bytes | int) -> str:
    """Text that pushes an address or a number."""
    number = data if isinstance(data, int) else int.from_bytes(data, "big")
    return f"PUSH32 {number:#x}"


def call(to: bytes, *, kind: str = "CALL", gas: str = "GAS", value: int = 0, out: int = 0) -> str:
    """Text that calls an address without data, keeps `out` bytes of its answer at zero and leaves the success flag."""
    amount = f"PUSH1 {value}" if kind in ("CALL", "CALLCODE") else ""
    return f" PUSH1 {out} PUSH1 0 PUSH1 0 PUSH1 0 {amount} {push(to)} {gas} {kind} "


def store_initcode(runtime_or_init: bytes) -> str:
    """Text that puts bytes at memory zero, a word at a time."""
    words = [runtime_or_init[i : i + 32].ljust(32, b"\0") for i in range(0, len(runtime_or_init), 32)]
    return " ".join(f"{push(word)} PUSH2 {32 * i} MSTORE" for i, word in enumerate(words))


def deployer(runtime: bytes) -> bytes:
    """Init code that returns these bytes as the contract's code."""
    return assemble(f"PUSH3 {len(runtime)} DUP1 PUSH2 @code PUSH1 0 CODECOPY PUSH1 0 RETURN code:") + runtime
