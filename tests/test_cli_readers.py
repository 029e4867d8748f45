"""Whatever stands in a file that a command reads, and in arguments that are JSON: a result, or one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import Command, fusevm_command  # noqa: F401
from conftest import WHOLE

LONGEST = 1_100  # characters of a line
HUGE = "@huge@"  # is written as a number of 10,000 digits
PLACE = "0x" + "aa" * 20


def written(form: Any) -> str:
    """JSON's text, with what Python's `json` would not write."""
    text = json.dumps(form)
    return text.replace(f'"{HUGE}"', "9" * 10_000).replace('"@deep@"', "[" * 3_000 + "]" * 3_000)


odd = st.sampled_from(
    [HUGE, "@deep@", "\ud800", "a\ud800b", None, True, -1, 1.5, 1e400, "", "0x", "0xzz", "0x1", [], {}, [[]], "uint256",
     "uint256" + "[]" * 3_000, "uint256" + "[9]" * 3_000, "tuple", "__$" + "a" * 34 + "$__", 10**400, "function"]
)  # fmt: skip
values = st.recursive(
    odd | st.text(max_size=8) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
parameter = st.fixed_dictionaries({}, optional={"name": values, "type": values, "components": st.lists(values)})
entry = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["function", "event", "error", "constructor", "fallback"]) | values,
        "name": st.just("f") | values,
        "inputs": st.lists(parameter, max_size=2) | values,
        "outputs": st.lists(parameter, max_size=2) | values,
        "stateMutability": values,
    },
)
code = st.sampled_from(["0x60fe60005360016000f3", {"object": "60fe60005360016000f3"}]) | values
artifact = st.fixed_dictionaries(
    {},
    optional={
        "abi": st.lists(entry, max_size=2) | values,
        "bytecode": code,
        "deployedBytecode": code,
        "linkReferences": values,
        "contractName": values,
        "output": values,
        "contracts": st.dictionaries(st.text(max_size=4), values, max_size=2),
        "sources": values,
        "evm": values,
    },
)
account = st.fixed_dictionaries({}, optional={"balance": values, "nonce": values, "code": values, "storage": values})
state = st.fixed_dictionaries(
    {"pre": st.dictionaries(st.sampled_from([PLACE, "0x12", "\ud800"]), account | values, max_size=2)},
    optional={"env": values, "call": values, "fork": values},
)
sweep = st.fixed_dictionaries(
    {"code": st.just("0x00") | values},
    optional={"rows": values, "grid": values, "data": values, "sig": values, "args": values, "to": values,
              "gas": values, "block": values, "storage": values, "fork": values, "tier": values},
)  # fmt: skip
commands = st.sampled_from(
    [["run"], ["run", "--sig", "f"], ["trace", "--json"], ["regions", "--sig", "f"], ["optimize"], ["profile"],
     ["coverage"], ["sweep", "-o", "table.csv"], ["statetest", "-j", "1"], ["blocktest", "-j", "1"], ["disasm"],
     ["fusions", "--count"], ["explore", "--export", "page.html"], ["yul", "standard-json"],
     ["t8n", "--output.alloc", "stdout", "--output.result", "stdout", "--input.alloc"],
     ["run", "0xfe", "--load-state"], ["run", "0xfe", "--artifact"]]
)  # fmt: skip


@pytest.mark.parametrize("form", [artifact, state, sweep, values], ids=["artifact", "state", "sweep", "anything"])
@settings(max_examples=400 if WHOLE else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_file_of_json_ends_a_command_with_a_traceback(
    fusevm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "form.json").write_text(written(data.draw(form)), encoding="utf-8")
    for name in ("env.json", "txs.json"):
        (tmp_path / name).write_text("{}" if name == "env.json" else "[]")
    ran = fusevm(*data.draw(commands), "form.json")
    assert "Traceback" not in ran.err
    assert ran.code in range(12)
    assert all(len(line) < LONGEST for line in ran.err.splitlines())


@settings(max_examples=300 if WHOLE else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(form=values, kind=st.sampled_from(["uint256[]", "(uint256,string)", "string", "uint8", "bytes[2][]", "bool"]))
def test_no_argument_in_json_ends_a_command_with_a_traceback(fusevm: Command, form: Any, kind: str) -> None:
    ran = fusevm("run", "0x00", "--sig", f"f({kind})", f"--args={written(form)}")
    assert ran.code in (0, 2)
    assert ran.err.count("\n") <= 1
    assert len(ran.err) < LONGEST


@settings(max_examples=300 if WHOLE else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30))
def test_no_text_of_a_call_ends_in_a_traceback(fusevm: Command, tmp_path: Path, text: str) -> None:
    abi = [{"type": "function", "name": "f", "inputs": [{"type": "uint256[]", "name": ""}]}]
    runtime = {"object": "00", "sourceMap": "0:5:0"}
    built = {
        "abi": abi,
        "evm": {"bytecode": {"object": "60006000536001600060003960016000f3"}, "deployedBytecode": runtime},
    }
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"contracts": {"a.sol": {"A": built}}, "sources": {"a.sol": {"id": 0}}}))
    ran = fusevm("profile", str(file), f"--call={text}")
    assert ran.code in (0, 1, 2)
    assert ran.err.count("\n") <= 1
