"""What documentation names (paths, modules, commands, options, tests, make targets), and which of it does not exist."""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typer.main import get_command

from fusevm.cli.main import COMMANDS, build_app

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^( *)```.*?\n(.*?)^\1```[ \t]*$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PATH = re.compile(r"(?:[\w*.-]+/)+[\w*.-]*|[\w*-]+\.(?:py|md|yul|toml|yml)")
_NAME_IN_FILE = re.compile(r"`(?P<name>\w+)`\s+in\s+`(?P<path>[\w/]+\.py)`")
_FILE_WITH_NAME = re.compile(r"`(?P<path>[\w/]+\.py)`\s+\(`(?P<name>\w+)`\)")
_MODULE = re.compile(r"\bfusevm(?:\.\w+)+")
_RUN_MODULE = re.compile(r"\bpython3? -m (fusevm[\w.]*)(.*)")
_RUN_FILE = re.compile(r"\b(bench/\w+\.py)(.*)")
_COMMAND = re.compile(r"(?<!from )\bfusevm ([a-z].*)")
_MAKE = re.compile(r"\bmake ([a-z]+)\b")
_OPTION = re.compile(r"(?<![\w-])(?:--[a-z][\w-]*(?:\.[a-z][\w-]*)*|-[a-z]\b)")
_TEST = re.compile(r"test_\w+")
_ELSEWHERE = ("../", "http", "$", "build/", "__", "0x")  # not of the repository, or made by its commands


def faults(text: str) -> Iterator[str]:
    """What the text names and is not there."""
    prose = _FENCE.sub("", text)
    blocks = [match[2] for match in _FENCE.finditer(text)] + _INDENTED.findall(prose)
    spans = [" ".join(span.split()) for span in _SPAN.findall(_INDENTED.sub("", prose))]
    lines = [*spans, *(line for block in blocks for line in block.splitlines())]
    for span in spans:
        yield from _span_faults(span)
    for match in (*_NAME_IN_FILE.finditer(prose), *_FILE_WITH_NAME.finditer(prose)):
        if not any(re.search(rf"\b{match['name']}\b", each.read_text("utf-8")) for each in files_named(match["path"])):
            yield f"{match['name']} is not in {match['path']}"
    for line in lines:
        yield from _line_faults(line)


def _span_faults(span: str) -> Iterator[str]:
    if _PATH.fullmatch(span) and not span.startswith(_ELSEWHERE) and not exists(span):
        yield f"no path {span}"
    if _TEST.fullmatch(span) and span not in tests():
        yield f"no test {span}"
    if span.startswith("-") and (option := _OPTION.match(span)) and option[0] not in every_option():
        yield f"no command has the option {option[0]}"


def _line_faults(line: str) -> Iterator[str]:
    line = line.split(" # ")[0]
    for name in _MODULE.findall(line):
        if not importable(name):
            yield f"no module or name {name}"
    for module, rest in _RUN_MODULE.findall(line):
        yield from _script_faults(module, ROOT / "src" / Path(*module.split(".")).with_suffix(".py"), rest)
    for script, rest in _RUN_FILE.findall(line):
        yield from _script_faults(script, ROOT / script, rest)
    for typed in _COMMAND.findall(line):
        for each in typed.split(" | ")[0].split(" · "):
            yield from _command_faults(each.split())
    for target in _MAKE.findall(line):
        if not re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE):
            yield f"no make target {target}"


def _script_faults(name: str, path: Path, rest: str) -> Iterator[str]:
    package = path.with_suffix("") / "__main__.py"
    path = package if package.is_file() else path
    if not path.is_file():
        yield f"nothing to run at {name}"
        return
    source = path.read_text("utf-8")
    for option in _options(rest.split(" | ")[0].split()):
        if f'"{option}"' not in source:
            yield f"{name} has no option {option}"


def _command_faults(words: list[str]) -> Iterator[str]:
    """Of `yul compile FILE --runtime`, say; alternatives are written `check|format`."""
    if not words:
        return
    found = commands()
    choices = words[0].split("|")
    if words[0] == "yul" and len(words) > 1:
        choices = [f"yul {each}" for each in words[1].split("|")]
    for name in choices:
        if name not in found:
            yield f"no command fusevm {name}"
            continue
        for option in _options(words):
            if option not in found[name]:
                yield f"fusevm {name} has no option {option}"


def _options(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        option = _OPTION.match(word.lstrip("["))
        if option:
            yield option[0]


@cache
def commands() -> dict[str, set[str]]:
    """Every command by what is typed after `fusevm`, with its options."""
    return dict(_below(get_command(build_app(list(COMMANDS))), ""))


def _below(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    own = {text for each in command.params for text in (*each.opts, *each.secondary_opts)} | {"--help"}
    if name:
        yield name, own
    for each, inner in getattr(command, "commands", {}).items():
        yield from _below(inner, f"{name} {each}".strip())


@cache
def every_option() -> set[str]:
    ours = {option for options in commands().values() for option in options}
    scripts = [*(ROOT / "src/fusevm/lab").rglob("*.py"), *(ROOT / "bench").glob("*.py")]
    return ours.union(*(re.findall(r'"(--[\w-]+)"', path.read_text("utf-8")) for path in scripts))


@cache
def repository() -> frozenset[str]:
    """Every file and folder, from the root; kept or not yet kept, but not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    files = listed.stdout.split() if listed.returncode == 0 else []
    if not files:  # an unpacked archive
        files = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return frozenset(str(each) for name in files for each in (Path(name), *Path(name).parents))


def exists(name: str) -> bool:
    """A path may leave out leading folders, and the `.py` of a module."""
    wanted = name.rstrip("/")
    return any(fnmatch("/" + path, f"*/{wanted}{ending}") for path in repository() for ending in ("", ".py"))


def files_named(name: str) -> list[Path]:
    return [ROOT / path for path in repository() if f"/{path}".endswith(f"/{name}")]


def importable(name: str) -> bool:
    module, _, rest = name.rpartition(".")
    try:
        if find_spec(name) is not None:
            return True
    except ModuleNotFoundError:
        pass
    try:
        return bool(module) and hasattr(importlib.import_module(module), rest)
    except ModuleNotFoundError as error:
        missing = error.name or "fusevm"
        return not missing.startswith("fusevm") and _defined(module, rest)


def _defined(module: str, name: str) -> bool:
    """Whether a module that needs another tool, and cannot be imported without it, offers a name."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (
        re.search(rf"^def {name}\b|^class {name}\b|^from .* import .*\b{name}\b", source.read_text("utf-8"), re.M)
        is not None
    )


@cache
def tests() -> set[str]:
    """Names of tests, and of files of tests."""
    found = set()
    for path in (ROOT / "tests").glob("*.py"):
        found |= {path.stem, *re.findall(r"^\s*def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)}
    return found
