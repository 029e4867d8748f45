"""Standard JSON: the shape of solc's answers, its errors, and code that runs as it should on two engines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import first, fixtures_folder
from fusevm.chain.environment import Block
from fusevm.chain.state import Account
from fusevm.chain.transaction import Transaction
from fusevm.cli.yul import app
from fusevm.codegen.standard_json import compile_request, compile_text, opcodes_text
from fusevm.codegen.yul import compile_object
from fusevm.evm.forks import LATEST, fork_named
from fusevm.evm.source_map import decompressed
from fusevm.lab.contracts import run_contract, wrong_answers
from fusevm.lab.fuzz.differential import compare
from fusevm.lab.peers.ours import OurTier
from fusevm.lab.peers.work import PeerWork
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.parser import parse_object
from fusevm.yul.syntax.printer import print_object

Json = dict[str, Any]
ALL = ["*"]
CONTRACT = """object "A" {
    code { datacopy(0, dataoffset("A_deployed"), datasize("A_deployed")) setimmutable(0, "im", 5)
           return(0, datasize("A_deployed")) }
    object "A_deployed" { code {
        sstore(0, f(1, calldataload(0))) sstore(1, f(2, calldataload(9)))
        sstore(1, linkersymbol("l.sol:L")) sstore(3, loadimmutable("im"))
        function f(a, b) -> c { if b { c := add(f(a, sub(b, 1)), sload(b)) } }
    } }
}"""


def request(content: str = CONTRACT, selection: list[str] | None = None, **settings: Any) -> Json:
    chosen = {"*": {"*": ALL if selection is None else selection}}
    settings = {"optimizer": {"enabled": True}, "outputSelection": chosen, **settings}
    return {"language": "Yul", "sources": {"a.yul": {"content": content}}, "settings": settings}


def contract(asked: Json, name: str = "A") -> Json:
    answer = compile_request(asked)
    assert answer["errors"] == []
    found: Json = answer["contracts"]["a.yul"][name]
    return found


# -- against solc -----------------------------------------------------------------------------------------------------

_SCRIPT = """const solc = require('solc'); const inputs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(inputs.map(input => JSON.parse(solc.compile(input)))));"""


@pytest.fixture(scope="session")
def solc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with solc's npm package: the one that FUSEVM_SOLC names, or a new one."""
    given = os.environ.get("FUSEVM_SOLC")
    if given is not None:
        assert (Path(given) / "node_modules" / "solc").is_dir(), f"FUSEVM_SOLC is {given}, which has no package solc"
        return Path(given)
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are needed to ask solc itself")
    folder = tmp_path_factory.mktemp("solc")
    try:
        subprocess.run([npm, "install", "solc@0.8"], cwd=folder, capture_output=True, check=True, timeout=60)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not install solc: {error}")
    return folder


def ask_solc(folder: Path, requests: list[Json]) -> list[Json]:
    inputs = json.dumps([json.dumps(each) for each in requests])
    ran = subprocess.run(
        ["node", "-e", _SCRIPT], cwd=folder, input=inputs, capture_output=True, text=True, check=True, timeout=100
    )
    answers: list[Json] = json.loads(ran.stdout)
    return answers


def keys_of(value: Any) -> Any:
    """The shape of an answer: keys all the way down to lists and texts."""
    if isinstance(value, dict):
        return {key: keys_of(inner) for key, inner in value.items()}
    return type(value).__name__


SELECTIONS = [
    ["evm.bytecode.object"],
    ["evm.bytecode"],
    ["evm.deployedBytecode"],
    ["evm.bytecode.opcodes", "evm.deployedBytecode.sourceMap"],
    ["evm.deployedBytecode.immutableReferences", "evm.bytecode.linkReferences", "evm.bytecode.generatedSources"],
    ["irOptimized"],
    ["ir", "irOptimized", "evm.assembly"],
    ["evm"],
    ["*"],
    ["abi"],
    [],
]


def test_answers_have_the_keys_that_solc_gives_them(solc: Path) -> None:
    requests = [request(selection=each) for each in SELECTIONS]
    requests += [request("{ sstore(0, 1) }", selection=each) for each in SELECTIONS]
    requests.append({"language": "Yul", "sources": {"a.yul": {"content": "{}"}}})
    for asked, theirs in zip(requests, ask_solc(solc, requests), strict=True):
        ours = compile_request(asked)
        shape = keys_of(ours)
        for found in (theirs, shape):  # functions have debug data here, for Yul solc leaves it empty
            for file in found.get("contracts", {}).values():
                for each in file.values():
                    for part in ("bytecode", "deployedBytecode"):
                        each.get("evm", {}).get(part, {}).pop("functionDebugData", None)
        theirs.pop("sources", None)
        assert shape == keys_of(theirs), asked["settings"]


def test_places_to_fill_in_are_given_as_solc_gives_them(solc: Path) -> None:
    asked = request(selection=["evm.bytecode.linkReferences", "evm.deployedBytecode"], optimizer={"enabled": False})
    (theirs,) = ask_solc(solc, [asked])
    ours, other = contract(asked)["evm"], theirs["contracts"]["a.yul"]["A"]["evm"]
    for which, key, length in (
        ("bytecode", "linkReferences", 20),
        ("deployedBytecode", "linkReferences", 20),
        ("deployedBytecode", "immutableReferences", 32),
    ):
        assert keys_of(ours[which][key]) == keys_of(other[which][key])
        assert f"'length': {length}" in str(ours[which][key])


def test_opcodes_are_written_as_solc_writes_them(solc: Path) -> None:
    """Bytes of ours through solc: data that a program returns, as its own code."""
    source = '{ sstore(0xABCDEF, not(0)) mstore(1, 0xFF00) revert(0, "text") }'
    asked = request(source, ["evm.bytecode"], optimizer={"enabled": False})
    (theirs,) = ask_solc(solc, [asked])
    bytecode = theirs["contracts"]["a.yul"]["object"]["evm"]["bytecode"]
    assert opcodes_text(bytes.fromhex(bytecode["object"]), LATEST) == bytecode["opcodes"]


BROKEN: list[Json] = [
    request("{ sstore(0, x) }"),
    request("{ sstore(0, 1) "),
    {**request(), "language": "Yul", "sources": {}},
    {"language": "Yul", "settings": {}},
    {**request(), "sources": {"a.yul": {"content": "{}"}, "b.yul": {"content": "{}"}}},
    {**request(), "sources": {"a.yul": {"urls": ["x"]}}},
    {**request(), "sources": {"a.yul": {"content": "{}", "keccak256": "0x12"}}},
    request(evmVersion="atlantis"),
    request(evmVersin="osaka"),
    request(optimizer={"runs": -1}),
    request(optimizer={"enabled": True, "rums": 1}),
    request(optimizer={"enabled": True, "details": {"yul": True, "yulDetails": {"optimizerSteps": "ab["}}}),
    request(libraries={"l.sol": {"L": "0x12"}}),
    request(libraries={"l.sol": {"L": "12"}}),
    request(libraries={"l.sol": {"L": "0x" + "zz" * 20}}),
    {**request(), "unknown": 1},
]


def test_what_solc_refuses_is_refused_with_the_same_kinds_of_errors(solc: Path) -> None:
    for asked, theirs in zip(BROKEN, ask_solc(solc, BROKEN), strict=True):
        ours = compile_request(asked)
        assert "contracts" not in ours
        assert [each["type"] for each in ours["errors"]] == [each["type"] for each in theirs["errors"]], asked
        for one, two in zip(ours["errors"], theirs["errors"], strict=True):
            assert set(one) - {"errorCode"} == set(two)
            assert one.get("sourceLocation") == two.get("sourceLocation")
            assert (one["severity"], one["component"]) == (two["severity"], two["component"])
            if "sourceLocation" in one:  # the same lines below the message
                assert one["formattedMessage"].split("\n")[1:] == two["formattedMessage"].split("\n")[1:]


# -- on its own -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", BROKEN)
def test_a_broken_request_gets_errors_and_no_contracts(asked: Json) -> None:
    answer = compile_request(asked)
    assert set(answer) == {"errors"}
    for error in answer["errors"]:
        assert {"component", "formattedMessage", "message", "severity", "type"} <= set(error)
        assert error["severity"] == "error"


@pytest.mark.parametrize(
    "text", ["{ nonsense", "", "[]", "1", "null", "{}", b"\xff\xfe", "[" * 100_000, '{"language":"Solidity"}']
)
def test_what_is_not_a_request_is_answered_with_an_error(text: str | bytes) -> None:
    (error,) = json.loads(compile_text(text))["errors"]
    assert error["type"] == "JSONError"


@pytest.mark.parametrize(
    "settings",
    [
        {"outputSelection": 1}, {"outputSelection": {"*": 1}}, {"outputSelection": {"*": {"*": "evm"}}},
        {"outputSelection": {"*": {"*": [1]}}}, {"optimizer": []}, {"optimizer": {"enabled": 1}},
        {"optimizer": {"details": 3}}, {"libraries": 1}, {"libraries": {"a": 1}}, {"evmVersion": 5},
    ],
)  # fmt: skip
def test_settings_of_the_wrong_type_are_one_error(settings: Json) -> None:
    asked = request()
    asked["settings"] = settings
    (error,) = compile_request(asked)["errors"]
    assert error["type"] == "JSONError"


def test_an_error_in_the_source_names_its_place_and_code() -> None:
    (error,) = compile_request(request("{\n    sstore(0, nobody)\n}"))["errors"]
    assert error["type"] == "DeclarationError"
    assert error["errorCode"] == "8198"
    assert error["sourceLocation"] == {"file": "a.yul", "start": 16, "end": 22}
    assert error["formattedMessage"].endswith(
        " --> a.yul:2:15:\n  |\n2 |     sstore(0, nobody)\n  |               ^^^^^^\n\n"
    )


def test_half_a_character_in_a_source_is_an_error_not_a_crash() -> None:
    answer = json.loads(compile_text(json.dumps(request("{ \ud800 }"))))
    assert answer["errors"]


def test_only_what_is_asked_for_is_there() -> None:
    found = contract(request(selection=["evm.deployedBytecode.object"]))
    assert found.keys() == {"evm"}
    assert found["evm"].keys() == {"deployedBytecode"}
    assert found["evm"]["deployedBytecode"].keys() == {"object"}


def test_selections_by_file_and_contract_are_kept_apart() -> None:
    asked = request()
    asked["settings"]["outputSelection"] = {"other.yul": {"*": ALL}, "a.yul": {"B": ALL}}
    assert compile_request(asked) == {"errors": []}
    asked["settings"]["outputSelection"] = {"a.yul": {"A": ["ir"]}}
    assert contract(asked).keys() == {"ir"}


def test_the_code_is_what_compile_object_makes() -> None:
    tree = parse_object(CONTRACT)
    for runs in (0, 200, 100_000):
        found = contract(request(optimizer={"enabled": True, "runs": runs}))
        assert found["evm"]["bytecode"]["object"] == compile_object(tree, runs=runs).placeholder_hex()
    plain = contract(request(optimizer={"enabled": False}))
    assert plain["evm"]["bytecode"]["object"] == compile_object(tree, runs=None).placeholder_hex()


def test_details_turn_the_optimiser_on_and_off() -> None:
    on = contract(request(optimizer={"enabled": False, "details": {"yul": True}}))
    off = contract(request(optimizer={"enabled": True, "details": {"yul": False}}))
    assert on == contract(request())
    assert off == contract(request(optimizer={"enabled": False}))


def test_steps_are_run_to_the_letter_and_their_text_is_compiled() -> None:
    details = {"yul": True, "yulDetails": {"optimizerSteps": "xj:u"}}
    found = contract(request(optimizer={"enabled": True, "details": details}))
    text = print_object(optimize(parse_object(CONTRACT), steps="xj:u"))
    assert found["irOptimized"] == text + "\n"
    expected = compile_object(parse_object(text), exact=True).placeholder_hex()
    assert found["evm"]["bytecode"]["object"] == expected


def test_the_fork_is_the_one_asked_for() -> None:
    found = contract(request("{ sstore(0, 1) }", evmVersion="london"), "object")
    assert found["evm"]["bytecode"]["object"] == "600160005500"
    answer = compile_request(request("{ sstore(0, clz(1)) }", evmVersion="prague"))
    assert answer.keys() == {"errors"}
    assert answer["errors"][0]["severity"] == "error"


def test_libraries_that_are_given_are_linked() -> None:
    linked = contract(request(libraries={"l.sol": {"L": "0x" + "11" * 20}}))["evm"]["bytecode"]
    assert "11" * 20 in linked["object"]
    assert linked["linkReferences"] == {}
    missing = contract(request())["evm"]["bytecode"]
    ((start, length),) = [(each["start"], each["length"]) for each in missing["linkReferences"]["l.sol"]["L"]]
    filled = missing["object"][: 2 * start] + "11" * length + missing["object"][2 * (start + length) :]
    assert filled == linked["object"]


def test_source_maps_have_an_entry_for_each_instruction_before_the_data() -> None:
    found = contract(request())["evm"]
    deployed = found["deployedBytecode"]
    names = [word for word in deployed["opcodes"].split() if not word.startswith("0x")]
    assert len(decompressed(deployed["sourceMap"])) == len(names)
    assert deployed["functionDebugData"]["f"]["parameterSlots"] == 2
    assert len(decompressed(found["bytecode"]["sourceMap"])) < len(found["bytecode"]["opcodes"].split())


def test_the_command_reads_standard_input_or_a_file(tmp_path: Path) -> None:
    text = json.dumps(request())
    file = tmp_path / "input.json"
    file.write_text(text)
    by_file = CliRunner().invoke(app, ["standard-json", str(file)])
    assert by_file.stdout == CliRunner().invoke(app, ["standard-json"], input=text).stdout == compile_text(text) + "\n"
    assert by_file.exit_code == 0
    missing = CliRunner().invoke(app, ["standard-json", "nowhere.json"])
    assert (missing.exit_code, missing.stderr) == (2, "fusevm: no such file: nowhere.json\n")


# -- contracts --------------------------------------------------------------------------------------------------------


@cache
def corpus_code(path: Path) -> bytes:
    facts = json.loads(path.with_suffix(".json").read_text())
    asked = request(path.read_text(), ["evm.bytecode"], evmVersion=facts["fork"])
    found = compile_request(asked)
    assert found["errors"] == []
    (file,) = found["contracts"].values()
    (made,) = file.values()
    references = made["evm"]["bytecode"]["linkReferences"]
    asked["settings"]["libraries"] = {
        file: dict.fromkeys(names, "0x" + "00" * 20) for file, names in references.items()
    }
    (file,) = compile_request(asked)["contracts"].values()
    (made,) = file.values()
    return bytes.fromhex(made["evm"]["bytecode"]["object"])


@pytest.mark.parametrize("name", first(4, ["Amm", "Merkle", "Text", "Token", "Vault"]))
def test_contracts_run_the_same_on_fusevm_and_on_pyrevm(name: str, request: pytest.FixtureRequest) -> None:
    path = fixtures_folder(request.config) / "corpus" / f"{name}.yul"
    if not path.exists():
        pytest.skip(f"corpus not found at {path.parent} (set FUSEVM_FIXTURES)")
    pytest.importorskip("pyrevm")
    from fusevm.lab.peers.revm import Revm

    facts = json.loads(path.with_suffix(".json").read_text())
    code = corpus_code(path)
    ran = run_contract(code, facts)
    assert wrong_answers(ran, facts) == []
    ours, theirs = OurTier("auto"), Revm()
    block = Block(number=facts.get("number", 0), timestamp=facts.get("timestamp", 0))
    senders = {bytes.fromhex(each[2:]) for each in (facts["deployer"], *(call["caller"] for call in facts["calls"]))}
    accounts = {sender: Account(balance=10**24) for sender in sorted(senders)}

    def step(transaction: Transaction) -> None:
        nonlocal accounts
        work = PeerWork(fork_named(facts["fork"]), accounts, block, transaction)
        assert compare(work, [ours, theirs]) is None
        found = ours.run(work)
        assert found.accounts is not None
        accounts = found.accounts

    deployer = bytes.fromhex(facts["deployer"][2:])
    before = set(accounts)
    step(Transaction(deployer, None, code, facts.get("deploy_value", 0), 20_000_000, gas_price=0))
    address = next(each for each in accounts if each not in before and accounts[each].code == ran.runtime)
    for call in facts["calls"]:
        data, sender = bytes.fromhex(call["data"][2:]), bytes.fromhex(call["caller"][2:])
        step(Transaction(sender, address, data, call.get("value", 0), 20_000_000, gas_price=0))
