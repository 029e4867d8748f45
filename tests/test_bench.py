"""`fusevm bench`: right results are required, wrong ones shown; what is timed is only the call."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from fusevm.cli.bench import bench, means, shown
from fusevm.lab.peers.bench import (
    BadBench,
    BenchFile,
    Measured,
    Row,
    TimeUp,
    bench_files,
    geometric_mean,
    measure,
    ratios,
    time_limit,
)
from fusevm.lab.peers.ours import OurTier

REFERENCE = OurTier("reference")
FEW_OPS = 30_000  # files beyond this are left to `fusevm bench`
app = typer.Typer()
app.command()(bench)

DOUBLE = {
    "fork": "cancun",
    "pre": {"0x" + "cc" * 20: {"nonce": "0x1", "code": "0x5f3560020260005260206000f3", "storage": {}}},
    "call": {"caller": "0x" + "11" * 20, "to": "0x" + "cc" * 20, "value": "0x0", "data": "0x" + "21".rjust(64, "0")},
    "expect": {"status": "success", "gas_used": 28, "refund": 0, "ops": 10, "output": "0x" + "42".rjust(64, "0")},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "double.json").write_text(json.dumps(DOUBLE))
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--dir", str(folder), "--tier", "reference", "--repeat", "1", *arguments])


def spoil(folder: Path, **expectations: object) -> None:
    wrong = {**DOUBLE, "expect": {**DOUBLE["expect"], **expectations}}  # type: ignore[dict-item]
    (folder / "double.json").write_text(json.dumps(wrong))


def test_every_small_bench_file_is_right_on_the_reference_tier(fixtures_dir: Path) -> None:
    files = [file for file in bench_files(fixtures_dir / "bench") if file.ops <= FEW_OPS]
    assert len(files) > 10
    assert {file.name: measure(REFERENCE, file, 1).fault for file in files} == {file.name: None for file in files}


@pytest.mark.parametrize(("name", "module"), [("pyrevm", "pyrevm"), ("py-evm", "eth"), ("spec", "ethereum")])
def test_small_bench_files_are_right_on_a_peer(fixtures_dir: Path, name: str, module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{name} is not installed (pip install 'fusevm[peers]')")
    from fusevm.lab.peers.engines import engine_named

    files = [file for file in bench_files(fixtures_dir / "bench") if file.ops <= 1_000]
    engine = engine_named(name)
    assert {file.name: measure(engine, file, 1).fault for file in files} == {file.name: None for file in files}


def test_a_right_result_shows_its_time(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0
    assert "double" in result.output
    assert "1 right, 0 wrong" in result.output


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("gas_used", 29, "gas 28, expected 29"),
        ("refund", 1, "refund 0, expected 1"),
        ("output", "0x01", "expected 0x01"),
        ("status", "revert", "status success, expected revert"),
    ],
)
def test_a_wrong_result_is_named_and_fails(folder: Path, field: str, value: object, text: str) -> None:
    spoil(folder, **{field: value})
    result = run(folder)
    assert result.exit_code == 1
    assert "double: reference: " in result.output
    assert text in result.output
    assert "0 right, 1 wrong" in result.output


def test_json_has_an_object_per_file(folder: Path) -> None:
    [row] = json.loads(run(folder, "--json").stdout)
    assert (row["name"], row["ok"], row["gas_used"]) == ("double", True, 28)
    assert row["seconds"]["reference"] > 0


def test_json_says_what_is_wrong(folder: Path) -> None:
    spoil(folder, gas_used=1)
    result = run(folder, "--json")
    [row] = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (row["ok"], row["faults"]) == (False, {"reference": "gas 28, expected 1"})


def test_files_can_be_named(folder: Path) -> None:
    (folder / "other.json").write_text(json.dumps(DOUBLE))
    assert [row["name"] for row in json.loads(run(folder, "other", "--json").stdout)] == ["other"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is not a bench file: JSONDecodeError"),
        ("[]", "is not a bench file"),
        ('{"fork": "x"}', "KeyError: 'call'"),
    ],
)
def test_a_malformed_file_gives_one_line(folder: Path, content: str, text: str) -> None:
    (folder / "double.json").write_text(content)
    result = run(folder)
    assert result.exit_code == 2
    assert text in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_missing_file_or_folder_gives_one_line(folder: Path) -> None:
    assert "no bench file 'nothing' in" in run(folder, "nothing").output
    assert "no folder of bench files at" in run(folder / "nowhere").output
    (folder / "empty").mkdir()
    with pytest.raises(BadBench, match="no bench files in"):
        bench_files(folder / "empty")


def test_a_run_beyond_the_time_limit_is_given_up(folder: Path) -> None:
    [file] = bench_files(folder)
    file.work.accounts[b"\xcc" * 20].code = bytes.fromhex("5b600056")
    assert measure(REFERENCE, file, 3, limit=0.2) == Measured(seconds=None)


def test_the_time_limit_is_off_once_its_block_is_left() -> None:
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    with pytest.raises(TimeUp), time_limit(0.05):
        time.sleep(1)


def test_ratios_are_of_files_both_ended_rightly(folder: Path) -> None:
    [file] = bench_files(folder)

    def row(one: Measured, other: Measured) -> Row:
        return Row(file, {"one": one, "other": other})

    rows = [
        row(Measured(2.0), Measured(1.0)),
        row(Measured(8.0), Measured(1.0)),
        row(Measured(1.0), Measured(None)),
        row(Measured(1.0, fault="gas"), Measured(1.0)),
    ]
    assert ratios(rows, "one", "other") == [2.0, 8.0]
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([]) == 1.0


@pytest.mark.parametrize(
    ("name", "ops", "group"),
    [
        ("snailtracer", 10_000, "contracts of 10,000 instructions and more"),
        ("revmc-weth", 9_999, "contracts of fewer than 10,000 instructions"),
        ("opcodes-block-1", 72_001, "synthetic files"),
        ("evmone-JUMPDEST_n0", 523_262, "synthetic files"),
        ("evmone-loop_with_many_jumpdests", 7_982_336, "synthetic files"),
        ("evmone-jump_around", 12_290, "synthetic files"),
    ],
)
def test_synthetic_files_and_short_contracts_are_groups_of_their_own(
    folder: Path, name: str, ops: int, group: str
) -> None:
    form = {**DOUBLE, "expect": {**DOUBLE["expect"], "ops": ops}}  # type: ignore[dict-item]
    (folder / f"{name}.json").write_text(json.dumps(form))
    [row] = json.loads(run(folder, name, "--json").stdout)
    assert row["group"] == group


def test_the_mean_over_contracts_leaves_synthetic_files_out(folder: Path) -> None:
    [file] = bench_files(folder)

    def row(name: str, one: float) -> Row:
        return Row(replace(file, name=name, ops=20_000), {"one": Measured(one), "other": Measured(1.0)})

    rows = [row("token", 2.0), row("vault", 8.0), row("opcodes-data", 100.0)]
    assert list(means(rows, ["one", "other"])) == [
        "one takes 4 times as long as other: geometric mean of 2 contracts of 10,000 instructions and more",
        "one takes 100 times as long as other: geometric mean of 1 synthetic files",
    ]


def test_times_are_shown_in_the_unit_that_suits() -> None:
    assert [shown(seconds) for seconds in (12.3456, 0.00123, 4.5e-6, 7e-9)] == ["12.3 s", "1.23 ms", "4.5 µs", "7 ns"]


def test_what_a_stop_costs_is_given_for_each_engine(folder: Path) -> None:
    found = json.loads(run(folder, "--stop", "--json").stdout)
    assert found["name"] == "STOP"
    assert 0 < found["seconds"]["reference"] < 1


def test_a_bench_file_keeps_what_is_expected_of_it(folder: Path) -> None:
    [file] = bench_files(folder)
    assert isinstance(file, BenchFile)
    assert (file.name, file.gas_used, file.ops, file.output[-1]) == ("double", 28, 10, 0x42)
