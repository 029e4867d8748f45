"""Compiled contracts with their sources, and which of them a running code is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from fusevm.abi.interface import Abi
from fusevm.abi.records import Values
from fusevm.abi.types import BadAbi
from fusevm.tracing.sources.files import SourceFile
from fusevm.tracing.sources.maps import CodeMap

Range = tuple[int, int]  # start and length, in bytes
_PUSH20 = 0x73


@dataclass(slots=True)
class CompiledCode:
    """Code as the compiler wrote it; what deployment fills in (immutables, library addresses) is in `holes`."""

    code: bytes = b""
    map: CodeMap = field(default_factory=CodeMap)
    holes: tuple[Range, ...] = ()

    def is_prefix_of(self, code: bytes) -> bool:
        """Constructor arguments follow init code, and Vyper's immutables follow runtime code."""
        return bool(self.code) and len(code) >= len(self.code) and self._filled(code) == self._filled(self.code)

    def _filled(self, code: bytes) -> bytes:
        if not self.holes:
            return code[: len(self.code)]
        filled = bytearray(code[: len(self.code)])
        for start, length in self.holes:
            filled[start : start + length] = bytes(length)
        return bytes(filled)


@dataclass
class SourceContract:
    name: str
    file: SourceFile | None
    creation: CompiledCode
    runtime: CompiledCode
    interface: Any = ()  # the entries of its ABI

    @cached_property
    def abi(self) -> Abi:
        """Empty where the entries are not what an ABI has."""
        try:
            return Abi(self.interface)
        except BadAbi:
            return Abi()

    @cached_property
    def signatures(self) -> dict[bytes, str]:
        """Of functions and errors, by selector."""
        return {each.selector: each.signature for each in (*self.abi.functions, *self.abi.errors)}

    def __post_init__(self) -> None:
        code = self.runtime.code
        if code[:1] == bytes([_PUSH20]) and not any(code[1:21]):  # a library: its own address is written in
            self.runtime.holes += ((1, 20),)


class Known(NamedTuple):
    """A running code that was recognised."""

    contract: SourceContract
    map: CodeMap


class Sources:
    """All contracts whose sources are known. Codes are recognised by their bytes."""

    def __init__(self, contracts: Iterable[SourceContract] = ()) -> None:
        self.contracts = list(contracts)
        self._found: dict[bytes, Known | None] = {}

    def __iter__(self) -> Iterator[SourceContract]:
        return iter(self.contracts)

    def __len__(self) -> int:
        return len(self.contracts)

    def add(self, contracts: Iterable[SourceContract]) -> None:
        self.contracts += contracts
        self._found.clear()

    def of_code(self, code: bytes) -> Known | None:
        """Runtime code or init code; of several contracts that fit, the one with the longest code."""
        if code not in self._found:
            self._found[code] = self._search(code)
        return self._found[code]

    def _search(self, code: bytes) -> Known | None:
        best: tuple[int, Known] | None = None
        for contract in self.contracts:
            for compiled in (contract.runtime, contract.creation):
                longer = best is None or len(compiled.code) > best[0]
                if longer and compiled.is_prefix_of(code):
                    best = len(compiled.code), Known(contract, compiled.map)
        return None if best is None else best[1]

    @property
    def files(self) -> list[SourceFile]:
        """Those that some code was made from, by path."""
        found: dict[str, SourceFile] = {}
        for contract in self.contracts:
            for compiled in (contract.runtime, contract.creation):
                for place in compiled.map.places.values():
                    found.setdefault(place.file.path, place.file)
        return [found[path] for path in sorted(found)]

    def signature_of(self, selector: bytes) -> str | None:
        """Of a function or error of any of the contracts."""
        return next((each.signatures[selector] for each in self.contracts if selector in each.signatures), None)

    def error_in(self, output: bytes) -> Values | None:
        """The error that a revert's data is, if one of the contracts declares it."""
        found = (contract.abi.decode_error(output) for contract in self.contracts)
        return next((error for error in found if error is not None), None)
