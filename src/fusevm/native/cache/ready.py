"""Object code that a wheel carries, by platform and level of processor: the first call does not wait for LLVM.

Where there is none for the processor, or the sources are another version, handlers are built as ever.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from fusevm.native import processor

FOLDER = Path(__file__).parent / "ready"
V3 = ("avx2", "bmi", "bmi2", "cx16", "fma", "lzcnt", "movbe", "popcnt")  # the distinguishing features of x86-64-v3
# Targets, apart from the operating system. Object formats and C's calling convention differ by system, so code does.
TRIPLES = {
    "linux-x86-64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "macos-x86-64": "x86_64-apple-darwin",
    "macos-aarch64": "arm64-apple-darwin",
    "windows-x86-64": "x86_64-pc-windows-msvc",
}


class ProcessorLevel(NamedTuple):
    """Target processors: LLVM's name of the least of them, and the features they must have."""

    platform: str
    name: str
    needed: tuple[str, ...] = ()

    @property
    def target(self) -> processor.ProcessorTarget:
        return processor.ProcessorTarget(
            TRIPLES[self.platform], self.name, ",".join(f"+{each}" for each in self.needed)
        )


def _levels() -> dict[str, ProcessorLevel]:
    """By name, the best of a platform first; vaes came to processors together with a fast divider, and after adx."""
    found: dict[str, ProcessorLevel] = {}
    for platform in TRIPLES:
        if platform.endswith("x86-64"):
            found[f"{platform}-v3-vaes"] = ProcessorLevel(platform, "x86-64-v3", (*V3, "adx", "vaes"))
            found[f"{platform}-v3"] = ProcessorLevel(platform, "x86-64-v3", V3)
        else:  # every Mac that is not Intel's has an M1 or later; elsewhere the first AArch64 there was
            found[platform] = ProcessorLevel(platform, "apple-m1" if platform.startswith("macos") else "generic")
    return found


LEVELS = _levels()


def platform_of_host() -> str:
    triple = processor.host_triple()
    return f"{processor.system_of(triple)}-{processor.architecture_of(triple)}"


def level_of_host() -> str | None:
    platform, features = platform_of_host(), set(processor.host()[1].split(","))
    for name, level in LEVELS.items():
        if level.platform == platform and all(f"+{each}" in features for each in level.needed):
            return name
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
