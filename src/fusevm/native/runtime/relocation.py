"""Schedules from disk, made to work where they are loaded. In the subset of `lang`."""

from __future__ import annotations

from fusevm.native.lang import exported, load, ptr, store, u8, u64
from fusevm.schedule.build import HANDLER


@exported
def relocate(words: ptr, kinds: ptr, count: u64, handlers: ptr, base: u64) -> None:
    """Handler numbers become addresses, entries become offsets from the schedule's base."""
    number: u64 = 0
    while number < count:
        kind = load(u8, kinds, number)
        if kind != 0:
            word = load(u64, words, number * 8)
            if kind == HANDLER:
                store(words, number * 8, load(u64, handlers, word * 8))
            else:
                store(words, number * 8, base + word * 8)
        number += 1
