"""Picking from a table by weight, quickly and always the same for the same generator of random numbers."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Weighted(Generic[T]):
    __slots__ = ("_sums", "_total", "choices")

    def __init__(self, table: Sequence[tuple[float, T]]) -> None:
        self.choices = [choice for _, choice in table]
        self._sums = list(accumulate(weight for weight, _ in table))
        self._total = self._sums[-1]

    def pick(self, rng: Random) -> T:
        return self.choices[bisect(self._sums, rng.random() * self._total)]
