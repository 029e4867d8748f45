"""`fusevm yul optimize FILE`: the Yul optimiser, with a look over its shoulder."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fusevm.cli.inputs import quit_with
from fusevm.cli.yul_inputs import Evm, File, Json, checked, dialect_or_exit
from fusevm.yul.analysis.metrics import code_size, estimated_gas
from fusevm.yul.optimise import StepEvent
from fusevm.yul.optimise import optimize as optimized
from fusevm.yul.sequence import SequenceError, read_sequences
from fusevm.yul.syntax.ast import Block, Object
from fusevm.yul.syntax.dialect import Dialect
from fusevm.yul.syntax.printer import print_block, print_object

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def optimize(
    file: File,
    steps: Annotated[
        str | None,
        typer.Option(
            help="steps by letter, […] until stable: 'xa[r]c'; or by name: 'ExpressionSplitter,SSATransform', one "
            "alone too; the cleanup sequence after a colon, 'UnusedPruner:' has none (default: solc's sequences)"
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=0, help="how often the deployed code is expected to run")] = 200,
    fork: Evm = "latest",
    trace_steps: Annotated[
        bool, typer.Option("--trace-steps", help="a diff for every step that changes anything")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="a table of time, calls and effect by step")] = False,
    as_json: Json = False,
) -> None:
    """Optimise a program and print it. Objects named …_deployed are runtime code, the outermost is creation code."""
    try:
        read_sequences(steps)
    except SequenceError as error:
        quit_with(str(error))
    dialect = dialect_or_exit(fork)
    obj, _ = checked(file, dialect, as_json)
    watcher = StepPrinter(dialect) if trace_steps or stats or as_json else None
    result = optimized(obj, dialect, runs, steps, watcher.watch if watcher is not None else None)
    text = print_object(result)
    if as_json:
        assert watcher is not None
        typer.echo(json.dumps(_described(text, obj, result, dialect, watcher)))
        return
    if watcher is not None:
        _show(watcher, trace_steps, stats)
    typer.echo(text)


@dataclass(slots=True)
class Change:
    """What one run of a step did to the code of one object."""

    object_name: str
    step: str
    size: int
    gas: int
    diff: list[str]


@dataclass(slots=True)
class StepTotal:
    """All runs of a step together."""

    calls: int = 0
    changes: int = 0
    seconds: float = 0.0
    size: int = 0
    gas: int = 0


@dataclass(slots=True)
class _Seen:
    text: str
    size: int
    gas: int


@dataclass(slots=True)
class StepPrinter:
    """Inspects the code after each step."""

    dialect: Dialect
    changes: list[Change] = field(default_factory=list)
    totals: dict[str, StepTotal] = field(default_factory=dict)
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def watch(self, event: StepEvent) -> None:
        total = self.totals.setdefault(event.step.name, StepTotal())
        total.calls += 1
        total.seconds += event.seconds
        before = self._seen.get(event.object_name)
        text = print_block(event.block)
        if before is not None and before.text == text:
            return
        now = self._seen[event.object_name] = _Seen(text, *_measure(event.block, self.dialect))
        if before is None:
            return
        size, gas = now.size - before.size, now.gas - before.gas
        total.changes += 1
        total.size += size
        total.gas += gas
        diff = difflib.unified_diff(before.text.splitlines(), text.splitlines(), lineterm="", n=2)
        self.changes.append(Change(event.object_name, event.step.name, size, gas, list(diff)[2:]))


def _measure(block: Block, dialect: Dialect) -> tuple[int, int]:
    return code_size(block, with_functions=True), estimated_gas(dialect, block)


def _show(watcher: StepPrinter, trace_steps: bool, stats: bool) -> None:
    """On standard error: standard output is the program."""
    console = Console(stderr=True, highlight=False)
    if trace_steps:
        for change in watcher.changes:
            where = f" in {change.object_name}" if change.object_name else ""
            console.print(f"[bold]{change.step}[/bold]{where}: size {change.size:+d}, gas {change.gas:+d}")
            for line in change.diff:
                console.print(Text(line, style=_COLOURS.get(line[:1], "")), soft_wrap=True)
            console.print()
    if stats:
        console.print(_table(watcher))


def _table(watcher: StepPrinter) -> Table:
    table = Table(title="steps by time")
    for column in ("step", "calls", "changed", "ms", "size", "gas"):
        table.add_column(column, justify="left" if column == "step" else "right")
    for name, total in sorted(watcher.totals.items(), key=lambda item: -item[1].seconds):
        table.add_row(
            name,
            str(total.calls),
            str(total.changes),
            f"{total.seconds * 1000:.1f}",
            f"{total.size:+d}",
            f"{total.gas:+d}",
        )
    calls = sum(total.calls for total in watcher.totals.values())
    seconds = sum(total.seconds for total in watcher.totals.values())
    table.add_section()
    table.add_row("together", str(calls), "", f"{seconds * 1000:.1f}", "", "")
    return table


def _described(text: str, before: Object, after: Object, dialect: Dialect, watcher: StepPrinter) -> dict[str, Any]:
    return {
        "text": text,
        "size": {"before": _size(before), "after": _size(after)},
        "gas": {"before": _gas(before, dialect), "after": _gas(after, dialect)},
        "steps": {
            name: {
                "calls": total.calls,
                "changes": total.changes,
                "seconds": round(total.seconds, 6),
                "size": total.size,
                "gas": total.gas,
            }
            for name, total in watcher.totals.items()
        },
        "changes": [
            {"object": each.object_name, "step": each.step, "size": each.size, "gas": each.gas}
            for each in watcher.changes
        ],
    }


def _objects(obj: Object) -> list[Object]:
    return [obj, *(inner for child in obj.children if isinstance(child, Object) for inner in _objects(child))]


def _size(obj: Object) -> int:
    return sum(code_size(each.code, with_functions=True) for each in _objects(obj))


def _gas(obj: Object, dialect: Dialect) -> int:
    return sum(estimated_gas(dialect, each.code) for each in _objects(obj))
