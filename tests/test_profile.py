"""Profiles: gas by stack, function and line, flame graphs, coverage; on a contract written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import handmade
from commands import Command, fusevm_command  # noqa: F401
from fusevm import EVM, Result
from fusevm.evm.assembly import assemble
from fusevm.tracing.profile.coverage import FileCoverage, file_coverage, lcov
from fusevm.tracing.profile.flame_graph import flame_graph
from fusevm.tracing.profile.lines import gas_table
from fusevm.tracing.profile.samples import Samples, folded, speedscope, tree_of
from fusevm.tracing.profile.stacks import sampled
from fusevm.tracing.sources.contracts import Sources
from fusevm.tracing.sources.running import ActiveFunction
from programs import call

SAFE, CALLER, UNKNOWN = b"\x5a" * 20, b"\xca" * 20, b"\xee" * 20
OPEN = bytes.fromhex("fcfff16f")  # the selector of open()
A, B, C = ActiveFunction("a"), ActiveFunction("b", "b.sol", 3), ActiveFunction("c")


@pytest.fixture
def known(tmp_path: Path) -> Sources:
    return handmade.sources(tmp_path)


@pytest.fixture(params=["reference", "native", "auto"])
def evm(request: pytest.FixtureRequest) -> EVM:
    made = EVM(tier=request.param)
    made.set_code(SAFE, handmade.RUNTIME)
    return made


# -- samples and their texts ------------------------------------------------------------------------------------------


def samples() -> Samples:
    made = Samples()
    for stack, gas in (((A,), 5), ((A,), 1), ((A, B), 10), ((A, B), 0), ((C,), 2), ((A,), 3)):
        made.add(stack, gas)
    return made


def test_equal_stacks_that_follow_each_other_are_one_sample() -> None:
    assert (samples().stacks, samples().gas) == ([(A,), (A, B), (C,), (A,)], [6, 10, 2, 3])
    assert samples().total == 21


def test_folded_stacks_are_a_line_for_each() -> None:
    assert folded(samples()) == "a 9\na;b 10\nc 2\n"


def test_names_cannot_break_folded_stacks() -> None:
    made = Samples()
    made.add((ActiveFunction("a;b\nc"),), 1)
    assert folded(made) == "a,b c 1\n"


def test_speedscope_has_samples_in_order_and_frames_with_their_places() -> None:
    form = speedscope(samples(), "x")
    (profile,) = form["profiles"]
    assert form["shared"]["frames"] == [{"name": "a"}, {"name": "b", "file": "b.sol", "line": 3}, {"name": "c"}]
    assert (profile["samples"], profile["weights"]) == ([[0], [0, 1], [2], [0]], [6, 10, 2, 3])
    assert profile["endValue"] == sum(profile["weights"]) == 21
    json.dumps(form)


def test_a_tree_has_what_functions_took_themselves_and_with_what_they_called() -> None:
    root = tree_of(samples(), "all")
    a, c = root.below
    assert (root.own, root.total) == (0, 21)
    assert (a.call, a.own, a.total) == (A, 9, 19)
    assert (c.own, c.total) == (2, 2)
    assert [(each.call, each.total) for each in a.below] == [(B, 10)]


def drawn(samples: Samples) -> dict[str, tuple[float, float, float]]:
    """Names and the x, y and width of their boxes, read from the picture as XML."""
    root = ElementTree.fromstring(flame_graph(tree_of(samples, "all"), "what <it> is & was"))
    name = "{http://www.w3.org/2000/svg}"
    found = {}
    for group in root.iter(f"{name}g"):
        box = group.find(f"{name}rect")
        assert box is not None
        x, y, width = (float(box.attrib[key]) for key in ("x", "y", "width"))
        found[group.attrib["data-n"]] = x, y, width
    return found


def test_a_flame_graph_is_xml_with_a_box_for_each_function() -> None:
    boxes = drawn(samples())
    assert boxes.keys() == {"all", "a", "b", "c"}
    x, y, width = boxes["a"]
    assert width == pytest.approx(boxes["all"][2] * 19 / 21, abs=0.01)
    assert boxes["b"][0] == pytest.approx(x, abs=0.01)
    assert boxes["b"][1] < y < boxes["all"][1]  # what is called is above
    assert boxes["c"][0] == pytest.approx(x + width, abs=0.02)


def test_a_flame_graph_of_nothing_is_empty_and_names_are_escaped() -> None:
    assert drawn(Samples()) == {}
    made = Samples()
    made.add((ActiveFunction('<b> & "c"'),), 5)
    assert '<b> & "c"' in drawn(made)


def test_a_flame_graph_needs_no_other_file() -> None:
    text = flame_graph(tree_of(samples(), "all"), "title")
    assert text.count("http") == 1  # the name of SVG's own vocabulary
    assert "<script><![CDATA[" in text


# -- stacks -----------------------------------------------------------------------------------------------------------


def test_functions_are_on_the_stack_while_they_run(evm: EVM, known: Sources) -> None:
    with sampled(evm, known) as found:
        result = evm.simulate(SAFE)
    assert found.total == result.gas_used
    assert folded(found) == (
        "Safe: ();Safe.open 15\n"  # PUSH2 PUSH2 JUMP, and the JUMPDEST that it returns to
        "Safe: ();Safe.open;Safe.close 24\n"
    )


def test_what_a_halt_burns_is_spent_where_it_halts(known: Sources) -> None:
    evm = EVM()
    evm.set_code(SAFE, handmade.RUNTIME)
    with sampled(evm, known) as found:
        result = evm.simulate(SAFE, gas=20)  # not enough for the JUMPI in `close`
    assert (found.total, result.gas_used, result.ok) == (20, 20, False)
    assert folded(found) == "Safe: ();Safe.open 14\nSafe: ();Safe.open;Safe.close 6\n"


def test_calls_of_other_contracts_are_below_their_callers(evm: EVM, known: Sources) -> None:
    evm.set_code(CALLER, assemble(call(SAFE) + call((4).to_bytes(20, "big"))))
    with sampled(evm, known) as found:
        result = evm.simulate(CALLER, OPEN)
    assert found.total == result.gas_used
    name = f"0x{CALLER.hex()}: open()"
    lines = dict(line.rsplit(" ", 1) for line in folded(found).splitlines())
    assert lines.keys() == {
        name,
        f"{name};Safe: ();Safe.open",
        f"{name};Safe: ();Safe.open;Safe.close",
        f"{name};identity (precompile)",
    }
    assert lines[f"{name};identity (precompile)"] == "15"


def test_a_deployment_is_a_constructor_with_the_price_of_its_code(known: Sources) -> None:
    evm = EVM()
    with sampled(evm, known) as found:
        result = evm.deploy(handmade.INIT)
    assert found.total == result.gas_used
    assert folded(found) == f"Safe: constructor {result.gas_used}\n"


# -- tables -----------------------------------------------------------------------------------------------------------


def test_gas_of_lines_and_functions_adds_up_to_what_was_used(evm: EVM, known: Sources) -> None:
    with evm.record(gas=True) as recording:
        results = [evm.simulate(SAFE), evm.simulate(SAFE, b"x")]
    table = gas_table(recording, known)
    assert table.total == sum(result.gas_used for result in results) == sum(table.functions.values())
    assert table.total == sum(table.lines.values()) + sum(table.unmapped.values())
    assert table.functions == {
        "Safe.open": 3 + 3 + 8 + 1 + 3 + 3 + 8,
        "Safe.close": 2 * (2 + 3 + 10) + 1 + 2 + 2,
        "Safe: calls, arguments, returns": 1 + 8 + 1,
    }
    assert table.lines["Safe.sol", 6] == table.functions["Safe.close"]
    assert table.texts["Safe.sol", 6] == "if (full) revert();"


def test_gas_of_unknown_codes_is_told_apart(evm: EVM, known: Sources) -> None:
    evm.set_code(UNKNOWN, b"\x5f\x5f")
    with evm.record(gas=True) as recording:
        evm.simulate(UNKNOWN)
    table = gas_table(recording, known)
    assert (table.total, list(table.unmapped.values()), table.lines) == (4, [4], {})


# -- coverage ---------------------------------------------------------------------------------------------------------


def covered(evm: EVM, known: Sources, *data: bytes) -> FileCoverage:
    with evm.record(coverage=True) as recording:
        for each in data:
            evm.simulate(SAFE, each)
    (file,) = file_coverage(recording.coverage.values(), known)
    return file


def test_lines_functions_and_branches_are_counted(evm: EVM, known: Sources) -> None:
    file = covered(evm, known, b"", b"", b"x")
    assert file.lines == {2: 3, 3: 3, 5: 3, 6: 3}
    assert {function.name: hits for function, hits in file.functions.items()} == {"Safe.open": 3, "Safe.close": 3}
    (branch,) = file.branches.values()
    assert (branch.line, branch.taken, branch.passed) == (6, 1, 2)


def test_what_did_not_run_is_there_with_zero(known: Sources) -> None:
    file = covered(EVM(), known)
    assert file.lines == {2: 0, 3: 0, 5: 0, 6: 0}
    assert list(file.functions.values()) == [0, 0]


def test_lcov_has_the_records_that_its_tools_read(evm: EVM, known: Sources) -> None:
    assert lcov([covered(evm, known, b"", b"")]).splitlines() == [
        "TN:",
        "SF:Safe.sol",
        "FN:2,Safe.open",
        "FN:5,Safe.close",
        "FNDA:2,Safe.open",
        "FNDA:2,Safe.close",
        "FNF:2",
        "FNH:2",
        "BRDA:6,0,0,2",
        "BRDA:6,0,1,0",
        "BRF:2",
        "BRH:1",
        "DA:2,2",
        "DA:3,2",
        "DA:5,2",
        "DA:6,2",
        "LF:4",
        "LH:4",
        "end_of_record",
    ]


def test_a_branch_that_was_not_reached_has_no_counts(known: Sources) -> None:
    assert "BRDA:6,0,0,-\nBRDA:6,0,1,-\n" in lcov([covered(EVM(), known)])


# -- commands ---------------------------------------------------------------------------------------------------------


def test_profile_shows_calls_functions_and_lines(fusevm: Command, tmp_path: Path) -> None:
    ran = fusevm("profile", str(handmade.build_info(tmp_path)), "-c", "open", "-c", "0x", "--rows", "1")
    assert (ran.code, ran.err) == (1, "")  # the first call has data, and reverts
    assert ran.out.splitlines() == [
        "          35  open  reverted",
        "          39  0x",
        "          74  gas in all",
        "",
        "         gas           function",
        "          35   47.3 %  Safe.close",
        "",
        "         gas           line",
        "          35   47.3 %  Safe.sol:6  if (full) revert();",
    ]


def test_profile_writes_all_its_files(fusevm: Command, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("folded", "speedscope", "svg", "lcov")}
    options = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    ran = fusevm("profile", str(handmade.build_info(tmp_path)), "-c", "0x", *options, "--json")
    form = json.loads(ran.out)
    assert ran.code == 0
    assert form["gas"] == form["calls"][0]["gas"] == 39
    assert files["folded"].read_text().startswith("Safe: ();Safe.open 15\n")
    assert json.loads(files["speedscope"].read_text())["profiles"][0]["endValue"] == 39
    ElementTree.fromstring(files["svg"].read_text())
    assert "DA:6,1" in files["lcov"].read_text()


def test_the_constructor_can_be_profiled(fusevm: Command, tmp_path: Path) -> None:
    form = json.loads(fusevm("profile", str(handmade.build_info(tmp_path)), "--with-constructor", "--json").out)
    assert form["gas"] > 200 * len(handmade.RUNTIME)


def test_coverage_shows_shares_by_file(fusevm: Command, tmp_path: Path) -> None:
    path = str(handmade.build_info(tmp_path))
    assert fusevm("coverage", path, "-c", "0x").out.splitlines() == [
        "     lines  branches  functions  file",
        "       4/4       1/2        2/2  Safe.sol",
    ]
    shares = json.loads(fusevm("coverage", path, "-c", "0x", "-c", "open", "--json").out)
    assert shares == {"Safe.sol": {"lines": [4, 4], "branches": [2, 2], "functions": [2, 2]}}
    fusevm("coverage", path, "--lcov", str(tmp_path / "c.lcov"), "-c", "0x")
    assert "BRDA:6,0,1,0" in (tmp_path / "c.lcov").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "close"], "close"),
        (["-c", "open 5"], "open() takes 0 arguments, 1 given"),
        (["--constructor", "5"], "the constructor of"),
        (["--contract", "Vault"], "no contract 'Vault'"),
        (["--caller", "x"], "--caller"),
    ],
)
def test_what_cannot_be_profiled_is_told_in_one_line(
    fusevm: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ran = fusevm("profile", str(handmade.build_info(tmp_path)), *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


# -- stack traces -----------------------------------------------------------------------------------------------------


def test_a_stack_trace_names_functions_and_lines(evm: EVM, known: Sources) -> None:
    found = evm.stack_trace(SAFE, b"x", sources=known)
    assert found is not None
    assert str(found) == (
        "reverted\n"
        "    at Safe.close (Safe.sol:6)\n"
        "        if (full) revert();\n"
        "    at Safe.open (Safe.sol:3)"
    )  # fmt: skip


def test_a_call_that_succeeds_has_no_stack_trace(evm: EVM, known: Sources) -> None:
    assert evm.stack_trace(SAFE, sources=known) is None


def test_a_failure_inside_a_call_shows_both_contracts(evm: EVM, known: Sources) -> None:
    program = f"PUSH1 0 PUSH1 0 PUSH1 1 PUSH1 0 PUSH1 0 PUSH20 0x{SAFE.hex()} GAS CALL PUSH0 PUSH0 REVERT"
    evm.set_code(CALLER, assemble(program))
    found = evm.stack_trace(CALLER, sources=known)
    assert found is not None
    assert [line.function for line in found.lines] == ["Safe.close", "Safe.open", f"0x{CALLER.hex()}: ()"]


def test_a_failure_that_a_contract_has_handled_is_not_the_cause_of_a_later_one(evm: EVM, known: Sources) -> None:
    failing = f"PUSH1 0 PUSH1 0 PUSH1 1 PUSH1 0 PUSH1 0 PUSH20 0x{SAFE.hex()} GAS CALL"
    evm.set_code(CALLER, assemble(failing + call(SAFE) + " INVALID"))
    found = evm.stack_trace(CALLER, sources=known)
    assert found is not None
    assert [line.function for line in found.lines] == [f"0x{CALLER.hex()}: ()"]


def test_tracing_a_stack_keeps_nothing(evm: EVM, known: Sources) -> None:
    root = evm.state_root
    evm.stack_trace(SAFE, b"x", sources=known)
    assert evm.state_root == root
    assert evm.hooks is None
    result: Result = evm.call(SAFE)
    assert result.ok
