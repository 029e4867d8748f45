"""`fusevm sweep`: one call with many values of its parameters, the results in a table."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fusevm import Batch, Call
from fusevm.abi import CannotDecode, Function
from fusevm.batch.pool import Pool
from fusevm.batch.tables import open_table
from fusevm.chain.outcome import Status
from fusevm.cli import options
from fusevm.cli.abi import shown_values
from fusevm.cli.inputs import BadInput
from fusevm.cli.sweep_spec import Row, Sweep, read_sweep

STATUSES = (*(status.value for status in Status), "failed")


def sweep(
    spec: Annotated[
        str, typer.Argument(help="a .json file: code, a call with $parameters, a grid or rows; or a .csv file of calls")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="a .parquet, .csv or .jsonl file")],
    code: Annotated[str | None, typer.Option(help="code or a .json state file, as for run (or the spec's)")] = None,
    jobs: Annotated[int, typer.Option("-j", min=1, help="processes")] = 1,
    dask: Annotated[str | None, typer.Option(help="address of a Dask scheduler to use instead")] = None,
    fork: options.ForkName = None,
    tier: Annotated[str | None, typer.Option(help="the tier to run on (default: the spec's, or auto)")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Call a contract with every combination of parameters, and write status, gas and output of each to a table."""
    work = read_sweep(spec, code, tier, fork)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    counts = [0] * len(STATUSES)
    small: dict[str, bool] = {}  # parameters that are numbers in the table; others are text
    with (
        open_table(output) as table,
        _pool(work, jobs, dask) as pool,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("calls", total=work.count)
        for rows, batch in _results(work, pool):
            small = small or {name: work.is_small(name) for name in rows[0]}
            table.add(_columns(rows, small, batch, work.function))
            bar.update(task, advance=len(batch))
            for status in batch.status.tolist():
                counts[status] += 1
    ended = {name: count for name, count in zip(STATUSES, counts, strict=True) if count}
    if as_json:
        typer.echo(json.dumps({"calls": sum(counts), "ended": ended, "output": str(output)}))
    else:
        listed = ", ".join(f"{count:,} {name}" for name, count in ended.items())
        typer.echo(f"{sum(counts):,} calls ({listed}) in {output}")


def _pool(work: Sweep, jobs: int, dask: str | None) -> AbstractContextManager[Pool]:
    from fusevm.batch import Cluster, Processes, Threads

    if dask is not None:
        try:
            from distributed import Client
        except ImportError as error:
            raise BadInput(f"--dask: {error.name} is not installed; pip install 'fusevm[batch]'") from None
        try:
            return Cluster(work.evm, Client(dask))
        except (OSError, ValueError) as error:
            raise BadInput(f"--dask {dask}: no scheduler answers there: {error}") from None
    return Processes(work.evm, jobs) if jobs > 1 else Threads(work.evm, 1)


def _results(work: Sweep, pool: Pool) -> Iterator[tuple[list[Row], Batch]]:
    """Rows and the results of their calls, in pieces: only pieces in flight are in memory."""
    waiting: deque[Row] = deque()

    def calls() -> Iterator[Call]:
        for number, row in enumerate(work.rows()):
            waiting.append(row)
            yield work.call(number, row)

    for batch in pool.stream(calls(), work.to, errors="keep"):
        yield [waiting.popleft() for _ in range(len(batch))], batch


def _columns(rows: list[Row], small: dict[str, bool], batch: Batch, function: Function | None) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [row.get(name) if number else str(row.get(name, "")) for row in rows] for name, number in small.items()
    }
    status = batch.status.tolist()
    columns["status"] = [STATUSES[each] for each in status]
    columns["gas_used"] = batch.gas_used.tolist()
    outputs = batch.outputs
    columns["output"] = ["0x" + output.hex() for output in outputs]
    if function is not None and function.outputs:
        decoded = [_decoded(function, output, each) for output, each in zip(outputs, status, strict=True)]
        for place in range(len(function.outputs)):
            columns[f"result{place}"] = [None if each is None else each[place] for each in decoded]
    columns["error"] = [None] * len(rows)
    for number, each in enumerate(status):
        if each:
            failed = batch.errors.get(number)
            columns["error"][number] = batch[number].error if failed is None else failed.error
    return columns


def _decoded(function: Function, output: bytes, status: int) -> list[str] | None:
    """The values that were returned, as text; words that are numbers bypass eth-abi."""
    if status:
        return None
    kinds = [each.type.name for each in function.outputs or ()]
    if all(kind == "uint256" for kind in kinds) and len(output) == 32 * len(kinds):
        return [str(int.from_bytes(output[at : at + 32], "big")) for at in range(0, len(output), 32)]
    try:
        return shown_values(function.decode(output))
    except CannotDecode:
        return None
