"""Makes the object code that a wheel carries: `python -m fusevm.native.emit.ready LEVEL…`."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from fusevm.native import processor
from fusevm.native.cache.ready import FOLDER, LEVELS


def make(level: str, folder: Path) -> None:
    """In a process of its own, since the sources ask for the processor as they are imported."""
    import lzma

    processor.build_for("x86-64-v3", ",".join(f"+{each}" for each in LEVELS[level]))
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
        subprocess.run([sys.executable, "-m", "fusevm.native.emit.ready", level], check=True)


if __name__ == "__main__":
    main()
