"""The page for users of pyrevm: every public name of it is there, and what it points to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusevm import EVM, Block, Chain, Result, State

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "coming-from.md").read_text("utf-8")
HOLDERS = {"evm": EVM, "chain": Chain, "result": Result, "state": State, "Block": Block, "Chain": Chain, "EVM": EVM}


def test_every_public_name_of_pyrevm_is_in_the_table() -> None:
    pyrevm = pytest.importorskip("pyrevm")
    listed = set(re.findall(r"^\| `(\w+(?:\.\w+)?)", PAGE, re.M))
    kinds = ("EVM", "BlockEnv", "TxEnv", "CfgEnv", "Env", "AccountInfo", "ExecutionResult", "Log")
    names = {f"{kind}.{name}" for kind in kinds for name in dir(getattr(pyrevm, kind)) if not name.startswith("_")}
    assert sorted(names - listed) == []
    assert {"JournalCheckpoint", "fake_exponential"} <= listed


def test_every_method_of_py_evm_that_is_named_exists() -> None:
    abc = pytest.importorskip("eth.abc")
    kinds = {
        "Chain": abc.MiningChainAPI,
        "VirtualMachine": abc.VirtualMachineAPI,
        "State": abc.StateAPI,
        "Computation": abc.ComputationAPI,
    }
    rows = re.findall(r"^\| `(Chain|VirtualMachine|State|Computation)\.(.*?) \|", PAGE.split("## py-evm")[1], re.M)
    assert len(rows) > 15
    for kind, cell in rows:
        for name in re.findall(r"(?:^|`)(\w+)", cell):
            assert hasattr(kinds[kind], name) or name == "opcodes", f"{kind}.{name}"


def test_every_name_of_ours_in_the_table_exists() -> None:
    right = "\n".join(line.rsplit(" | ", 1)[-1] for line in PAGE.splitlines() if line.startswith("| `"))
    found = re.findall(r"\b(evm|chain|result|Block|Chain|EVM)\.(\w+)", right)
    assert len(found) > 40
    missing = [f"{holder}.{name}" for holder, name in found if not _has(HOLDERS[holder], name)]
    assert missing == []


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__dataclass_fields__", {}) or name == "events"
