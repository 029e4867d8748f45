"""`fusevm disasm CODE`: bytecode as text that `fusevm asm` reads back."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fusevm.cli import options
from fusevm.cli.inputs import code_or_exit, fork_or_exit
from fusevm.evm.assembly import disassemble
from fusevm.evm.bytecode import decode


def disasm(
    code: options.Code,
    labels: Annotated[bool, typer.Option("--labels", help="name jump targets")] = False,
    fork: options.CodeFork = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="instructions as data")] = False,
) -> None:
    """Disassemble bytecode."""
    data, rules = code_or_exit(code), fork_or_exit(fork)
    if not as_json:
        typer.echo(disassemble(data, rules, labels), nl=False)
        return
    rows = [
        {
            "pc": each.pc,
            "byte": each.byte,
            "name": each.name,
            "push": None if each.push is None else hex(each.push),
            "size": each.size,
        }
        for each in decode(data, rules)
    ]
    typer.echo(json.dumps(rows))
