"""Object code that a wheel carries, by level of processor (`make wheel`): the first call does not wait for LLVM.

Where there is none for the processor, or the sources are another version, handlers are built as ever.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from fusevm.native import processor

FOLDER = Path(__file__).parent / "ready"
TRIPLE = "x86_64-unknown-linux-gnu"
V3 = ("avx2", "bmi", "bmi2", "cx16", "fma", "lzcnt", "movbe", "popcnt")  # of x86-64-v3, what tells
# By level: what a processor must have. The best first; vaes came to processors together with a fast divider.
LEVELS = {"x86-64-v3-vaes": (*V3, "vaes"), "x86-64-v3": V3}


def level_of_host() -> str | None:
    features = set(processor.host()[1].split(","))
    for level, needed in LEVELS.items():
        if processor.triple() == TRIPLE and all(f"+{each}" in features for each in needed):
            return level
    return None


def ready_made(sources: str) -> bytes | None:
    """Object code for this processor from these sources, if it was delivered with them."""
    import lzma

    level = level_of_host()
    try:
        packed = (FOLDER / f"{sources}-{level}.xz").read_bytes()
        content = lzma.decompress(packed[32:])
    except (OSError, lzma.LZMAError):
        return None
    return content if packed[:32] == hashlib.sha256(content).digest() else None
