"""Writes the project's own bench files and state tests, which `fusevm bench` and `fusevm statetest` run by default.

python bench/samples.py [FOLDER]

What must come out is not what fusevm says: gas, output, logs and state are the executable specification's
(`pip install 'fusevm[peers]'`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fusevm import EVM, Fork, Hooks, State, abi, assemble, keccak, yul
from fusevm.chain.state import Account, logs_hash
from fusevm.lab.official.statetest import block_from, state_from, transaction_from
from fusevm.lab.peers.bench import GAS, read_form
from fusevm.lab.peers.spec import Spec
from fusevm.lab.peers.work import Observation, PeerWork
from fusevm.lab.samples import FOLDER

ROOT = Path(__file__).resolve().parent.parent
ALICE, BOB, HERE = "0x" + "a1" * 20, "0x" + "b0" * 20, "0x" + "c0" * 20
SORT = """{ // insertion sort of 120 words, the largest first
    let n := 120
    for { let i := 0 } lt(i, n) { i := add(i, 1) } { mstore(mul(i, 32), mod(mul(add(i, 7), 7919), 1009)) }
    for { let i := 1 } lt(i, n) { i := add(i, 1) } {
        let value := mload(mul(i, 32))
        let at := i
        for { } at { at := sub(at, 1) } {
            let before := mload(mul(sub(at, 1), 32))
            if iszero(lt(before, value)) { break }
            mstore(mul(at, 32), before)
        }
        mstore(mul(at, 32), value)
    }
    mstore(0, keccak256(0, mul(n, 32)))
    return(0, 32)
}"""
CALLS = """{ // 200 calls of a contract that counts in its storage
    for { let i := 0 } lt(i, 200) { i := add(i, 1) } {
        if iszero(call(gas(), 0xb0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0, 0, 0, 0, 0, 32)) { revert(0, 0) }
    }
    return(0, 32)
}"""
COUNTER = "{ let n := add(sload(0), 1) sstore(0, n) mstore(0, n) return(0, 32) }"


def runtime(name: str) -> str:
    compiled = yul.compile((ROOT / "examples" / f"{name}.yul").read_text("utf-8"))
    assert compiled.runtime is not None
    return "0x" + compiled.runtime.code.hex()


def code(source: str) -> str:
    return "0x" + yul.compile(source).code.hex()


def data(signature: str, *arguments: Any) -> str:
    return "0x" + abi.Function.parse(signature).encode(*arguments).hex()


def token() -> dict[str, Any]:
    """The token of the examples, of which Alice has 1,000."""
    slot = int.from_bytes(_mapping_slot(ALICE), "big")
    return {"nonce": "0x1", "code": runtime("token"), "storage": {"0x0": hex(1000), hex(slot): hex(1000)}}


def _mapping_slot(address: str) -> bytes:
    return keccak(bytes(12) + bytes.fromhex(address[2:]) + (1).to_bytes(32, "big"))


# -- bench files ------------------------------------------------------------------------------------------------------


def bench_files() -> dict[str, dict[str, Any]]:
    rich = {ALICE: {"balance": hex(10**18)}}
    vault = {"nonce": "0x1", "code": runtime("vault")}
    return {
        "calls-of-a-counter": _bench({**rich, HERE: {"code": code(CALLS)}, BOB: {"code": code(COUNTER)}}, "0x"),
        "sort": _bench({**rich, HERE: {"code": code(SORT)}}, "0x"),
        "token-transfer": _bench({**rich, HERE: token()}, data("transfer(address,uint256)", BOB, 7)),
        "vault-compound": _bench({**rich, HERE: vault}, data("compound(uint256,uint256)", 1_000, 2_000)),
        "vault-digest": _bench({**rich, HERE: vault}, data("digest(uint256)", 500)),
    }


def _bench(pre: dict[str, Any], payload: str) -> dict[str, Any]:
    form: dict[str, Any] = {
        "fork": "osaka",
        "source": "fusevm",
        "licence": "MIT",
        "pre": pre,
        "call": {"caller": ALICE, "to": HERE, "value": "0x0", "data": payload},
        "expect": {"status": "success", "gas_used": 0, "refund": 0, "ops": 0, "output": "0x"},
    }
    work = read_form(form, "sample").work
    seen = Spec().stopwatch(work)()
    steps: list[None] = []
    evm = EVM(work.fork, "reference", state=work.state(), hooks=Hooks(on_opcode=lambda step: steps.append(None)))
    evm.call(HERE, payload, caller=ALICE, gas=GAS)
    form["expect"] = {
        "status": seen.status,
        "gas_used": seen.gas_used,
        "refund": seen.refund,
        "ops": len(steps),
        "output": "0x" + seen.output.hex(),
    }
    return form


# -- state tests ------------------------------------------------------------------------------------------------------

ENV = {
    "currentCoinbase": "0x" + "ee" * 20,
    "currentDifficulty": "0x0",
    "currentGasLimit": hex(30_000_000),
    "currentNumber": "0x1",
    "currentTimestamp": "0x3e8",
    "currentBaseFee": "0x7",
    "currentRandom": "0x1234",
    "currentExcessBlobGas": "0x0",
}
CREATION = "0x" + assemble("PUSH1 1 PUSH1 @end PUSH0 CODECOPY PUSH1 1 PUSH0 RETURN end: DATA 0x00").hex()


def state_tests() -> dict[str, dict[str, Any]]:
    pre = {ALICE: {"balance": hex(10**18), "nonce": "0x0"}, HERE: token()}
    ended = {**pre, HERE: {"balance": "0x5", "code": "0x" + assemble(f"PUSH20 {BOB} SELFDESTRUCT").hex()}}
    list_ = [[{"address": HERE, "storageKeys": ["0x00"]}]]
    return {
        "a_transfer_of_tokens": _test(pre, data("transfer(address,uint256)", BOB, 7)),
        "a_transfer_of_more_than_there_is": _test(pre, data("transfer(address,uint256)", BOB, 1001)),
        "a_transfer_of_ether": _test(pre, "0x", to=BOB, value=5),
        "too_little_gas": _test(pre, data("transfer(address,uint256)", BOB, 7), gas=30_000),
        "a_creation": _test(pre, CREATION, to=None),
        "a_contract_that_ends": _test(ended, "0x"),
        "an_access_list": _test(pre, data("totalSupply()"), accessLists=list_),
        "fees_of_eip_1559": _test(pre, "0x", to=BOB, gasPrice=None, maxFeePerGas="0x10", maxPriorityFeePerGas="0x2"),
        "a_nonce_that_is_too_low": _test(
            {**pre, ALICE: {"balance": hex(10**18), "nonce": "0x1"}},
            "0x",
            to=BOB,
            rejected="TransactionException.NONCE_MISMATCH_TOO_LOW",
        ),
    }


def _test(
    pre: dict[str, Any],
    payload: str,
    *,
    to: str | None = HERE,
    value: int = 0,
    gas: int = 500_000,
    rejected: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    named = {"gasPrice": "0xa", "accessLists": None} | fields
    test: dict[str, Any] = {
        "env": ENV,
        "pre": pre,
        "transaction": {
            "sender": ALICE,
            "nonce": "0x0",
            "to": to or "",
            "data": [payload],
            "gasLimit": [hex(gas)],
            "value": [hex(value)],
            **{name: value for name, value in named.items() if value is not None},
        },
        "post": {},
    }
    for fork in (Fork.LONDON, Fork.CANCUN, Fork.OSAKA):
        test["post"][fork.name.title()] = [_post(test, fork, rejected)]
    return test


def _post(test: dict[str, Any], fork: Fork, rejected: str | None) -> dict[str, Any]:
    indexes = {"data": 0, "gas": 0, "value": 0}
    tx = transaction_from(test["transaction"], indexes)
    block = block_from(test["env"], {}, fork)
    seen = Spec().run(PeerWork(fork, state_from(test["pre"]).accounts, block, tx))
    assert (seen.status == "rejected") == (rejected is not None), seen
    post = {"indexes": indexes, "hash": "0x" + _root(seen).hex(), "logs": "0x" + logs_hash(seen.logs).hex()}
    return post | ({"expectException": rejected} if rejected else {})


def _root(seen: Observation) -> bytes:
    state = State()
    assert seen.accounts is not None
    state.accounts = {
        address: Account(a.nonce, a.balance, a.code, dict(a.storage)) for address, a in seen.accounts.items()
    }
    return state.root()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, form in bench_files().items():
        _write(folder / "bench" / f"{name}.json", {"name": name, **form})
    for name, test in state_tests().items():
        _write(folder / "state_tests" / f"{name}.json", {name: test})


def _write(path: Path, form: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(form, indent=1) + "\n", encoding="utf-8")
    print(f"{path.relative_to(path.parents[1])}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
