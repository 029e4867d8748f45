"""What a node prints of requests, transactions, reverts, console.log and blocks."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

pytest.importorskip("fusevm.node.talk")
from environments import environment
from fusevm.evm.keccak import keccak256
from fusevm.node.talk import Printer, Talk
from fusevm.rpc import Config, Session
from fusevm.rpc.dispatch import one
from nodes import Node

NOW = 1_800_000_000
ALICE, BOB, THERE = (
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "0x" + "c0" * 20,
)
FAILING = "0x6308c379a060e01b5f526020600452600260245261686960f01b60445260645ffd"  # Error("hi")
PASSING = "0x365f5f375f5f365f6a636f6e736f6c652e6c6f675afa00"  # what it is given goes to the console
HALTING = "0xfe"


class Told:
    """A session and what is told of it."""

    def __init__(self, **options: Any) -> None:
        self.session = Session(Config(timestamp=NOW), now=lambda: NOW)
        self.said: list[str] = []
        self.talk = Talk(self.session, self.said.append, **options)
        self.session.on_block.append(self.talk.block)

    def ask(self, method: str, *params: Any) -> Any:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        self.talk.asked(asked)
        found = one(asked, self.session.request)
        self.talk.answered(asked, found)
        assert found is not None
        return found.get("result")

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.said]


def logging(text: str) -> str:
    """The data of console.log(string)."""
    body = text.encode()
    padded = body.ljust(-(-len(body) // 32) * 32, b"\0")
    selector = keccak256(b"log(string)")[:4]
    return "0x" + (selector + (32).to_bytes(32, "big") + len(body).to_bytes(32, "big") + padded).hex()


def transfer(amount: int) -> str:
    return "0xa9059cbb" + BOB[2:].rjust(64, "0") + f"{amount:064x}"


def test_a_request_is_told_by_its_method() -> None:
    told = Told()
    told.ask("eth_chainId")
    assert told.said == ["eth_chainId"]


def test_a_transaction_is_told_with_its_call_by_name_its_gas_and_its_block() -> None:
    told = Told()
    sent = told.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "data": transfer(5), "value": "0x7"})
    lines = [each.strip() for each in told.text.splitlines()]
    assert lines[0] == "eth_sendTransaction"
    assert f"Transaction: {sent}" in lines
    assert any(each.startswith("Call: transfer(") and each.endswith(f" on {BOB}") for each in lines)
    assert {"Value: 7 wei", "Block Number: 1", "Block Time: Fri, 15 Jan 2027 08:00:01 +0000"} <= set(lines)
    assert any(each.startswith("Gas used: ") for each in lines)


def test_a_creation_is_told_with_the_address() -> None:
    told = Told()
    told.ask("eth_sendTransaction", {"from": ALICE, "data": "0x00"})
    assert "    Contract created: 0x5fbdb2315678afecb367f032d93f642f64180aa3" in told.text


@pytest.mark.parametrize(
    ("code", "why"), [(FAILING, "execution reverted: hi"), (HALTING, "invalid opcode: INVALID")], ids=["revert", "halt"]
)
def test_a_transaction_that_fails_is_told_with_the_reason(code: str, why: str) -> None:
    told = Told()
    told.ask("anvil_setCode", THERE, code)
    told.ask("eth_sendTransaction", {"from": ALICE, "to": THERE})
    assert f"    Error: {why}" in told.text


def test_a_request_that_is_refused_is_told_with_the_reason() -> None:
    told = Told()
    told.ask("eth_nothing")
    assert told.said == ["eth_nothing", "    Error: the method eth_nothing does not exist or is not available"]


@pytest.mark.parametrize("method", ["eth_sendTransaction", "eth_call"])
def test_what_contracts_write_to_the_console_is_told(method: str) -> None:
    told = Told()
    told.ask("anvil_setCode", THERE, PASSING)
    told.ask(method, {"from": ALICE, "to": THERE, "data": logging("it is here")})
    assert told.text.count("    console.log: it is here") == 1


def test_the_console_is_not_told_where_that_is_not_wanted() -> None:
    told = Told(consoles=False)
    told.ask("anvil_setCode", THERE, PASSING)
    told.ask("eth_sendTransaction", {"from": ALICE, "to": THERE, "data": logging("it is here")})
    assert "console.log" not in told.text


def test_what_a_contract_writes_cannot_command_a_terminal() -> None:
    told = Told()
    told.ask("anvil_setCode", THERE, PASSING)
    told.ask("eth_call", {"to": THERE, "data": logging("\x1b[2Jgone\n0x")})
    assert told.said[-1] == "    console.log: \\x1b[2Jgone\\n0x"


def test_v_tells_parameters_and_vv_events_and_vvv_traces_of_what_fails_and_vvvv_all_traces() -> None:
    seen = []
    for verbosity in range(5):
        told = Told(verbosity=verbosity)
        told.ask("anvil_setCode", THERE, FAILING)
        told.ask("eth_sendTransaction", {"from": ALICE, "to": THERE})
        told.ask("anvil_setCode", THERE, "0x5f5fa0")
        told.ask("eth_sendTransaction", {"from": ALICE, "to": THERE})
        text = told.text
        seen.append([f'"{THERE}"' in text, "Event:" in text, "CALL " + THERE in text, text.count("CALL " + THERE) == 2])
    assert seen == [[place < verbosity for place in range(4)] for verbosity in range(5)]


def test_with_json_each_line_is_an_object() -> None:
    told = Told(as_json=True)
    told.ask("anvil_setCode", THERE, PASSING)
    told.ask("eth_sendTransaction", {"from": ALICE, "to": THERE, "data": logging("it is here")})
    told.ask("eth_nothing")
    assert [each["event"] for each in told.events] == ["request", "request", "transaction", "block", "request", "error"]
    assert told.events[2]["console"] == ["it is here"]


def test_errors_are_red_where_colours_are_wanted() -> None:
    told = Told(color=True)
    told.ask("eth_nothing")
    assert told.said[-1].startswith("\x1b[31m")


def test_nothing_is_told_while_logging_is_switched_off() -> None:
    told = Told()
    told.ask("anvil_setLoggingEnabled", False)
    before = len(told.said)
    told.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
    assert len(told.said) == before


def test_a_reader_that_does_not_read_holds_nobody_up() -> None:
    go_on, written = threading.Event(), list[str]()

    def write(text: str) -> None:
        go_on.wait(20)
        written.append(text)

    printer = Printer(write)
    for place in range(20_000):
        printer.say(str(place))
    go_on.set()
    while len(written) < 10_000:
        pass
    printer.say("the last")
    printer.close()
    assert written[-1] == "the last"
    assert "messages are left out" in written[-2]


@pytest.mark.long
def test_a_node_prints_what_it_does_and_nothing_where_it_is_silent() -> None:
    python = environment("node", "web3>=7")
    with Node(python) as node:
        node.ask("eth_sendTransaction", {"from": ALICE, "to": BOB})
        assert node.process.stdout is not None
        text = "".join(node.process.stdout.readline() for _ in range(9))
    assert "eth_sendTransaction" in text
    assert "Gas used: 21000" in text
    assert "Block Number: 1" in text
