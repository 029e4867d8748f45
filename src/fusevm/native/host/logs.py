"""Logs as native code wrote them, decoded lazily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from fusevm.chain.addresses import Address
from fusevm.chain.state import Log
from fusevm.native.host.views import packed_whole
from fusevm.native.layout import WORD, LogHeader

_HEADER = packed_whole(LogHeader, "address topics size")


class NativeLogs(Sequence[Log]):
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._decoded: list[Log] | None = None

    @property
    def _logs(self) -> list[Log]:
        if self._decoded is None:
            self._decoded = list(_decode(self._raw))
        return self._decoded

    @overload
    def __getitem__(self, index: int) -> Log: ...
    @overload
    def __getitem__(self, index: slice) -> list[Log]: ...
    def __getitem__(self, index: int | slice) -> Log | list[Log]:
        return self._logs[index]

    def __bool__(self) -> bool:
        return bool(self._raw)

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[Log]:
        return iter(self._logs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._logs == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._logs)


def _decode(raw: bytes) -> Iterator[Log]:
    at = 0
    while at < len(raw):
        address = raw[at : at + WORD][19::-1]
        _, count, size = _HEADER.unpack_from(raw, at)
        at += _HEADER.size
        topics = tuple(int.from_bytes(raw[at + i * WORD : at + (i + 1) * WORD], "little") for i in range(count))
        at += count * WORD
        yield Log(Address(address), topics, raw[at : at + size])
        at += (size + 7) & ~7
