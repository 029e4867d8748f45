"""`fusevm sweep`: a grid or rows of parameters in, a table of results out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fusevm.batch.tables import open_table
from fusevm.cli.inputs import BadInput
from fusevm.cli.main import build_app
from fusevm.cli.sweep_spec import read_sweep
from fusevm.evm.assembly import assemble
from fusevm.values import BadValue

# f(x, y): slot 0 + x * y; reverts for x = 13
CODE = assemble(
    "PUSH1 4 CALLDATALOAD PUSH1 13 EQ PUSH2 @bad JUMPI PUSH1 36 CALLDATALOAD PUSH1 4 CALLDATALOAD MUL "
    "PUSH1 0 SLOAD ADD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN bad: JUMPDEST PUSH1 0 PUSH1 0 REVERT"
)
SPEC = {
    "code": "0x" + CODE.hex(),
    "sig": "f(uint256,uint256)(uint256)",
    "args": ["$x", "$y"],
    "grid": {"x": {"from": 10, "to": 14}, "y": [1, 2]},
}


def run(folder: Path, spec: dict[str, Any], *options: str, name: str = "out.csv") -> Any:
    (folder / "spec.json").write_text(json.dumps(spec))
    arguments = ["sweep", str(folder / "spec.json"), "-o", str(folder / name), *options]
    found = CliRunner().invoke(build_app(["sweep", "asm"]), arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_combination_of_a_grid_is_a_row(tmp_path: Path) -> None:
    found = run(tmp_path, SPEC)
    assert found.output == f"10 calls (8 success, 2 revert) in {tmp_path / 'out.csv'}\n"
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == ["x", "y", "status", "gas_used", "output", "result0", "error"]
    assert [(int(row["x"]), int(row["y"])) for row in rows] == [(x, y) for x in range(10, 15) for y in (1, 2)]
    assert [row["result0"] for row in rows] == ["10", "20", "11", "22", "12", "24", "", "", "14", "28"]
    assert [row["status"] for row in rows[5:7]] == ["success", "revert"]
    assert rows[6]["error"] == "reverted"
    assert rows[0]["output"] == "0x" + (10).to_bytes(32, "big").hex()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_processes_write_the_same_table(tmp_path: Path, jobs: str) -> None:
    spec = {**SPEC, "grid": {"x": {"from": 1, "to": 60}, "y": {"from": 1, "to": 1 << 200, "count": 60, "scale": "log"}}}
    run(tmp_path, spec, "-j", jobs)
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == 3_600
    assert all(int(row["result0"]) == int(row["x"]) * int(row["y"]) % 2**256 for row in rows if row["x"] != "13")


def test_rows_of_a_csv_file_are_calls_and_slots_are_parameters_too(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x,base,who\n1,100,0xa1\n2,0x10,0xa2\n")
    spec = {
        **{name: SPEC[name] for name in ("code", "sig")},
        "args": ["$x", 3],
        "storage": {"0x" + "c0de" * 10: {"0": "$base"}},
        "rows": "rows.csv",
    }
    run(tmp_path, spec, name="out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["x"], row["base"], row["who"], row["result0"]) for row in rows] == [
        ("1", "100", "0xa1", "103"), ("2", "0x10", "0xa2", "22"),
    ]  # fmt: skip


def test_a_list_of_rows_may_say_data_value_and_block(tmp_path: Path) -> None:
    code = "0x" + assemble("NUMBER PUSH1 0 CALLDATALOAD ADD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN").hex()
    rows = [{"d": "0x" + "00" * 31 + "05", "n": 7}, {"d": "0x" + "00" * 32, "n": 9, "v": 0}]
    run(tmp_path, {"code": code, "data": "$d", "block": {"number": "$n"}, "rows": rows}, name="out.jsonl")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [int(row["output"], 16) for row in found] == [12, 9]


def test_a_csv_file_of_calls_is_a_sweep_by_itself(tmp_path: Path) -> None:
    target, other = "0x" + "c0de" * 10, "0x" + "0d" * 20
    (tmp_path / "calls.csv").write_text(f"to,data,gas,note\n{target},0x{'00' * 68},50000,a\n{other},0x,0x10,b\n")
    arguments = ["sweep", str(tmp_path / "calls.csv"), "--code", "0x" + CODE.hex(), "-o", str(tmp_path / "out.csv")]
    assert CliRunner().invoke(build_app(["sweep", "asm"]), arguments).exit_code == 0
    rows = rows_of(tmp_path / "out.csv")
    assert [(row["to"], row["note"], row["status"]) for row in rows] == [
        (target, "a", "success"),
        (other, "b", "success"),
    ]
    assert (rows[0]["output"], rows[1]["output"]) == ("0x" + "00" * 32, "0x")


def test_a_csv_file_needs_code(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("data\n0x\n")
    with pytest.raises(BadInput, match="a CSV file has calls alone; give --code"):
        read_sweep(str(tmp_path / "calls.csv"))


def test_the_target_can_be_a_parameter(tmp_path: Path) -> None:
    rows = [{"who": "0x" + "c0de" * 10}, {"who": "0x" + "0d" * 20}]
    run(tmp_path, {"code": SPEC["code"], "to": "$who", "data": "0x" + "00" * 68, "rows": rows})
    assert [row["output"] for row in rows_of(tmp_path / "out.csv")] == ["0x" + "00" * 32, "0x"]


def test_a_call_that_fails_is_a_row_with_its_error(tmp_path: Path) -> None:
    run(tmp_path, {**SPEC, "value": "$x", "caller": "0x" + "b0" * 20, "grid": {"x": [0, 1], "y": [1]}})
    rows = rows_of(tmp_path / "out.csv")
    assert [row["status"] for row in rows] == ["success", "failed"]
    assert rows[1]["error"].startswith("value: caller 0x")


def test_the_summary_can_be_data(tmp_path: Path) -> None:
    found = json.loads(run(tmp_path, SPEC, "--json").output)
    assert found == {"calls": 10, "ended": {"success": 8, "revert": 2}, "output": str(tmp_path / "out.csv")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": {"x": {"from": 1}}}, "grid x: expected a list, or"),
        ({"grid": {"x": {"from": 5, "to": 1}}}, "grid x: from 5 to 1 by 1 is not a list"),
        ({"grid": {"x": {"from": 0, "to": 9, "count": 3, "scale": "log"}}}, "a logarithmic scale begins at 1 or more"),
        ({"grid": {}}, "give 'grid' (parameters and all their values) or 'rows' (a list, or a CSV file)"),
        ({"grit": 1}, "'grit' is not a field of a sweep; known: code, fork"),
        ({"args": ["$z", "$y"]}, "row 0: no value for $z; it has x, y"),
        ({"args": ["$x"]}, "row 0: f(uint256,uint256) takes 2 arguments, 1 given"),
        ({"value": "much"}, "row 0: value: 'much' is not a number"),
        ({"data": "0x"}, "give 'data' or 'sig', not both"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run(tmp_path, {**SPEC, **change})
    assert message in str(caught.value)
    assert str(tmp_path / "spec.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"out.xls: expected a name that ends in .csv, .jsonl, .ndjson, .parquet"):
        open_table(tmp_path / "out.xls")


def test_parquet_has_numbers_where_they_fit_and_text_where_not(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run(tmp_path, {**SPEC, "grid": {"x": [1, 2], "y": [1, 1 << 100]}}, name="out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table["x"].to_pylist() == [1, 1, 2, 2]
    assert table["y"].to_pylist() == ["1", str(1 << 100)] * 2
    assert table["result0"].to_pylist() == ["1", str(1 << 100), "2", str(1 << 101)]
    assert table["gas_used"].to_pylist()[0] > 0
