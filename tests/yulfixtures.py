"""Reads the Yul test files: source, settings and expectation, and which of them run here and at which fork."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import fixtures_folder
from fusevm.evm.forks import LATEST, Fork, fork_named

_DELIMITER = re.compile(r"^// (====|----)[ \t]*\n?", re.M)
_VERSION = re.compile(r"(<=|>=|<|>|=)?\s*(\S+)")


@dataclass(frozen=True)
class YulFixture:
    path: Path
    name: str  # folder/file without suffix
    source: str
    settings: dict[str, str] = field(default_factory=dict)
    expectation: str = ""  # without the comment signs

    @property
    def is_eof(self) -> bool:
        """EOF was withdrawn: files that only run in that format are left out."""
        formats = self.settings.get("bytecodeFormat", "legacy").split(",")
        return "legacy" not in (part.strip() for part in formats)

    @property
    def fork(self) -> Fork | None:
        """The newest fork the EVMVersion setting allows, None if there is none."""
        allowed = [fork for fork in Fork if self.allows(fork)]
        return max(allowed, default=None)

    def allows(self, fork: Fork) -> bool:
        for condition in filter(None, (part.strip() for part in self.settings.get("EVMVersion", "").split(","))):
            match = _VERSION.fullmatch(condition)
            assert match is not None, condition
            bound = LATEST if match[2] == "current" else fork_named(match[2])
            if not _COMPARE[match[1] or "="](fork, bound):
                return False
        return True


_COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}


def _uncomment(text: str) -> str:
    lines = [re.sub(r"^//[ ]?", "", line) for line in text.splitlines()]
    return "\n".join(lines).strip("\n")


def load(path: Path, root: Path | None = None) -> YulFixture:
    """A file is its source, then perhaps `// ====` and settings, then perhaps `// ----` and the expectation."""
    text = path.read_bytes().decode("utf-8")
    parts = {"source": text, "====": "", "----": ""}
    marks = list(_DELIMITER.finditer(text))
    if marks:
        parts["source"] = text[: marks[0].start()]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        parts[mark[1]] = text[mark.end() : following.start() if following else len(text)]
    settings = dict(line.split(":", 1) for line in _uncomment(parts["===="]).splitlines() if ":" in line)
    name = str(path.relative_to(root).with_suffix("")) if root is not None else path.stem
    clean = {key.strip(): value.strip() for key, value in settings.items()}
    return YulFixture(path, name, parts["source"], clean, _uncomment(parts["----"]))


def load_folder(folder: Path) -> list[YulFixture]:
    """All files of a folder and the folders in it, by name."""
    return [load(path, folder) for path in sorted(folder.rglob("*.yul"))]


def parametrize(metafunc: pytest.Metafunc, *folders: str) -> None:
    """Give a test's argument `fixture` every file of the folders that runs here, or skip it in one clear line."""
    if "fixture" not in metafunc.fixturenames:
        return
    root = fixtures_folder(metafunc.config) / "yul_tests"
    found = [each for folder in folders for each in load_folder(root / folder) if not each.is_eof]
    missing = pytest.mark.skip(reason=f"conformance data not found at {root} (set FUSEVM_FIXTURES)")
    cases = found or [pytest.param(None, marks=missing)]
    metafunc.parametrize("fixture", cases, ids=[each.name for each in found] or ["missing"])
