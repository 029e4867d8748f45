"""The `fusevm` command. Only the module of the given command is imported: starting up is most of a short run."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

import fusevm
from fusevm.chain.outcome import EngineLimit
from fusevm.chain.reasons import Rejected
from fusevm.chain.sources.source import SourceError
from fusevm.cli.inputs import BadInput, say_error
from fusevm.evm.forks import UnknownFork
from fusevm.lab.official.statetest import MalformedTest
from fusevm.tiers import UnknownTier
from fusevm.values import BadValue

UsageError: type[Exception] = typer.BadParameter.__mro__[
    1
]  # of click, which typer brings along under one name or another
EXPECTED = (BadInput, BadValue, UnknownFork, UnknownTier, MalformedTest, Rejected, EngineLimit, SourceError)

INTERRUPTED = 130  # as shells have it


class Command(NamedTuple):
    module: str
    function: str  # or the name of a group of commands
    panel: str


COMMANDS = {
    "run": Command("run", "run", "Run"),
    "trace": Command("trace", "trace", "Run"),
    "profile": Command("profile", "profile", "Run"),
    "coverage": Command("coverage", "coverage", "Run"),
    "sweep": Command("sweep", "sweep", "Run"),
    "t8n": Command("t8n", "t8n_command", "Run"),
    "node": Command("node", "node", "Run"),
    "explore": Command("explore", "explore", "Look"),
    "yul": Command("yul", "app", "Compile"),
    "optimize": Command("optimize", "optimize_command", "Compile"),
    "passes": Command("passes", "passes", "Compile"),
    "rules": Command("rules", "rules", "Compile"),
    "disasm": Command("disasm", "disasm", "Look"),
    "asm": Command("asm", "asm", "Look"),
    "cfg": Command("cfg", "cfg", "Look"),
    "ir": Command("ir", "ir", "Look"),
    "schedule": Command("schedule", "schedule", "Look"),
    "regions": Command("regions", "regions", "Look"),
    "fusions": Command("fusions", "fusions_command", "Look"),
    "loops": Command("loops", "loops", "Look"),
    "statetest": Command("statetest", "statetest", "Measure"),
    "blocktest": Command("blocktest", "blocktest", "Measure"),
    "bench": Command("bench", "bench", "Measure"),
    "fuzz": Command("fuzz", "fuzz", "Measure"),
    "doctor": Command("doctor", "doctor", "Measure"),
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fusevm {fusevm.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version")
    ] = False,
) -> None:
    """An optimising compiler and execution engine for the Ethereum Virtual Machine."""


def build_app(names: list[str]) -> typer.Typer:
    app = typer.Typer(
        name="fusevm",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    for name in names:
        module, function, panel = COMMANDS[name]
        found = getattr(import_module(f"fusevm.cli.{module}"), function)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(found)
    return app


def _misused(error: Any) -> int:
    """One line for a wrong option; the help where nothing was asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        command = error.ctx.command_path if error.ctx is not None else "fusevm"
        say_error(f"{error.format_message()} (see {command} --help)")
    return 2


def _wanted(arguments: list[str]) -> str:
    """The command; where a shell asks how to complete one, the one that stands in its line."""
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    words = arguments or typed.split()[1:]
    return words[0] if words else ""


def main() -> None:
    """The entry point: what users get wrong ends in one line and exit code 2, never in a traceback."""
    wanted = _wanted(sys.argv[1:])
    try:
        code = build_app([wanted] if wanted in COMMANDS else list(COMMANDS))(prog_name="fusevm", standalone_mode=False)
        if code == INTERRUPTED:  # typer has answered Ctrl-C itself, with an empty line
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except UsageError as error:
        sys.exit(_misused(error))
    except EXPECTED as error:
        say_error(str(error))
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("fusevm: interrupted", err=True)
        sys.exit(INTERRUPTED)
