"""`fusevm cfg CODE`: the control-flow graph with its loops, as text, DOT, SVG or data."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from fusevm.cli import options
from fusevm.cli.inputs import code_to_analyse, fork_or_exit
from fusevm.control_flow.graph import control_flow
from fusevm.control_flow.view import as_data, as_dot, as_svg, as_text


class Form(StrEnum):
    TEXT = "text"
    DOT = "dot"
    SVG = "svg"


def cfg(
    code: options.Code,
    form: Annotated[Form, typer.Option("--format", help="text, dot or svg")] = Form.TEXT,
    instructions: Annotated[bool, typer.Option("--instructions", help="list the instructions of each block")] = False,
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="blocks and loops as data")] = False,
) -> None:
    """Show basic blocks, where their jumps go, and loops."""
    graph = control_flow(code_to_analyse(code), fork_or_exit(fork))
    if as_json:
        typer.echo(json.dumps(as_data(graph)))
    elif form is Form.DOT:
        typer.echo(as_dot(graph), nl=False)
    elif form is Form.SVG:
        typer.echo(as_svg(graph), nl=False)
    else:
        typer.echo(as_text(graph, instructions), nl=False)
