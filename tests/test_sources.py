"""What holds of all sources, and no linter looks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"
MAX_LINES = 80


def long_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if lines > MAX_LINES:
                yield f"{node.name}: {lines} lines"


def test_no_function_is_longer_than_a_screen() -> None:
    found = [
        f"{path.relative_to(SOURCES)}: {each}"
        for path in sorted(SOURCES.rglob("*.py"))
        for each in long_functions(path.read_text())
    ]
    assert not found


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n" * MAX_LINES
    assert list(long_functions(f"class C:\n  def long(self):\n{body}")) == [f"long: {MAX_LINES + 1} lines"]
    assert not list(long_functions(f"def short():\n{body[: -len('    x = 1') - 1]}"))
