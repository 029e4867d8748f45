"""`fusevm yul check|format|run|compile|optimize FILE`: the Yul language from the command line."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Annotated, Any

import typer

from fusevm.cli.inputs import quit_with
from fusevm.cli.yul_inputs import (
    Evm,
    File,
    Json,
    checked,
    dialect_or_exit,
    fail,
    hex_or_exit,
    read_source,
    report,
)
from fusevm.cli.yul_optimize import optimize
from fusevm.codegen.yul import CompiledObject, compile_object, library_names
from fusevm.evm.assembler import ADDRESS_BYTES
from fusevm.yul.syntax.ast import Object
from fusevm.yul.syntax.checks import check as check_source
from fusevm.yul.syntax.errors import YulError
from fusevm.yul.syntax.printer import print_object

app = typer.Typer(help="Check, format, run, compile and optimise Yul.", no_args_is_help=True)
app.command()(optimize)


@app.command()
def check(file: File, evm: Evm = "latest", as_json: Json = False) -> None:
    """Say what is wrong with a program: one line a complaint, exit code 1 if one of them is an error."""
    _, errors = check_source(read_source(file), dialect_or_exit(evm))
    report(errors, as_json)
    if any(not error.is_warning for error in errors):
        raise typer.Exit(1)


@app.command("format")
def format_(file: File, evm: Evm = "latest", as_json: Json = False) -> None:
    """Print a program as the optimiser prints it."""
    text = print_object(checked(file, dialect_or_exit(evm), as_json))
    typer.echo(json.dumps({"text": text}) if as_json else text)


@app.command()
def run(
    file: File,
    evm: Evm = "latest",
    calldata: Annotated[str, typer.Option("--data", "-d", help="calldata in hex")] = "",
    imagined: Annotated[bool, typer.Option(help="in the imagined chain of solc's tests, with its trace")] = False,
    part: Annotated[str, typer.Option("--object", help="run a sub-object, such as A.A_deployed")] = "",
    steps: Annotated[int, typer.Option(help="statements before giving up")] = 1_000_000,
    as_json: Json = False,
) -> None:
    """Interpret a program: on an EVM with an empty state, or in the imagined chain of solc's interpreter tests."""
    from fusevm.cli.yul_run import run_imagined, run_on_evm

    dialect = dialect_or_exit(evm)
    obj = _part_of(checked(file, dialect, as_json), part)
    data = hex_or_exit(calldata, "--data")
    result = run_imagined(obj, dialect, data, steps) if imagined else run_on_evm(obj, dialect, data, steps)
    typer.echo(json.dumps(result.data) if as_json else result.text)
    if not result.succeeded:
        raise typer.Exit(1)


@app.command("compile")
def compile_(
    file: File,
    evm: Evm = "latest",
    library: Annotated[list[str] | None, typer.Option(help="NAME=ADDRESS for linkersymbol; may be repeated")] = None,
    link_placeholders: Annotated[
        bool, typer.Option("--link-placeholders", help="write solc's __$…$__ for libraries without an address")
    ] = False,
    runtime: Annotated[bool, typer.Option("--runtime", help="only the code that gets deployed")] = False,
    as_json: Json = False,
) -> None:
    """Compile to bytecode: creation code and, where the object has it, the runtime code it deploys."""
    dialect = dialect_or_exit(evm)
    obj, libraries = checked(file, dialect, as_json), _libraries(library or [])
    _check_libraries(libraries.keys(), library_names(obj), link_placeholders)
    try:
        compiled = compile_object(obj, dialect, libraries)
    except YulError as error:
        fail([error], as_json)
    if runtime and compiled.runtime is None:
        quit_with(f"{file} has no runtime object")
    if as_json:
        typer.echo(json.dumps(_described(compiled)))
    elif runtime and compiled.runtime is not None:
        typer.echo("0x" + compiled.runtime.placeholder_hex())
    else:
        typer.echo("\n".join(_hex_lines(compiled)))


def _hex_lines(compiled: CompiledObject) -> list[str]:
    if compiled.runtime is None:
        return ["0x" + compiled.placeholder_hex()]
    return [f"creation: 0x{compiled.placeholder_hex()}", f"runtime:  0x{compiled.runtime.placeholder_hex()}"]


def _described(compiled: CompiledObject) -> dict[str, Any]:
    return {
        "name": compiled.name,
        "code": "0x" + compiled.placeholder_hex(),
        "size": len(compiled.code),
        "immutables": dict(compiled.immutables),
        "linkReferences": {
            name: [{"start": place, "length": ADDRESS_BYTES} for place in places]
            for name, places in compiled.libraries.items()
        },
        "runtime": compiled.runtime.name if compiled.runtime is not None else None,
        "children": [_described(child) for child in compiled.children.values()],
    }


def _libraries(options: list[str]) -> dict[str, int]:
    libraries = {}
    for option in options:
        name, equals, address = option.rpartition("=")
        value = hex_or_exit(address, f"address of {name}") if equals else b""
        if len(value) != 20:
            quit_with(f"--library {option}: expected NAME=ADDRESS with an address of 20 bytes")
        libraries[name] = int.from_bytes(value, "big")
    return libraries


def _check_libraries(given: Set[str], wanted: Set[str], may_miss: bool) -> None:
    unknown, missing = sorted(given - wanted), sorted(wanted - given)
    if unknown:
        known = f"it uses {', '.join(sorted(wanted))}" if wanted else "it uses none"
        quit_with(f"--library: the program does not use {', '.join(unknown)}; {known}")
    if missing and not may_miss:
        names = ", ".join(missing)
        quit_with(f"no address of {names}: give --library NAME=ADDRESS for each, or --link-placeholders to link later")


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
