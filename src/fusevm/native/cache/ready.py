"""Handlers made beforehand, as a wheel carries them (`make wheel`): nobody waits for LLVM at the first call.

`python -m fusevm.native.cache.ready LEVEL…` makes them, for levels of processors rather than for one. Where
there is none for the processor, or the sources are another version, handlers are built as ever.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from fusevm.native.emit import jit

FOLDER = Path(__file__).parent / "ready"
TRIPLE = "x86_64-unknown-linux-gnu"
V3 = ("avx2", "bmi", "bmi2", "cx16", "fma", "lzcnt", "movbe", "popcnt")  # of x86-64-v3, what tells
# By level: what a processor must have. The best first; vaes came to processors together with a fast divider.
LEVELS = {"x86-64-v3-vaes": (*V3, "vaes"), "x86-64-v3": V3}


def level_of_host() -> str | None:
    features = set(jit.host()[1].split(","))
    for level, needed in LEVELS.items():
        if jit.triple() == TRIPLE and all(f"+{each}" in features for each in needed):
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


def make(level: str, folder: Path) -> None:
    """In a process of its own, since the sources ask for the processor as they are imported."""
    import lzma

    jit.build_for("x86-64-v3", ",".join(f"+{each}" for each in LEVELS[level]))
    from fusevm.native.emit import crypto
    from fusevm.native.emit.build import all_sequences, build_handlers, digest_of_handlers

    sequences = all_sequences()
    made = {digest_of_handlers(sequences): build_handlers(sequences)}
    made |= {crypto.digest_of_family(family): crypto.build(family) for family in crypto.FAMILIES}
    folder.mkdir(exist_ok=True)
    for sources, content in made.items():
        path = folder / f"{sources}-{level}.xz"
        path.write_bytes(hashlib.sha256(content).digest() + lzma.compress(content))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> None:
    wanted = sys.argv[1:] or list(LEVELS)
    if len(wanted) == 1:
        make(wanted[0], FOLDER)
        return
    import subprocess

    for old in FOLDER.glob("*.xz"):
        old.unlink()
    for level in wanted:
        subprocess.run([sys.executable, "-m", "fusevm.native.cache.ready", level], check=True)


if __name__ == "__main__":
    main()
