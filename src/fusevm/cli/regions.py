"""`fusevm regions`: which parts of some code are compiled as regions, why the rest is not, and what becomes of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fusevm.chain.environment import Context
from fusevm.cli import options
from fusevm.cli.execution import CallOptions, Prepared, prepare, takes_request
from fusevm.cli.inputs import BadInput

if TYPE_CHECKING:
    from fusevm.lab.regions.report import CodeRegions, Entry

_FORMS = ("ir", "llvm", "asm")


@takes_request
def regions(
    request: CallOptions,
    everything: Annotated[
        bool, typer.Option("--all", help="all functions and loops of the code, without running it")
    ] = False,
    at: Annotated[str | None, typer.Option(help="one region: the pc where it begins, as 0x1f or 31")] = None,
    as_ir: Annotated[bool, typer.Option("--ir", help="the folded functions")] = False,
    as_llvm: Annotated[bool, typer.Option("--llvm", help="LLVM's text, optimised")] = False,
    as_asm: Annotated[bool, typer.Option("--asm", help="machine code as text")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run a call once, counting, and show which regions would be compiled: where they begin, what they do, what not."""
    forms = [form for form, wanted in zip(_FORMS, (as_ir, as_llvm, as_asm), strict=True) if wanted]
    if len(forms) + as_json > 1:
        raise BadInput("give one of --ir, --llvm, --asm and --json")
    prepared = prepare(request)
    found = _found(prepared, everything)
    if at is not None:
        found = [each for each in found if _place(at) in each.unit.entries]
        if not found:
            raise BadInput(f"no region begins at pc {at}; `fusevm regions` without --at lists them")
    if as_json:
        typer.echo(json.dumps([_as_data(each) for each in found]))
        return
    place = None if at is None else _place(at)
    for each in found:
        if forms:
            typer.echo({"ir": each.ir, "llvm": each.llvm, "asm": each.assembly}[forms[0]](place))
        else:
            _show(each, place)


def _place(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise BadInput(f"--at: {text!r} is not a pc; write 0x1f or 31") from None


def _found(prepared: Prepared, everything: bool) -> list[CodeRegions]:
    """Of every code that the call ran, that of the account called first."""
    from fusevm.lab.regions.report import counted_call, regions_in

    evm, to = prepared.evm, prepared.to
    if to is None:
        raise BadInput("which call? give --sig or --data")
    code = evm.get_code(to)
    if not code:
        raise BadInput(f"0x{to.hex()} has no code")
    if everything:
        return [regions_in(code, evm.fork, None)]
    context = Context(evm.fork, evm.block, prepared.caller)
    _, counting = counted_call(evm.state, context, prepared.caller, to, prepared.data, prepared.value, prepared.gas)
    return [regions_in(each, fork, counting.counts(each, fork)) for each, fork in counting.codes()]


def _show(found: CodeRegions, at: int | None) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    columns = ("pc", "count", "kind", "takes", "leaves", "blocks", "instructions")
    for name in columns:
        table.add_column(name, justify="left" if name == "kind" else "right")
    for name in ("loops", "calls", "left at"):
        table.add_column(name, overflow="fold")
    for entry in found.entries:
        if at is None or entry.pc == at:
            table.add_row(*_row(entry))
    size = sum(entry.instructions for entry in found.entries)
    console.print(f"code of {len(found.code):,} bytes: {len(found.entries)} entries, {size:,} instructions once folded")
    if found.entries:
        console.print(table)
    if found.failure:
        console.print(f"refused: {found.failure}", markup=False)
    for pc, why in sorted(found.refused.items(), key=lambda pair: -found.counts.get(pair[0], 0)):
        console.print(f"not in a region: 0x{pc:x}, run {found.counts.get(pc, 0):,} times: {why}", markup=False)


def _row(entry: Entry) -> tuple[str, ...]:
    count = "" if entry.count is None else f"{entry.count:,}"
    leaves = "" if entry.leaves is None else str(entry.leaves)
    numbers = (str(entry.takes), leaves, str(entry.blocks), str(entry.instructions))
    lists = (" ".join(f"0x{pc:x}" for pc in each) for each in (entry.loops, entry.calls, entry.exits))
    return (f"0x{entry.pc:x}", count, entry.kind, *numbers, *lists)


def _as_data(found: CodeRegions) -> dict[str, object]:
    refused = [{"pc": pc, "count": found.counts.get(pc, 0), "reason": why} for pc, why in sorted(found.refused.items())]
    return {
        "size": len(found.code),
        "fork": found.fork.label,
        "entries": [asdict(entry) for entry in found.entries],
        "refused": refused,
        "failure": found.failure or None,
    }
