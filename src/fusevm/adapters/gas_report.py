"""How much gas the functions of contracts used over many calls, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fusevm.evm.keccak import keccak256

Row = dict[str, Any]
DEPLOYMENT = "deployment"


@dataclass
class Usage:
    """Of one function."""

    calls: int = 0
    failures: int = 0
    total: int = 0
    least: int = 0
    most: int = 0

    def add(self, gas: int, ok: bool) -> None:
        self.least = gas if self.calls == 0 else min(self.least, gas)
        self.most = max(self.most, gas)
        self.calls += 1
        self.failures += not ok
        self.total += gas


@dataclass
class GasReport:
    """Calls by contract and function; contracts and functions have names if these are known."""

    usages: dict[tuple[str, str], Usage] = field(default_factory=dict)
    contracts: dict[bytes, str] = field(default_factory=dict)
    functions: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def name(self, address: bytes, name: str, abi: Iterable[Mapping[str, Any]] = ()) -> None:
        """What a contract is called, and its functions, from its ABI."""
        self.contracts[address] = name
        for entry in abi:
            if entry.get("type") == "function":
                signature = f"{entry['name']}({','.join(_type(each) for each in entry.get('inputs', ()))})"
                self.functions[name, keccak256(signature.encode())[:4]] = signature

    def add(self, to: bytes | None, data: bytes, gas: int, ok: bool) -> None:
        contract = DEPLOYMENT if to is None else self.contracts.get(to, "0x" + to.hex())
        selector = data[:4]
        if to is None:
            function = "init code of " + str(len(data)) + " bytes"
        elif len(selector) == 4:
            function = self.functions.get((contract, selector), "0x" + selector.hex())
        else:
            function = "(no data)" if not data else "0x" + data.hex()
        self.usages.setdefault((contract, function), Usage()).add(gas, ok)

    def rows(self) -> list[Row]:
        return [
            {
                "contract": contract,
                "function": function,
                "calls": usage.calls,
                "failures": usage.failures,
                "least": usage.least,
                "mean": usage.total // usage.calls,
                "most": usage.most,
            }
            for (contract, function), usage in sorted(self.usages.items())
        ]

    def merge(self, rows: Iterable[Row]) -> None:
        """Adds what another process has counted."""
        for row in rows:
            key = row["contract"], row["function"]
            known = self.usages.get(key)
            total = row["mean"] * row["calls"]
            if known is None:
                self.usages[key] = Usage(row["calls"], row["failures"], total, row["least"], row["most"])
                continue
            known.calls += row["calls"]
            known.failures += row["failures"]
            known.total += total
            known.least, known.most = min(known.least, row["least"]), max(known.most, row["most"])


def table(rows: list[Row]) -> list[str]:
    """Lines of text, columns aligned."""
    heads = ["contract", "function", "calls", "failures", "least", "mean", "most"]
    cells = [
        heads,
        *([f"{row[head]:,}" if isinstance(row[head], int) else row[head] for head in heads] for row in rows),
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _type(entry: Mapping[str, Any]) -> str:
    """An ABI type as signatures have it: tuples by their parts."""
    kind = str(entry["type"])
    if not kind.startswith("tuple"):
        return kind
    parts = ",".join(_type(each) for each in entry.get("components", ()))
    return f"({parts}){kind.removeprefix('tuple')}"
