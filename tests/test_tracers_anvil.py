"""Tracers against anvil, a real node, call by call on real contracts.

Where anvil differs from geth, its answer is changed to geth's before it is compared: `as_geth_*` lists these points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anvil import ACCOUNT, Anvil, RpcError
from fusevm import EVM, Block
from fusevm.chain.transaction import Transaction, intrinsic_gas_of
from fusevm.evm.forks import rules_of
from fusevm.evm.keccak import keccak256
from tracedcontracts import Compiled, call, solidity_contracts, vyper_contracts, word  # noqa: F401

pytestmark = pytest.mark.long  # real tools, installed for it

Json = dict[str, Any]
OTHER = "0x" + "0b" * 20
GAS = 15_000_000
PRICE = 10**9
DIGEST = bytes(range(32))


class Twins:
    """The same transactions on a node and on an EVM, with every trace compared."""

    def __init__(self, node: Anvil) -> None:
        self.node = node
        self.evm = EVM("osaka")
        self.evm.block = Block(gas_limit=30_000_000, chain_id=31337)
        self.evm.set_balance(ACCOUNT, self._number("eth_getBalance"))
        self.evm.set_nonce(ACCOUNT, self._number("eth_getTransactionCount"))
        self.compared = 0

    def _number(self, method: str) -> int:
        return int(self.node.ask(method, "0x" + ACCOUNT.hex(), "latest"), 16)

    def send(self, to: str | None, data: bytes = b"", value: int = 0) -> str | None:
        """A transaction on both; the address of what it creates."""
        receipt = self.node.send(to, data, value, GAS, gasPrice=hex(PRICE))
        self._enter_block(receipt["blockNumber"])
        fields: Json = {"value": value, "gas": GAS, "gas_price": PRICE}
        intrinsic = self._intrinsic(to, data)
        for tracer, config in TRACERS:
            ours = self.evm.trace_transaction(ACCOUNT, to, data, tracer=tracer, config=config, **fields)
            self._compare(tracer, config, ours, self._traced(receipt["transactionHash"], tracer, config), intrinsic)
        called = self._traced(receipt["transactionHash"], "callTracer", {})
        assert self.evm.trace_transaction(ACCOUNT, to, data, tracer="4byteTracer", **fields) == selectors_in(called)
        result = self.evm.transact(ACCOUNT, to, data, **fields)
        assert hex(result.gas_used) == receipt["gasUsed"]
        return None if result.address is None else "0x" + result.address.hex()

    def ask(self, to: str | None, data: bytes = b"", value: int = 0) -> None:
        """A call on both, and its access list."""
        self._enter_block("latest")
        asked = {"from": "0x" + ACCOUNT.hex(), "data": "0x" + data.hex(), "value": hex(value), "gas": hex(GAS)}
        if to is not None:
            asked["to"] = to
        intrinsic = self._intrinsic(to, data)
        for tracer, config in TRACERS:
            ours = self.evm.trace_call(
                to, data, value=value, caller=ACCOUNT, gas=GAS, tracer=tracer, config=config
            )  # fmt: skip
            theirs = self.node.ask("debug_traceCall", asked, "latest", as_options(tracer, config))
            self._compare(tracer, config, ours, theirs, intrinsic)
        self._compare_access_lists(asked, to, data, value)

    def _compare_access_lists(self, asked: Json, to: str | None, data: bytes, value: int) -> None:
        ours = self.evm.create_access_list(to, data, value=value, caller=ACCOUNT, gas=GAS)
        try:
            theirs = self.node.ask("eth_createAccessList", asked, "latest")
        except RpcError:  # geth answers a list also where the call fails
            assert "error" in ours
            return
        listed = theirs["accessList"]
        assert _by_address(ours["accessList"]) == _by_address(listed)
        assert ours["gasUsed"] == theirs["gasUsed"]

    def _traced(self, transaction: str, tracer: str | None, config: Json) -> Any:
        return self.node.ask("debug_traceTransaction", transaction, as_options(tracer, config))

    def _compare(self, tracer: str | None, config: Json, ours: Json, theirs: Json, intrinsic: int) -> None:
        if tracer == "callTracer":
            theirs, ours = as_geth_calls(theirs, intrinsic), without_destructions(ours)
        elif tracer == "prestateTracer":
            theirs = as_geth_prestate(theirs, "diffMode" in config)
        else:
            theirs, ours = as_geth_steps(theirs, ours), without_errors(ours)
        assert first_difference(ours, theirs) is None
        self.compared += 1

    def _enter_block(self, number: str) -> None:
        block = self.node.ask("eth_getBlockByNumber", number, False)
        ours = self.evm.block
        ours.number, ours.timestamp = int(block["number"], 16), int(block["timestamp"], 16)
        ours.coinbase, ours.prev_randao = block["miner"], block["mixHash"]

    def _intrinsic(self, to: str | None, data: bytes) -> int:
        target = None if to is None else bytes.fromhex(to[2:])
        return intrinsic_gas_of(Transaction(ACCOUNT, target, data), rules_of(self.evm.fork))


TRACERS: tuple[tuple[str | None, Json], ...] = (
    ("callTracer", {}),
    ("callTracer", {"withLog": True}),
    ("callTracer", {"onlyTopCall": True}),
    ("prestateTracer", {"includeEmpty": True}),  # anvil always lists empty accounts, and has no such option
    ("prestateTracer", {"diffMode": True}),
    (None, {"enableMemory": True, "enableReturnData": True}),
    (None, {"disableStack": True, "disableStorage": True}),
)


def as_options(tracer: str | None, config: Json) -> Json:
    if tracer is None:
        return config
    return {"tracer": tracer, "tracerConfig": {key: value for key, value in config.items() if key != "includeEmpty"}}


def as_geth_calls(theirs: Json, intrinsic: int) -> Json:
    """anvil counts the outermost call's gas without the intrinsic gas, and keeps logs of calls that failed."""
    frame = as_geth_frame({**theirs, "gas": hex(int(theirs["gas"], 16) + intrinsic)}, failed=False)
    return numbered(without_destructions(frame))


def without_destructions(frame: Json) -> Json:
    """anvil has no frame for a SELFDESTRUCT that only sends the balance (EIP-6780); geth has."""
    frame = dict(frame)
    calls = [without_destructions(each) for each in frame.pop("calls", ()) if each["type"] != "SELFDESTRUCT"]
    return frame | ({"calls": calls} if calls else {})


def as_geth_frame(frame: Json, *, failed: bool) -> Json:
    failed = failed or "error" in frame
    frame = {key: value for key, value in frame.items() if key != "logs" or not failed}
    if "error" in frame:
        frame["error"] = ERRORS.get(frame["error"], frame["error"])
    if "calls" in frame:
        frame["calls"] = [as_geth_frame(each, failed=failed) for each in frame["calls"]]
    return frame


# Where anvil has the name of an error in the source text, and geth a sentence.
ERRORS = {"CreateCollision": "contract address collision"}


def numbered(frame: Json) -> Json:
    """With the logs counted anew, in the order in which they were emitted."""
    count = 0
    waiting: list[tuple[str, Json]] = [("call", frame)]
    while waiting:
        kind, now = waiting.pop()
        if kind == "log":
            now["index"] = hex(count)
            count += 1
            continue
        inside: list[tuple[str, Json]] = []
        logs = list(now.get("logs", ()))
        for at, each in enumerate((*now.get("calls", ()), None)):
            inside += [("log", log) for log in logs if int(log["position"], 16) == at]
            inside += [("call", each)] if each is not None else []
        waiting += reversed(inside)
    return frame


def as_geth_prestate(theirs: Json, diff: bool) -> Json:
    """anvil does not tell hashes of code, and lists accounts in `pre` that were empty."""
    if not diff:
        return {address: with_code_hash(account) for address, account in theirs.items()}
    pre, post = theirs["pre"], theirs["post"]
    return {
        "pre": {address: with_code_hash(account) for address, account in pre.items() if account != {"balance": "0x0"}},
        "post": {address: with_code_hash(account) for address, account in post.items()},
    }


def with_code_hash(account: Json) -> Json:
    if "code" not in account:
        return account
    code = bytes.fromhex(account["code"].removeprefix("0x"))
    return {**account, "codeHash": "0x" + keccak256(code).hex()}


def as_geth_steps(theirs: Json, ours: Json) -> Json:
    """anvil writes empty return data and memory and a refund of zero, which geth leaves out.

    It counts the gas that a creation hands down as its cost; geth does so for calls alone.
    """
    steps = theirs["structLogs"]
    for step, following, our in zip(steps, steps[1:], ours["structLogs"], strict=False):
        if step["op"] not in ("CREATE", "CREATE2"):
            continue
        if following["depth"] > step["depth"]:
            step["gasCost"] -= following["gas"]
        else:  # the address is taken, and all but a 64th is lost; which does not tell the rest to the unit
            cost = step["gasCost"] - 63 * following["gas"]
            step["gasCost"] = our["gasCost"] if 0 <= cost - our["gasCost"] < 64 else cost
    return {**theirs, "structLogs": [as_geth_step(step) for step in steps]}


def as_geth_step(step: Json) -> Json:
    return {
        key: value
        for key, value in step.items()
        if not (key in EMPTY and value == EMPTY[key]) and key != "error"
    }  # fmt: skip


EMPTY: Json = {"returnData": "0x", "memory": [], "refund": 0}


def without_errors(ours: Json) -> Json:
    """Texts of errors are geth's; anvil has others."""
    return {**ours, "structLogs": [as_geth_step(step) for step in ours["structLogs"]]}


def selectors_in(frame: Json) -> dict[str, int]:
    """What a 4byteTracer says of a tree of calls; anvil has none."""
    found: Counter[str] = Counter()
    waiting = [frame]
    while waiting:
        now = waiting.pop()
        waiting += now.get("calls", ())
        size = (len(now["input"]) - 2) // 2
        if not now["type"].startswith("CREATE") and size >= 4 and int(now["to"], 16) > 0x1FF:
            found[f"{now['input'][:10]}-{size - 4}"] += 1
    return dict(found)


def first_difference(ours: Any, theirs: Any, place: str = "") -> str | None:
    """Where two answers differ, in one line."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if unmatched := {key: ours.get(key, theirs.get(key)) for key in ours.keys() ^ theirs.keys()}:
            return f"{place}: only one has {unmatched!r:.400}"
        pairs = [(f"{place}.{key}", ours[key], theirs[key]) for key in ours]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(f"{place}[{at}]", *pair) for at, pair in enumerate(zip(ours, theirs, strict=True))]
    else:
        return None if ours == theirs else f"{place}: ours is {ours!r:.400}, theirs is {theirs!r:.400}"
    return next((found for where, one, other in pairs if (found := first_difference(one, other, where))), None)


def _by_address(listed: list[Json]) -> dict[str, set[str]]:
    return {entry["address"]: set(entry["storageKeys"]) for entry in listed}


@pytest.fixture
def twins(anvil_binary: Path) -> Iterator[Twins]:
    """On a node of its own, which notes every step of what it runs."""
    with Anvil(anvil_binary, "--steps-tracing") as node:
        yield Twins(node)


def test_an_openzeppelin_token(twins: Twins, solidity: Compiled) -> None:
    token = twins.send(None, solidity.creation("Token") + word(10**24))
    twins.send(token, call("transfer(address,uint256)", OTHER, 5))
    twins.send(token, call("transfer(address,uint256)", OTHER, 10**30))  # more than there is
    twins.send(token, call("approve(address,uint256)", OTHER, 7))
    twins.send(token, call("delegate(address)", ACCOUNT))
    twins.send(token, call("transfer(address,uint256)", OTHER, 6))  # which moves votes
    twins.send(token, call("mint(address,uint256)", OTHER, 8))
    twins.ask(token, call("balanceOf(address)", OTHER))
    twins.ask(token, call("transfer(address,uint256)", OTHER, 1))
    twins.ask(token, call("sumTo(uint256)", 20))
    twins.ask(
        token, call("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", OTHER, OTHER, 1, 2**255, 27, 3, 4)
    )


def test_an_openzeppelin_nft_and_its_receiver(twins: Twins, solidity: Compiled) -> None:
    art = twins.send(None, solidity.creation("Art"))
    gallery = twins.send(None, solidity.creation("Gallery"))
    assert art is not None
    assert gallery is not None
    for _ in range(4):  # the last is refused by the receiver
        twins.send(art, call("mintTo(address)", gallery))
    twins.send(art, call("mintTo(address)", OTHER))
    twins.send(art, call("mintTo(address)", art))  # which cannot receive
    twins.ask(art, call("ownerOf(uint256)", 0))
    twins.ask(art, call("ownerOf(uint256)", 99))


def test_an_openzeppelin_governor(twins: Twins, solidity: Compiled) -> None:
    token = twins.send(None, solidity.creation("Token") + word(10**24))
    assert token is not None
    twins.send(token, call("delegate(address)", ACCOUNT))
    governor = twins.send(None, solidity.creation("Parliament") + word(token))
    assert governor is not None
    data = call("mint(address,uint256)", OTHER, 5)
    proposal = (
        b"".join(map(word, (128, 192, 256, 448)))
        + b"".join(map(word, (1, token, 1, 0, 1, 32, len(data))))
        + data.ljust(96, b"\0")
        + word(4)
        + b"mint".ljust(32, b"\0")
    )
    twins.send(token, call("transferOwnership(address)", governor))
    twins.send(governor, call("propose(address[],uint256[],bytes[],string)") + proposal)
    described = proposal[:96] + keccak256(b"mint") + proposal[128:-64]
    identifier = twins.evm.call(
        governor, call("hashProposal(address[],uint256[],bytes[],bytes32)") + described
    ).output  # fmt: skip
    execute = call("execute(address[],uint256[],bytes[],bytes32)") + described
    twins.send(governor, execute)  # too early
    twins.send(governor, call("castVote(uint256,uint8)", identifier, 1))
    for _ in range(6):
        twins.send(OTHER)
    twins.send(governor, execute)
    assert int.from_bytes(twins.evm.call(token, call("balanceOf(address)", OTHER)).output, "big") == 5


def test_solady(twins: Twins, solidity: Compiled) -> None:
    sol = twins.send(None, solidity.creation("Sol"))
    twins.send(sol, call("mint(address,uint256)", ACCOUNT, 10**18))
    twins.send(sol, call("transfer(address,uint256)", OTHER, 1))
    twins.send(sol, call("transfer(address,uint256)", OTHER, 10**30))
    twins.ask(sol, call("sorted(uint256[])", 32, 9, *(7, 3, 9, 1, 4, 4, 2, 8, 0)))
    twins.ask(sol, call("name()"))


def test_creations_clones_failures_and_precompiles(twins: Twins, solidity: Compiled) -> None:
    workshop = twins.send(None, solidity.creation("Workshop"))
    assert workshop is not None
    twins.send(workshop, call("make(bytes32)", 1), value=5)
    twins.send(workshop, call("make(bytes32)", 1))  # the address is taken
    child = twins.evm.call(workshop, call("last()")).output[12:]
    for value in (7, 13, 14, 101):
        twins.send(workshop, call("set(address,uint256)", child, value))
        twins.send(workshop, call("tryToSet(address,uint256)", child, value))
    twins.send(workshop, call("makePlain()"))
    twins.send(workshop, call("clone(address)", child))
    twins.send(workshop, value=100)
    twins.send(workshop, call("pay(address,uint256)", OTHER, 30))
    twins.send(workshop, call("pay(address,uint256)", OTHER, 3000))  # more than it has
    twins.send(workshop, call("send(address,uint256)", OTHER, 3000))
    twins.send(workshop, call("makeAndLeave()"))
    twins.send("0x" + child.hex(), call("leave(address)", OTHER))
    twins.ask(workshop, call("recover(bytes32,uint8,bytes32,bytes32)", DIGEST, 27, DIGEST, DIGEST))
    twins.ask(workshop, call("burn()"))
    twins.ask(workshop, call("make(bytes32)", 2), value=1)
    twins.ask(None, solidity.creation("Gallery"))


def test_vyper(twins: Twins, vyper: Compiled) -> None:
    purse = twins.send(None, vyper.creation("Purse") + word(1000))
    twins.send(purse, call("move(address,uint256)", OTHER, 4))
    twins.send(purse, call("move(address,uint256)", OTHER, 4000))
    twins.send(purse, call("move(address,uint256)", 0, 4))
    twins.ask(purse, call("sum(uint256)", 20))


def test_every_opcode_has_the_name_and_the_price_that_anvil_gives_it(twins: Twins) -> None:
    """On a stack of zeros. Creations apart (see `as_geth_steps`), and what is not yet in Osaka."""
    compared = 0
    for byte in range(256):
        code = bytes([0x5F] * 17 + [byte])
        twins.node.ask("anvil_setCode", OTHER, "0x" + code.hex())
        twins.evm.set_code(OTHER, code)
        ours = twins.evm.trace_call(OTHER, gas=100_000)["structLogs"][17]
        asked = {"to": OTHER, "gas": hex(100_000)}
        theirs = twins.node.ask("debug_traceCall", asked, "latest", {})["structLogs"][17]
        if ours["op"].startswith("opcode") or ours["op"].startswith("CREATE"):
            continue
        assert (ours["op"], ours["gasCost"]) == (theirs["op"], theirs["gasCost"])
        compared += 1
    assert compared == 148
