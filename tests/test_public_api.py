"""What users import: it is there, it is quick to import, and every name says what it is by an example that runs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import fusevm
from fusevm import abi, ir, rules, yul
from fusevm.abi.contract import Contract, Method

ROOMS = {"fusevm": fusevm, "fusevm.abi": abi, "fusevm.ir": ir, "fusevm.rules": rules, "fusevm.yul": yul}
NOT_CALLED = {"__version__", "DEFAULT_CALLER", "FAMILIES", "RULES", "ArtifactLike"}  # numbers, tables and types


def public_names() -> list[tuple[str, Any]]:
    return [
        (f"{place}.{name}", getattr(room, name))
        for place, room in ROOMS.items()
        for name in room.__all__
        if name not in NOT_CALLED
    ]


@pytest.mark.parametrize(("name", "thing"), public_names(), ids=lambda each: each if isinstance(each, str) else "")
def test_every_public_name_has_a_docstring_with_an_example(name: str, thing: Any) -> None:
    """That the examples run, tests/test_docs.py shows."""
    own = thing.__dict__.get("__doc__") if isinstance(thing, type) else thing.__doc__
    assert own, f"{name} has no docstring"
    assert re.search(r"^\s*>>> ", own, re.MULTILINE), f"{name} has no example"


@pytest.mark.parametrize(
    "kind", [fusevm.EVM, fusevm.Explanation, fusevm.Result, fusevm.Block, Contract, Method, abi.Abi, abi.Artifact]
)
def test_every_public_method_has_a_docstring(kind: type) -> None:
    members = inspect.getmembers(kind, lambda each: callable(each) or isinstance(each, property))
    without = [name for name, member in members if not name.startswith("_") and not inspect.getdoc(member)]
    assert without == []


def test_every_name_that_is_promised_is_there_and_is_the_one_that_is_typed() -> None:
    for place, room in ROOMS.items():
        for name in room.__all__:
            assert hasattr(room, name), f"{place}.{name}"
        with pytest.raises(AttributeError, match=f"module '{place}' has no attribute 'nosuch'"):
            _ = room.nosuch
    assert set(fusevm.__all__) <= set(dir(fusevm))
    assert {*fusevm._PLACES, *fusevm._ROOMS, "__version__"} == set(fusevm.__all__)


def test_a_star_import_gives_the_names() -> None:
    names: dict[str, object] = {}
    exec("from fusevm import *", names)
    assert isinstance(names["EVM"], type)
    assert isinstance(names["yul"], ModuleType)


def loaded_by(statement: str) -> set[str]:
    """Modules that a fresh interpreter has after the statement."""
    code = f"import sys; {statement}; print(chr(10).join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = loaded_by("import fusevm")
    assert {name for name in loaded if name.startswith("fusevm.")} == {"fusevm.version"}


def test_importing_the_machine_imports_neither_llvm_nor_eth_abi_nor_the_compiler() -> None:
    loaded = loaded_by("from fusevm import EVM")
    assert not loaded & {
        "llvmlite",
        "eth_abi",
        "rich",
        "typer",
        "fusevm.yul",
        "fusevm.codegen",
        "fusevm.abi",
        "fusevm.blockchain",
    }


def test_the_version_is_told_without_loading_the_command_line() -> None:
    code = """
import sys
sys.argv[1:] = ["--version"]
from fusevm.cli.start import main
main()
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, modules = done.stdout.split("\n", 1)
    assert version == f"fusevm {fusevm.__version__}"
    assert not set(modules.split()) & {"typer", "rich", "llvmlite", "fusevm.api"}


# -- the functions ----------------------------------------------------------------------------------------------------


def test_bytecode_goes_to_text_and_back() -> None:
    code = fusevm.assemble("PUSH1 1 PUSH0 SSTORE STOP")
    assert fusevm.assemble(fusevm.disassemble(code)) == code
    assert "PUSH0" in fusevm.disassemble(code)
    assert "PUSH0" not in fusevm.disassemble(code, "paris")


def test_a_flow_graph_is_text_a_picture_and_data() -> None:
    graph = fusevm.cfg("0x5b600056")
    assert "loop 0x0000" in str(graph)
    assert graph._repr_svg_() == graph.svg()
    assert graph.as_data()["loops"]


def test_yul_is_compiled_as_the_machine_needs_it() -> None:
    source = "{ mstore(0, add(calldataload(0), 1)) return(0, 32) }"
    compiled, evm = yul.compile(source), fusevm.EVM()
    evm.set_code(b"\xc0" * 20, compiled.code)
    data = (41).to_bytes(32, "big")
    assert evm.call(b"\xc0" * 20, data).output == yul.run(source, data).output == (42).to_bytes(32, "big")


def test_a_mistake_in_yul_is_raised_with_its_place() -> None:
    for function in (yul.parse, yul.optimize, yul.compile, yul.run):
        with pytest.raises(yul.YulError) as caught:
            function("{\n  sstore(0, nosuch)\n}")
        assert (caught.value.line, caught.value.column) == (2, 13)


def test_libraries_of_yul_are_given_by_address() -> None:
    source = '{ sstore(0, linkersymbol("a.sol:L")) }'
    assert "11" * 20 in yul.compile(source, libraries={"a.sol:L": "0x" + "11" * 20}).code.hex()


@pytest.mark.parametrize(
    "function",
    [fusevm.disassemble, fusevm.cfg, fusevm.optimize, fusevm.fusions_in, fusevm.loops_in, ir.lifted, ir.folded],
)
def test_code_that_is_not_hex_and_forks_that_are_not_known_are_refused(function: Any) -> None:
    with pytest.raises(fusevm.BadValue, match="code: 'z' at position 0 is not a hex digit"):
        function("0xzz")
    with pytest.raises(fusevm.UnknownFork):
        function("0x00", "moon")


def test_the_ir_is_written_and_read_back() -> None:
    assert [block.start for block in ir.read(ir.written(ir.lifted("0x600160020160005500")))] == [0]


def test_the_functions_of_the_ir_are_folded_in_both_modes() -> None:
    code = "0x5f35600301600201600055600054600155"
    exact, cheaper = ir.folded(code), ir.folded(code, optimise=True)
    assert [stats.rules["add-constant-to-sum"] + stats.folded > 0 for _, stats in (exact, cheaper)] == [True, True]
    assert "gas" in ir.written(exact[0])
    assert "gas" not in ir.written(cheaper[0])
