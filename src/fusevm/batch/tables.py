"""Tables of results on disk, written part by part: CSV, JSON lines or Parquet, as the file's name says."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fusevm.values import BadValue

Columns = Mapping[str, Sequence[Any]]


class RowTable(ABC):
    """Rows that are added some at a time; a `with` block closes the file."""

    @abstractmethod
    def add(self, columns: Columns) -> None:
        """More rows: the same columns each time, of one length."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class CSV(RowTable):
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._named = False

    def add(self, columns: Columns) -> None:
        if not self._named:
            self._writer.writerow(columns)
            self._named = True
        self._writer.writerows(zip(*columns.values(), strict=True))

    def close(self) -> None:
        self._file.close()


class JSONLines(RowTable):
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def add(self, columns: Columns) -> None:
        names = list(columns)
        for row in zip(*columns.values(), strict=True):
            self._file.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")

    def close(self) -> None:
        self._file.close()


class Parquet(RowTable):
    """Numbers of up to 64 bits are numbers there; what is larger is decimal text, in all rows or in none."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise BadValue(f"{path}: needs pyarrow: pip install 'fusevm[batch]'; or write .csv or .jsonl") from error
        self._arrow = pyarrow
        self._path = path
        self._writer: Any = None
        self._schema: Any = None

    def add(self, columns: Columns) -> None:
        if self._writer is None:
            kinds = [(name, self._kind(values)) for name, values in columns.items()]
            self._schema = self._arrow.schema(kinds)
            self._writer = self._arrow.parquet.ParquetWriter(self._path, self._schema)
        text = self._arrow.string()
        arrays = [
            self._arrow.array(_as_text(values) if kind.type == text else values, kind.type)
            for kind, values in zip(self._schema, columns.values(), strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def _kind(self, values: Sequence[Any]) -> Any:
        """Of a column, by its first rows. Columns that may hold larger numbers later have text from the start."""
        if all(type(value) is int and 0 <= value < 1 << 63 for value in values):
            return self._arrow.int64()
        return self._arrow.string()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _as_text(values: Sequence[Any]) -> list[str | None]:
    return [value if value is None or type(value) is str else str(value) for value in values]


KINDS: dict[str, type[CSV] | type[JSONLines] | type[Parquet]] = {
    ".csv": CSV,
    ".jsonl": JSONLines,
    ".ndjson": JSONLines,
    ".parquet": Parquet,
}


def open_table(path: Path) -> RowTable:
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise BadValue(f"{path}: expected a name that ends in {', '.join(KINDS)}")
    try:
        return kind(path)
    except OSError as error:
        raise BadValue(f"cannot write {path}: {error.strerror}") from None
