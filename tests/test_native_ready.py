"""Handlers that wheels carry: made for any platform on any, and found by the platform they are for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fusevm.native import processor
from fusevm.native.cache import ready
from fusevm.native.emit import build
from fusevm.native.processor import ProcessorTarget

HAS_VAES = ",".join(f"+{each}" for each in (*ready.V3, "adx", "vaes"))
HAS_V3 = ",".join(f"+{each}" for each in ready.V3)

ELF = {"x86-64": b"\x7fELF\2\1\1" + bytes(9) + b"\1\0\x3e\0", "aarch64": b"\x7fELF\2\1\1" + bytes(9) + b"\1\0\xb7\0"}
MACH_O = {"x86-64": b"\xcf\xfa\xed\xfe\x07\0\0\1", "aarch64": b"\xcf\xfa\xed\xfe\x0c\0\0\1"}
COFF = {"x86-64": b"\x64\x86"}
FORMATS = {"linux": ELF, "macos": MACH_O, "windows": COFF}

# BLAKE2, the smallest family, for all levels in turn.
CROSS = """
import json
from fusevm.native import processor
from fusevm.native.cache.ready import LEVELS
from fusevm.native.emit import crypto
made = {}
for name, level in LEVELS.items():
    processor.build_for(level.target)
    made[name] = crypto.build("blake2").hex()
print(json.dumps(made))
"""


def test_code_for_every_level_is_made_here_in_its_platforms_format() -> None:
    done = subprocess.run([sys.executable, "-c", CROSS], capture_output=True, text=True, check=True, timeout=120)
    made = {name: bytes.fromhex(code) for name, code in json.loads(done.stdout).items()}
    assert made.keys() == ready.LEVELS.keys()
    for name, code in made.items():
        system, _, architecture = ready.LEVELS[name].platform.partition("-")
        assert code.startswith(FORMATS[system][architecture]), name


@pytest.mark.parametrize(
    ("triple", "features", "level"),
    [
        ("x86_64-unknown-linux-gnu", HAS_VAES, "linux-x86-64-v3-vaes"),
        ("x86_64-unknown-linux-gnu", HAS_V3, "linux-x86-64-v3"),
        ("x86_64-unknown-linux-gnu", HAS_VAES.replace("+adx", "-adx"), "linux-x86-64-v3"),
        ("x86_64-alpine-linux-musl", HAS_V3, "linux-x86-64-v3"),  # no libc is linked
        ("x86_64-unknown-linux-gnu", HAS_V3.replace("+bmi2", "-bmi2"), None),
        ("aarch64-unknown-linux-gnu", "+neon", "linux-aarch64"),
        ("arm64-apple-darwin24.1.0", "", "macos-aarch64"),
        ("x86_64-apple-darwin22.4.0", HAS_V3, "macos-x86-64-v3"),
        ("x86_64-pc-windows-msvc", HAS_VAES, "windows-x86-64-v3-vaes"),
        ("riscv64-unknown-linux-gnu", "+m,+a", None),
        ("x86_64-unknown-freebsd14", HAS_VAES, None),
    ],
)
def test_a_hosts_level_is_found_by_its_triple_and_features(
    triple: str, features: str, level: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "host_triple", lambda: triple)
    monkeypatch.setattr(processor, "host", lambda: ("generic", features))
    assert ready.level_of_host() == level


def test_handlers_of_another_system_are_kept_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder may be shared by two systems on one processor: a Mac and a virtual machine on it."""
    name, features = processor.host()
    names = set()
    for triple in ready.TRIPLES.values():
        monkeypatch.setattr(processor, "_chosen", [ProcessorTarget(triple, name, features)])
        names.add(build._fingerprint([]))
    assert len(names) == len(ready.TRIPLES)
