"""`fusevm passes`: the compiler's list of passes, in the order in which they run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fusevm.codegen.pipeline import NEEDED, PARTS, PIPELINE, YUL_STEPS, Pass, Step
from fusevm.yul.sequence import COMPILED_SEQUENCE


def passes(as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False) -> None:
    """List the passes from Yul or bytecode to code, in their order. `fusevm yul compile --without` leaves one out."""
    if as_json:
        steps = {"name": YUL_STEPS.name, "what": YUL_STEPS.what, "sequence": COMPILED_SEQUENCE}
        parts = [part._asdict() for part in PARTS]
        typer.echo(json.dumps({"yul": steps, "passes": [_described(step) for step in PIPELINE], "parts": parts}))
        return
    typer.echo(f"{YUL_STEPS.name:20} {'Yul':18} {YUL_STEPS.what}: {COMPILED_SEQUENCE}")
    for line in _lines(PIPELINE, ""):
        typer.echo(line)


def _lines(steps: tuple[Step, ...], indent: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Pass):
            always = " (always)" if step.name in NEEDED else ""
            yield f"{indent + step.name:20} {step.level.value:18} {step.what}{always}"
            for part in PARTS:
                if part.of == step.name:
                    yield f"{indent + '  ' + part.name:20} {'part of ' + part.of:18} {part.what}"
        else:
            yield f"{indent}up to {step.most:,} times, while its first pass changes something:"
            yield from _lines(step.passes, indent + "  ")


def _described(step: Step) -> dict[str, Any]:
    if isinstance(step, Pass):
        return {"name": step.name, "level": step.level.value, "what": step.what, "always": step.name in NEEDED}
    return {"most": step.most, "passes": [_described(each) for each in step.passes]}
