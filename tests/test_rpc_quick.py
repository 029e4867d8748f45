"""eth_call without a transaction answers as with one, whatever was done to the chain before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fusevm import assemble
from fusevm.evm.forks import Fork
from fusevm.rpc.errors import RpcError
from fusevm.rpc.quick import QuickCalls
from fusevm.rpc.session import Session
from fusevm.rpc.start import Config
from test_many import CONTRACTS, Scene

SEEN = ("GASPRICE", "BASEFEE", "GASLIMIT", "TIMESTAMP", "NUMBER", "COINBASE", "ORIGIN", "CALLER", "CHAINID", "GAS")
STORED = " ".join(f"{name} PUSH2 {32 * place} MSTORE" for place, name in enumerate(SEEN))
LOOKING = "0x" + assemble(f"{STORED} PUSH2 {32 * len(SEEN)} PUSH1 0 RETURN").hex()
ACCOUNT = "0x" + "c0" * 20


def session_of(scene: Scene, fork: Fork) -> Session:
    session = Session(Config(hardfork=fork.label, timestamp=1_800_000_000), now=lambda: 1_800_000_100.0)
    evm = scene.machine("reference")
    for address, account in evm.state.accounts.items():
        text = "0x" + address.hex()
        session.request("anvil_setBalance", [text, hex(account.balance)])
        session.request("anvil_setCode", [text, "0x" + account.code.hex()])
        for key, value in account.storage.items():
            session.request("anvil_setStorageAt", [text, hex(key), f"0x{value:064x}"])
    session.request("anvil_setCode", [ACCOUNT, LOOKING])
    return session


def asked(session: Session, form: dict[str, Any]) -> Any:
    try:
        return session.request("eth_call", [form, "latest"])
    except RpcError as error:
        return error.code, str(error), error.data


def both(session: Session, form: dict[str, Any]) -> None:
    quick = asked(session, form)
    kept, session.quick_calls = session.quick_calls, None
    try:
        assert quick == asked(session, form), form
    finally:
        session.quick_calls = kept


def hex_of(given: Any) -> str:
    return "0x" + bytes(given).hex()


def form_of(scene: Scene, rng: random.Random) -> dict[str, Any]:
    call = scene.call(special=0.0, slots=False)
    form: dict[str, Any] = {"to": hex_of(call.to), "data": hex_of(call.data)}
    if rng.random() < 0.7:
        form["from"] = hex_of(call.caller)
    if rng.random() < 0.5:
        form["gas"] = hex(rng.choice((100_000, 400_000, 21_000, 21_500, 20_000, 40_000_000)))
    return form


def change(session: Session, rng: random.Random, snapshots: list[str]) -> None:
    contract = "0x" + rng.choice(CONTRACTS).hex()
    first = session.request("eth_accounts")[0]
    kind = rng.randrange(8)
    if kind == 0:
        session.request("anvil_mine", [hex(rng.choice((1, 2)))])
    elif kind == 1:
        session.request("anvil_setStorageAt", [contract, hex(rng.randrange(4)), f"0x{rng.choice((0, 1, 7)):064x}"])
    elif kind == 2:
        session.request("anvil_setBalance", [contract, hex(rng.choice((0, 5, 10**18)))])
    elif kind == 3:
        snapshots.append(session.request("evm_snapshot"))
    elif kind == 4 and snapshots:
        session.request("evm_revert", [snapshots.pop()])
    elif kind == 5:
        session.request("anvil_setCoinbase", ["0x" + rng.randbytes(20).hex()])
    elif kind == 6:
        session.request("anvil_setCode", [contract, rng.choice((LOOKING, "0x5f355f5560015f5260205ff3", "0x"))])
    else:
        session.request("eth_sendTransaction", [{"from": first, "to": contract, "gas": hex(900_000), "value": "0x1"}])


@pytest.mark.parametrize("fork", [Fork.OSAKA, Fork.PRAGUE, Fork.SHANGHAI, Fork.LONDON])
@pytest.mark.parametrize("seed", range(5))
def test_calls_answer_as_transactions_do(seed: int, fork: Fork) -> None:
    scene, rng, snapshots = Scene(seed, fork), random.Random(seed), list[str]()
    session = session_of(scene, fork)
    for _ in range(60):
        if rng.random() < 0.4:
            change(session, rng, snapshots)
        both(session, form_of(scene, rng))
        both(session, {"to": ACCOUNT})


def test_a_plain_call_makes_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    session.request("anvil_setCode", [ACCOUNT, "0x602a5f5260205ff3"])
    monkeypatch.setattr("fusevm.rpc.calls.run_call", lambda *_: pytest.fail("made of a transaction"))
    assert int(session.request("eth_call", [{"to": ACCOUNT}, "latest"]), 16) == 42


@pytest.mark.parametrize(
    "more", [{"value": "0x1"}, {"gasPrice": "0x77359400"}, {"gas": "0x1"}, {"accessList": []}, {"to": None}]
)
def test_other_calls_are_not_for_this_way(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    session, found = Session(), list[object]()
    call = QuickCalls.call
    monkeypatch.setattr(QuickCalls, "call", lambda *given: found.append(call(*given)) or found[-1])
    asked(session, {"to": ACCOUNT, "from": session.request("eth_accounts")[0], **more})
    assert found == [None]


def test_a_call_without_end_is_cut_off() -> None:
    session = Session(call_seconds=1.0)
    session.request("anvil_setCode", [ACCOUNT, "0x5b5f56"])
    session.dev.gas_limit = 1 << 50
    session.request("anvil_mine", [])
    with pytest.raises(RpcError, match="time"):
        session.request("eth_call", [{"to": ACCOUNT}, "latest"])
    assert session.request("eth_call", [{"to": "0x" + "dd" * 20}, "latest"]) == "0x"


def test_a_call_that_cannot_pay_for_its_data_is_refused() -> None:
    session = Session()  # EIP-7623: 40 gas per byte at the least
    both(session, {"to": ACCOUNT, "data": "0x" + "ff" * 400, "gas": hex(21_000 + 16 * 400 + 100)})
    assert "gas" in asked(session, {"to": ACCOUNT, "data": "0x" + "ff" * 400, "gas": hex(28_000)})[1]


def test_a_caller_with_code_has_the_nonce_that_it_has_in_a_transaction() -> None:
    session = Session()
    session.request("anvil_setCode", [ACCOUNT, "0x5f5f5ff05f5260205ff3"])  # the address of what it creates
    both(session, {"from": ACCOUNT, "to": ACCOUNT})
