"""Sequences of calls, changed at random, and made smaller: what a fuzzer tries next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from fusevm.chain.packed import Call
from fusevm.values import to_bytes

WORD = 32
SELECTOR = 4
_LARGEST = 2**256 - 1
EDGES = (0, 1, 2, 2**8 - 1, 2**64, 2**128 - 1, 2**128, 2**160 - 1, 2**255 - 1, 2**255, _LARGEST - 1, _LARGEST)

Calls = tuple[Call, ...]


class Mutator:
    """Makes new sequences of known ones. `words` are numbers worth trying: addresses, amounts that were seen."""

    def __init__(self, rng: Random, callers: Sequence[bytes], words: Sequence[int], longest: int) -> None:
        self._rng = rng
        self._callers = list(callers)
        self._words = [*EDGES, *words, *(int.from_bytes(caller, "big") for caller in callers)]
        self._longest = longest

    def mutated(self, calls: Calls, corpus: Sequence[Calls]) -> Calls:
        """One or a few changes, and often more calls after them: bugs of several steps need them, and a call costs
        less than what is done once per sequence."""
        rng = self._rng
        for _ in range(rng.choice((1, 1, 2, 4))):
            calls = self._changed(calls, rng.choice(corpus))
        if rng.randrange(2):
            count = rng.randrange(self._longest)
            calls = (*calls, *(self._other(rng.choice(rng.choice(corpus))) for _ in range(count)))
        return calls[: self._longest]

    def _other(self, call: Call) -> Call:
        """The same function, called with another word, and by another caller."""
        data = self._data(to_bytes(call.data))
        return replace(call, data=data, caller=self._rng.choice(self._callers) if self._callers else call.caller)

    def _changed(self, calls: Calls, other: Calls) -> Calls:
        rng, place = self._rng, self._rng.randrange(len(calls))
        kind = rng.randrange(8)
        if kind == 0:  # one more call, of another sequence
            return (*calls[:place], rng.choice(other), *calls[place:])
        if kind == 1:  # the beginning of this, the end of the other
            return calls[: place + 1] + other[rng.randrange(len(other)) :]
        if kind == 2 and len(calls) > 1:
            return calls[:place] + calls[place + 1 :]
        if kind == 3:
            return (*calls, calls[place])
        if kind == 4 and self._callers:
            return _with(calls, place, replace(calls[place], caller=rng.choice(self._callers)))
        return _with(calls, place, replace(calls[place], data=self._data(to_bytes(calls[place].data))))

    def _data(self, data: bytes) -> bytes:
        """Another word, one that is near, or a bit."""
        rng, count = self._rng, (len(data) - SELECTOR) // WORD
        if count < 1:
            return data
        start = SELECTOR + WORD * rng.randrange(count)
        old = int.from_bytes(data[start : start + WORD], "big")
        kind = rng.randrange(5)
        if kind == 0:
            new = rng.choice(self._words)
        elif kind == 1:
            new = old + rng.choice((-1, 1, rng.randrange(-256, 256)))
        elif kind == 2:
            new = old ^ 1 << rng.randrange(256)
        elif kind == 3:
            new = rng.getrandbits(rng.choice((8, 32, 64, 128, 256)))
        else:
            new = rng.choice((old * 2, old // 2, _LARGEST - old))
        return data[:start] + (new & _LARGEST).to_bytes(WORD, "big") + data[start + WORD :]


def smaller(calls: Calls) -> Iterator[Calls]:
    """Simpler sequences: with a call less, then with a word that is zero, half of what it was, or less by a power of
    two, the largest first: the smallest that will do is found in few steps."""
    if len(calls) > 1:
        for place in range(len(calls)):
            yield calls[:place] + calls[place + 1 :]
    for place, call in enumerate(calls):
        data = to_bytes(call.data)
        for start in range(SELECTOR, len(data) - WORD + 1, WORD):
            old = int.from_bytes(data[start : start + WORD], "big")
            less = (old - (1 << bit) for bit in range(old.bit_length() - 1, -1, -1))
            for new in dict.fromkeys((0, 1, old >> 128, old >> 8, old // 2, *less)):
                if 0 <= new < old:
                    changed = data[:start] + new.to_bytes(WORD, "big") + data[start + WORD :]
                    yield _with(calls, place, replace(call, data=changed))


def _with(calls: Calls, place: int, call: Call) -> Calls:
    return (*calls[:place], call, *calls[place + 1 :])
