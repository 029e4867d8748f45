"""`fusevm yul standard-json [FILE]`: solc's JSON interface, for tools that call a compiler."""

from __future__ import annotations

from typing import Annotated

import typer

from fusevm.cli.inputs import JSON
from fusevm.cli.yul_inputs import read_source
from fusevm.codegen.standard_json import compile_text


def standard_json(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="solc's JSON input, or - for standard input")] = "-",
) -> None:
    """Compile as solc --standard-json does: JSON in, JSON out; errors are in the JSON, the exit code is 0."""
    typer.echo(compile_text(read_source(file, JSON)))
