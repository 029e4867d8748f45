"""The peers behind one protocol: each, given the same work, must say what our reference tier says."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import pytest

from fusevm.chain.environment import Block
from fusevm.chain.state import DELEGATION_PREFIX, Account
from fusevm.chain.transaction import Transaction
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.differential import differences, fitted
from fusevm.lab.peers.engines import PEERS, engine_named
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerEngine, PeerMissing, PeerWork, UnknownEngine, block_hash

SENDER, CONTRACT, OTHER, COINBASE = b"\x11" * 20, b"\xcc" * 20, b"\xdd" * 20, b"\xc0" * 20
REFERENCE = OurTier("reference")
FORKS = (Fork.FRONTIER, Fork.SPURIOUS_DRAGON, Fork.PETERSBURG, Fork.BERLIN, Fork.SHANGHAI, Fork.CANCUN, Fork.OSAKA)
NEWEST = {"pyrevm": Fork.CANCUN, "py-evm": Fork.PRAGUE, "spec": Fork.OSAKA}
EVERY = [
    pytest.param(name, fork, id=f"{name}-{fork.label}") for name in PEERS for fork in FORKS if fork <= NEWEST[name]
]
CALL_OTHER = f"PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 2 PUSH20 0x{OTHER.hex()} PUSH2 0xea60 CALL"

# what happens: the contract's code
SCENES = {
    "stores, logs and returns": "PUSH1 0 PUSH1 2 SSTORE PUSH1 9 PUSH1 1 SSTORE PUSH1 7 PUSH1 32 PUSH1 0 LOG1 "
    "PUSH1 0xaa PUSH1 0 MSTORE PUSH1 33 PUSH1 0 RETURN",
    "halts": "PUSH1 1 PUSH1 2 SSTORE INVALID",
    "runs out of gas": "L: JUMPDEST PUSH1 @L JUMP",
    "calls with value": CALL_OTHER + " PUSH1 1 SSTORE",
    "creates": "PUSH5 0x60016000f3 PUSH1 0 MSTORE PUSH1 5 PUSH1 27 PUSH1 1 CREATE PUSH1 1 SSTORE",
    "destroys itself": f"PUSH20 0x{OTHER.hex()} SELFDESTRUCT",
    "asks about the block": "NUMBER PUSH1 1 NUMBER SUB BLOCKHASH TIMESTAMP COINBASE GASLIMIT GASPRICE PREVRANDAO "
    "ADD ADD ADD ADD ADD ADD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN",
}  # fmt: skip


@cache
def peer(name: str) -> PeerEngine:
    _, module, package = PEERS[name]
    if find_spec(module) is None:
        pytest.skip(f"{package} is not installed (pip install 'fusevm[peers]')")
    return engine_named(name)


def work_of(code: str, fork: Fork) -> PeerWork:
    accounts = {
        SENDER: Account(3, 10**18),
        CONTRACT: Account(1, 5, assemble(code), {1: 1, 2: 2}),
        OTHER: Account(1, 0, assemble("CALLVALUE PUSH1 0 SSTORE"), {0: 1, 3: 3}),
    }
    late = {"base_fee": 7} if fork >= Fork.LONDON else {"difficulty": 1_000}
    block = Block(number=300, timestamp=1_000, coinbase=COINBASE, prev_randao=77, hashes=block_hash)
    if fork >= Fork.PARIS:
        late |= {"difficulty": 0}
    tx = Transaction(SENDER, CONTRACT, b"\x00\x01", 1, 200_000, gas_price=10)
    return PeerWork(fork, accounts, replace(block, **late), tx)  # type: ignore[arg-type]


def assert_agrees(name: str, work: PeerWork) -> None:
    engine = peer(name)
    assert engine.supports(work.fork)
    work = fitted(work, [engine])
    assert list(differences(REFERENCE.run(work), engine.run(work))) == []


@pytest.mark.parametrize(("name", "fork"), EVERY)
@pytest.mark.parametrize("scene", SCENES)
def test_a_peer_sees_what_we_see(name: str, fork: Fork, scene: str) -> None:
    assert_agrees(name, work_of(SCENES[scene], fork))


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("fork", [Fork.BYZANTIUM, Fork.CANCUN], ids=lambda fork: fork.label)
def test_a_peer_sees_what_a_revert_returns(name: str, fork: Fork) -> None:
    work = work_of("PUSH1 0xbb PUSH1 0 MSTORE PUSH1 32 PUSH1 0 REVERT", fork)
    assert_agrees(name, work)
    assert peer(name).run(fitted(work, [peer(name)])).output == b"\xbb".rjust(32, b"\0")


@pytest.mark.parametrize(("name", "fork"), EVERY)
@pytest.mark.parametrize("ending", ["PUSH1 1 PUSH1 0 RETURN", "INVALID"])
def test_a_peer_sees_what_a_transaction_creates(name: str, fork: Fork, ending: str) -> None:
    work = work_of("", fork)
    work.transaction = replace(work.transaction, to=None, data=assemble(f"PUSH1 5 PUSH1 0 SSTORE {ending}"))
    assert_agrees(name, work)


@pytest.mark.parametrize(("name", "fork"), EVERY)
def test_a_peer_rejects_what_cannot_pay_for_its_beginning(name: str, fork: Fork) -> None:
    work = work_of("", fork)
    work.transaction = replace(work.transaction, gas_limit=20_999)
    assert_agrees(name, work)


@pytest.mark.parametrize("name", ["pyrevm", "spec"])
def test_an_access_list_warms_for_a_peer_too(name: str) -> None:
    work = work_of("PUSH1 1 SLOAD " + CALL_OTHER, Fork.BERLIN)
    work.transaction = replace(work.transaction, access_list=((OTHER, (0,)), (CONTRACT, (1, 2))))
    assert_agrees(name, work)


@pytest.mark.parametrize("name", ["pyrevm", "spec"])
def test_a_peer_knows_fees_and_blobs(name: str) -> None:
    work = work_of("PUSH1 0 BLOBHASH BLOBBASEFEE BASEFEE ADD ADD PUSH1 1 SSTORE", Fork.CANCUN)
    work.block.excess_blob_gas = 10_000_000
    fees = {"gas_price": None, "max_fee": 20, "max_priority_fee": 3, "max_blob_fee": 100}
    work.transaction = replace(work.transaction, blob_hashes=(b"\x01" * 32,), **fees)  # type: ignore[arg-type]
    assert_agrees(name, work)


def test_the_specification_follows_delegations() -> None:
    work = work_of(CALL_OTHER, Fork.PRAGUE)
    work.accounts[OTHER] = Account(1, 0, DELEGATION_PREFIX + CONTRACT, {})
    work.accounts[CONTRACT].code = assemble("ADDRESS PUSH1 1 SSTORE")
    work.transaction = replace(work.transaction, to=OTHER)
    assert_agrees("spec", work)


def test_py_evm_knows_the_net_metering_that_only_constantinople_had() -> None:
    work = work_of("PUSH1 5 PUSH1 1 SSTORE PUSH1 1 PUSH1 1 SSTORE", Fork.CONSTANTINOPLE)
    assert_agrees("py-evm", work)
    assert REFERENCE.run(work).refund != REFERENCE.run(replace(work, fork=Fork.PETERSBURG)).refund


def test_the_others_do_not_claim_to_know_constantinople() -> None:
    assert not peer("pyrevm").supports(Fork.CONSTANTINOPLE)
    assert not peer("spec").supports(Fork.CONSTANTINOPLE)


def test_pyrevm_is_excused_where_it_takes_a_missing_account_for_existing() -> None:
    call_nobody = "PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH1 0 PUSH2 0x7777 PUSH2 0x1000 CALL"
    revm, work = peer("pyrevm"), work_of(call_nobody, Fork.HOMESTEAD)
    assert list(differences(REFERENCE.run(work), revm.run(work)))
    assert "missing accounts" in (revm.excuse(work) or "")
    assert revm.excuse(replace(work, fork=Fork.SPURIOUS_DRAGON)) is None


def modexp_of(*lengths: int) -> PeerWork:
    """MODEXP called by the transaction itself."""
    work = work_of("", Fork.BERLIN)
    data = b"".join(length.to_bytes(32, "big") for length in lengths) + b"\x02"
    work.transaction = replace(work.transaction, to=(5).to_bytes(20, "big"), data=data, value=0)
    return work


def test_the_specification_is_excused_where_its_modexp_crashes() -> None:
    spec = peer("spec")
    with pytest.raises(OverflowError):
        spec.run(modexp_of((1 << 256) - 1, 0, 0))
    assert "MODEXP" in (spec.excuse(modexp_of((1 << 256) - 1, 0, 0)) or "")
    assert spec.excuse(modexp_of(1, 1, 1)) is None


def test_py_evm_is_excused_where_its_modexp_forgets_that_anything_to_the_zero_is_one() -> None:
    work = modexp_of(0, 0, 1)
    assert [name for name, _, _ in differences(REFERENCE.run(work), peer("py-evm").run(work))] == ["output"]
    assert "MODEXP" in (peer("py-evm").excuse(work) or "")
    assert_agrees("spec", work)


@pytest.mark.parametrize("name", ["pyrevm", "py-evm", "spec"])
def test_a_frontier_creation_that_cannot_pay_for_its_code_succeeds_without(name: str) -> None:
    work = work_of("", Fork.FRONTIER)
    code = assemble("PUSH2 0x1000 PUSH1 0 RETURN")
    work.transaction = replace(work.transaction, to=None, data=code, gas_limit=30_000)
    assert_agrees(name, work)
    seen = REFERENCE.run(work)
    assert (seen.status, seen.output) == ("success", b"")


@pytest.mark.parametrize("name", ["reference", *PEERS])
def test_running_leaves_the_work_as_it_was(name: str) -> None:
    engine = OurTier(name) if name == "reference" else peer(name)
    work = fitted(work_of(SCENES["stores, logs and returns"], Fork.CANCUN), [engine])
    first, second = engine.run(work), engine.run(work)
    assert list(differences(first, second)) == []
    assert work.accounts[CONTRACT].storage == {1: 1, 2: 2}


@pytest.mark.parametrize("name", ["reference", *PEERS])
def test_a_stopwatch_starts_from_the_same_state_each_time(name: str) -> None:
    engine = OurTier(name) if name == "reference" else peer(name)
    work = work_of(SCENES["stores, logs and returns"], Fork.CANCUN)
    work.block.base_fee = 0
    run = engine.stopwatch(work)
    first, second = run(), run()
    assert first[1:] == second[1:]
    assert first[1:] == REFERENCE.stopwatch(work)()[1:]


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownEngine, match=r"unknown engine 'geth'; known: auto, .*pyrevm, py-evm, spec"):
        engine_named("geth")


@pytest.mark.parametrize(("name", "package"), [(name, package) for name, (_, _, package) in PEERS.items()])
def test_a_missing_peer_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    monkeypatch.setattr("fusevm.lab.peers.engines.find_spec", lambda module: None)
    with pytest.raises(PeerMissing, match=f"'{name}' needs the package {package}: pip install 'fusevm\\[peers\\]'"):
        engine_named(name)
