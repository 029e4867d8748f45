"""`fusevm t8n` and `fusevm.t8n`: geth's options, forms and exit codes; and official blocks, judged by their headers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.chain.rlp import encode
from fusevm.chain.schedule import BlobSchedule
from fusevm.chain.sealed import decode_block
from fusevm.chain.signed import decode_transaction, sign
from fusevm.chain.transaction import Authorization, Transaction
from fusevm.chain.transaction_json import transaction_from_json
from fusevm.evm.assembly import assemble
from fusevm.lab.official.blocktest import block_cases_in
from fusevm.lab.official.transitions import run_transitions
from fusevm.t8n import MissingHash, transition
from fusevm.values import BadValue
from test_blocktest import own_test
from test_chain import COUNT, KEY, SENDER
from test_signed import BY_TYPE, signed

TARGET = "0x" + "cc" * 20
ALLOC = {
    "0x" + SENDER.hex(): {"balance": "0xde0b6b3a7640000"},
    TARGET: {"balance": "0x0", "nonce": "0x1", "code": "0x" + COUNT.hex()},
}
ENV = {
    "currentCoinbase": "0x" + "ab" * 20,
    "currentNumber": "1",
    "currentTimestamp": "1000",
    "currentGasLimit": "0x1000000",
    "currentRandom": "0x0",
    "parentBaseFee": "0x7",
    "parentGasUsed": "0x0",
    "parentGasLimit": "0x1000000",
    "withdrawals": [],
}
TX = {
    "nonce": "0x0",
    "gasPrice": "0xa",
    "gas": "0x186a0",
    "to": TARGET,
    "value": "0x0",
    "input": "0x",
    "secretKey": "0x" + KEY.hex(),
}


def run(txs: Any, fork: str = "Shanghai", env: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return transition(ALLOC, {**ENV, **(env or {})}, txs, fork, tier="reference", **options).result


def test_a_transaction_runs_and_leaves_roots_and_a_receipt() -> None:
    done = transition(ALLOC, ENV, [TX], "Shanghai", tier="reference")
    assert done.alloc[TARGET]["storage"] == {"0x" + "00" * 32: "0x" + "00" * 31 + "01"}
    (receipt,) = done.result["receipts"]
    assert (receipt["status"], receipt["type"], receipt["transactionIndex"]) == ("0x1", "0x0", "0x0")
    assert receipt["gasUsed"] == receipt["cumulativeGasUsed"] == done.result["gasUsed"]
    assert receipt["logs"][0]["topics"] == ["0x" + "00" * 31 + "07"]
    assert done.result["currentBaseFee"] == "0x7"
    assert done.result["currentDifficulty"] is None
    assert "rejected" not in done.result
    again = transition(ALLOC, ENV, done.body, "Shanghai", tier="reference")
    assert again.result == done.result


def test_a_transaction_that_may_not_run_is_listed_and_the_others_run() -> None:
    result = run([TX, TX, {**TX, "nonce": "0x1"}])
    assert [receipt["transactionIndex"] for receipt in result["receipts"]] == ["0x0", "0x1"]
    (rejected,) = result["rejected"]
    assert rejected["index"] == 1
    assert rejected["error"].startswith("TransactionException.NONCE_MISMATCH_TOO_LOW: ")


def test_rlp_that_is_no_transaction_is_listed_too() -> None:
    result = run(encode([b"\x09\xc0", []]))
    reasons = [each["error"].partition(":")[0].partition(".")[2] for each in result["rejected"]]
    assert reasons == ["TYPE_NOT_SUPPORTED", "RLP_TOO_FEW_ELEMENTS"]


def test_rewards_go_to_the_miner_and_to_those_of_ommers() -> None:
    env = {
        "currentCoinbase": "0x" + "aa" * 20,
        "currentDifficulty": "0x20000",
        "currentGasLimit": "0x750a163df65e8a",
        "currentNumber": "1",
        "currentTimestamp": "1000",
        "ommers": [{"delta": 1, "address": "0x" + "bb" * 20}, {"delta": 2, "address": "0x" + "cc" * 20}],
    }
    done = transition({}, env, [], "Berlin", reward=0x80, tier="reference")
    assert {where: fields["balance"] for where, fields in done.alloc.items()} == {
        "0x" + "aa" * 20: "0x88",
        "0x" + "bb" * 20: "0x70",
        "0x" + "cc" * 20: "0x60",
    }


def test_difficulty_base_fee_and_excess_blob_gas_follow_from_the_parents() -> None:
    parents = {"parentDifficulty": "0x20000", "parentTimestamp": "990"}
    assert run([], "London", parents)["currentDifficulty"] == hex(0x20000)
    assert run([], "London", {**parents, "parentGasUsed": "0x1000000"})["currentBaseFee"] == "0x8"
    cancun = {
        "parentBeaconBlockRoot": "0x" + "00" * 32,
        "parentExcessBlobGas": hex(1 << 19),
        "parentBlobGasUsed": "0x0",
    }
    assert run([], "Cancun", cancun)["currentExcessBlobGas"] == hex((1 << 19) - 3 * (1 << 17))
    few = run([], "Cancun", cancun, blobs=BlobSchedule(1, 2, 3_338_477))
    assert few["currentExcessBlobGas"] == hex((1 << 19) - (1 << 17))


def test_a_block_that_cannot_be_is_named() -> None:
    result = run([], "Prague", {"parentBeaconBlockRoot": "0x" + "00" * 32})
    assert result["blockException"].startswith("BlockException.SYSTEM_CONTRACT_EMPTY: ")
    assert result["requests"] == []


def test_a_block_hash_that_is_not_given_is_an_error_when_it_is_asked_for() -> None:
    alloc = {**ALLOC, TARGET: {"balance": "0", "code": "0x" + assemble("PUSH1 3 BLOCKHASH PUSH1 0 SSTORE").hex()}}
    env = {**ENV, "currentNumber": "5"}
    with pytest.raises(MissingHash, match="the hash of block 3 is asked for"):
        transition(alloc, env, [TX], "Shanghai", tier="reference")
    given = {**env, "blockHashes": {"3": "0x" + "33" * 32}}
    done = transition(alloc, given, [TX], "Shanghai", tier="reference")
    assert done.alloc[TARGET]["storage"] == {"0x" + "00" * 32: "0x" + "33" * 32}


# -- transactions as JSON ---------------------------------------------------------------------------------------------


def as_json(kind: int) -> dict[str, Any]:
    """A signed transaction as JSON-RPC would give it."""
    tx = signed(kind)
    found: dict[str, Any] = {
        "type": hex(kind),
        "nonce": hex(tx.nonce),
        "gas": hex(tx.gas_limit),
        "to": "0x" + (tx.to or b"").hex(),
        "value": hex(tx.value),
        "input": "0x" + tx.data.hex(),
        "v": hex(tx.v if kind == 0 else tx.y_parity),
        "r": hex(tx.r),
        "s": hex(tx.s),
        "hash": "0x" + tx.hash.hex(),
    }
    if kind:
        found["chainId"] = hex(tx.chain_id or 0)
        found["accessList"] = [
            {"address": "0x" + where.hex(), "storageKeys": [f"0x{key:064x}" for key in keys]}
            for where, keys in tx.access_list or ()
        ]
    names = {"gas_price": "gasPrice", "max_fee": "maxFeePerGas", "max_priority_fee": "maxPriorityFeePerGas"}
    found |= {key: hex(getattr(tx, name)) for name, key in names.items() if getattr(tx, name) is not None}
    if kind == 3:
        found |= {"maxFeePerBlobGas": hex(tx.max_blob_fee), "blobVersionedHashes": ["0x" + tx.blob_hashes[0].hex()]}  # type: ignore[index]
    if kind == 4:
        one: Authorization = (tx.authorizations or ())[0]
        fields = {"chainId": one.chain_id, "nonce": one.nonce, "v": one.y_parity, "r": one.r, "s": one.s}
        listed = {key: hex(value) for key, value in fields.items()}
        found["authorizationList"] = [{**listed, "address": "0x" + one.address.hex(), "signer": "0x" + "00" * 20}]
    return found


@pytest.mark.parametrize("kind", BY_TYPE)
def test_every_type_is_read_from_json(kind: int) -> None:
    assert transaction_from_json(as_json(kind), "tx", 1) == signed(kind)
    without_type = {key: value for key, value in as_json(kind).items() if key != "type"}
    assert transaction_from_json(without_type, "tx", 1) == signed(kind)


def test_a_secret_key_signs() -> None:
    tx = transaction_from_json(TX, "tx", 5)
    assert (tx.sender, tx.chain_id) == (SENDER, 5)
    assert transaction_from_json({**TX, "protected": False}, "tx", 5).chain_id is None
    market = {key: value for key, value in TX.items() if key != "gasPrice"} | {"maxFeePerGas": "0x9"}
    wanted = sign(Transaction(b"", b"\xcc" * 20, nonce=0, gas_limit=100_000, max_fee=9), KEY, 1)
    assert transaction_from_json(market, "tx", 1) == wanted
    assert decode_transaction(wanted.encoded) == wanted


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (5, "tx: expected an object, got int"),
        ({}, "tx: no 'nonce'"),
        ({**TX, "nonce": "x"}, "tx.nonce: 'x' is not a number"),
        ({**TX, "nonce": None}, "tx: no 'nonce'"),
        ({**TX, "gas": hex(1 << 64)}, "tx.gas: "),
        ({**TX, "type": "0x9"}, "tx.type: 9 is not a type of transaction; known: 0 to 4"),
        ({**TX, "to": "0x12"}, "tx.to: expected 20 bytes, got 1"),
        ({**TX, "input": "0xq"}, "tx.input: 'q' at position 0 is not a hex digit"),
        ({**TX, "secretKey": "0x12"}, "tx.secretKey: "),
        ({**TX, "secretKey": None}, "tx: no 'r'; give a signature or a 'secretKey'"),
        ({**TX, "secretKey": None, "r": "0x1", "s": "0x1"}, "tx: no 'v'; give a signature or a 'secretKey'"),
        ({**TX, "type": "0x4", "authorizationList": [{}]}, "tx.authorizationList[0]: no 'chainId'"),
        ({**TX, "type": "0x4", "authorizationList": 5}, "tx.authorizationList: expected a list, got int"),
    ],
)
def test_a_wrong_transaction_gets_one_line(entry: Any, message: str) -> None:
    with pytest.raises(BadValue) as caught:
        transaction_from_json(entry, "tx", 1)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Options that name the three inputs as files, and an output folder."""
    found = []
    for name, content in (("alloc", ALLOC), ("env", ENV), ("txs", [TX])):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        found.append(f"--input.{name}={tmp_path / name}.json")
    return [*found, f"--output.basedir={tmp_path / 'out'}", "--state.fork=Shanghai", "--tier=reference"]


def test_files_in_and_out(fusevm: Command, files: list[str], tmp_path: Path) -> None:
    ran = fusevm("t8n", *files, "--output.body=txs.rlp")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    done = transition(ALLOC, ENV, [TX], "Shanghai", reward=0, tier="reference")
    assert json.loads((tmp_path / "out" / "alloc.json").read_text()) == done.alloc
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == done.result
    body = tmp_path / "out" / "txs.rlp"
    assert json.loads(body.read_text()) == "0x" + done.body.hex()
    ran = fusevm("t8n", *files, f"--input.txs={body}", "--output.result=stdout", "--output.alloc=")
    assert json.loads(ran.out) == {"result": done.result}


def test_standard_input_and_output(fusevm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [f"--input.{name}=stdin" for name in ("alloc", "env", "txs")]
    outputs = ["--output.alloc=stdout", "--output.result=stdout", "--output.body=stdout"]
    done = transition(ALLOC, ENV, [TX], "Shanghai", tier="reference")
    for txs in ({"txs": [TX]}, {"txsRlp": "0x" + done.body.hex()}):
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"alloc": ALLOC, "env": ENV, **txs})))
        ran = fusevm("t8n", *inputs, *outputs, "--state.fork", "Shanghai", "--state.reward=-1", "--tier=reference")
        assert ran.code == 0
        assert json.loads(ran.out) == {"alloc": done.alloc, "result": done.result, "body": "0x" + done.body.hex()}


def test_traces_are_files_of_eip_3155_lines(fusevm: Command, files: list[str], tmp_path: Path) -> None:
    assert fusevm("t8n", *files, "--trace").code == 0
    done = transition(ALLOC, ENV, [TX], "Shanghai", tier="reference")
    path = tmp_path / "out" / f"trace-0-{done.result['receipts'][0]['transactionHash']}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["opName"] for line in lines[:-1]][:3] == ["PUSH1", "PUSH1", "SLOAD"]
    assert lines[-1] == {"output": "", "gasUsed": done.result["gasUsed"]}
    assert "stack" in lines[0]
    assert "returnData" not in lines[0]
    fusevm("t8n", *files, "--trace", "--trace.nostack", "--trace.returndata")
    first = json.loads(path.read_text().splitlines()[0])
    assert ("stack" in first, "returnData" in first) == (False, True)


def changed(name: str, content: Any) -> tuple[str, Any]:
    return name, content


@pytest.mark.parametrize(
    ("options", "content", "code", "message"),
    [
        (["--state.fork=Moon"], None, 3, "unknown fork 'Moon'; known: "),
        (["--input.alloc=nowhere.json"], None, 11, "no such file: nowhere.json"),
        ([], changed("env", "{"), 10, "line 1, column 2: not JSON"),
        ([], changed("env", "[]"), 10, "no object of 'env'"),
        ([], changed("txs", "{}"), 10, "expected a list of transactions"),
        ([], changed("txs", '[{"nonce": "x"}]'), 10, "txs[0].nonce: 'x' is not a number"),
        ([], changed("env", "{}"), 10, "env: no 'currentNumber'"),
        ([], changed("alloc", '{"0x12": {}}'), 10, "alloc: address '0x12'"),
        (["--state.fork=Cancun"], None, 10, "env: no 'parentBeaconBlockRoot'"),
        (["--output.basedir=/dev/null/x"], None, 11, "cannot write alloc.json: Not a directory"),
    ],
)
def test_what_is_wrong_gets_one_line_and_geths_exit_code(
    fusevm: Command, files: list[str], tmp_path: Path, options: list[str], content: Any, code: int, message: str
) -> None:
    if content is not None:
        name, text = content
        (tmp_path / f"{name}.json").write_text(text)
    ran = fusevm("t8n", *files, *options)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert ran.err.startswith("fusevm: ")
    assert ran.err.count("\n") == 1


def test_a_missing_block_hash_exits_4(fusevm: Command, files: list[str], tmp_path: Path) -> None:
    code = "0x" + assemble("PUSH1 0 BLOCKHASH").hex()
    (tmp_path / "alloc.json").write_text(json.dumps({**ALLOC, TARGET: {"balance": "0", "code": code}}))
    ran = fusevm("t8n", *files)
    assert (ran.code, ran.err.count("\n")) == (4, 1)


# -- blocks -----------------------------------------------------------------------------------------------------------


def test_a_chains_blocks_come_out_of_t8n_with_their_own_headers() -> None:
    test = own_test()
    (case,) = block_cases_in({"own": test})
    assert run_transitions(case, "reference").reason == ""
    block = decode_block(bytes.fromhex(test["blocks"][0]["rlp"][2:]))
    assert block.number == 1


def test_blocktest_runs_them_through_t8n(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"own": own_test()}))
    ran = fusevm("blocktest", str(path), "--t8n", "-j", "1", "--tier", "reference")
    assert (ran.code, ran.out) == (0, "1 passed, 0 failed\n")
