"""`fusevm run`: run code and say what came of it."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fusevm.chain.result import Result
from fusevm.cli import options
from fusevm.cli.execution import Request, prepare
from fusevm.cli.start import Start, write_dump


def run(
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
    tier: options.Tier = "auto",
    create: options.Create = False,
    fork_url: options.ForkUrl = None,
    fork_block: options.ForkBlock = None,
    load_state: options.LoadState = None,
    dump_state: options.DumpState = None,
    as_json: options.AsJson = False,
) -> None:
    """Run bytecode or a call on a state file. Exits 1 if the call did not succeed."""
    start = Start(fork_url, fork_block, load_state)
    prepared = prepare(
        Request(code, data, sig, [*(args or ()), *(more or ())], value, caller, to, gas, fork, tier, create, start)
    )
    result = prepared.run()
    if dump_state is not None:
        write_dump(prepared.evm, dump_state)
    decoded = prepared.signature.decode(result.output) if prepared.signature and result.ok else None
    if as_json:
        typer.echo(json.dumps(result.as_json() | ({"decoded": decoded} if decoded is not None else {})))
    else:
        show(result, decoded)
    if not result.ok:
        raise typer.Exit(1)


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
        topics = " ".join(f"0x{topic:064x}" for topic in log.topics)
        table.add_row(f"log {number}", f"0x{log.address.hex()} {topics} 0x{log.data.hex()}")
    Console(highlight=False).print(table)
