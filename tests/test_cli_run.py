"""`fusevm run` and `fusevm trace`, and the line every wrong input gets."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from commands import Command, fusevm_command  # noqa: F401
from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from programs import RETURN_TOP, deployer


def code(text: str) -> str:
    return "0x" + assemble(text).hex()


ECHO = code("CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY CALLDATASIZE PUSH1 0 RETURN")
ANSWER = code("PUSH1 42" + RETURN_TOP)
REVERT = code("PUSH1 0 PUSH1 0 REVERT")
ADDRESS = "0x" + "11" * 20
SOMEONE = "0x" + "22" * 20


def reverting_with(text: str) -> str:
    data = bytes.fromhex("08c379a0") + encode(["string"], [text])
    size = len(data)
    return code(f"PUSH1 {size} PUSH1 @d PUSH1 0 CODECOPY PUSH1 {size} PUSH1 0 REVERT d: DATA 0x{data.hex()}")


def output(ran: Any) -> bytes:
    return bytes.fromhex(json.loads(ran.out)["output"][2:])


# -- run --------------------------------------------------------------------------------------------------------------


def test_run_shows_status_gas_and_output(fusevm: Command) -> None:
    ran = fusevm("run", ANSWER)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines == [["status", "success"], ["gas", "used", "18"], ["output", "0x" + "00" * 31 + "2a"]]


def test_run_as_json_is_one_object(fusevm: Command) -> None:
    ran = fusevm("run", ANSWER, "--json")
    result = json.loads(ran.out)
    assert ran.code == 0
    assert (result["status"], result["gas_used"], result["error"], result["logs"]) == ("success", 18, None, [])
    assert int(result["output"], 16) == 42


def test_a_call_that_fails_exits_1_and_says_why(fusevm: Command) -> None:
    for program, status, error in (
        ("0xfe", "halt", "halted: invalid opcode at pc 0 (0xfe)"),
        (REVERT, "revert", "reverted"),
        (reverting_with("no way"), "revert", 'reverted: Error("no way")'),
    ):
        ran = fusevm("run", program, "--json")
        assert (ran.code, ran.err) == (1, "")
        assert (json.loads(ran.out)["status"], json.loads(ran.out)["error"]) == (status, error)
        assert error in fusevm("run", program).out


def test_text_in_brackets_is_shown_as_it_is(fusevm: Command) -> None:
    ran = fusevm("run", reverting_with("[/x] [red]not markup"))
    assert ran.code == 1
    assert 'reverted: Error("[/x] [red]not markup' in ran.out


def test_code_comes_from_hex_files_and_standard_input(
    fusevm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code.hex").write_text(ANSWER + "\n")
    (tmp_path / "code.bin").write_bytes(bytes.fromhex(ANSWER[2:]))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ANSWER.encode())))
    for source in (ANSWER, ANSWER[2:], str(tmp_path / "code.hex"), str(tmp_path / "code.bin"), "-"):
        assert number(output(fusevm("run", source, "--json"))) == 42


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


@pytest.mark.parametrize(
    ("question", "options", "answer"),
    [
        ("CALLVALUE", ["--value", "7"], 7),
        ("CALLER", ["--caller", SOMEONE], int(SOMEONE, 16)),
        ("ADDRESS", ["--to", ADDRESS], int(ADDRESS, 16)),
        ("GAS", ["--gas", "1000"], 998),
        ("PUSH1 0 CALLDATALOAD", ["--data", "0xff"], 0xFF << 248),
        ("CHAINID", ["--fork", "istanbul"], 1),
    ],
)
def test_options_reach_the_call(fusevm: Command, question: str, options: list[str], answer: int) -> None:
    ran = fusevm("run", code(question + RETURN_TOP), "--json", *options)
    assert number(output(ran)) == answer


def test_the_fork_decides_which_opcodes_exist(fusevm: Command) -> None:
    assert fusevm("run", "0x5f", "--fork", "shanghai").code == 0
    assert fusevm("run", "0x5f", "--fork", "paris").code == 1


def test_create_deploys_the_code_and_calls_what_it_deployed(fusevm: Command) -> None:
    ran = fusevm("run", "0x" + deployer(bytes.fromhex(ANSWER[2:])).hex(), "--create", "--json")
    assert number(output(ran)) == 42


# -- signatures and arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "arguments", "types", "values"),
    [
        ("f()", [], [], []),
        ("transfer(address,uint256)", [SOMEONE, "5"], ["address", "uint256"], [SOMEONE, 5]),
        ("f(uint)", ["0xff"], ["uint256"], [255]),
        ("f(int8)", ["-128"], ["int8"], [-128]),
        ("f(bool,bool)", ["true", "0"], ["bool", "bool"], [True, False]),
        ("f(bytes4,bytes)", ["0x01020304", "0x"], ["bytes4", "bytes"], [b"\1\2\3\4", b""]),
        ("f(string)", ["hi there"], ["string"], ["hi there"]),
        ("f(uint8[],uint8[2])", ["[1,2]", "[3,4]"], ["uint8[]", "uint8[2]"], [[1, 2], [3, 4]]),
        ("f((address,bool[]))", [f'["{SOMEONE}",[true]]'], ["(address,bool[])"], [(SOMEONE, [True])]),
        ("f( uint256 , bool )", ["1", "false"], ["uint256", "bool"], [1, False]),
    ],
)
def test_arguments_are_encoded_as_the_signature_says(
    fusevm: Command, signature: str, arguments: list[str], types: list[str], values: list[Any]
) -> None:
    name = signature[: signature.index("(")]
    selector = keccak256(f"{name}({','.join(types)})".encode())[:4]
    options = ["--args", *arguments] if arguments else []
    ran = fusevm("run", ECHO, "--json", "--sig", signature, *options)
    assert output(ran) == selector + encode(types, values)


def test_what_a_signature_returns_is_decoded(fusevm: Command) -> None:
    for signature in ("f()(uint256)", "f() returns (uint256)"):
        assert json.loads(fusevm("run", ANSWER, "--json", "--sig", signature).out)["decoded"] == ["42"]
        assert fusevm("run", ANSWER, "--sig", signature).out.splitlines()[-1].split() == ["42"]


def test_decoded_text_is_shown_as_it_is(fusevm: Command) -> None:
    data = encode(["string"], ["[/b] plain"])
    size = len(data)
    program = code(f"PUSH1 {size} PUSH1 @d PUSH1 0 CODECOPY PUSH1 {size} PUSH1 0 RETURN d: DATA 0x{data.hex()}")
    assert "[/b] plain" in fusevm("run", program, "--sig", "f()(string)").out


# -- state files ------------------------------------------------------------------------------------------------------


def state_file(folder: Path, **parts: Any) -> str:
    document = {"pre": {ADDRESS: {"code": ECHO, "balance": "0x5", "nonce": 1, "storage": {"0x1": "0x2"}}}, **parts}
    path = folder / "state.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_state_file_brings_accounts_fork_block_and_call(fusevm: Command, tmp_path: Path) -> None:
    pre = {
        ADDRESS: {"code": code("PUSH1 1 SLOAD NUMBER ADD CALLVALUE ADD ADDRESS BALANCE ADD" + RETURN_TOP),
                  "storage": {"0x01": "0x64"}, "balance": "1000"},
        SOMEONE: {"balance": "0xffff"},
    }  # fmt: skip
    env = {
        "currentNumber": "0x0a",
        "currentTimestamp": "0x01",
        "currentCoinbase": SOMEONE,
        "currentGasLimit": "0x1000000",
    }
    call = {"to": ADDRESS, "caller": SOMEONE, "value": "0x1", "gas": "0x100000"}
    path = state_file(tmp_path, pre=pre, env=env, call=call, fork="Berlin")
    assert number(output(fusevm("run", path, "--json"))) == 100 + 10 + 1 + 1_001


def test_the_only_contract_of_a_state_file_is_called(fusevm: Command, tmp_path: Path) -> None:
    path = state_file(tmp_path)
    assert output(fusevm("run", path, "--json", "--data", "0xabcd")) == b"\xab\xcd"


def test_options_win_over_the_state_file(fusevm: Command, tmp_path: Path) -> None:
    path = state_file(tmp_path, call={"to": ADDRESS, "data": "0x1111"})
    assert output(fusevm("run", path, "--json")) == b"\x11\x11"
    assert output(fusevm("run", path, "--json", "--data", "0x22")) == b"\x22"
    assert output(fusevm("run", path, "--json", "--to", SOMEONE)) == b""


def test_the_state_file_form_of_the_benchmarks_runs(fusevm: Command, fixtures_dir: Path) -> None:
    path = fixtures_dir / "bench" / "revmc-counter.json"
    expect = json.loads(path.read_text())["expect"]
    result = json.loads(fusevm("run", str(path), "--json").out)
    assert (result["status"], result["gas_used"], result["output"]) == (
        expect["status"],
        expect["gas_used"],
        expect["output"],
    )


# -- trace ------------------------------------------------------------------------------------------------------------


def test_trace_shows_a_line_a_step_and_the_result(fusevm: Command) -> None:
    ran = fusevm("trace", code("PUSH1 1 PUSH1 2 ADD"), "--gas", "100")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0][:4] == ["pc", "opcode", "gas", "cost"]
    assert lines[1:5] == [
        ["0", "PUSH1", "100", "3"],
        ["2", "PUSH1", "97", "3", "1"],
        ["4", "ADD", "94", "3", "2", "1"],
        ["5", "STOP", "91", "0", "3"],
    ]
    assert ["status", "success"] in lines
    assert ran.code == 0


def test_trace_as_json_is_eip_3155_lines_and_a_summary(fusevm: Command) -> None:
    ran = fusevm("trace", code("PUSH1 1 PUSH1 2 ADD"), "--gas", "100", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["opName"] for line in lines[:-1]] == ["PUSH1", "PUSH1", "ADD", "STOP"]
    assert lines[2]["stack"] == ["0x1", "0x2"]
    summary = lines[-1]
    assert (summary["output"], summary["gasUsed"], summary["pass"]) == ("0x", "0x9", True)
    assert len(summary["stateRoot"]) == 66


def test_trace_shows_memory_on_request_and_leaves_out_return_data(fusevm: Command) -> None:
    program = code("PUSH1 1 PUSH1 0 MSTORE")
    word = "0x" + "00" * 31 + "01"
    assert f"memory {word}" in fusevm("trace", program, "--memory").out
    lines = [
        json.loads(line) for line in fusevm("trace", program, "--json", "--memory", "--no-returndata").out.splitlines()
    ]
    assert [line.get("memory") for line in lines[:-1]] == [None, None, None, word]
    assert all("returnData" not in line for line in lines)
    assert "memory" not in fusevm("trace", program, "--json").out


def test_trace_of_a_failing_call_marks_the_step_and_exits_1(fusevm: Command) -> None:
    ran = fusevm("trace", code("PUSH1 1 ADD"))
    assert ran.code == 1
    assert "← stack underflow: 2 words needed, 1 there" in ran.out
    lines = fusevm("trace", code("PUSH1 1 ADD"), "--json").out.splitlines()
    assert json.loads(lines[-2])["error"] == "stack underflow: 2 words needed, 1 there"
    assert json.loads(lines[-1])["pass"] is False


# -- wrong input ------------------------------------------------------------------------------------------------------

FORKS = "frontier, homestead, tangerine-whistle, spurious-dragon, byzantium, constantinople, petersburg, istanbul, berlin, london, paris, shanghai, cancun, prague, osaka"  # noqa: E501

WRONG = [
    (["run", "0x600"], "code has an odd number of hex digits: 3"),
    (["trace", "0x600"], "code has an odd number of hex digits: 3"),
    (["disasm", "600"], "code has an odd number of hex digits: 3"),
    (["cfg", "0x6"], "code has an odd number of hex digits: 1"),
    (["run", "0x60zz"], "code is not hex: 'z' at position 4"),
    (["disasm", "hello"], "code is not hex: 'h' at position 0, and no such file exists"),
    (["run", "nowhere.hex"], "no such file: nowhere.hex"),
    (["run", "no/where"], "no such file: no/where"),
    (["run", "nowhere.json"], "no such file: nowhere.json"),
    (["trace", "nowhere.json"], "no such file: nowhere.json"),
    (["statetest", "nowhere"], "no such file or folder: nowhere"),
    (["run", "."], ". is a folder, not a file of code"),
    (["run", "0x00", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["trace", "0x00", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["disasm", "0x00", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["asm", "STOP", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["cfg", "0x00", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["statetest", ".", "--fork", "moon"], f"unknown fork 'moon'; known: {FORKS}"),
    (["asm", "PUSH1 1 ADDD"], "line 1: 'ADDD' is not an instruction"),
    (["asm", "PUSH1 256"], "line 1: '256' does not fit PUSH1"),
    (["asm", "no/such.asm"], "no such file: no/such.asm"),
    (["run"], "Missing argument 'CODE'. (see fusevm run --help)"),
    (["run", "0x00", "--nosuch"], "No such option: --nosuch (see fusevm run --help)"),
    (["nosuch"], "No such command 'nosuch'. (see fusevm --help)"),
    (["run", "0x00", "--data", "0x1"], "--data: an odd number of hex digits (1)"),
    (["run", "0x00", "--data", "0xgg"], "--data: 'g' at position 0 is not a hex digit"),
    (["run", "0x00", "--caller", "0x12"], "--caller: expected 20 bytes, got 1"),
    (["run", "0x00", "--to", "0x12"], "--to: expected 20 bytes, got 1"),
    (["run", "0x00", "--value", "-1"], "--value and --gas cannot be negative"),
    (["run", "0x00", "--gas", "-1"], "--value and --gas cannot be negative"),
    (["run", "0x00", "--args", "1"], "--args needs --sig"),
    (["run", "0x00", "--sig", "f()", "--data", "0x"], "give --data or --sig, not both"),
    (["run", "0xfe", "--create"], "the init code did not deploy: halted: invalid opcode at pc 0 (0xfe)"),
    (["run", "0x00", "--sig", "f"],
     "'f': expected '(' instead of the end; expected something like transfer(address to, uint256 amount)"),
    (["run", "0x00", "--sig", "f(uint256"],
     "'f(uint256': expected ',' instead of the end; expected something like transfer(address to, uint256 amount)"),
    (["run", "0x00", "--sig", "f(foo)", "--args", "1"],
     "'f(foo)': 'foo' is not a type of the ABI (contracts are address, enums are uint8)"),
    (["run", "0x00", "--sig", "f(uint256)"], "f(uint256) takes 1 argument, 0 given"),
    (["run", "0x00", "--sig", "f()", "--args", "1", "2"], "f() takes 0 arguments, 2 given"),
    (["run", "0x00", "--sig", "f(uint8)", "--args", "x"], "argument 1 (uint8): 'x' is not a value of this type"),
    (["run", "0x00", "--sig", "f(bool)", "--args", "2"], "argument 1 (bool): '2' is not a value of this type"),
    (["run", "0x00", "--sig", "f(bool,address)", "--args", "1", "0x12"],
     "f: argument 2 (address): expected 20 bytes, got 1"),
    (["run", "0x00", "--sig", "f(uint8[])", "--args", "[1"],
     "argument 1 (uint8[]): line 1, column 3: not JSON: Expecting ',' delimiter"),
    (["run", "0x00", "--sig", "f(uint8[][])", "--args", "[1]"], "argument 1 (uint8[][]): 1 is not a list"),
    (["run", "0x00", "--sig", "f((bool,bool))", "--args", "[true]"],
     "argument 1 ((bool,bool)): expected 2 members, got 1"),
]  # fmt: skip


def assert_one_line(ran: Any) -> None:
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("fusevm: ")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("\n")


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_wrong_input_gets_one_line_on_standard_error(fusevm: Command, arguments: list[str], message: str) -> None:
    ran = fusevm(*arguments)
    assert_one_line(ran)
    assert ran.err == f"fusevm: {message}\n"


@pytest.mark.parametrize(
    ("signature", "argument"),
    [("f(uint8)", "256"), ("f(uint8)", "-1"), ("f(bytes4)", "0x0102030405"), ("f(uint8[2])", "[1]")],
)
def test_values_that_do_not_fit_their_type_get_one_line_naming_the_signature(
    fusevm: Command, signature: str, argument: str
) -> None:
    ran = fusevm("run", "0x00", "--sig", signature, "--args", argument)
    assert_one_line(ran)
    assert f"f: argument 1 ({signature[2:-1]}): " in ran.err


NEITHER = "neither a state file, which has 'pre', nor an artifact, which has 'abi' and 'bytecode'"
STATES = [
    ("{", "line 1, column 2: not JSON: Expecting property name enclosed in double quotes"),
    ("", "empty; JSON is needed"),
    ("[" * 100_000, "nested too deeply"),
    ("[]", NEITHER),
    ("{}", NEITHER),
    ('{"pre": []}', "no 'pre' section with accounts"),
    ('{"pre": {}, "call": []}', "'call' is not an object"),
    ('{"pre": {}, "env": 5}', "'env' is not an object"),
    ('{"pre": {}, "env": {}}', "malformed state: no 'currentNumber'"),
    ('{"pre": {"0x12": {}}}', "malformed state: account 0x12: '0x12' is not an address"),
    (f'{{"pre": {{"{ADDRESS}": 5}}}}',
     f"malformed state: account {ADDRESS}: an account and its storage must be objects"),
    (f'{{"pre": {{"{ADDRESS}": {{"code": "0xzz"}}}}}}', f"malformed state: account {ADDRESS}: '0xzz' is not hex"),
    (f'{{"pre": {{"{ADDRESS}": {{"balance": "many"}}}}}}',
     f"malformed state: account {ADDRESS}: 'many' is not a number"),
    (f'{{"pre": {{"{ADDRESS}": {{"balance": "-1"}}}}}}', f"malformed state: account {ADDRESS}: '-1' is not a number"),
    (f'{{"pre": {{"{ADDRESS}": {{"nonce": "0x1{"0" * 16}"}}}}}}',
     f"malformed state: account {ADDRESS}: '0x1{'0' * 16}' is over 64 bits"),
    (f'{{"pre": {{"{ADDRESS}": {{"storage": [1]}}}}}}',
     f"malformed state: account {ADDRESS}: an account and its storage must be objects"),
    ('{"pre": {}, "call": {"value": "abc"}}', "malformed state: 'abc' is not a number"),
    ('{"pre": {}, "call": {}}', "0 accounts have code; say which with --to"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), STATES)
def test_a_malformed_state_file_gets_one_line_naming_the_file_and_the_place(
    fusevm: Command, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    for command in ("run", "trace"):
        ran = fusevm(command, str(path))
        assert_one_line(ran)
        assert ran.err == f"fusevm: {path}: {message}\n"


def test_the_installed_command_does_the_same() -> None:
    script = Path(sys.executable).parent / "fusevm"
    ended = subprocess.run([script, "run", "0x600"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "fusevm: code has an odd number of hex digits: 3\n"


def test_help_names_every_command(fusevm: Command) -> None:
    ran = fusevm("--help")
    assert ran.code == 0
    for command in ("run", "trace", "disasm", "asm", "cfg", "statetest"):
        assert command in ran.out
    assert fusevm("--version").out.startswith("fusevm ")
