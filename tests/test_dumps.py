"""States as other tools write them: read whatever the form, written as alloc and as anvil's dump, and from the CLI."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from anvil import Anvil
from commands import Command, fusevm_command  # noqa: F401
from fakenode import C as THERE
from fakenode import FakeNode
from fusevm import EVM, BadValue
from fusevm.chain.dumps import compressed
from fusevm.evm.assembly import assemble

A, C = b"\xa1" * 20, b"\xc0" * 20
TWO = assemble("PUSH1 2 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN")
ALLOC: dict[str, Any] = {
    "0x" + A.hex(): {"balance": "0x5", "nonce": "0x1"},
    "0x" + C.hex(): {"balance": "0x0", "code": "0x" + TWO.hex(), "storage": {f"0x{1:064x}": f"0x{0x10:064x}"}},
}
GETH_DUMP = {
    "root": "ab" * 32,
    "accounts": {
        "0x" + A.hex(): {"balance": "5", "nonce": 1, "root": "0x12", "codeHash": "0x34", "key": "0x56"},
        "0x" + C.hex(): {"balance": "0", "nonce": 0, "code": "0x" + TWO.hex(), "storage": {f"0x{1:064x}": "10"}},
    },
}
ANVIL_DUMP = {
    "block": {"number": "0x1"},
    "best_block_number": 1,
    "accounts": {
        "0x" + A.hex(): {"nonce": 1, "balance": "0x5", "code": "0x", "storage": {}},
        "0x" + C.hex(): {"nonce": 0, "balance": "0x0", "code": "0x" + TWO.hex(), "storage": {"0x1": "0x10"}},
    },
}
FORMS: dict[str, Any] = {
    "alloc": ALLOC,
    "genesis": {"config": {}, "gasLimit": "0x1", "alloc": {name[2:]: fields for name, fields in ALLOC.items()}},
    "test": {"pre": ALLOC, "env": {}},
    "geth dump": GETH_DUMP,
    "anvil dump": ANVIL_DUMP,
    "text": json.dumps(ALLOC),
    "bytes": json.dumps(ALLOC).encode(),
    "compressed": compressed(ANVIL_DUMP),
    "compressed, in hex": "0x" + compressed(ANVIL_DUMP).hex(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_state_is_read_whatever_its_form(form: str) -> None:
    evm = EVM()
    evm.set_balance(b"\xff" * 20, 1)
    evm.load_state(FORMS[form])
    assert evm.dump_state() == ALLOC
    assert evm.call(C).output[-1] == 2


PACKED = compressed(ANVIL_DUMP)


@pytest.mark.parametrize("content", [json.dumps(ALLOC).encode(), PACKED, b"0x" + PACKED.hex().encode()])
def test_a_state_is_read_from_a_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    for given in (path, str(path)):
        evm = EVM()
        evm.load_state(given)
        assert evm.dump_state() == ALLOC


def test_what_was_dumped_has_the_same_root() -> None:
    evm = EVM()
    evm.load_state(ALLOC)
    evm.call(C, code=assemble("PUSH32 0x" + "ff" * 32 + " PUSH1 9 SSTORE STOP")).check()
    for form in ("alloc", "anvil"):
        twin = EVM()
        twin.load_state(evm.dump_state(form))
        assert twin.state_root == evm.state_root


@pytest.mark.parametrize(
    ("dump", "message"),
    [
        ({"0x12": {}}, "address '0x12'"),
        ({"alloc": []}, "'alloc' is not an object of accounts"),
        ({"accounts": {"0x" + "11" * 20: {"balance": "x"}}}, "balance"),
        ({"root": "", "accounts": {"0x" + "11" * 20: {"storage": {"0x1": "zz"}}}}, "storage"),
        ("[1", "no such file"),
        ("{", "line 1, column 2: not JSON"),
        (b"\x1f\x8bnothing", "not a state"),
        (gzip.compress(b"[]", mtime=0), "expected accounts by address"),  # no time in the test's name
        (5, "expected a document, JSON"),
        ("nosuchfile.json", "no such file: nosuchfile.json"),
    ],
)
def test_what_is_not_a_state_is_refused_and_the_state_stays(dump: Any, message: str) -> None:
    evm = EVM()
    evm.set_balance(A, 1)
    with pytest.raises(BadValue, match=message):
        evm.load_state(dump)
    assert evm.get_balance(A) == 1


def test_a_form_that_is_not_known_is_refused() -> None:
    with pytest.raises(BadValue, match="format: 'erigon' is not known; expected alloc or anvil"):
        EVM().dump_state("erigon")


@pytest.mark.long
def test_dumps_go_to_anvil_and_come_from_it(anvil_binary: Path) -> None:
    with Anvil(anvil_binary) as node:
        made = node.deploy(assemble("PUSH1 7 PUSH1 1 SSTORE PUSH1 1 PUSH0 RETURN"))
        evm = EVM()
        evm.load_state(node.ask("anvil_dumpState"))
        assert (evm.get_storage(made, 1), evm.get_code(made), evm.get_nonce(made)) == (7, b"\0", 1)
        evm.set_storage(made, 1, 8)
        evm.set_code(C, TWO)
        assert node.ask("anvil_loadState", "0x" + compressed(evm.dump_state("anvil")).hex())
        assert int(node.ask("eth_getStorageAt", made, "0x1", "latest"), 16) == 8
        assert node.call("0x" + C.hex())[-1] == 2


# -- the command line


def test_run_starts_on_a_state_and_writes_it(fusevm: Command, tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(ALLOC))
    done = fusevm("run", "0x" + C.hex(), "--load-state", str(before), "--dump-state", str(after), "--json")
    assert json.loads(done.out)["output"][-1] == "2"
    assert json.loads(after.read_text()) == ALLOC
    fusevm("run", "0x6001600255", "--load-state", str(before), "--dump-state", str(after))
    assert len(json.loads(after.read_text())) == 3


def test_run_on_a_node_s_state(fusevm: Command, fake: FakeNode) -> None:
    done = fusevm("run", "0x" + THERE.hex(), "--fork-url", fake.url, "--fork-block", "100", "--json")
    assert json.loads(done.out)["output"] == f"0x{42:064x}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fork-block", "5"], "--fork-block needs --fork-url"),
        (["--load-state", "nosuch.json"], "no such file: nosuch.json"),
        (["--fork-url", "http://127.0.0.1:9", "--load-state", "x"], "not both"),
        (["--fork-url", "nothing"], "url: expected http"),
        (["--dump-state", "/nowhere/at/all"], "--dump-state /nowhere/at/all: cannot write"),
    ],
)
def test_wrong_options_are_one_line(fusevm: Command, options: list[str], message: str) -> None:
    done = fusevm("run", "0x00", *options)
    assert done.code == 2
    assert message in done.err
