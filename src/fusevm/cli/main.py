"""The `fusevm` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import fusevm
from fusevm.chain.statetest import MalformedTest
from fusevm.chain.transaction import Rejected
from fusevm.cli import asm, cfg, disasm, run, statetest, trace
from fusevm.cli.inputs import BadInput
from fusevm.evm.forks import UnknownFork
from fusevm.tiers import UnknownTier
from fusevm.values import BadValue

app = typer.Typer(
    name="fusevm",
    help="An optimising compiler and execution engine for the Ethereum Virtual Machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

EXPECTED = (BadInput, BadValue, UnknownFork, UnknownTier, MalformedTest, Rejected)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fusevm {fusevm.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version")
    ] = False,
) -> None:
    pass


app.command(rich_help_panel="Run")(run.run)
app.command(rich_help_panel="Run")(trace.trace)
app.command(rich_help_panel="Look")(disasm.disasm)
app.command(rich_help_panel="Look")(asm.asm)
app.command(rich_help_panel="Look")(cfg.cfg)
app.command(rich_help_panel="Measure")(statetest.statetest)


def main() -> None:
    """The entry point: what users get wrong ends in one line and exit code 2, never in a traceback."""
    try:
        app()
    except EXPECTED as error:
        typer.echo(f"fusevm: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("fusevm: interrupted", err=True)
        sys.exit(130)
