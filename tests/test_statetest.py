"""`fusevm statetest`: reading, judging and counting state tests, and a fixed sample of the official ones."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.processing import process
from fusevm.chain.state import State, logs_hash
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.official.statetest import (
    MalformedTest,
    StateCase,
    block_from,
    cases_in,
    quantity,
    run_case,
    state_from,
    transaction_from,
)
from fusevm.reference.interpreter import execute


def on_reference(message: Message, state: State, context: Context) -> Outcome:
    return execute(message, state, context)


# -- a state test of our own ------------------------------------------------------------------------------------------

SENDER, TARGET = "0x" + "aa" * 20, "0x" + "bb" * 20
PROGRAM = assemble("PUSH1 0 CALLDATALOAD PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1")
ZERO, ONE, TWO = {"data": 0, "gas": 0, "value": 0}, {"data": 1, "gas": 0, "value": 0}, {"data": 0, "gas": 1, "value": 0}

SKELETON: dict[str, Any] = {
    "env": {
        "currentCoinbase": "0x" + "cc" * 20,
        "currentNumber": "0x1",
        "currentTimestamp": "0x3e8",
        "currentGasLimit": "0x1000000",
        "currentBaseFee": "0x7",
        "currentRandom": "0x0",
        "currentDifficulty": "0x0",
    },
    "pre": {
        SENDER: {"balance": "0xde0b6b3a7640000", "nonce": "0x0", "code": "0x", "storage": {}},
        TARGET: {"balance": "0x0", "nonce": "0x1", "code": "0x" + PROGRAM.hex(), "storage": {"0x00": "0x05"}},
    },
    "transaction": {
        "sender": SENDER,
        "to": TARGET,
        "nonce": "0x0",
        "gasPrice": "0x0a",
        "data": ["0x", "0x" + "00" * 31 + "09"],
        "gasLimit": ["0x186a0", "0x5208"],
        "value": ["0x1"],
    },
    "config": {"chainid": "0x01"},
}


def expected(fork: str, indexes: dict[str, int]) -> dict[str, Any]:
    """The post section of one case: what the reference tier makes of it."""
    at = fork_named(fork)
    state = state_from(SKELETON["pre"])
    tx = transaction_from(SKELETON["transaction"], indexes)
    receipt = process(tx, state, block_from(SKELETON["env"], SKELETON["config"], at), at, on_reference)
    return {
        "indexes": indexes,
        "hash": "0x" + state.root().hex(),
        "logs": "0x" + logs_hash(receipt.logs).hex(),
    }


def rejected(indexes: dict[str, int]) -> dict[str, Any]:
    root = state_from(SKELETON["pre"]).root()
    return {
        "indexes": indexes,
        "hash": "0x" + root.hex(),
        "logs": "0x" + logs_hash([]).hex(),
        "expectException": "TransactionException.INSUFFICIENT_ACCOUNT_FUNDS",
    }


@pytest.fixture
def document() -> dict[str, Any]:
    """Two cases at Osaka, one at Berlin."""
    post = {"Osaka": [expected("osaka", ZERO), expected("osaka", ONE)], "Berlin": [expected("berlin", ZERO)]}
    return deepcopy({"own": SKELETON | {"post": post}})


def written(folder: Path, document: Any, name: str = "own.json") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


# -- judging ----------------------------------------------------------------------------------------------------------


def verdicts(document: dict[str, Any], fork: Fork | None = None) -> list[tuple[bool, str]]:
    results = [run_case(case, on_reference) for case in cases_in(document, fork)]
    return [(verdict.passed, verdict.reason) for verdict in results]


def test_a_case_is_named_by_test_fork_and_index(document: dict[str, Any]) -> None:
    assert [case.name for case in cases_in(document)] == ["own/Osaka/0", "own/Osaka/1", "own/Berlin/0"]
    assert [case.name for case in cases_in(document, Fork.BERLIN)] == ["own/Berlin/0"]


def test_what_agrees_passes(document: dict[str, Any]) -> None:
    assert verdicts(document) == [(True, "")] * 3


def test_the_expected_root_is_of_the_state_a_hand_calculation_gives(document: dict[str, Any]) -> None:
    """Slot zero of the target goes from 5 to 0: 21,000, 9 for pushes and the load, 5,000 and a log of 750."""
    used = 21_000 + 3 + 3 + 3 + 5_000 + 9 + 750
    charged = used - 4_800
    state = state_from(SKELETON["pre"])
    sender, target = bytes.fromhex(SENDER[2:]), bytes.fromhex(TARGET[2:])
    state.set_balance(sender, 10**18 - 1 - 10 * charged)
    state.set_nonce(sender, 1)
    state.set_balance(target, 1)
    state.set_storage(target, 0, 0)
    state.set_balance(b"\xcc" * 20, 3 * charged)
    assert document["own"]["post"]["Osaka"][0]["hash"] == "0x" + state.root().hex()


def test_another_state_root_fails_and_both_are_told(document: dict[str, Any]) -> None:
    post = document["own"]["post"]["Osaka"][0]
    right, post["hash"] = post["hash"], "0x" + "11" * 32
    assert verdicts(document)[0] == (False, f"state root {right}, expected {post['hash']}")


def test_another_logs_hash_fails(document: dict[str, Any]) -> None:
    document["own"]["post"]["Osaka"][0]["logs"] = "0x" + "11" * 32
    passed, reason = verdicts(document)[0]
    assert not passed
    assert reason.startswith("logs hash 0x")


def test_a_transaction_that_must_be_rejected_passes_if_it_is(document: dict[str, Any]) -> None:
    document["own"]["transaction"]["value"] = ["0xffffffffffffffffffff"]
    document["own"]["post"] = {"Osaka": [rejected(ZERO)]}
    assert verdicts(document) == [(True, "")]


def test_a_transaction_that_must_be_rejected_fails_if_it_is_accepted(document: dict[str, Any]) -> None:
    document["own"]["post"] = {"Osaka": [rejected(ZERO)]}
    message = "accepted, but it must be rejected: TransactionException.INSUFFICIENT_ACCOUNT_FUNDS"
    assert verdicts(document) == [(False, message)]


def test_a_transaction_rejected_for_another_reason_fails(document: dict[str, Any]) -> None:
    document["own"]["transaction"]["nonce"] = "0x09"
    document["own"]["post"] = {"Osaka": [rejected(ZERO)]}
    ((passed, reason),) = verdicts(document)
    assert not passed
    assert reason.startswith(
        "rejected for TransactionException.NONCE_MISMATCH_TOO_HIGH, "
        "expected TransactionException.INSUFFICIENT_ACCOUNT_FUNDS: "
    )


def test_a_valid_transaction_that_is_rejected_fails(document: dict[str, Any]) -> None:
    document["own"]["transaction"]["nonce"] = "0x9"
    reason = "rejected, but it is valid: transaction rejected: nonce too high (9, the account's is 0)"
    assert verdicts(document)[0] == (False, reason)


@pytest.mark.parametrize(
    ("text", "number"), [("0x10", 16), ("16", 16), (16, 16), ("0x:bigint 0x1" + "0" * 64, 1 << 256), ("0X0f", 15)]
)
def test_numbers_are_read_as_tests_spell_them(text: Any, number: int) -> None:
    assert quantity(text) == number


# -- malformed files --------------------------------------------------------------------------------------------------


def without(*path: Any) -> Any:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def changed(value: Any, *path: Any) -> Any:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


MALFORMED = [
    (without("own", "pre"), "own: no 'pre' section"),
    (without("own", "env"), "own: no 'env' section"),
    (without("own", "transaction"), "own: no 'transaction' section"),
    (without("own", "post"), "own: no 'post' section"),
    (changed({}, "own", "post", "Moon"), None),
    (changed(5, "own", "post", "Osaka"), "own: post of Osaka is not a list"),
    (without("own", "env", "currentNumber"), "own/Osaka/0: no 'currentNumber'"),
    (without("own", "post", "Osaka", 0, "hash"), "own/Osaka/0: no 'hash'"),
    (without("own", "post", "Osaka", 0, "indexes"), "own/Osaka/0: no 'indexes'"),
    (changed("0xq", "own", "post", "Osaka", 0, "hash"), "own/Osaka/0: '0xq' is not hex"),
    (changed("0x12", "own", "transaction", "to"), "own/Osaka/0: '0x12' is not an address"),
    (changed("x", "own", "transaction", "gasLimit", 0), "own/Osaka/0: 'x' is not a number"),
    (changed("0xq", "own", "pre", TARGET, "code"), f"own/Osaka/0: account {TARGET}: '0xq' is not hex"),
    (changed(9, "own", "post", "Osaka", 0, "indexes", "data"), "own/Osaka/0: list index out of range"),
]


@pytest.mark.parametrize(("change", "message"), MALFORMED)
def test_a_malformed_test_is_told_with_its_place(document: dict[str, Any], change: Any, message: str | None) -> None:
    change(document)
    with pytest.raises(MalformedTest) as caught:
        verdicts(document)
    assert "\n" not in str(caught.value)
    if message is None:
        message = str(caught.value)
        assert message.startswith("own: unknown fork 'Moon'; known: frontier, ")
    assert str(caught.value) == message


@pytest.mark.parametrize("document", [[], {}, 5, None])
def test_a_file_without_named_tests_is_malformed(document: Any) -> None:
    with pytest.raises(MalformedTest, match="expected an object of named tests"):
        verdicts(document)


# -- the command ------------------------------------------------------------------------------------------------------


def test_files_folders_and_archives_are_run_alike(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path / "folder" / "inner", document)
    with tarfile.open(tmp_path / "tests.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "folder", "folder")
    for source in (path, str(tmp_path / "folder"), str(tmp_path / "tests.tar.xz")):
        ran = fusevm("statetest", source, "--tier", "reference", "-j", "1")
        assert (ran.code, ran.out, ran.err) == (0, "3 passed, 0 failed\n", "")


def test_several_paths_and_processes_add_up(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    paths = [written(tmp_path, document, f"{n}.json") for n in range(3)]
    ran = fusevm("statetest", *paths, "--tier", "reference", "-j", "2")
    assert ran.out.splitlines()[-1] == "9 passed, 0 failed"


def test_a_fork_can_be_picked(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    ran = fusevm("statetest", written(tmp_path, document), "--fork", "berlin", "-j", "1")
    assert ran.out.splitlines()[-1] == "1 passed, 0 failed"


def test_a_trace_has_a_line_per_step_and_each_cases_state_root(
    fusevm: Command, document: dict[str, Any], tmp_path: Path
) -> None:
    ran = fusevm("statetest", written(tmp_path, document), "--fork", "berlin", "--trace")
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert [line["opName"] for line in lines[:-1]][:4] == ["PUSH1", "CALLDATALOAD", "PUSH1", "SSTORE"]
    assert lines[-1] == {"stateRoot": document["own"]["post"]["Berlin"][0]["hash"]}
    assert ran.out == "1 passed, 0 failed\n"


def test_a_failure_is_listed_and_exits_1(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    post = document["own"]["post"]["Osaka"][1]
    right, post["hash"] = post["hash"], "0x" + "11" * 32
    ran = fusevm("statetest", written(tmp_path, document), "-j", "1")
    assert ran.code == 1
    assert ran.out == f"FAILED own/Osaka/1: state root {right}, expected 0x{'11' * 32}\n2 passed, 1 failed\n"


def test_json_has_the_same_figures(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    document["own"]["post"]["Berlin"][0]["logs"] = "0x" + "11" * 32
    ran = fusevm("statetest", written(tmp_path, document), "-j", "1", "--json")
    result = json.loads(ran.out)
    assert ran.code == 1
    assert (result["passed"], result["failed"]) == (2, 1)
    assert [failure["case"] for failure in result["failures"]] == ["own/Berlin/0"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1, column 2: not JSON: Expecting property name enclosed in double quotes"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "malformed: expected an object of named tests"),
        ('{"t": {}}', "malformed: t: no 'post' section"),
    ],
)
def test_a_malformed_file_counts_as_a_failure_and_is_named(
    fusevm: Command, tmp_path: Path, text: str, reason: str
) -> None:
    path = written(tmp_path, text)
    ran = fusevm("statetest", path, "-j", "1")
    assert ran.code == 1
    assert ran.out == f"FAILED {path}: {reason}\n0 passed, 1 failed\n"


def test_a_file_that_is_no_text_counts_as_a_failure(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes(b"\xff\xfe\xff")
    ran = fusevm("statetest", str(path), "-j", "1")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "0 passed, 1 failed"


def test_a_truncated_archive_gets_one_line(fusevm: Command, document: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, document)
    whole = tmp_path / "whole.tar.xz"
    with tarfile.open(whole, "w:xz") as archive:
        archive.add(path, "own.json")
    data = whole.read_bytes()
    for size in (0, 20, len(data) // 2, len(data) * 3 // 4):
        cut = tmp_path / f"cut-{size}.tar.xz"
        cut.write_bytes(data[:size])
        ran = fusevm("statetest", str(cut))
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"fusevm: {cut}: not a whole archive: ")
        assert ran.err.count("\n") == 1


def test_what_is_no_archive_gets_one_line(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind")
    ran = fusevm("statetest", str(path))
    assert ran.code == 2
    assert ran.err == (
        f"fusevm: {path}: not a whole archive: file could not be opened successfully; "
        "give a folder, a .json file or a .tar.xz archive of tests\n"
    )


def test_a_folder_without_tests_gets_one_line(fusevm: Command, tmp_path: Path) -> None:
    ran = fusevm("statetest", str(tmp_path))
    assert (ran.code, ran.err) == (2, f"fusevm: no state tests in {tmp_path}\n")


# -- the official suite -----------------------------------------------------------------------------------------------

STATIC_STRIDE = 12  # through the 1,648 files under static/, which are of three forks; of all others every file
FORKS = {
    "frontier", "homestead", "byzantium", "petersburg", "istanbul", "berlin", "london", "paris", "shanghai", "cancun",
    "prague", "osaka",
}  # fmt: skip


def sample(archive: tarfile.TarFile) -> Iterator[StateCase]:
    """Of each static file one case, of every other file one case a fork; which one hangs on the file's name."""
    for index, member in enumerate(archive):
        static = "/static/" in member.name
        if not member.name.endswith(".json") or (static and index % STATIC_STRIDE != 10):
            continue
        content = archive.extractfile(member)
        assert content is not None
        cases = list(cases_in(json.load(content)))
        pick = zlib.crc32(member.name.encode())
        forks = sorted({case.fork for case in cases})
        for fork in [forks[pick % len(forks)]] if static else forks:
            at_fork = [case for case in cases if case.fork == fork]
            yield at_fork[pick % len(at_fork)]


def test_a_fixed_sample_of_the_official_state_tests_passes(fixtures_dir: Path) -> None:
    failures: list[str] = []
    forks: list[str] = []
    with tarfile.open(fixtures_dir / "state_tests.tar.xz") as archive:
        for case in sample(archive):
            forks.append(case.fork.label)
            verdict = run_case(case, on_reference)
            if not verdict.passed:
                failures.append(f"{case.name}: {verdict.reason}")
    assert failures == []
    assert len(forks) > 500
    assert set(forks) == FORKS
