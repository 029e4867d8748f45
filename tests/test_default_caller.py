"""Who calls where nobody is named: one account everywhere, not the zero address, that always has what it sends."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from anvil import npm_folder
from commands import Command, fusevm_command  # noqa: F401
from fusevm import DEFAULT_CALLER, EVM, Checks, Rejected, State
from fusevm.abi.contract import Method
from fusevm.batch import Threads, fuzz
from realcontracts import PACKAGES, SOURCES, compiled

BOB = "0x" + "b0" * 20
WHO = "335f5260205ff3"  # returns its caller
PAID = "345f5260205ff3"  # returns what it was paid
TIERS = ("reference", "native", "auto")


@pytest.fixture(scope="module")
def coin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OpenZeppelin's ERC20, Burnable, Permit and Ownable, which mints for whoever deploys it, as solc's output."""
    path = tmp_path_factory.mktemp("coin") / "Coin.json"
    folder = npm_folder(tmp_path_factory, "FUSEVM_CONTRACTS", PACKAGES)
    answer = compiled(folder, {"Coin.sol": SOURCES["Coin.sol"]}, "abi", "evm.bytecode", "evm.deployedBytecode")
    answer["contracts"] = {"Coin.sol": answer["contracts"]["Coin.sol"]}
    path.write_text(json.dumps(answer))
    return path


# -- OpenZeppelin's token, which refuses the zero address


@pytest.mark.parametrize("tier", TIERS)
def test_a_token_of_openzeppelins_is_deployed_and_used_without_naming_anyone(coin: Path, tier: str) -> None:
    token = EVM(tier=tier).deploy_contract(coin)
    assert token.balanceOf(DEFAULT_CALLER).value == 10**24
    assert token.transfer(BOB, 5).value is True
    assert token.mint(BOB, 2).ok
    token.transfer.transact(BOB, 1).check()
    assert token.balanceOf(BOB).value == 8
    assert token.evm.simulate(token.address, token.transfer.encode(BOB, 1)).ok  # type: ignore[attr-defined]


def test_the_lines_of_the_readme_work_on_it(coin: Path, fusevm: Command) -> None:
    given = str(coin)
    run = fusevm("run", given, "--sig", "transfer", "--args", BOB, "7", "--block", "number=5", "--json")
    assert json.loads(run.out)["status"] == "success", run.err
    profile = fusevm("profile", given, "-c", f"transfer {BOB} 5", "--json")
    assert profile.code == 0, profile.err
    trace = fusevm("trace", given, "--sig", "transfer", "--args", BOB, "7", "--tracer", "callTracer", "--json")
    assert json.loads(trace.out)["from"] == "0x" + DEFAULT_CALLER.hex()


def test_a_sweep_has_it_too(fusevm: Command, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"code": WHO, "data": "$x", "grid": {"x": ["0x", "0x01"]}}))
    assert fusevm("sweep", str(tmp_path / "spec.json"), "-o", str(tmp_path / "out.jsonl")).code == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {row["output"][-40:] for row in rows} == {DEFAULT_CALLER.hex()}


def test_the_fuzzer_calls_as_whoever_deployed(coin: Path) -> None:
    evm = EVM()
    token = evm.deploy_contract(coin)
    report = fuzz(evm, lambda machine, results: results[0].ok, [[(token.address, token.transfer.encode(BOB, 1))]])
    assert report.sequences > 0
    assert evm.call(token.address, token.transfer.encode(BOB, 1)).ok


# -- one account, everywhere


@pytest.mark.parametrize("tier", TIERS)
def test_all_doors_have_the_same_caller(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_code(0xC0, WHO)
    who = int.from_bytes(DEFAULT_CALLER, "big")
    assert int.from_bytes(evm.call(0xC0).output, "big") == who
    assert int.from_bytes(evm.simulate(0xC0).output, "big") == who
    assert int.from_bytes(evm.deploy(WHO).output, "big") == who
    assert evm.simulate_many([b""], 0xC0).words() == evm.call_many([b""], 0xC0).words() == [who]
    assert evm.trace_call(0xC0, tracer="callTracer")["from"] == "0x" + DEFAULT_CALLER.hex()
    with evm.transaction() as tx:
        assert int.from_bytes(tx.call(0xC0).output, "big") == who
    with Threads(evm, 1) as pool:
        assert pool.simulate_many([b""], 0xC0).words() == [who]


def test_no_method_has_another_default() -> None:
    """`origin` is None where it is the caller."""
    defaults = {
        (kind.__name__, name, parameter.default)
        for kind in (EVM, Method, Threads)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name in ("caller", "sender") and parameter.default is not inspect.Parameter.empty
    }
    assert len(defaults) >= 12
    assert {default for _, _, default in defaults} == {DEFAULT_CALLER}


# -- it has what it sends


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("state", [State, lambda: EVM.preset("mainnet").state])
def test_it_has_what_it_sends(tier: str, state: Any) -> None:
    evm = EVM(tier=tier, state=state())
    evm.set_code(0xC0, PAID)
    assert int.from_bytes(evm.call(0xC0, value=10**24).output, "big") == 10**24
    assert evm.simulate(0xC0, value=5).ok
    assert evm.simulate_many([b""], 0xC0, value=7).words() == [7]
    assert evm.deploy("00", value=3).ok
    assert evm.transact(DEFAULT_CALLER, 0xC0, value=10**18, gas_price=10**9).ok
    assert evm.estimate_gas(0xC0, value=10**18, gas_price=10**9) > 21_000
    assert evm.trace_call(0xC0, value=10**18, tracer="callTracer")["value"] == hex(10**18)
    with evm.transaction() as tx:
        assert tx.call(0xC0, value=9).ok
    assert evm.get_balance(0xC0) == 10**24 + 10**18 + 9


def test_a_new_machine_has_no_account_for_it() -> None:
    """It is lent what it lacks, so that a state is what was put into it."""
    assert EVM().dump_state() == {}
    evm = EVM()
    evm.set_code(0xC0, "5f5ffd")
    assert not evm.call(0xC0, value=5).ok
    assert evm.get_balance(DEFAULT_CALLER) == 0


def test_it_spends_its_own_first() -> None:
    evm = EVM()
    evm.set_balance(DEFAULT_CALLER, 10)
    assert evm.call(BOB, value=4).ok
    assert evm.get_balance(DEFAULT_CALLER) == 6


@pytest.mark.parametrize("checks", [Checks(), Checks(nonce=False)])
def test_nobody_else_is_lent_anything(checks: Checks) -> None:
    evm = EVM(checks=checks)
    for poor in (bytes(20), BOB):
        with pytest.raises(ValueError, match="has 0 wei, not 1"):
            evm.call(0xC0, value=1, caller=poor)
        with pytest.raises(Rejected, match="0 of 1 wei"):
            evm.transact(poor, 0xC0, value=1)
