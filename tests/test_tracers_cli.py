"""`fusevm trace` with tracers, transactions and constructors; stack traces of `run` and `trace`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import handmade
from commands import Command, fusevm_command  # noqa: F401
from fusevm import DEFAULT_CALLER
from fusevm.evm.assembly import assemble
from fusevm.evm.source_map import Mapped, compressed

INIT = "0x60fe5f5360015ff3"  # deploys one byte, INVALID
SOURCE = """contract Safe {
    function open() public { close(); }
    function close() internal { revert(); }
}
"""


def code(text: str) -> str:
    return "0x" + assemble(text).hex()


def test_a_tracer_is_asked_by_its_name(fusevm: Command) -> None:
    ran = fusevm("trace", code("PUSH1 7 PUSH1 0 SSTORE"), "--tracer", "callTracer", "--gas", "100000")
    form = json.loads(ran.out)
    assert (ran.code, form["type"], form["gas"], form["gasUsed"]) == (0, "CALL", hex(100_000), hex(22_106))


def test_a_tree_of_a_thousand_calls_is_printed(fusevm: Command) -> None:
    calls_itself = code(f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH20 0x{'c0de' * 10} GAS CALL")
    ran = fusevm("trace", calls_itself, "--tracer", "callTracer", "--gas", str(10**12))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count('"CALL"') == 1_026


def test_a_tracers_options_are_json(fusevm: Command) -> None:
    asked = ["trace", code("PUSH1 0 PUSH1 0 LOG0"), "--tracer", "callTracer"]
    assert "logs" not in json.loads(fusevm(*asked).out)
    assert len(json.loads(fusevm(*asked, "--config", '{"withLog": true}').out)["logs"]) == 1


def test_a_transaction_has_intrinsic_gas_and_moves_the_nonce(fusevm: Command) -> None:
    asked = ["trace", code("STOP"), "--tx", "--tracer"]
    assert json.loads(fusevm(*asked, "callTracer").out)["gasUsed"] == hex(21_000)
    diff = json.loads(fusevm(*asked, "prestateTracer", "--config", '{"diffMode": true}').out)
    assert diff["post"] == {"0x" + DEFAULT_CALLER.hex(): {"nonce": 1}}


def test_a_transaction_can_be_traced_step_by_step(fusevm: Command) -> None:
    lines = [
        json.loads(line) for line in fusevm("trace", code("PUSH0"), "--tx", "--json", "--gas", "30000").out.splitlines()
    ]
    assert lines[0]["gas"] == hex(9_000)
    assert lines[-1]["gasUsed"] == hex(21_002)


def test_a_constructor_can_be_traced(fusevm: Command) -> None:
    form = json.loads(fusevm("trace", INIT, "--create", "--tracer", "callTracer").out)
    assert (form["type"], form["output"]) == ("CREATE", "0xfe")
    lines = fusevm("trace", INIT, "--create", "--json").out.splitlines()
    assert json.loads(lines[0])["opName"] == "PUSH1"
    assert json.loads(lines[-1])["output"] == "0xfe"


def test_with_data_what_was_deployed_is_traced(fusevm: Command) -> None:
    ran = fusevm("trace", INIT, "--create", "--data", "0x", "--json")
    assert ran.code == 1
    assert json.loads(ran.out.splitlines()[0])["opName"] == "INVALID"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tracer", "x"], "tracer: 'x' is not known; known: structLogs, callTracer"),
        (["--config", "{}"], "--config: needs --tracer"),
        (["--tracer", "callTracer", "--config", "{"], "--config: line 1, column 2: not JSON"),
        (["--tracer", "callTracer", "--config", '{"x": 1}'], "callTracer has no option 'x'"),
        (["--tx", "--gas", "5"], "gas limit below the intrinsic cost"),
    ],
)
def test_what_cannot_be_traced_is_told_in_one_line(fusevm: Command, arguments: list[str], message: str) -> None:
    ran = fusevm("trace", "0x00", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """Of a contract whose code is written by hand: `open` jumps into `close`, which reverts."""
    program = "PUSH2 @back PUSH2 @close JUMP back: JUMPDEST STOP close: JUMPDEST PUSH0 PUSH0 REVERT"
    calls, reverts = SOURCE.index("close();"), SOURCE.index("revert()")
    entry = Mapped(calls, 7, 0)
    entered = Mapped(SOURCE.index("function close"), 39, 0)
    body = Mapped(reverts, 8, 0)
    places = [entry, entry, entry._replace(jump="i"), entry, entry, entered, body, body, body]
    runtime = {"object": code(program), "sourceMap": compressed(places)}
    evm = {"bytecode": {"object": ""}, "deployedBytecode": runtime}
    abi = [{"type": "function", "name": "open", "inputs": [], "outputs": []}]
    (tmp_path / "Safe.sol").write_text(SOURCE)
    path = tmp_path / "out.json"
    path.write_text(
        json.dumps({"sources": {"Safe.sol": {"id": 0}}, "contracts": {"Safe.sol": {"Safe": {"abi": abi, "evm": evm}}}})
    )
    return path


@pytest.mark.parametrize("command", ["run", "trace"])
def test_a_failure_shows_its_stack_trace_where_artifacts_are_given(
    fusevm: Command, artifact: Path, command: str
) -> None:
    program = json.loads(artifact.read_text())["contracts"]["Safe.sol"]["Safe"]["evm"]["deployedBytecode"]["object"]
    ran = fusevm(command, program, "--artifact", str(artifact))
    assert ran.code == 1
    assert ran.out.endswith(
        "reverted\n"
        "    at Safe.close (Safe.sol:3)\n"
        "        function close() internal { revert(); }\n"
        "    at Safe.open (Safe.sol:2)\n"
    )
    assert "at Safe" not in fusevm(command, program).out


def test_an_artifact_that_is_run_is_its_own_source(fusevm: Command, tmp_path: Path) -> None:
    path = handmade.build_info(tmp_path)
    ran = fusevm("run", str(path), "--sig", "open")
    assert ran.code == 1
    assert "\n    at Safe.close (Safe.sol:6)\n" in ran.out
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({"abi": handmade.ABI, "bytecode": "0x" + handmade.INIT.hex()}))
    ran = fusevm("run", str(bare), "--sig", "open")
    assert (ran.code, ran.err) == (1, "")
    assert "    at " not in ran.out


def test_a_file_that_is_not_an_artifact_is_told_in_one_line(fusevm: Command, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    ran = fusevm("run", "0xfe", "--artifact", str(path))
    assert ran.code == 2
    assert ran.err == f"fusevm: {path}: expected an object, as build tools write it\n"
