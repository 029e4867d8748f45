"""Pages of the site that are made from the code: commands, names of the library, modules. mkdocs runs it as a hook.

The home page, the guide for contributors and the changelog are the files of the repository's root.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

import fusevm
from fusevm.cli.main import COMMANDS, build_app

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}

# What a user of the compiler's parts calls from Python, in the order of a program's way through them.
MODULES = (
    "fusevm.functions.code",
    "fusevm.functions.yul",
    "fusevm.functions.ir",
    "fusevm.abi.interface",
    "fusevm.abi.entries",
    "fusevm.abi.artifacts",
    "fusevm.abi.contract",
    "fusevm.abi.records",
    "fusevm.evm.assembly",
    "fusevm.evm.bytecode",
    "fusevm.control_flow.graph",
    "fusevm.ir.recovery.flow",
    "fusevm.schedule.sections",
    "fusevm.schedule.build",
    "fusevm.schedule.fusions",
    "fusevm.ir.lift",
    "fusevm.ir.fold.engine",
    "fusevm.ir.ordering",
    "fusevm.ir.text",
    "fusevm.ir.parse",
    "fusevm.rules.pattern",
    "fusevm.rules.families",
    "fusevm.rules.prove",
    "fusevm.yul.syntax.parser",
    "fusevm.yul.syntax.printer",
    "fusevm.yul.syntax.checks",
    "fusevm.yul.optimise",
    "fusevm.yul.execution.interpreter",
    "fusevm.codegen.pipeline",
    "fusevm.codegen.yul",
    "fusevm.codegen.bytecode",
)


# -- hooks ------------------------------------------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, content in pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    """The site is read without network: nothing on a page may be fetched from elsewhere."""
    fetched = re.search(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>", output)
    if fetched:
        raise PluginError(f"{page.file.src_uri}: {fetched[0]} is fetched from elsewhere")
    return output


def pages() -> dict[str, str]:
    made = {name: from_root(source) for name, source in FROM_ROOT.items()}
    made["reference/cli.md"] = "\n".join(command_page())
    made["reference/api.md"] = "\n".join(library_page())
    made["reference/modules.md"] = "\n".join(modules_page())
    return made


def from_root(name: str) -> str:
    """A page of the root, its links made relative to the folder of the docs."""
    text = (ROOT / name).read_text("utf-8")
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((CONTRIBUTING|CHANGELOG|SECURITY)\.md", lambda match: f"]({match[1].lower()}.md", text)


# -- commands ---------------------------------------------------------------------------------------------------------


def command_page() -> Iterator[str]:
    yield "# Commands\n"
    yield "Made from the code: each is what `fusevm COMMAND --help` says.\n"
    root = get_command(build_app(list(COMMANDS)))
    for name, command in commands_below(root, "fusevm"):
        yield from _command(name, command)


def commands_below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that can be run, by what is typed."""
    below = getattr(command, "commands", None)
    if not below:
        yield name, command
        return
    for each, inner in below.items():
        yield from commands_below(inner, f"{name} {each}")


def _command(name: str, command: Any) -> Iterator[str]:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if isinstance(each, TyperArgument)]
    options = [each for each in shown if isinstance(each, TyperOption) and each.name != "help"]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *(_usage(each) for each in arguments)])
    yield f"\n## `{name}`\n\n    {usage}\n"
    yield f"{_plain(command.help or '')}\n"
    if shown:
        yield "| | | |\n| --- | --- | --- |"
    for argument in arguments:
        yield f"| `{_named(argument)}` | | {_cell(argument.help)} |"
    for each in options:
        yield f"| {', '.join(f'`{text}`' for text in _spelt(each))} | {_default(each)} | {_cell(each.help)} |"
    yield ""


def _usage(argument: Any) -> str:
    name = _named(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _named(argument: Any) -> str:
    name: str = argument.metavar or argument.name
    return name.upper()


def _spelt(option: Any) -> list[str]:
    kind = "" if option.is_flag else f" {(option.metavar or option.opts[0].lstrip('-')).upper()}"
    return [f"{text}{kind}" for text in (*option.opts, *option.secondary_opts)]


def _default(option: Any) -> str:
    given = option.default
    if given is None or option.is_flag or given == () or callable(given):
        return ""
    return f"`{given}`"


def _cell(text: str | None) -> str:
    return _plain(text or "").replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Help as Markdown: rich's marks for colours go."""
    return re.sub(r"\[/?[a-z ]+\]", "", inspect.cleandoc(text))


# -- names of the library, and modules --------------------------------------------------------------------------------


def library_page() -> Iterator[str]:
    yield "# Names of the library\n"
    yield "Made from the code: what `from fusevm import …` offers. [The library](../api.md) tells how they are used.\n"
    for name in fusevm.__all__:
        found = getattr(fusevm, name)
        if inspect.ismodule(found):
            yield f"\n## `{name}`\n\n{_text(found)}\n"
            for each in found.__all__:
                if _is_described(getattr(found, each)):
                    yield from _described(f"{name}.{each}", getattr(found, each), level=3)
        elif not name.startswith("_"):
            yield from _described(name, found)


def modules_page() -> Iterator[str]:
    yield "# Modules\n"
    yield "Made from the code: the parts of the compiler that can be called from Python. They may change between"
    yield "versions; only [the names of the library](api.md) are kept stable.\n"
    for name in MODULES:
        module = importlib.import_module(name)
        yield f"\n## `{name}`\n\n{_text(module)}\n"
        for each, found in vars(module).items():
            if not each.startswith("_") and getattr(found, "__module__", None) == name and _is_described(found):
                yield from _described(each, found, level=3)


def _is_described(found: object) -> bool:
    return inspect.isclass(found) or inspect.isfunction(found)


def _described(name: str, found: Any, level: int = 2) -> Iterator[str]:
    yield f"\n{'#' * level} `{name}`\n"
    if not inspect.isclass(found):
        yield f"{_signature(name, found)}\n\n{_text(found)}\n"
        return
    if issubclass(found, enum.Enum):
        yield f"{_text(found)}\n\nOne of {', '.join(f'`{each}`' for each in found.__members__)}.\n"
        return
    if not issubclass(found, BaseException):
        yield f"{_signature(name, found)}\n"
    yield f"{_text(found)}\n"
    yield from _fields(found)
    yield from _members(found)
    yield ""


def _fields(kind: type) -> Iterator[str]:
    """Annotated fields with the comments beside them."""
    if issubclass(kind, BaseException):
        return
    source = inspect.getsource(kind)
    for name, annotation in inspect.get_annotations(kind).items():
        if not name.startswith("_"):
            comment = re.search(rf"^    {name}:.*?  # (.*)$", source, re.MULTILINE)
            yield f"- `{name}: {_annotation(annotation)}`" + (f": {comment[1]}" if comment else "")


def _members(kind: type) -> Iterator[str]:
    fields = inspect.get_annotations(kind)
    for name, found in vars(kind).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(found, property):
            yield _item(name, found)
        elif isinstance(found, (staticmethod, classmethod)) or inspect.isfunction(found):
            function = getattr(found, "__func__", found)
            yield _item(f"{name}{_parameters(function)}", function)


def _item(shown: str, found: Any) -> str:
    text = _text(found)
    return f"- `{shown}`" + (f"\n\n{textwrap.indent(text, '    ')}\n" if text else "")


def _signature(name: str, found: Any) -> str:
    return f"```text\n{name}{_parameters(found)}\n```"


def _parameters(found: Any) -> str:
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return "(…)"
    parts: list[str] = []
    starred = False  # whether what follows can only be given by name already
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        parts.append(_parameter(each))
    result = signature.return_annotation
    ending = "" if inspect.isclass(found) or result is signature.empty else f" -> {_annotation(result)}"
    return f"({', '.join(parts)}){ending}"


def _parameter(each: inspect.Parameter) -> str:
    shown = str(each.replace(annotation=each.empty, default=each.empty))  # with its stars
    if each.annotation is not each.empty:
        shown += f": {_annotation(each.annotation)}"
    if each.default is not each.empty:
        shown += f" = {_value(each.default)}"
    return shown


def _value(given: object) -> str:
    if isinstance(given, enum.Enum):
        return f"{type(given).__name__}.{given.name}"
    text = repr(given)
    return "…" if len(text) > 30 or text.startswith("<") else text


def _annotation(given: object) -> str:
    text = getattr(given, "__forward_arg__", given)
    return str(getattr(text, "__name__", text))


def _text(found: Any) -> str:
    """Its own docstring, unless Python made it up."""
    text = inspect.cleandoc(found.__doc__ or "")
    name = getattr(found, "__name__", "")
    return "" if text.startswith(f"{name}(") else _fenced(text)


def _fenced(text: str) -> str:
    """Doctests of a docstring as a block of code."""
    return re.sub(r"((?:^>>> .*\n?)(?:^.+\n?)*)", r"```pycon\n\1\n```\n", text, flags=re.MULTILINE)
