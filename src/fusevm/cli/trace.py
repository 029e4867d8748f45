"""`fusevm trace`: every step of a run, as a table or as EIP-3155 lines; or what one of geth's tracers says of it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from fusevm import EVM, Result
from fusevm.chain.addresses import create_address
from fusevm.cli import options
from fusevm.cli.execution import CallOptions, Prepared, prepare, takes_request
from fusevm.cli.inputs import BadInput, parse_json
from fusevm.cli.run import show
from fusevm.cli.stack_trace import show_stack_trace
from fusevm.lab.peers.work import deep_recursion
from fusevm.reference.hooks import Hooks, Step
from fusevm.reference.tracer import eip3155_summary, tracing_hooks
from fusevm.tracing.requests import TraceRequest as Traced
from fusevm.tracing.tracers import tracer_named

SHOWN_WORDS = 6

Memory = Annotated[bool, typer.Option("--memory", help="the memory before each step as well")]
ReturnData = Annotated[bool, typer.Option(help="what the last call returned, in --json lines")]
AsTransaction = Annotated[bool, typer.Option("--tx", help="as a transaction: with intrinsic gas, nonce and refund")]
TracerName = Annotated[
    str | None, typer.Option("--tracer", help="callTracer, prestateTracer, 4byteTracer, noopTracer or structLogs")
]
TracerConfig = Annotated[str | None, typer.Option("--config", help='its options, as JSON: {"withLog": true}')]


@takes_request
def trace(
    request: CallOptions,
    as_transaction: AsTransaction = False,
    tracer: TracerName = None,
    config: TracerConfig = None,
    memory: Memory = False,
    returndata: ReturnData = True,
    sources: options.Sources = None,
    as_json: options.AsJson = False,
) -> None:
    """Trace a run step by step; --json gives EIP-3155 lines. Exits 1 if the call did not succeed."""
    request.tier, request.traces_creation = "reference" if tracer is None else "auto", True
    prepared = prepare(request)
    run = _Runner(prepared, as_transaction, request.gas)
    if tracer is not None:
        result = _tracer_says(run, tracer, config)
    elif config is not None:
        raise BadInput("--config: needs --tracer")
    elif as_json:
        result = run.hooked(tracing_hooks(sys.stdout.write, memory=memory, returndata=returndata))
        typer.echo(json.dumps(eip3155_summary(result, prepared.evm.state_root)))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print("[bold]   pc  opcode               gas    cost  stack, top first[/]")
        result = run.hooked(Hooks(on_opcode=lambda step: console.print(_line(step), markup=False), memory=memory))
        console.print()
        show(result)
        show_stack_trace(prepared, result, sources)
    if not result.ok:
        raise typer.Exit(1)


class _Runner:
    """Runs what was asked for, as a message or as a transaction."""

    def __init__(self, prepared: Prepared, as_transaction: bool, gas: int | None) -> None:
        self.prepared = prepared
        self.as_transaction = as_transaction
        self.evm: EVM = prepared.evm
        cap = min(self.evm.block.gas_limit, self.evm.rules.tx_gas_cap)
        self.gas = cap if as_transaction and gas is None else prepared.gas

    def __call__(self) -> Result:
        asked = self.prepared
        if not self.as_transaction:
            return asked.message()
        return self.evm.transact(asked.caller, asked.to, asked.data, value=asked.value, gas=self.gas)

    def hooked(self, hooks: Hooks) -> Result:
        self.evm.hooks = hooks
        try:
            return self()
        finally:
            self.evm.hooks = None


def _tracer_says(run: _Runner, name: str, config: str | None) -> Result:
    """Prints the tracer's answer."""
    asked, evm = run.prepared, run.evm
    parsed: Any = {} if config is None else parse_json(config, "--config")
    tracer = tracer_named(name, parsed)
    to = create_address(asked.caller, evm.get_nonce(asked.caller)) if asked.to is None else asked.to
    traced = Traced(
        asked.caller, to, asked.data, asked.value, run.gas, asked.to is None, evm.block.coinbase, evm.fork
    )  # fmt: skip
    results: list[Result] = []

    def once() -> Result:
        results.append(run())
        return results[0]

    typer.echo(_text(tracer.run(evm, evm.state, traced, once)))
    return results[0]


def _text(form: dict[str, Any]) -> str:
    """Indented; a tree of a thousand calls is one line, since that is too deep to indent."""
    try:
        return json.dumps(form, indent=2)
    except RecursionError:
        with deep_recursion():
            return json.dumps(form)


def _line(step: Step) -> str:
    words = [f"{word:x}" for word in reversed(step.stack[-SHOWN_WORDS:])]
    more = " …" if len(step.stack) > SHOWN_WORDS else ""
    error = f"  ← {step.error}" if step.error else ""
    indent = "  " * (step.depth - 1)
    stack = " ".join(words)
    memory = f"\n       memory 0x{step.memory.hex()}" if step.memory else ""
    return f"{step.pc:5}  {indent + step.name:15} {step.gas:>9} {step.gas_cost:>7}  {stack}{more}{error}{memory}"
