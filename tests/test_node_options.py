"""`fusevm node` can be started as anvil is: each of its options works, or is accepted with a warning."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from environments import environment
from fusevm.cli.inputs import BadInput
from fusevm.cli.node import node
from fusevm.cli.node_options import IDLE, Given
from nodes import Node, refused

# Options of anvil in its own form, with a value that stands for all; the others are flags.
VALUES = {
    "--accounts": "3", "--block-time": "5", "--balance": "7", "--derivation-path": "m/44'/60'/1'/0/",
    "--hardfork": "prague", "--mnemonic": "test test test test test test test test test test test junk",
    "--number": "5", "--order": "fifo",
    "--slots-in-an-epoch": "8", "--state-interval": "3", "--timestamp": "1800000000", "--host": "127.0.0.1",
    "--block-base-fee-per-gas": "9", "--chain-id": "5", "--code-size-limit": "30000", "--gas-limit": "20000000",
    "--gas-price": "1", "--color": "never", "--port": "0",
}  # fmt: skip
FILES = ("--config-out", "--dump-state", "--state")
ELSEWHERE = (
    "--help",
    "--version",
    "--load-state",
    "--init",
    "--fork-url",
    "--fork-block-number",
)  # have tests of their own


def declared() -> set[str]:
    """All flags of the command, as its help has them."""
    own = get_type_hints(Given, include_extras=True)
    found = {flag for each in IDLE for flag in each.flags}
    for each in fields(Given):
        option = get_args(own[each.name])[1]
        written = [option.default, *(option.param_decls or ())]
        names = [flag for flag in written if isinstance(flag, str)]
        found.update(names or ["--" + each.name.replace("_", "-")])
    return found


@pytest.fixture(scope="module")
def anvils(anvil_binary: Path) -> list[tuple[list[str], bool]]:
    """The options that anvil's own help lists: the names of each, and whether it takes a value."""
    text = subprocess.run([anvil_binary, "--help"], capture_output=True, text=True, check=True).stdout
    listed: list[tuple[list[str], bool]] = []
    for line in text.splitlines():
        if read := re.match(r"^ {2,6}(?:(-\w), )?(--[\w-]+)(?:\.\.\.)?( ?\[?<\w+>\]?)?", line):
            listed.append(([each for each in read.groups()[:2] if each], read[3] is not None and "[" not in read[3]))
        elif listed and (read := re.search(r"\[alias(?:es)?: (.*)\]", line)):
            listed[-1][0].extend(each.strip() for each in read[1].split(","))
    return listed


@pytest.mark.long
def test_every_option_of_anvil_is_there_under_its_names(anvils: list[tuple[list[str], bool]]) -> None:
    assert len(anvils) > 55
    names = {name for each, _ in anvils for name in each} - {"-h", "--help", "-V", "--version"}
    assert names <= declared()


@pytest.mark.long
def test_every_option_of_anvil_is_accepted_by_a_node_that_then_listens(
    anvils: list[tuple[list[str], bool]], tmp_path: Path
) -> None:
    """All at once: those that exclude each other have tests of their own."""
    line: list[str] = []
    for names, takes in anvils:
        option = names[-1] if names[-1].startswith("--") and names[0] not in names[-1] else names[0]
        long = next(each for each in names if each.startswith("--"))
        if long in ELSEWHERE or long in ("--port", "--quiet", "--color", "--verbosity", "--json"):
            continue
        line += [option if option.startswith("--") else long]
        if takes:
            line.append(str(tmp_path / long[2:]) if long in FILES else VALUES.get(long, "1"))
    with Node(environment("node", "web3>=7"), *line) as started:
        assert started.ask("eth_chainId") == "0x5"
        assert started.ask("eth_blockNumber") == "0x5"
        assert len(started.ask("eth_accounts")) == 3
    warned = [each for each in started.errors.splitlines() if "changes nothing here" in each]
    assert len(warned) == len(IDLE)


@pytest.mark.long
def test_the_state_is_dumped_where_that_is_said_and_loaded_from_there(tmp_path: Path) -> None:
    python, where = environment("node", "web3>=7"), "0x" + "99" * 20
    with Node(python, "--dump-state", str(tmp_path), "--config-out", str(tmp_path / "config.json")) as started:
        started.ask("anvil_setBalance", where, "0x5")
    config: Any = json.loads((tmp_path / "config.json").read_text())
    assert (len(config["private_keys"]), config["base_fee"]) == (10, "1000000000")
    with Node(python, "--load-state", str(tmp_path / "state.json")) as started:
        assert started.ask("eth_getBalance", where) == "0x5"
    assert "no such file" in refused(python, "--load-state", str(tmp_path / "nowhere.json"))


@pytest.mark.long
def test_a_genesis_file_gives_accounts_chain_and_time(tmp_path: Path) -> None:
    python, file, where = environment("node", "web3>=7"), tmp_path / "genesis.json", "99" * 20
    genesis = {
        "config": {"chainId": 77},
        "alloc": {where: {"balance": "0x5"}},
        "timestamp": "0x5",
        "gasLimit": "0x1312d00",
    }
    file.write_text(json.dumps(genesis))
    with Node(python, "--init", str(file)) as started:
        block = started.ask("eth_getBlockByNumber", "0x0", False)
        assert (block["timestamp"], block["gasLimit"]) == ("0x5", "0x1312d00")
        assert (started.ask("eth_chainId"), started.ask("eth_getBalance", "0x" + where)) == ("0x4d", "0x5")
        assert started.ask("eth_getBalance", started.ask("eth_accounts")[0]) == hex(10_000 * 10**18)
    file.write_text("[]")
    assert "--init" in refused(python, "--init", str(file))


def test_no_option_is_declared_twice() -> None:
    flags = [flag for each in IDLE for flag in each.flags]
    assert len(flags) == len(set(flags))
    assert all(each.why for each in IDLE)


def test_a_word_that_is_no_option_is_refused() -> None:
    pytest.importorskip("aiohttp")
    with pytest.raises(BadInput, match="'8545' is not an option"):
        node(**{f"idle_{each.flags[0].strip('-').replace('-', '_')}": None for each in IDLE}, values=["8545"])
