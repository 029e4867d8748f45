"""`fusevm explore` without a server: exports, and inputs that cannot be explained."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401

VAULT = Path(__file__).resolve().parent.parent / "examples" / "vault.yul"


def content_of(page: Path) -> Any:
    found = re.search(
        r'<script type="application/json" id="content">(.*?)</script>', page.read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])


def test_an_export_has_all_panes_and_the_graph(fusevm: Command, tmp_path: Path) -> None:
    target = tmp_path / "vault.html"
    done = fusevm("explore", str(VAULT), "--export", str(target))
    assert done.code == 0, done.err
    document = content_of(target)["document"]
    assert [pane["id"] for pane in document["panes"]] == ["source", "yul", "ir", "bytecode", "schedule"]
    assert document["graph"]["blocks"]
    assert document["steps"]


def test_the_options_are_those_of_the_document(fusevm: Command, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    options = ("--fork", "cancun", "--runs", "7", "--steps", "dhfoDgvulfn")
    fusevm("explore", str(VAULT), "--export", str(target), *options)
    document = content_of(target)["document"]
    assert (document["fork"], document["runs"], document["sequence"]) == ("cancun", 7, "dhfoDgvulfn")


@pytest.mark.parametrize(("given", "name"), [("0x6001600201", "code.hex"), (None, "counter.yul")])
def test_hex_and_nothing_at_all_are_explained(fusevm: Command, given: str | None, name: str, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    done = fusevm("explore", *([given] if given else []), "--export", str(target))
    assert done.code == 0, done.err
    assert content_of(target)["document"]["name"] == name


def test_raw_bytes_are_code(fusevm: Command, tmp_path: Path) -> None:
    (tmp_path / "code.bin").write_bytes(bytes.fromhex("60ff60fe01"))
    target = tmp_path / "x.html"
    done = fusevm("explore", str(tmp_path / "code.bin"), "--export", str(target))
    assert done.code == 0, done.err
    assert content_of(target)["document"]["language"] == "bytecode"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch.yul"], "no such file: nosuch.yul"),
        ([str(VAULT), "--fork", "nosuch"], "nosuch"),
        ([str(VAULT), "--steps", "?", "--export", "x.html"], "step sequence"),
        ([str(VAULT), "--export", "/nosuch/x.html"], "--export /nosuch/x.html: cannot write"),
    ],
)
def test_what_cannot_be_explained_is_one_line(fusevm: Command, arguments: list[str], said: str) -> None:
    done = fusevm("explore", "--no-browser", *arguments)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_an_error_in_the_source_names_its_place(fusevm: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.yul").write_text("{\n  sstore(0, nothing)\n}\n")
    done = fusevm("explore", str(tmp_path / "wrong.yul"), "--export", str(tmp_path / "x.html"))
    assert done.code == 2
    assert "wrong.yul: yul: 2:13: 'nothing' is not declared" in done.err


def test_without_aiohttp_the_remedy_is_named(fusevm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        each for each in sys.modules if each.split(".")[0] == "aiohttp" or each.startswith("fusevm.explorer.")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    done = fusevm("explore", "--no-browser")
    assert done.code == 2
    assert "explore: aiohttp is not installed; pip install 'fusevm[explorer]'" in done.err
