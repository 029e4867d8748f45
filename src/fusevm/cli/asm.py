"""`fusevm asm TEXT`: assembly to bytecode."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fusevm.cli import options
from fusevm.cli.inputs import ASSEMBLY, explained, fork_or_exit, quit_with, text_or_exit
from fusevm.evm.assembly import AssemblyError, assemble


def asm(
    source: Annotated[str, typer.Argument(help="assembly text, a file of it, or - for standard input")],
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="code and size as data")] = False,
) -> None:
    """Assemble mnemonics, labels and data to bytecode."""
    text = text_or_exit(source)
    if not text.strip():
        quit_with(f"{source or 'the text'}: empty; assembly is needed")
    try:
        code = assemble(text, fork_or_exit(fork))
    except AssemblyError as error:
        quit_with(str(explained(str(error), text.encode(), source, ASSEMBLY)))
    typer.echo(json.dumps({"code": "0x" + code.hex(), "size": len(code)}) if as_json else "0x" + code.hex())
