"""What the documentation shows is true: examples run, commands print what they are said to, and all it names exists."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from docnames import commands, faults

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

_FENCE = re.compile(r"^```(python|console)[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_CONSOLE = [sys.executable, "-c", "from fusevm.cli.start import main; main()"]


def modules_with_examples() -> list[str]:
    files = (path for path in sorted(SOURCE.rglob("*.py")) if re.search(r"^\s*>>> ", path.read_text("utf-8"), re.M))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in files]


def blocks(page: Path, kind: str) -> list[tuple[int, str]]:
    """(lines before it, text) of each block."""
    text = page.read_text("utf-8")
    found = (match for match in _FENCE.finditer(text) if match[1] == kind)
    return [(text.count("\n", 0, match.start(2)), match[2]) for match in found]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# -- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_in_a_module_do_what_they_say(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page build on each other; one with a prompt is a doctest, any other is simply run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for before, code in blocks(page, "python"):
        if re.search(r"^>>> ", code, re.M):
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), before)
            test.globs = names  # shared, so that later blocks see what earlier ones made
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * before + code, str(page), "exec"), names)
    assert runner.failures == 0


def prints(typed: str, expected: str) -> bool:
    """Whether a command prints this; blanks count as one, and … stands for anything."""
    words = shlex.split(typed)
    assert words[0] == "fusevm"
    found = subprocess.run([*_CONSOLE, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=120)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected.replace("…", "..."), found.stdout, flags)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        pytest.param(page, text, id=f"{name_of(page)}:{before}")
        for page in PAGES
        for before, text in blocks(page, "console")
    ],
)
def test_a_command_prints_what_the_page_shows(page: Path, text: str) -> None:
    typed, _, expected = text.partition("\n")
    assert prints(typed.removeprefix("$ "), expected)


def test_other_output_than_shown_is_found() -> None:
    assert prints("fusevm disasm 0x01", "ADD …\n")
    assert not prints("fusevm disasm 0x01", "SUB …\n")


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_names_exists(page: Path) -> None:
    assert not list(faults(page.read_text("utf-8")))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("see `evm/opcode.py`", "no path evm/opcode.py"),
        ("see `fold/rules/`", "no path fold/rules/"),
        ("see `rules/families/*.txt`", "no path rules/families/*.txt"),
        ("see `nowhere.py`", "no path nowhere.py"),
        ("`MAX_GOLD` in `native/runtime/memory.py`", "MAX_GOLD is not in native/runtime/memory.py"),
        ("`schedule/sections.py` (`_shortened`)", "_shortened is not in schedule/sections.py"),
        ("`test_what_is_not_tested` shows it", "no test test_what_is_not_tested"),
        ("call `fusevm.evm.gas.gold_cost`", "no module or name fusevm.evm.gas.gold_cost"),
        ("```python\nfrom fusevm.fold import x\n```\n", "no module or name fusevm.fold"),
        ("run `python -m fusevm.fuzz.slower`", "nothing to run at fusevm.fuzz.slower"),
        ("run `python -m fusevm.lab.fuzz.slower --program 3`", "fusevm.lab.fuzz.slower has no option --program"),
        ("run `python bench/cool.py`", "nothing to run at bench/cool.py"),
        ("    fusevm disassemble CODE\n", "no command fusevm disassemble"),
        ("```\nfusevm disasm CODE · asn FILE\n```\n", "no command fusevm asn"),
        ("`fusevm yul check|fmt FILE`", "no command fusevm yul fmt"),
        ("`fusevm bench --peer`", "fusevm bench has no option --peer"),
        ("with `--no-such-option` it", "no command has the option --no-such-option"),
        ("`make everything`", "no make target everything"),
        ("`fusevm.adapters.boa.absent`", "no module or name fusevm.adapters.boa.absent"),
    ],
)
def test_a_name_that_does_not_exist_is_found(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_names_that_exist_pass() -> None:
    text = """
    See `evm/opcodes.py`, `native/lang`, `rules/families/*.py`, `test_docs.py`, `fusevm.evm.gas.words_of` and
    `SLICE` in `native/host/engine.py`. Run `fusevm yul check|format FILE`, `make docs` or
    `fusevm fuzz --programs 3 -j 2 | head --lines 3`.
    """
    assert not list(faults(text.replace("\n    ", "\n")))


def test_the_layers_of_imports_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = "\n".join(contracts[0]["layers"])
    assert f"```\n{layers}\n```" in (ROOT / "docs" / "architecture.md").read_text("utf-8")


# -- figures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figure_pages() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "bench"))
    yield importlib.import_module("figure_pages")
    sys.path.remove(str(ROOT / "bench"))


def test_every_figure_of_the_pages_and_the_readme_is_one_that_a_command_printed(figure_pages: ModuleType) -> None:
    """`python bench/figures.py --render` writes what is wrong anew."""
    figures = json.loads(figure_pages.FIGURES.read_text("utf-8"))
    made = figure_pages.render(figures)
    assert {path.name for path in made} >= {"README.md", "performance.md", "reliability.md", "against-pyrevm.svg"}
    assert [path.name for path, text in made.items() if path.read_text("utf-8") != text] == []
    assert all(len(text.splitlines()) <= 120 for path, text in made.items() if path.parent.name == "docs")


def test_numbers_of_the_readme_follow_the_figures(figure_pages: ModuleType) -> None:
    row = {"group": figure_pages.LARGE, "name": "a", "seconds": {"pyrevm": 6.0, "auto": 1.5}}
    short = {"group": figure_pages.SHORT, "name": "b", "seconds": {"pyrevm": 3.0, "auto": 1.0}}
    found = {"contracts": {"results": [{"result": [row, short]}]}}
    text = figure_pages.readme(
        "**9.9 times pyrevm's speed** in the mean over 2 contracts (1.1 times on short ones)", found
    )
    assert text == "**4.0 times pyrevm's speed** in the mean over 1 contracts (3.0 times on short ones)"
    with pytest.raises(ValueError, match="no sentence like"):
        figure_pages.readme("nothing", found)


def test_the_readme_shows_what_the_demo_prints() -> None:
    found = subprocess.run([sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    shown = re.findall(r"^│.*│$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert shown
    assert [row for row in shown if row not in found.stdout] == []


# -- the site ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install 'fusevm[docs]')")
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_has_every_command_and_option(generate: ModuleType) -> None:
    page = generate.pages()["reference/cli.md"]
    for name, options in commands().items():
        if name == "yul":
            continue
        section = page.partition(f"## `fusevm {name}`\n")[2].partition("\n## ")[0]
        assert section, name
        assert {option for option in options - {"--help"} if option.startswith("-") and option not in section} == set()


def test_the_page_of_names_has_every_name_of_the_library(generate: ModuleType) -> None:
    import fusevm

    page = generate.pages()["reference/api.md"]
    assert [name for name in fusevm.__all__ if not name.startswith("_") and f"\n## `{name}`\n" not in page] == []
    assert "- `call(to: AddressLike, data: BytesLike = b''" in page


def test_a_page_that_fetches_something_from_elsewhere_is_refused(generate: ModuleType) -> None:
    class Page:
        class file:  # noqa: N801
            src_uri = "page.md"

    assert generate.on_post_page('<a href="https://ethereum.org">link</a>', Page, None)
    with pytest.raises(Exception, match=r"page\.md: .* is fetched from elsewhere"):
        generate.on_post_page('<script src="https://example.org/x.js"></script>', Page, None)


@pytest.mark.long
def test_the_build_of_the_site_fails_at_a_broken_link(generate: ModuleType, tmp_path: Path) -> None:
    """With the options of `make docs`: `--quiet`, for one, would count no warnings."""
    recipe = re.search(r"^\t.*/mkdocs (build.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("mkdocs.yml", *generate.FROM_ROOT.values()):
        shutil.copy(ROOT / name, tmp_path)
    with (tmp_path / "docs" / "loops.md").open("a", encoding="utf-8") as page:
        page.write("\n[nothing](nothing.md)\n")
    typed = [sys.executable, "-m", "mkdocs", *recipe[1].split()]
    built = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert built.returncode != 0
    assert "'loops.md' contains a link 'nothing.md'" in built.stderr
