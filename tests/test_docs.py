"""What the documentation shows is true: doctests of the modules, and every ```python block of README.md and docs/."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


def modules_with_examples() -> list[str]:
    files = (path for path in sorted(SOURCE.rglob("*.py")) if re.search(r"^\s*>>> ", path.read_text("utf-8"), re.M))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in files]


def blocks(page: Path) -> list[tuple[int, str]]:
    """(lines before it, code) of each block."""
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, match.start(1)), match.group(1)) for match in _FENCE.finditer(text)]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_in_a_module_do_what_they_say(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page build on each other; one with a prompt is a doctest, any other is simply run."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for before, code in blocks(page):
        if re.search(r"^>>> ", code, re.M):
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), before)
            test.globs = names  # shared, so that later blocks see what earlier ones made
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * before + code, str(page), "exec"), names)
    assert runner.failures == 0
