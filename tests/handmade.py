"""A contract whose code and source map are written by hand, in the forms in which build tools write artifacts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fusevm.evm.assembly import assemble
from fusevm.evm.source_map import Mapped, compressed
from fusevm.tracing.sources.artifacts import read_sources
from fusevm.tracing.sources.contracts import Sources

Json = dict[str, Any]

SOURCE = """contract Safe {
    function open() public { // {
        close();
    }
    function close() internal {
        if (full) revert();
    }
}
"""

# open: close(); stop.  close: if the call has data, revert.
PROGRAM = (
    "PUSH2 @back PUSH2 @close JUMP back: JUMPDEST STOP "
    "close: JUMPDEST CALLDATASIZE PUSH2 @full JUMPI JUMP full: JUMPDEST PUSH0 PUSH0 REVERT"
)
RUNTIME = assemble(PROGRAM)
INIT = assemble(f"PUSH2 {len(RUNTIME)} DUP1 PUSH2 @code PUSH0 CODECOPY PUSH0 RETURN code:") + RUNTIME
ABI: list[Json] = [{"type": "function", "name": "open", "inputs": [], "outputs": [], "stateMutability": "view"}]


def _place(text: str, jump: str = "-") -> Mapped:
    return Mapped(SOURCE.index(text), len(text), 0, jump)


_CALL, _IF = "close();\n"[:-2], "if (full) revert()"
_CLOSE = SOURCE[SOURCE.index("function close") : SOURCE.rindex("}\n}") + 1]
_OPEN = SOURCE[SOURCE.index("function open") : SOURCE.index("    function close") - 1]
MAP = compressed(
    [
        _place(_CALL),
        _place(_CALL),
        _place(_CALL, "i"),
        _place(_CALL),
        _place(_OPEN),
        _place(_CLOSE),
        _place(_IF),
        _place(_IF),
        _place(_IF),
        _place(_CLOSE, "o"),
        _place("revert()"),
        _place("revert()"),
        _place("revert()"),
        _place("revert()"),
    ]
)
INIT_MAP = compressed([Mapped(0, len(SOURCE), 0)] * 7)


def _codes() -> tuple[Json, Json]:
    return (
        {"object": "0x" + INIT.hex(), "sourceMap": INIT_MAP},
        {"object": "0x" + RUNTIME.hex(), "sourceMap": MAP},
    )


def standard_json(folder: Path) -> Path:
    """solc's output; the source is beside it."""
    (folder / "Safe.sol").write_text(SOURCE)
    return _written(folder / "out.json", _output())


def _output() -> Json:
    creation, runtime = _codes()
    contract = {"abi": ABI, "evm": {"bytecode": creation, "deployedBytecode": runtime}}
    return {"sources": {"Safe.sol": {"id": 0}}, "contracts": {"Safe.sol": {"Safe": contract}}}


def build_info(folder: Path) -> Path:
    form = {"input": {"sources": {"Safe.sol": {"content": SOURCE}}}, "output": _output()}
    return _written(folder / "build-info" / "b1.json", form)


def hardhat_2(folder: Path) -> Path:
    build_info(folder)
    place = folder / "Safe.sol"
    _written(place / "Safe.dbg.json", {"_format": "hh-sol-dbg-1", "buildInfo": "../build-info/b1.json"})
    return _written(place / "Safe.json", _hardhat("hh-sol-artifact-1"))


def hardhat_3(folder: Path) -> Path:
    _written(
        folder / "build-info" / "b3.json", {"id": "b3", "input": {"sources": {"project/Safe.sol": {"content": SOURCE}}}}
    )
    output = _output()
    output = {
        "sources": {"project/Safe.sol": output["sources"]["Safe.sol"]},
        "contracts": {"project/Safe.sol": output["contracts"]["Safe.sol"]},
    }
    _written(folder / "build-info" / "b3.output.json", {"id": "b3", "output": output})
    return _written(folder / "Safe.sol" / "Safe.json", {**_hardhat("hh3-artifact-1"), "buildInfoId": "b3"})


def _hardhat(form: str) -> Json:
    codes = {"bytecode": "0x" + INIT.hex(), "deployedBytecode": "0x" + RUNTIME.hex()}
    return {"_format": form, "contractName": "Safe", "sourceName": "Safe.sol", "abi": ABI, **codes}


def foundry(folder: Path) -> Path:
    """With a build info that numbers the sources, as newer versions write it."""
    (folder / "src").mkdir()
    (folder / "src" / "Safe.sol").write_text(SOURCE)
    _written(folder / "out" / "build-info" / "f.json", {"source_id_to_path": {"0": "src/Safe.sol"}})
    return _written(folder / "out" / "Safe.sol" / "Safe.json", _foundry())


def foundry_alone(folder: Path) -> Path:
    """Without a build info: the metadata says the path."""
    (folder / "src").mkdir()
    (folder / "src" / "Safe.sol").write_text(SOURCE)
    metadata = {"settings": {"compilationTarget": {"src/Safe.sol": "Safe"}}}
    return _written(folder / "out" / "Safe.sol" / "Safe.json", {**_foundry(), "metadata": metadata})


def _foundry() -> Json:
    creation, runtime = _codes()
    return {"abi": ABI, "bytecode": creation, "deployedBytecode": runtime, "id": 0}


def combined_json(folder: Path) -> Path:
    (folder / "Safe.sol").write_text(SOURCE)
    codes = {"bin": INIT.hex(), "bin-runtime": RUNTIME.hex(), "srcmap": INIT_MAP, "srcmap-runtime": MAP}
    contract = {"abi": ABI, **codes}
    return _written(folder / "combined.json", {"contracts": {"Safe.sol:Safe": contract}, "sourceList": ["Safe.sol"]})


FORMS = (standard_json, build_info, hardhat_2, hardhat_3, foundry, foundry_alone, combined_json)


def _written(path: Path, form: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(form))
    return path


def sources(folder: Path) -> Sources:
    return read_sources([standard_json(folder)])
