"""Contracts as objects: artifacts of every tool, methods, decoded values, events and errors."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusevm import EVM, BadValue, ExecutionFailed, Status
from fusevm.abi import Abi, Artifact, BadAbi, CannotDecode, Contract, ContractResult
from fusevm.chain.addresses import Address
from tokens import SIGNATURES, artifacts, codes

ALICE, BOB = Address("0x" + "a1" * 20), Address("0x" + "b0" * 20)
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def token() -> Contract:
    return EVM().deploy_contract(artifacts()["foundry"], 1000, caller=ALICE)


# -- artifacts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", artifacts())
def test_the_artifact_of_a_tool_is_deployed_and_called(form: str, tmp_path: Path) -> None:
    artifact = artifacts()[form]
    path = tmp_path / "Token.json"
    path.write_text(json.dumps(artifact))
    for each in (artifact, json.dumps(artifact), str(path), path):
        token = EVM().deploy_contract(each, 1000, caller=ALICE)
        assert token.balanceOf(ALICE).value == 1000
        assert token.evm.get_code(token).hex() == codes()[1]  # type: ignore[attr-defined]
    assert Artifact.read(artifact).runtime_code().hex() == codes()[1]


def test_one_of_several_contracts_is_chosen_by_name() -> None:
    both = {"contracts": {"a.sol": {"A": artifacts()["hardhat"], "B": artifacts()["foundry"]}}}
    with pytest.raises(BadAbi, match=r"2 contracts with code; name the one that is meant: a.sol:A, a.sol:B"):
        Artifact.read(both)
    assert Artifact.read(both, "B").name == "a.sol:B"
    assert EVM().deploy_contract(both, 5, name="a.sol:A").totalSupply().value == 5
    with pytest.raises(BadAbi, match=r"no contract 'C'; it has a.sol:A, a.sol:B"):
        Artifact.read(both, "C")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("nosuch.json", "cannot read nosuch.json: No such file"),
        ("{", "the JSON text: line 1, column 2: not JSON"),
        ({}, "the artifact: not an artifact of Foundry, Hardhat or Ape"),
        ({"abi": [], "bytecode": 5}, "the artifact: bytecode is not hex text"),
        ({"abi": [{"type": "function"}]}, "ABI entry 0: no name"),
        ("[" * 100_000, "the JSON text: nested too deeply"),
    ],
)
def test_what_is_not_an_artifact_is_refused_in_one_line(source: Any, why: str) -> None:
    with pytest.raises(BadAbi) as caught:
        Artifact.read(source)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


def test_an_interface_cannot_be_deployed() -> None:
    with pytest.raises(BadAbi, match="this ABI has no creation code: an interface, or an abstract contract"):
        EVM().deploy_contract(SIGNATURES)


def test_libraries_are_linked_by_name_or_by_file_and_name() -> None:
    address = "0x" + "11" * 20
    code = "73" + "__$" + "ab" * 17 + "$__" + "5f5260205ff3"
    linked = {"abi": [], "bytecode": {"object": code, "linkReferences": {"l.sol": {"L": [{"start": 1, "length": 20}]}}}}
    for name in ("L", "l.sol:L"):
        code_of = Artifact.read(linked).creation_code(libraries={name: address})
        assert code_of.hex() == "73" + "11" * 20 + "5f5260205ff3"
    with pytest.raises(BadValue, match=r"needs libraries: give libraries=\{'l.sol:L': address\}"):
        EVM().deploy_contract(linked)
    with pytest.raises(BadValue, match=r"needs no 'M'; it needs l.sol:L"):
        EVM().deploy_contract(linked, libraries={"M": address})
    assert EVM().deploy_contract(linked, libraries={"L": address}).deployment is not None


# -- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_a_function_is_a_method_and_its_value_is_decoded(tier: str) -> None:
    evm = EVM(tier=tier)
    token = evm.deploy_contract(artifacts()["hardhat"], 1000, caller=ALICE)
    assert token.name().value == "Fuse token"
    result = token.transfer(BOB, 1, caller=ALICE)
    assert isinstance(result, ContractResult)
    assert result.value is True
    assert (token.balanceOf(ALICE).value, token.balanceOf(BOB).value) == (999, 1)
    plain = evm.simulate(token, token.transfer.encode(BOB, 1), caller=ALICE)
    assert token.transfer.simulate(BOB, 1, caller=ALICE).gas_used == plain.gas_used


def test_simulate_keeps_nothing(token: Contract) -> None:
    assert token.transfer.simulate(BOB, 1, caller=ALICE).value is True
    assert token.balanceOf(BOB).value == 0


def test_transact_is_paid_for_by_the_caller(token: Contract) -> None:
    evm = token.evm
    assert isinstance(evm, EVM)
    evm.set_balance(ALICE, 10**18)
    nonce = evm.get_nonce(ALICE)
    result = token.transfer.transact(BOB, 1, caller=ALICE, gas_price=7)
    assert result.value is True
    assert result.gas_used > 21_000
    assert evm.get_nonce(ALICE) == nonce + 1
    assert evm.get_balance(ALICE) == 10**18 - 7 * result.gas_used


def test_an_overload_is_chosen_by_its_arguments_or_by_signature(token: Contract) -> None:
    assert token.burn(1, caller=ALICE).ok
    assert token.burn(ALICE, 1, caller=ALICE).ok
    assert token["burn(uint256)"](1, caller=ALICE).ok
    assert token["burn(address,uint256)"](ALICE, 1, caller=ALICE).ok
    assert token["burn"](1, caller=ALICE).ok
    assert token.totalSupply().value == 995
    with pytest.raises(BadValue, match="burn: no overload takes these arguments"):
        token.burn(1, 2, 3)


def test_overloads_of_as_many_arguments_are_told_apart_by_type_where_they_can_be() -> None:
    contract = EVM().contract(["f(address)", "f(string)", "g(uint256)", "g(int256)"], BOB)
    assert contract.f.encode("text") == contract["f(string)"].encode("text")
    assert contract.f.encode(b"\x01" * 20) == contract["f(address)"].encode(b"\x01" * 20)
    with pytest.raises(BadValue, match=r"g: more than one overload .* g\(uint256\), g\(int256\)"):
        contract.g.encode(5)


def test_a_function_whose_name_is_taken_is_an_item() -> None:
    evm = EVM()
    evm.set_code(BOB, "0x602a5f5260205ff3")
    contract = evm.contract(["function address() returns (uint256)"], BOB)
    assert contract.address == BOB
    assert contract["address"]().value == 42


def test_an_unknown_function_is_refused_with_those_there_are(token: Contract) -> None:
    with pytest.raises(AttributeError, match=r"no function 'mint' in the ABI; it has balanceOf, burn, name"):
        token.mint(5)
    assert not hasattr(token, "mint")
    assert {"transfer", "balanceOf"} <= set(dir(token))


def test_a_contract_stands_for_its_address(token: Contract) -> None:
    evm = token.evm
    assert isinstance(evm, EVM)
    evm.set_balance(token, 5)
    assert evm.get_balance(token.address) == 5
    assert token.transfer(token, 1, caller=ALICE).ok
    assert token.balanceOf(token).value == 1


# -- failures and events ----------------------------------------------------------------------------------------------


def test_a_custom_error_is_named_with_its_arguments(token: Contract) -> None:
    result = token.transfer(ALICE, 1, caller=BOB)
    assert result.status is Status.REVERT
    assert result.error == f"reverted: ERC20InsufficientBalance(sender={BOB}, balance=0, needed=1)"
    assert result.custom_error is not None
    assert result.custom_error.needed == 1
    with pytest.raises(ExecutionFailed, match=r"ERC20InsufficientBalance\(sender=0x"):
        result.check()
    with pytest.raises(ExecutionFailed, match=r"ERC20InsufficientBalance\(sender=0x"):
        _ = result.value


def test_a_token_of_openzeppelin_says_why_it_reverts(fixtures_dir: Path) -> None:
    made = json.loads((fixtures_dir / "corpus" / "Token.json").read_text())
    creation = made["solc"]["via_ir_opt"]["creation"]
    token = EVM(made["fork"]).deploy_contract({"abi": SIGNATURES[1:], "bytecode": creation}, caller=made["deployer"])
    assert token.name().value == "Token"
    assert token.transfer(BOB, 1, caller=made["deployer"]).events[0].value == 1
    failed = token.transfer(ALICE, 2, caller=BOB)
    assert failed.error == f"reverted: ERC20InsufficientBalance(sender={BOB}, balance=1, needed=2)"


def test_errors_and_panics_of_solidity_are_named(token: Contract) -> None:
    assert token.burn(ALICE, 1, caller=BOB).error == 'reverted: Error("not your tokens")'
    assert token.burn(1001, caller=BOB).error == "reverted: Panic(0x11: arithmetic underflow or overflow)"


def test_an_error_of_another_contract_is_known_where_the_interfaces_are_added() -> None:
    evm = EVM()
    evm.set_code(BOB, "0x63" + "01020304" + "5f52600460" + "1cfd")  # revert with 0x01020304
    plain = evm.contract(["function f()"], BOB)
    assert plain.f().error == "reverted: 0x01020304"
    other = Abi(["error Hidden()"])
    assert other.errors.Hidden.selector != b"\x01\x02\x03\x04"
    evm.set_code(BOB, "0x63" + other.errors.Hidden.selector.hex() + "5f526004601cfd")
    assert plain.f().error == "reverted: 0x" + other.errors.Hidden.selector.hex()
    assert evm.contract(plain.abi + other, BOB).f().error == "reverted: Hidden()"


def test_a_failing_constructor_says_why() -> None:
    reverting = {"abi": ["error Nope(uint256 code)"], "bytecode": "0x"}
    selector = Abi(["error Nope(uint256 code)"]).errors.Nope.selector.hex()
    reverting["bytecode"] = "0x63" + selector + "5f52600760205260246001" + "601b" + "01fd"  # revert(28, 36)
    with pytest.raises(ExecutionFailed, match=r"^reverted: Nope\(code=7\)$"):
        EVM().deploy_contract(reverting)


def test_output_that_does_not_fit_the_abi_is_an_error_of_its_own() -> None:
    evm = EVM()
    contract = evm.contract(["function f() returns (uint256)"], BOB)  # nothing is there
    result = contract.f()
    assert result.ok
    with pytest.raises(CannotDecode, match="what f returned: nothing: no code at this address"):
        _ = result.value
    assert repr(result) == "ContractResult(success, gas_used=0)"


def test_events_are_decoded(token: Contract) -> None:
    assert token.deployment is not None
    assert [event.to for event in token.deployment.events] == [ALICE]
    (event,) = token.transfer(BOB, 7, caller=ALICE).events
    assert (event["from"], event.to, event.value, event.address) == (ALICE, BOB, 7, token.address)
    assert repr(event) == f"Transfer(from={ALICE}, to={BOB}, value=7)"
    assert token.events.Transfer.decode(event.log) == event


# -- how they are shown -----------------------------------------------------------------------------------------------


def test_results_and_contracts_are_shown_in_words(token: Contract) -> None:
    result = token.transfer(BOB, 7, caller=ALICE)
    assert repr(result) == (
        f"ContractResult(success, gas_used={result.gas_used}, value=True, "
        f"logs=[Transfer(from={ALICE}, to={BOB}, value=7)])"
    )
    failed = token.transfer(ALICE, 9999, caller=BOB)
    assert f"error='reverted: ERC20InsufficientBalance(sender={BOB}, balance=7, needed=9999)'" in repr(failed)
    assert repr(token) == f"<Contract {token.address}: 6 functions>"
    assert repr(token.transfer) == "function transfer(address to, uint256 value) returns (bool)"


def test_notebooks_get_tables_in_which_everything_is_escaped(token: Contract) -> None:
    result = token.transfer(BOB, 7, caller=ALICE)
    assert str(BOB) in result._repr_html_()
    assert str(BOB) in result.events[0]._repr_html_()
    assert str(token.address) in result.logs[0]._repr_html_()
    assert "transfer(address to, uint256 value)" in token._repr_html_()
    evil = EVM().contract(["function f() returns (string)"], BOB)
    assert isinstance(evil.evm, EVM)
    evil.evm.set_code(BOB, "0x" + "60205f52600860205267" + b"<script>".hex() + "60c01b60405260605ff3")
    shown = evil.f()._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_results_and_contracts_are_pickled_and_copied(token: Contract) -> None:
    result = token.transfer(BOB, 7, caller=ALICE)
    for twin in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert (twin.value, twin.events, repr(twin)) == (True, result.events, repr(result))
    elsewhere = pickle.loads(pickle.dumps(token))
    assert elsewhere.balanceOf(BOB).value == 7
    elsewhere.transfer(BOB, 1, caller=ALICE).check()
    assert token.balanceOf(BOB).value == 7


# -- types ------------------------------------------------------------------------------------------------------------

SCRIPT = '''
from fusevm import EVM, Block, Hooks
from fusevm.abi import Abi, Artifact, Contract

evm = EVM(fork="osaka", block=Block(number="0x10", coinbase="0x" + "a1" * 20))
alice = "0x" + "a1" * 20
evm.set_balance(alice, "0xde0b6b3a7640000")
token: Contract = evm.contract(["function transfer(address, uint256) returns (bool)"], "0x" + "c0" * 20)
abi = Abi([{"type": "function", "name": "f", "inputs": [], "outputs": []}])
other = evm.contract(abi, b"\\xc0" * 20)
artifact: Artifact = Artifact.read({"abi": [], "bytecode": "0x60fe60005360016000f3"})
deployed = evm.deploy_contract(artifact, caller=alice, gas=1_000_000)
paid: bool = token.transfer(alice, 1, caller=alice).value
for event in token.transfer.simulate(alice, "0x1").events:
    print(event.address, event["to"])
result = evm.transact(
    alice,
    deployed,
    "0x1234",
    access_list=[(alice, [0, "0x1", b"\\x02"]), {"address": alice, "storageKeys": ["0x0"]}],
    max_fee="0x10",
)
output: bytes = result.check().output
hooks = Hooks(on_opcode=lambda step: print(step.name))
listed: list[bytes] = [log.address for log in result.logs]
'''  # fmt: skip


def test_mypy_strict_passes_on_users_scripts(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "demo.py").write_text((ROOT / "examples" / "demo.py").read_text("utf-8"))
    scripts = [str(tmp_path / "script.py"), str(tmp_path / "demo.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir"]
    cache, where = str(ROOT / ".mypy_cache" / "scripts"), {"MYPYPATH": str(ROOT / "src"), "PATH": ""}
    done = subprocess.run([*command, cache, *scripts], capture_output=True, text=True, cwd=tmp_path, env=where)
    assert done.returncode == 0, done.stdout + done.stderr


def test_deep_json_is_refused_also_where_a_library_has_raised_the_limit_of_recursion() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000_000)
    try:
        with pytest.raises(BadAbi, match="nested too deeply"):
            Artifact.read("[" * 1_000_000)
    finally:
        sys.setrecursionlimit(limit)
