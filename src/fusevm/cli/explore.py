"""`fusevm explore`: a contract from source to machine code in the browser, or as one HTML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fusevm.cli import options
from fusevm.cli.inputs import HEX_DIGITS, BadInput, fork_or_exit, read_file, write_file
from fusevm.explorer.settings import ExplorerSettings, settings_from
from fusevm.explorer.starter import STARTER, STARTER_NAME


def explore(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="Yul, Solidity, Vyper, assembly, hex or an artifact; - for standard input; default: a small contract",
        ),
    ] = None,
    export: Annotated[Path | None, typer.Option(help="write one HTML file that needs no server, and end")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="print the address, open nothing")] = False,
    fork: Annotated[str, typer.Option("--fork", "-f", help="the fork whose opcodes exist")] = "osaka",
    runs: Annotated[int, typer.Option(min=0, help="how often the code is expected to run")] = 200,
    contract: options.ContractName = None,
    steps: Annotated[str | None, typer.Option(help="the sequence of optimiser steps, as yul optimize takes it")] = None,
) -> None:
    """Opens a page that shows what every step, rule and fusion did to a contract, and what it saved."""
    fork_or_exit(fork)
    source, name = (STARTER, STARTER_NAME) if file is None else _read(file)
    given = ExplorerSettings(source=source, name=name, fork=fork, runs=runs, steps=steps, contract=contract)
    settings = settings_from(given.to_json())
    if export is not None:
        _export(settings, export)
        return
    try:
        from fusevm.explorer.running import run
    except ImportError as error:
        raise BadInput(f"explore: {error.name} is not installed; pip install 'fusevm[explorer]'") from None
    run(settings, port, not no_browser, say=lambda text: print(text, flush=True))


def _export(settings: ExplorerSettings, path: Path) -> None:
    from fusevm.explorer.bundle import exported
    from fusevm.explorer.jobs import Jobs, failure

    asked = replace(settings, optimised=True).to_json()  # however long it takes: nobody waits at a page
    job: dict[str, Any] = {"do": "export", "settings": asked, "pinned": None, "calls": [], "parts": []}
    try:
        content = Jobs().do(job, lambda text: None)
    except Exception as error:
        remedy = "; say which with --contract" if "name the one that is meant" in str(error) else ""
        raise BadInput(f"{settings.name}: {failure(error)['message']}{remedy}") from None
    write_file(path, exported(content), "--export")
    print(f"{path}: {path.stat().st_size:,} bytes; open it in a browser")


def _read(file: str) -> tuple[str, str]:
    """The text and its name; raw bytes become hex."""
    digits = file.removeprefix("0x")
    if digits and not set(digits) - HEX_DIGITS and not Path(file[:255]).exists():
        return file, "code.hex"
    data = read_file(file, "a file of source or code")
    name = "standard input" if file == "-" else Path(file).name
    if not data.strip():
        raise BadInput(f"{name}: empty; Yul, Solidity, Vyper, assembly, hex or an artifact is needed")
    try:
        return data.decode("utf-8"), name
    except UnicodeDecodeError:
        return data.hex(), name
