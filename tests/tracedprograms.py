"""Small programs for tests of tracers: traced as calls, on a machine whose block has a coinbase."""

from __future__ import annotations

from typing import Any

from fusevm import EVM, Block
from programs import CALLER, HERE, machine, push, store_initcode

Json = dict[str, Any]
COINBASE = b"\xbb" * 20
ERROR = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (4).to_bytes(32, "big") + b"what".ljust(32, b"\0")
PANIC = bytes.fromhex("4e487b71") + (0x11).to_bytes(32, "big")
ZERO, ONE = f"0x{0:064x}", f"0x{1:064x}"


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def world(program: str, others: dict[bytes, str | bytes] | None = None, fork: str = "osaka") -> EVM:
    evm = machine({HERE: program, **(others or {})}, fork)
    evm.block = Block(coinbase=COINBASE)
    return evm


def trace(
    tracer: str | None,
    program: str,
    others: dict[bytes, str | bytes] | None = None,
    config: Json | None = None,
    **given: Any,
) -> Json:
    asked: Json = {"gas": 1_000_000, "caller": CALLER, **given}
    return world(program, others).trace_call(HERE, asked.pop("data", b""), tracer=tracer, config=config, **asked)


def create(init: bytes) -> str:
    return f"{store_initcode(init)} {push(len(init))} PUSH1 0 PUSH1 0 CREATE"


def returning(data: bytes, ending: str = "REVERT") -> str:
    stores = "".join(
        f" PUSH32 0x{data[at : at + 32].ljust(32, bytes(1)).hex()} {push(at)} MSTORE" for at in range(0, len(data), 32)
    )
    return f"{stores} {push(len(data))} PUSH1 0 {ending}"
