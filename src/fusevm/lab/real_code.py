"""Code of real contracts, to choose fusions by and to count in: the corpus, and files of hex from other packages.

Init code and runtime code are separate, since the runtime code that init code carries is data there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fusevm.api import EVM
from fusevm.chain.environment import Block
from fusevm.codegen.yul import compile_object
from fusevm.lab.contracts import contracts
from fusevm.reference.hooks import Hooks, Step
from fusevm.yul.syntax.parser import parse_object

FOLDERS = ("corpus", "corpus_new")
MARK = 32  # bytes of runtime code by which it is found in the code that creates it


class RealCode(NamedTuple):
    source: str  # all code of one source weighs the same
    code: bytes
    runs: Mapping[int, int] | None = None  # how often each pc ran, where calls are known


def corpus_code(fixtures: Path, *, watched: bool = False) -> Iterator[RealCode]:
    """What solc made of the corpus; where it is watched, with how often each instruction runs in its calls."""
    for name, facts in _corpus(fixtures):
        for build, made in facts["solc"].items():
            creation = bytes.fromhex(made["creation"].removeprefix("0x"))
            yield from _deployed(f"{name} {build}", creation, facts, watched=watched)


def own_code(fixtures: Path) -> Iterator[RealCode]:
    """What our own compiler makes of the corpus."""
    for folder in FOLDERS:
        for path in sorted((fixtures / folder).glob("*.opt.yul")):
            made = compile_object(parse_object(path.read_text()))
            runtime = b"" if made.runtime is None else made.runtime.code
            yield RealCode("own code", _init_part(made.code, runtime))
            yield RealCode("own code", runtime)


def hex_code(folder: Path) -> Iterator[RealCode]:
    """Of files `*.hex`, a source each, with one code per line."""
    for path in sorted(folder.glob("*.hex")):
        for line in path.read_text("ascii").split():
            yield RealCode(path.stem, bytes.fromhex(line.removeprefix("0x")))


def unmeasured(codes: Iterable[RealCode], bench: Path) -> Iterator[RealCode]:
    """Without the code that files of the bench hold too: fusions are not chosen on what they are measured on."""
    measured = "\n".join(path.read_text("utf-8").lower() for path in sorted(bench.glob("*.json")))
    for each in codes:
        if len(each.code) < MARK or each.code.hex() not in measured:
            yield each


def _corpus(fixtures: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in FOLDERS:
        yield from contracts(fixtures / folder)


def _deployed(source: str, creation: bytes, facts: Mapping[str, Any], *, watched: bool) -> Iterator[RealCode]:
    block = Block(number=facts.get("number", 0), timestamp=facts.get("timestamp", 0))
    evm = EVM(fork=facts.get("fork", "cancun"), tier="reference", block=block)
    for account in facts.get("fund", ()):
        evm.set_balance(account, 10**24)
    deployed = evm.deploy(creation, caller=facts["deployer"], value=facts.get("deploy_value", 0))
    assert deployed.address is not None, source
    runtime = evm.get_code(deployed.address)
    runs: Counter[int] = Counter()

    def on_opcode(step: Step) -> None:
        if step.address == deployed.address:
            runs[step.pc] += 1

    if watched:
        evm.hooks = Hooks(on_opcode=on_opcode)
        for call in facts["calls"]:
            evm.call(deployed.address, call["data"], caller=call["caller"], value=call.get("value", 0))
    yield RealCode(source, _init_part(creation, runtime))
    yield RealCode(source, runtime, runs if watched else None)


def _init_part(creation: bytes, runtime: bytes) -> bytes:
    at = creation.find(runtime[:MARK]) if runtime else -1
    return creation[:at] if at >= 0 else creation
