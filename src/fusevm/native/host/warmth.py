"""Warm addresses while native code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSet


class NativeWarmth(MutableSet[bytes]):
    """What the reference tier's instructions see as the set of warm addresses: kept, and undone, natively."""

    def __init__(self, is_warm: Callable[[bytes], bool], warm: Callable[[bytes], None]) -> None:
        self._is_warm = is_warm
        self._warm = warm

    def __contains__(self, address: object) -> bool:
        return isinstance(address, bytes) and self._is_warm(address)

    def add(self, value: bytes) -> None:
        self._warm(value)

    def discard(self, value: bytes) -> None:
        """Undoing is the native journal's business, which is reverted with the same frames."""

    def __iter__(self) -> Iterator[bytes]:
        raise TypeError("warm addresses cannot be listed while native code runs")

    def __len__(self) -> int:
        raise TypeError("warm addresses cannot be counted while native code runs")
