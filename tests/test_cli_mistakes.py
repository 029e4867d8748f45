"""What people get wrong, with every command: one line that names the thing and the remedy, an exit code, no traceback.

Commands and their parameters are found in the code: a new command is walked through without a change here, and a
parameter that takes text without a rule in `KINDS` gets every mistake there is.
"""

from __future__ import annotations

import enum
import inspect
import json
import socket
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest
import typer

from commands import Command, Ran, fusevm_command  # noqa: F401
from conftest import chosen
from fusevm.cli.main import COMMANDS

KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
NOBODY = "0x" + "bb" * 20
SOLIDITY = "// SPDX-License-Identifier: MIT\npragma solidity ^0.8.20;\ncontract Token { function f() public {} }\n"
ABI = [{"type": "function", "name": "f", "inputs": [], "outputs": [{"type": "uint256", "name": ""}]}]
CREATION = "60fe60005360016000f3"  # leaves INVALID
LONGEST = 1_100  # characters of what is said
MAX_NAMES = 400  # … where forks or fields are listed
TAKES_KEYS = {"mnemonic"}

# What the parameters that take text are for.
KINDS = {
    "code": "code", "target": "code", "source": "assembly", "file": "yul", "text": "ir", "count": "code",
    "artifacts": "artifact", "spec": "json", "paths": "json", "input_alloc": "json", "input_env": "json",
    "input_txs": "json", "load_state": "json", "sources": "artifact", "caller": "address", "to": "address",
    "fork": "fork", "hardfork": "fork", "network": "fork", "contract": "contract", "fork_url": "url", "tier": "tier",
    "output": "written", "out": "written", "export": "written", "dump_state": "dumped", "folded_to": "written",
    "speedscope_to": "written", "svg": "written", "lcov": "written", "lcov_to": "written",
}  # fmt: skip
# Where a name means something else in one command.
OWN_KINDS = {("node", "fork"): "url", ("explore", "file"): "source", ("yul standard-json", "file"): "request",
             ("sweep", "code"): "", ("blocktest", "network"): "", ("sweep", "output"): "table",
             ("statetest", "paths"): "suite", ("blocktest", "paths"): "suite"}  # fmt: skip

# A mistake is the value given, and what the line must say.
MISTAKES: dict[str, dict[str, tuple[str, str]]] = {
    "code": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not bytecode: compile it first"),
        "a .vy file": ("X.vy", "X.vy is Vyper, not bytecode: compile it first"),
        "a .yul file": ("X.yul", "X.yul is Yul, not bytecode: `fusevm yul compile X.yul`"),
        "a directory": ("folder", "folder is a folder, not a file of code"),
        "an empty file": ("empty", "empty: empty; bytecode is needed"),
        "a missing file": ("nosuch.hex", "no such file: nosuch.hex"),
        "a word": ("nosuch", "code is not hex: 'n' at position 0, and no such file exists"),
    },
    "assembly": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not assembly"),
        "a directory": ("folder", "folder is a folder, not a file of text"),
        "an empty file": ("empty", "empty: empty; assembly is needed"),
        "a missing file": ("nosuch.asm", "no such file: nosuch.asm"),
    },
    "yul": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not Yul: `solc --ir-optimized X.sol`"),
        "a .vy file": ("X.vy", "X.vy is Vyper, not Yul"),
        "an artifact": ("Token.json", "Token.json is JSON, not Yul"),
        "bytecode": ("code.hex", "code.hex is bytecode, not Yul: `fusevm optimize code.hex`"),
        "a directory": ("folder", "folder is a folder, not a file of Yul"),
        "an empty file": ("empty", "empty: empty; Yul is needed"),
        "a missing file": ("nosuch.yul", "no such file: nosuch.yul"),
    },
    "request": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not JSON"),
        "a directory": ("folder", "folder is a folder"),
        "an empty file": ("empty", "empty: empty; JSON is needed"),
    },
    "source": {
        "no solc": ("X.sol", "X.sol: solc is not on PATH: install it, or give a build tool's artifact"),
        "no vyper": ("X.vy", "X.vy: vyper is not on PATH: install it, or give a build tool's artifact"),
        "a directory": ("folder", "folder is a folder, not a file of source or code"),
        "an empty file": ("empty", "empty: empty; Yul, Solidity, Vyper, assembly, hex or an artifact is needed"),
        "a missing file": ("nosuch.sol", "no such file: nosuch.sol"),
    },
    "ir": {
        "a .sol file": ("X.sol", "X.sol: ir: line 2"),
        "a directory": ("folder", "folder is a folder, not a file of IR text"),
        "an empty file": ("empty", "empty: empty; IR text is needed"),
    },
    "artifact": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not JSON: compile it first"),
        "a directory": ("folder", "folder is a folder, not an artifact"),
        "an empty file": ("empty", "empty: empty; JSON is needed"),
        "a missing file": ("nosuch.json", "no such file: nosuch.json"),
    },
    "json": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not JSON"),
        "a directory": ("folder", "folder is a folder, not a"),
        "an empty file": ("empty", "empty: empty; JSON is needed"),
        "a missing file": ("nosuch.json", "no such file: nosuch.json"),
    },
    "suite": {
        "a .sol file": ("X.sol", "X.sol is Solidity, not JSON"),
        "a directory": ("folder", "tests in folder"),
        "an empty file": ("empty", "empty: empty; JSON is needed"),
        "a missing file": ("nosuch.json", "no such file or folder: nosuch.json"),
    },
    "address": {
        "a private key": (KEY, "32 bytes, as a private key or a hash has; give the address, 20 bytes"),
        "a private key with 0x": ("0x" + KEY, "32 bytes, as a private key or a hash has; give the address"),
        "a name": ("vitalik.eth", "'vitalik.eth' is not an address: write 0x and 40 hex digits"),
        "half an address": ("0x1234", "expected 20 bytes, got 2"),
    },
    "fork": {"a wrong fork": ("shanghia", "shanghia")},
    "tier": {"a wrong tier": ("warp", "'warp'; known: auto, native, regions")},
    "contract": {"a wrong contract name": ("Tokn", "no contract 'Tokn'; it has a.sol:Other, a.sol:Token")},
    "url": {
        "no network": ("http://127.0.0.1:9", "http://127.0.0.1:9 does not answer"),
        "a file": ("X.sol", "expected http://… or https://…, got 'X.sol'"),
    },
    "table": {
        "a directory": ("folder", "folder: expected a name that ends in .csv"),
        "a missing folder": ("nosuch/table.csv", "cannot write nosuch/table.csv"),
    },
    "dumped": {"a missing folder": ("nosuch/file", "nosuch/file: cannot write")},
    "written": {
        "a directory": ("folder", "folder: cannot write"),
        "a missing folder": ("nosuch/file", "nosuch/file: cannot write"),
    },
}  # fmt: skip


class Leaf(NamedTuple):
    """A command, with its words and what it takes."""

    words: str
    function: Callable[..., Any]

    def parameters(self) -> dict[str, tuple[type, Any, bool]]:
        """By name: the type, typer's description of it, and whether it must be given."""
        hints = get_type_hints(self.function, include_extras=True)
        found = {}
        for name, each in inspect.signature(self.function).parameters.items():
            kind, *about = get_args(hints.get(name, each.annotation))  # a signature may be made from a table
            described = next((info for info in about if hasattr(info, "param_decls")), None)
            found[name] = _plain(kind), described, each.default is inspect.Parameter.empty
        return found

    def option(self, name: str) -> list[str]:
        """How the parameter is given: the words before its value."""
        _, described, _ = self.parameters()[name]
        if isinstance(described, typer.models.ArgumentInfo):
            return []
        declared = (described.default, *(described.param_decls or ()))  # typer takes the first name for a default
        given = [each for each in declared if isinstance(each, str) and each.startswith("--")]
        return [given[0].partition("/")[0] if given else f"--{name.replace('_', '-')}"]


def _plain(kind: Any) -> type:
    """`list[str] | None` is text, as far as a command line goes."""
    while get_origin(kind) in (list, Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return kind if isinstance(kind, type) else str


def leaves() -> Iterator[Leaf]:
    for name, command in COMMANDS.items():
        found = getattr(import_module(f"fusevm.cli.{command.module}"), command.function)
        if isinstance(found, typer.Typer):
            for each in found.registered_commands:
                assert each.callback is not None
                yield Leaf(f"{name} {each.name or each.callback.__name__}", each.callback)
        else:
            yield Leaf(name, found)


LEAVES = {leaf.words: leaf for leaf in leaves()}
TEXTS = [
    (leaf.words, name)
    for leaf in LEAVES.values()
    for name, (kind, _, _) in leaf.parameters().items()
    if issubclass(kind, str | Path) and not issubclass(kind, enum.Enum)
]  # fmt: skip


def kind_of(words: str, name: str) -> str:
    return OWN_KINDS.get((words, name), KINDS.get(name, ""))


STRICT = [(words, name, mistake) for words, name in TEXTS for mistake in MISTAKES.get(kind_of(words, name), {})]
OTHERS = [(words, name) for words, name in TEXTS if not kind_of(words, name)]
EVERY = sorted({value for each in MISTAKES.values() for value, _ in each.values()})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the mistakes name, without a compiler on PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    runtime = {"object": "fe", "sourceMap": "0:5:0"}
    built = {"abi": ABI, "evm": {"bytecode": {"object": CREATION, "sourceMap": "0:5:0"}, "deployedBytecode": runtime}}
    output = {"contracts": {"a.sol": {"Token": built, "Other": built}}, "sources": {"a.sol": {"id": 0}}}
    token = {"contracts": {"a.sol": {"Token": built}}, "sources": {"a.sol": {"id": 0}}}
    files = {
        "X.sol": SOLIDITY, "X.vy": "# pragma version ^0.4.0\n@external\ndef f():\n    pass\n",
        "X.yul": "{ sstore(0, 1) }", "empty": "", "code.hex": "0x6001600201", "a.sol": "contract Token {}",
        "Token.json": json.dumps(token), "two.json": json.dumps(output),
        "state.json": json.dumps({"0x" + "aa" * 20: {"balance": "0x1", "code": "0x6001"}}),
        "alloc.json": "{}", "txs.json": "[]", "env.json": "{}",
        "sweep.json": json.dumps({"code": "0x00", "data": "0x", "rows": [{}]}),
        "test.json": "{}", "ir.txt": "",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which no server can begin, so that one that is started ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


GIVEN = {"code": "0xfe", "target": "two.json", "file": "X.yul", "artifacts": "two.json", "spec": "sweep.json",
         "output": "table.csv", "paths": "test.json", "source": "STOP"}  # fmt: skip
NEEDS_CONTRACT = ("run", "trace", "regions", "profile", "coverage")
NEEDS_CALL = ("run", "trace", "regions")
SMALL = {"fuzz": ["--programs", "1"], "bench": ["--repeat", "1", "--limit", "0.1"], "fusions": []}


def line(words: str, name: str, value: str, port: int) -> list[str]:
    """The command with everything it needs, and one parameter given so."""
    leaf = LEAVES[words]
    found = [*words.split()]
    for each, (_, _, needed) in leaf.parameters().items():
        if needed and each != name:
            assert each in GIVEN, f"fusevm {words} needs {each}: say in GIVEN what a right value of it is"
            found += [*leaf.option(each), GIVEN[each]]
    if name == "sources":  # which are read where a run fails
        return [words, "0xfe", *leaf.option(name), value]
    if words in NEEDS_CONTRACT and name not in ("contract", "target", "artifacts"):
        found += ["--contract", "Token"]
    if words in NEEDS_CALL and name not in ("sig", "data"):
        found += ["--sig", "f"]
    if words in ("node", "explore") and name != "port":
        found += ["--port", str(port)]
    if words == "explore":
        found += ["--export", "page.html"] if name in ("file", "contract") else ["--no-browser"]
        found += ["two.json"] if name == "contract" else []
    if (words, name) == ("fusions", "fork"):
        found.append("0x00")
    return [*found, *SMALL.get(words, []), *leaf.option(name), value]


def is_one_line(ran: Ran, longest: int = LONGEST) -> None:
    assert ran.code != 0, ran.out
    said = ran.err.strip() or ran.out.strip()
    if "\n" not in ran.err.strip():
        assert len(said) < longest, said
    assert "Traceback" not in ran.err
    assert KEY not in ran.err + ran.out, "a private key was printed"


@pytest.mark.parametrize(("words", "name", "mistake"), STRICT)
def test_a_common_mistake_gets_one_line_that_says_what_is_wrong(
    fusevm: Command, place: Path, taken: int, words: str, name: str, mistake: str
) -> None:
    value, expected = MISTAKES[kind_of(words, name)][mistake]
    ran = fusevm(*line(words, name, value, taken))
    is_one_line(ran)
    assert ran.err.strip().count("\n") == 0, ran.err
    assert expected in ran.err, ran.err


@pytest.mark.parametrize(("words", "name"), chosen([], OTHERS))
def test_no_text_for_any_other_parameter_ends_in_a_traceback(
    fusevm: Command, place: Path, taken: int, words: str, name: str
) -> None:
    for value in EVERY:
        ran = fusevm(*line(words, name, value, taken))
        assert "Traceback" not in ran.err
        if ran.code:
            assert len(ran.err) < 3 * LONGEST
            assert KEY not in ran.err or name in TAKES_KEYS, "a private key was printed"


@pytest.mark.parametrize("words", NEEDS_CALL)
def test_an_address_without_code_is_named_with_the_state_that_was_looked_at(
    fusevm: Command, place: Path, words: str
) -> None:
    """A call of it succeeds in the EVM, and returns nothing: not what anybody asks for who names a function."""
    said = f"{NOBODY} has no code in state.json: check the address"
    for target in ([NOBODY, "--sig", "f()(uint256)"], ["Token.json", "--to", NOBODY, "--sig", "f"]):
        ran = fusevm(words, *target, "--load-state", "state.json")
        is_one_line(ran)
        assert said in ran.err


@pytest.mark.parametrize("words", NEEDS_CALL)
def test_an_address_without_a_state_is_not_taken_for_code(fusevm: Command, place: Path, words: str) -> None:
    ran = fusevm(words, NOBODY, "--sig", "f()(uint256)")
    is_one_line(ran)
    assert f"{NOBODY} is an address: say where it is with --fork-url or --load-state" in ran.err


@pytest.mark.parametrize(
    ("words", "missing", "said"),
    [
        (["explore", "X.yul", "--no-browser"], "aiohttp", "pip install 'fusevm[explorer]'"),
        (["node"], "aiohttp", "pip install 'fusevm[node]'"),
        (["rules", "--prove"], "z3", "pip install 'fusevm[prove]'"),
        (["sweep", "sweep.json", "-o", "x.parquet"], "pyarrow", "pip install 'fusevm[batch]'"),
        (["sweep", "sweep.json", "-o", "x.csv", "--dask", "tcp://x"], "distributed", "pip install 'fusevm[batch]'"),
        (["fuzz", "--peer", "pyrevm"], "pyrevm", "pip install 'fusevm[peers]'"),
        (["bench", "--tier", "pyrevm"], "pyrevm", "pip install 'fusevm[peers]'"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    fusevm: Command, place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], missing: str, said: str
) -> None:
    loaded = (missing, "fusevm.explorer.", "fusevm.node.", "fusevm.lab.peers.")
    for name in [each for each in sys.modules if each.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    ran = fusevm(*words)
    is_one_line(ran)
    assert said in ran.err


@pytest.mark.parametrize(
    "words",
    [[KEY], ["disasm", "0x00", KEY], ["cfg", "0x00", "--format", KEY], ["profile", KEY], ["run", f"{KEY}q"],
     ["run", "0x00", "--block", f"number={KEY}"], ["yul", "check", KEY], ["yul", "compile", "X.yul", "--library", KEY],
     ["yul", "compile", "X.yul", "--library", f"L={KEY}"], ["run", "two.json", "--contract", f"0x{KEY}"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_private_key_is_never_printed_back(fusevm: Command, place: Path, words: list[str]) -> None:
    is_one_line(fusevm(*words))


def test_lists_within_a_call_stay_json(fusevm: Command, place: Path) -> None:
    abi = [{"type": "function", "name": "g", "inputs": [{"type": "string[]", "name": "a"}, {"type": "uint256"}]}]
    runtime = {"object": "00", "sourceMap": "0:5:0"}
    built = {
        "abi": abi,
        "evm": {"bytecode": {"object": "60006000536001600060003960016000f3"}, "deployedBytecode": runtime},
    }
    form = {"contracts": {"a.sol": {"G": built}}, "sources": {"a.sol": {"id": 0}}}
    (place / "G.json").write_text(json.dumps(form))
    call = 'g ["a b", "c"] 5'
    done = fusevm("profile", "G.json", "--json", "-c", call)
    assert done.err == ""
    assert json.loads(done.out)["calls"][0]["call"] == call
