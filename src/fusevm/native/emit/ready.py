"""Makes the object code that wheels carry, for any platform: `python -m fusevm.native.emit.ready FOLDER LEVEL…`."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fusevm.native import processor
from fusevm.native.cache.ready import LEVELS


def make(level: str, folder: Path) -> None:
    """In a process of its own, since the sources ask for the processor as they are imported."""
    import lzma

    processor.build_for(LEVELS[level].target)
    from fusevm.native.emit import crypto
    from fusevm.native.emit.build import all_sequences, build_handlers, digest_of_handlers

    sequences = all_sequences()
    made = {digest_of_handlers(sequences): build_handlers(sequences)}
    made |= {crypto.digest_of_family(family): crypto.build(family) for family in crypto.FAMILIES}
    folder.mkdir(parents=True, exist_ok=True)
    for sources, content in made.items():
        path = folder / f"{sources}-{level}.xz"
        path.write_bytes(hashlib.sha256(content).digest() + lzma.compress(content))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def make_all(levels: Sequence[str], folder: Path) -> None:
    for level in levels:
        subprocess.run([sys.executable, "-m", "fusevm.native.emit.ready", folder, level], check=True)


def main() -> None:
    folder, *levels = sys.argv[1:] or [""]
    unknown = [level for level in levels if level not in LEVELS]
    if not folder or unknown:
        problem = f"{unknown[0]!r} is not a level of processor" if unknown else "a folder to write to is missing"
        sys.exit(f"fusevm.native.emit.ready: {problem}; levels are {', '.join(LEVELS)}")
    if len(levels) == 1:
        make(levels[0], Path(folder))
    else:
        make_all(levels or list(LEVELS), Path(folder))


if __name__ == "__main__":
    main()
