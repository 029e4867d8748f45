"""`fusevm trace`: every step of a run, as a table or as EIP-3155 lines."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from fusevm.cli import options
from fusevm.cli.execution import Request, prepare
from fusevm.cli.run import show
from fusevm.reference.hooks import Hooks, Step
from fusevm.reference.tracer import eip3155_summary, tracing_hooks

SHOWN_WORDS = 6

Memory = Annotated[bool, typer.Option("--memory", help="the memory before each step as well")]
ReturnData = Annotated[bool, typer.Option(help="what the last call returned, in --json lines")]


def trace(
    code: options.CodeOrState,
    more: options.MoreArgs = None,
    data: options.Data = None,
    sig: options.Sig = None,
    args: options.Args = None,
    value: options.Value = None,
    caller: options.Caller = None,
    to: options.To = None,
    gas: options.Gas = None,
    fork: options.ForkName = None,
    create: options.Create = False,
    memory: Memory = False,
    returndata: ReturnData = True,
    as_json: options.AsJson = False,
) -> None:
    """Trace a run step by step; --json gives EIP-3155 lines. Exits 1 if the call did not succeed."""
    prepared = prepare(
        Request(code, data, sig, [*(args or ()), *(more or ())], value, caller, to, gas, fork, "reference", create)
    )
    if as_json:
        result = prepared.run(tracing_hooks(sys.stdout.write, memory=memory, returndata=returndata))
        typer.echo(json.dumps(eip3155_summary(result, prepared.evm.state_root)))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print("[bold]   pc  opcode               gas    cost  stack, top first[/]")
        result = prepared.run(Hooks(on_opcode=lambda step: console.print(_line(step), markup=False), memory=memory))
        console.print()
        show(result)
    if not result.ok:
        raise typer.Exit(1)


def _line(step: Step) -> str:
    words = [f"{word:x}" for word in reversed(step.stack[-SHOWN_WORDS:])]
    more = " …" if len(step.stack) > SHOWN_WORDS else ""
    error = f"  ← {step.error}" if step.error else ""
    indent = "  " * (step.depth - 1)
    stack = " ".join(words)
    memory = f"\n       memory 0x{step.memory.hex()}" if step.memory else ""
    return f"{step.pc:5}  {indent + step.name:15} {step.gas:>9} {step.gas_cost:>7}  {stack}{more}{error}{memory}"
