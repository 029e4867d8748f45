"""`fusevm run`: run code and say what came of it."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fusevm.abi import CannotDecode, ContractResult, Function
from fusevm.chain.logs import Log
from fusevm.chain.result import Result
from fusevm.cli import options
from fusevm.cli.abi import shown_values
from fusevm.cli.execution import CallOptions, prepare, takes_request
from fusevm.cli.stack_trace import show_stack_trace
from fusevm.cli.starting_state import write_dump


@takes_request
def run(
    request: CallOptions,
    tier: options.Tier = "auto",
    dump_state: options.DumpState = None,
    sources: options.Sources = None,
    as_json: options.AsJson = False,
) -> None:
    """Run bytecode, a call on a state file, or a contract of an artifact. Exits 1 if the call did not succeed."""
    request.tier = tier
    prepared = prepare(request)
    result = prepared.run()
    if dump_state is not None:
        write_dump(prepared.evm, dump_state)
    decoded = _decoded(prepared.function, result)
    if as_json:
        events = {"events": [repr(each) for each in result.events]} if isinstance(result, ContractResult) else {}
        typer.echo(json.dumps(result.as_json() | ({"decoded": decoded} if decoded is not None else {}) | events))
    else:
        show(result, decoded)
        show_stack_trace(prepared, result, sources)
    if not result.ok:
        raise typer.Exit(1)


def _decoded(function: Function | None, result: Result) -> list[str] | None:
    """What the function returned, if the signature says what that is, and it is."""
    if function is None or function.outputs is None or not result.ok:
        return None
    try:
        return shown_values(function.decode(result.output))
    except CannotDecode:
        return None


def _shown_log(log: Log, result: Result) -> str:
    event = result.abi.decode_log(log) if isinstance(result, ContractResult) else None
    if event is not None:
        return f"0x{log.address.hex()} {event!r}"
    topics = " ".join(f"0x{topic:064x}" for topic in log.topics)
    return f"0x{log.address.hex()} {topics} 0x{log.data.hex()}"


def show(result: Result, decoded: list[str] | None = None) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    colour = "green" if result.ok else "red"
    table.add_row("status", f"[{colour}]{result.status.value}[/]")
    if result.error:
        table.add_row("error", escape(result.error))
    table.add_row("gas used", f"{result.gas_used:,}")
    if result.gas_refunded:
        table.add_row("refund", f"{result.gas_refunded:,}")
    table.add_row("output", "0x" + result.output.hex())
    for value in decoded or ():
        table.add_row("", escape(value))
    if result.address is not None:
        table.add_row("address", "0x" + result.address.hex())
    for number, log in enumerate(result.logs):
        table.add_row(f"log {number}", escape(_shown_log(log, result)))
    Console(highlight=False).print(table)
