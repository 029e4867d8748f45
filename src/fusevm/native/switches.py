"""Features that can be switched off to measure their effect: `FUSEVM_WITHOUT=kept,direct`. Results are the same."""

from __future__ import annotations

import os

SWITCHES = {
    "direct": "one straight path for a message call without value, hooks and time limit",
    "kept": "native tables of slots and accounts kept between calls",
    "keccak": "the cache of Keccak-256 of short inputs",
    "regions": "hot code compiled as native functions",
    "narrowing": "words of regions in one machine word where that is proved to be enough",
}


def is_on(name: str) -> bool:
    """Asked when an engine or a region is made."""
    if name not in SWITCHES:
        raise KeyError(name)
    return name not in os.environ.get("FUSEVM_WITHOUT", "").split(",")
