"""What a sweep is, read from JSON or CSV: a machine, a call with parameters, and the rows of their values.

`$name` stands for a parameter's value, in any field of the call. Rows are every combination of a `grid`, a list of
`rows`, or the lines of a CSV file. A CSV file alone is calls line by line: its columns are the fields.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from fusevm import EVM, Call
from fusevm.abi import Function
from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.cli.abi import arguments_from
from fusevm.cli.execution import CallOptions, prepare
from fusevm.cli.inputs import BadInput, parse_json, read_file

FIELDS = (
    "code",
    "fork",
    "tier",
    "to",
    "caller",
    "gas",
    "value",
    "data",
    "sig",
    "args",
    "storage",
    "block",
    "grid",
    "rows",
)
IN_CSV = ("to", "data", "caller", "value", "gas")  # columns of a CSV file of calls
_STATIC = ("uint", "int", "address", "bool", "bytes")
MAX_VALUES = 1 << 24  # of one parameter

Row = Mapping[str, Any]


class Sweep:
    """A machine, and calls of it made from rows."""

    def __init__(self, document: Mapping[str, Any], source: str, folder: Path, tier: str | None) -> None:
        for name in document:
            if name not in FIELDS:
                raise BadInput(f"{source}: {name!r} is not a field of a sweep; known: {', '.join(FIELDS)}")
        if "code" not in document:
            raise BadInput(f"{source}: no 'code'; give hex, or the name of a file of code or of a .json state file")
        self._source = source
        self._folder = folder
        self._template = {name: document.get(name) for name in ("data", "value", "storage", "block", "caller", "gas")}
        self._args = list(document.get("args", []))
        to = document.get("to")
        if isinstance(to, str) and to.startswith("$"):
            self._template["to"] = to
            to = "0x" + ZERO_ADDRESS.hex() if str(document["code"]).endswith(".json") else None  # whoever it is
        self._grid = {
            name: _values(given, f"{source}: grid {name}") for name, given in document.get("grid", {}).items()
        }
        self._rows = document.get("rows")
        if (self._rows is None) == (not self._grid):
            raise BadInput(f"{source}: give 'grid' (parameters and all their values) or 'rows' (a list, or a CSV file)")
        sig = document.get("sig")
        if sig is not None and document.get("data") is not None:
            raise BadInput(f"{source}: give 'data' or 'sig', not both")
        self.function = None if sig is None else Function.parse(sig)
        prepared = prepare(  # with calldata, so that an artifact is deployed
            CallOptions(
                self._code(str(document["code"])), data="0x", to=to, fork=document.get("fork"),
                tier=tier or document.get("tier", "auto"),
            )
        )  # fmt: skip
        assert prepared.to is not None
        self.evm: EVM = prepared.evm
        self.to: bytes = prepared.to
        self._encode = None if self.function is None else _encoder(self.function)

    def _code(self, text: str) -> str:
        """A file is looked for beside the spec."""
        beside = self._folder / text
        return str(beside) if _is_file(beside) else text

    @property
    def count(self) -> int | None:
        """How many rows there are, if that is known before they are read."""
        if isinstance(self._rows, list):
            return len(self._rows)
        return None if self._rows is not None else math.prod(map(len, self._grid.values()))

    def is_small(self, name: str) -> bool:
        """Whether a parameter is a number of 64 bits in every row, and that is known before they are read."""
        values = [row.get(name) for row in self._rows] if isinstance(self._rows, list) else self._grid.get(name, [None])
        return all(type(value) is int and 0 <= value < 1 << 63 for value in values)

    def rows(self) -> Iterator[Row]:
        if self._rows is None:
            names = list(self._grid)
            for values in product(*self._grid.values()):
                yield dict(zip(names, values, strict=True))
        elif isinstance(self._rows, list):
            for number, row in enumerate(self._rows):
                if not isinstance(row, dict):
                    raise BadInput(f"{self._source}: row {number} is not an object")
                yield row
        else:
            yield from _csv_rows(self._folder / str(self._rows))

    def call(self, number: int, row: Row) -> Call:
        """The call that a row makes."""
        try:
            fill = _Filler(row)
            given = {name: fill(value) for name, value in self._template.items() if value is not None}
            if self._encode is not None:
                given["data"] = self._encode(tuple(fill.text(each) for each in self._args))
            for name in ("value", "gas"):
                if name in given:
                    given[name] = _number(given[name], name)
            if "storage" in given:
                given["storage"] = {
                    address: {_number(key, "key"): _number(value, "slot") for key, value in slots.items()}
                    for address, slots in given["storage"].items()
                }
            if "block" in given:
                given["block"] = {
                    name: value if name == "coinbase" else _number(value, name)
                    for name, value in given["block"].items()
                }
            return Call(**given)
        except (BadInput, AttributeError, TypeError) as error:
            raise BadInput(f"{self._source}: row {number}: {error}") from None


class _Filler:
    """Puts a row's values in the places of their names."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            return self._value(value[1:])
        if isinstance(value, dict):
            return {self(key): self(each) for key, each in value.items()}
        return value

    def text(self, value: Any) -> str:
        found = self(value)
        return str(found).lower() if isinstance(found, bool) else str(found)

    def _value(self, name: str) -> Any:
        if name not in self._row:
            raise BadInput(f"no value for ${name}; it has {', '.join(self._row) or 'none'}")
        return self._row[name]


def read_sweep(name: str, code: str | None = None, tier: str | None = None, fork: str | None = None) -> Sweep:
    """A sweep by the name of its file; `code`, `tier` and `fork` are in the place of what the file says of them."""
    path = Path(name)
    if path.suffix.lower() == ".csv":
        if code is None:
            raise BadInput(f"{name}: a CSV file has calls alone; give --code, or a .json file that names both")
        columns = {field: f"${field}" for field in next(iter(_csv_rows(path)), {}) if field in IN_CSV}
        document = {"code": str(Path(code).resolve()) if _is_file(Path(code)) else code, "rows": path.name, **columns}
        if fork is not None:
            document["fork"] = fork
        return Sweep(document, name, path.parent, tier)
    document = parse_json(read_file(name), name)
    if not isinstance(document, dict):
        raise BadInput(f"{name}: expected an object with 'code' and 'grid' or 'rows'")
    given = {field: value for field, value in (("code", code), ("fork", fork)) if value is not None}
    for field, kind in (("storage", dict), ("block", dict), ("grid", dict), ("args", list)):
        if not isinstance(document.get(field, kind()), kind):
            raise BadInput(f"{name}: {field!r} is not {'an object' if kind is dict else 'a list'}")
    return Sweep({**document, **given}, name, path.parent, tier)


def _is_file(path: Path) -> bool:
    """Whether there is such a file; hex text is too long to be the name of one."""
    try:
        return path.is_file()
    except OSError:
        return False


def _encoder(function: Function) -> Callable[[tuple[str, ...]], bytes]:
    """Calldata from arguments: word by word, and each once, where all of them are single words."""
    kinds = [each.type.name for each in function.inputs]
    what = function.signature

    def encode_all(arguments: tuple[str, ...]) -> bytes:
        return function.encode(*arguments_from(arguments, function.inputs, what))

    if not all(kind.rstrip("0123456789") in _STATIC and kind != "bytes" for kind in kinds):
        return encode_all
    single = [Function.parse(f"f({kind})") for kind in kinds]

    @lru_cache(1 << 16)
    def word(place: int, argument: str) -> bytes:
        one = single[place]
        return one.encode(*arguments_from([argument], one.inputs, what))[4:]

    def encode(arguments: tuple[str, ...]) -> bytes:
        if len(arguments) != len(single):
            return encode_all(arguments)  # says what is wrong
        return function.selector + b"".join(map(word, range(len(single)), arguments))

    return encode


def _values(given: Any, what: str) -> list[Any]:
    """All values of a parameter: a list, or numbers from one to another, in steps or so many of them."""
    if isinstance(given, list) and given:
        return given
    if not isinstance(given, dict) or not {"from", "to"} <= given.keys() or not given.keys() <= _RANGE:
        raise BadInput(f'{what}: expected a list, or "from" and "to" with "step" or "count" (and "scale": "log")')
    first, last = _number(given["from"], f"{what}: from"), _number(given["to"], f"{what}: to")
    if "count" in given:
        return list(_spread(first, last, _number(given["count"], f"{what}: count"), str(given.get("scale")), what))
    step = _number(given.get("step", 1), f"{what}: step")
    if step < 1 or last < first or (last - first) // step >= MAX_VALUES:
        raise BadInput(f"{what}: from {first} to {last} by {step} is not a list of at most {MAX_VALUES:,} numbers")
    return list(range(first, last + 1, step))


_RANGE = {"from", "to", "step", "count", "scale"}


def _spread(first: int, last: int, count: int, scale: str, what: str) -> Iterable[int]:
    if count < 2 or last < first or count > MAX_VALUES:
        raise BadInput(f"{what}: count: expected from 2 to {MAX_VALUES:,} numbers, from a smaller to a larger one")
    if scale == "log":
        if first < 1:
            raise BadInput(f"{what}: a logarithmic scale begins at 1 or more")
        ratio = math.log(last) - math.log(first)
        return dict.fromkeys(round(first * math.exp(ratio * place / (count - 1))) for place in range(count))
    return dict.fromkeys(first + (last - first) * place // (count - 1) for place in range(count))


def _number(value: Any, what: str) -> int:
    try:
        return int(value, 0) if isinstance(value, str) else int(value)
    except (ValueError, TypeError):
        raise BadInput(f"{what}: {value!r} is not a number") from None


def _csv_rows(path: Path) -> Iterator[Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            for row in reader:
                if None in row or None in row.values():
                    raise BadInput(f"{path}: line {reader.line_num}: expected {len(reader.fieldnames or ())} columns")
                yield row
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
