"""Gas by line and by function, from a recording that noted gas by pc."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fusevm.tracing.recording import Recording
from fusevm.tracing.sources.contracts import Known, Sources
from fusevm.tracing.sources.files import SourcePlace


class Spent(NamedTuple):
    """Gas that instructions made from one place of a source took themselves."""

    place: SourcePlace | None
    contract: str  # or the beginning of its code's hash, where it is not known
    gas: int


@dataclass(slots=True)
class GasTable:
    """What functions and lines took themselves, without what they called; all of it adds up to `total`."""

    total: int = 0
    functions: dict[str, int] = field(default_factory=dict)
    lines: dict[tuple[str, int], int] = field(default_factory=dict)  # by path and number
    texts: dict[tuple[str, int], str] = field(default_factory=dict)  # of these lines
    unmapped: dict[str, int] = field(default_factory=dict)  # by contract: what compilers add without a place


def gas_table(recording: Recording, sources: Sources) -> GasTable:
    table = GasTable()
    for place, contract, gas in _spent(recording, sources):
        table.total += gas
        function = None if place is None else place.function
        if place is None or function is None or place.start == function.start:
            name = f"{contract}: calls, arguments, returns"  # which compilers share between functions
        else:
            name = function.name
        table.functions[name] = table.functions.get(name, 0) + gas
        if place is None:
            table.unmapped[contract] = table.unmapped.get(contract, 0) + gas
            continue
        line = (place.file.path, place.line)
        table.lines[line] = table.lines.get(line, 0) + gas
        if line not in table.texts:
            table.texts[line] = place.file.line(place.line)
    return table


def _spent(recording: Recording, sources: Sources) -> Iterator[Spent]:
    for key, by_pc in recording.gas.items():
        known = sources.of_code(recording.codes[key])
        name = _name_of(key, known)
        for pc, gas in by_pc.items():
            yield Spent(None if known is None else known.map.places.get(pc), name, gas)


def _name_of(key: bytes, known: Known | None) -> str:
    return f"code 0x{key[:4].hex()}…" if known is None else known.contract.name
