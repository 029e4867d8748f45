"""`fusevm yul check|format|run|compile|optimize|standard-json`: the Yul language from the command line."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fusevm.cli.inputs import quit_with
from fusevm.cli.yul_compile import compile_
from fusevm.cli.yul_inputs import (
    Evm,
    File,
    Json,
    check_language,
    checked,
    dialect_or_exit,
    hex_or_exit,
    read_source,
    report,
)
from fusevm.cli.yul_optimize import optimize
from fusevm.cli.yul_standard import standard_json
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check as check_source
from fusevm.yul.syntax.printer import print_object

app = typer.Typer(help="Check, format, run, compile and optimise Yul.", no_args_is_help=True)
app.command("compile")(compile_)
app.command()(optimize)
app.command("standard-json")(standard_json)


@app.command()
def check(file: File, fork: Evm = "latest", as_json: Json = False) -> None:
    """Say what is wrong with a program: one line per error or warning, exit code 1 if one of them is an error."""
    source = read_source(file)
    obj, errors = check_source(source, dialect_or_exit(fork))
    if obj is None:
        check_language(source, file)
    report(errors, file, source, as_json)
    if any(not error.is_warning for error in errors):
        raise typer.Exit(1)


@app.command("format")
def format_(file: File, fork: Evm = "latest", as_json: Json = False) -> None:
    """Print a program as the optimiser prints it."""
    text = print_object(checked(file, dialect_or_exit(fork), as_json)[0])
    typer.echo(json.dumps({"text": text}) if as_json else text)


@app.command()
def run(
    file: File,
    fork: Evm = "latest",
    calldata: Annotated[str, typer.Option("--data", "-d", help="calldata in hex")] = "",
    imagined: Annotated[bool, typer.Option(help="in the imagined chain of solc's tests, with its trace")] = False,
    part: Annotated[str, typer.Option("--object", help="run a sub-object, such as A.A_deployed")] = "",
    steps: Annotated[int, typer.Option(help="statements before giving up")] = 1_000_000,
    as_json: Json = False,
) -> None:
    """Interpret a program: on an EVM with an empty state, or in the imagined chain of solc's interpreter tests."""
    from fusevm.cli.yul_run import run_imagined, run_on_evm

    dialect = dialect_or_exit(fork)
    obj = _part_of(checked(file, dialect, as_json)[0], part)
    data = hex_or_exit(calldata, "--data")
    result = run_imagined(obj, dialect, data, steps) if imagined else run_on_evm(obj, dialect, data, steps)
    typer.echo(json.dumps(result.data) if as_json else result.text)
    if not result.succeeded:
        raise typer.Exit(1)


def _part_of(obj: Object, path: str) -> Object:
    """The sub-object of that path; the outermost object's own name may lead it."""
    names = path.split(".") if path else []
    if names and names[0] == obj.name:
        names = names[1:]
    for name in names:
        found = [child for child in obj.children if isinstance(child, Object) and child.name == name]
        if not found:
            quit_with(f'no object "{name}" in "{obj.name}"')
        obj = found[0]
    return obj
