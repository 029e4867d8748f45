"""`fusevm yul compile FILE`: bytecode, assembly and source maps of a Yul program."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Set
from typing import Annotated, Any

import typer

from fusevm.cli.inputs import BadInput, address_from, quit_with
from fusevm.cli.yul_inputs import Evm, File, Json, checked, dialect_or_exit, fail
from fusevm.codegen.listing import listing
from fusevm.codegen.pipeline import NAMES, NEEDED
from fusevm.codegen.source_map import debug_data
from fusevm.codegen.validation import Validation
from fusevm.codegen.yul import NO_COST, CompiledObject, StepOrder, compile_object, library_names
from fusevm.evm.assembler import ADDRESS_BYTES
from fusevm.evm.forks import Fork
from fusevm.evm.source_map import compressed
from fusevm.yul.syntax.errors import YulError


def compile_(
    file: File,
    fork: Evm = "latest",
    optimized: Annotated[
        bool, typer.Option("--optimize/--no-optimize", help="fold, inline and schedule, or translate as it stands")
    ] = True,
    runs: Annotated[int, typer.Option(min=0, help="how often the deployed code is expected to run; 0: smallest")] = 200,
    exact: Annotated[
        bool, typer.Option("--exact", help="run solc's optimiser steps, and compile their text without changing it")
    ] = False,
    without: Annotated[
        list[str] | None, typer.Option(help="a pass to leave out, as fusevm passes lists them; may be repeated")
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="check every pass by z3 or by runs, and drop what fails; takes longer")
    ] = False,
    library: Annotated[list[str] | None, typer.Option(help="NAME=ADDRESS for linkersymbol; may be repeated")] = None,
    link_placeholders: Annotated[
        bool, typer.Option("--link-placeholders", help="write solc's __$…$__ for libraries without an address")
    ] = False,
    runtime: Annotated[bool, typer.Option("--runtime", help="only the code that gets deployed")] = False,
    creation_hex: Annotated[bool, typer.Option("--bin", help="creation code as hex digits and nothing else")] = False,
    runtime_hex: Annotated[
        bool, typer.Option("--bin-runtime", help="deployed code as hex digits and nothing else")
    ] = False,
    asm: Annotated[
        bool, typer.Option("--asm", help="assembly with labels and offsets, which fusevm asm reads")
    ] = False,
    source_map: Annotated[
        bool, typer.Option("--source-map", help="what each instruction comes from: s:l:f:j:m")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compile to bytecode: creation code and, where the object has it, the runtime code it deploys."""
    dialect = dialect_or_exit(fork)
    if exact and not optimized:
        quit_with("--exact needs the optimiser: leave --no-optimize out")
    (obj, source), libraries = checked(file, dialect, as_json), _libraries(library or [])
    _check_given(libraries.keys(), library_names(obj))
    validation = Validation() if validate and optimized else None
    try:
        compiled = compile_object(
            obj,
            dialect,
            libraries,
            runs=runs if optimized else None,
            order=StepOrder.STEPS if exact else None,
            exact=exact,
            without=_left_out(without or []),
            validation=validation,
        )
    except YulError as error:
        fail([error], file, source, as_json)
    missing = {name for part in _parts(compiled) for name in part.libraries}
    if missing and not link_placeholders:
        names = ", ".join(sorted(missing))
        quit_with(f"no address of {names}: give --library NAME=ADDRESS for each, or --link-placeholders to link later")
    if (runtime or runtime_hex) and compiled.runtime is None:
        quit_with(f"{file} has no runtime object")
    if validation is not None:
        for dropped in validation.dropped:
            typer.echo(f"fusevm: {dropped}", err=True)
    if not as_json:
        for part in _parts(compiled):
            for note in part.notes:
                typer.echo(f"fusevm: {note}", err=True)
    shown = [compiled.runtime] if runtime and compiled.runtime is not None else [compiled]
    if as_json:
        typer.echo(json.dumps(_described(shown[0], dialect.fork, asm, source_map) | _validated(validation)))
    elif creation_hex or runtime_hex or asm or source_map:
        typer.echo("\n".join(_asked_for(compiled, shown[0], dialect.fork, creation_hex, runtime_hex, asm, source_map)))
    elif runtime:
        typer.echo("0x" + shown[0].placeholder_hex())
    else:
        typer.echo("\n".join(_hex_lines(compiled)))


def _left_out(names: list[str]) -> Set[str]:
    for name in names:
        if name in NEEDED:
            quit_with(f"--without {name}: code cannot be written without this pass")
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            hint = f"did you mean {near[0]!r}?" if near else "fusevm passes lists them"
            quit_with(f"--without {name}: there is no such pass; {hint}")
    return frozenset(names)


def _asked_for(
    whole: CompiledObject,
    shown: CompiledObject,
    fork: Fork,
    creation_hex: bool,
    runtime_hex: bool,
    asm: bool,
    source_map: bool,
) -> Iterator[str]:
    if creation_hex:
        yield whole.placeholder_hex()
    if runtime_hex and whole.runtime is not None:
        yield whole.runtime.placeholder_hex()
    if asm:
        yield listing(shown, fork)
    if source_map:
        for part in _parts(shown):
            yield compressed(part.locations.values())


def _parts(compiled: CompiledObject) -> Iterator[CompiledObject]:
    """The object and those in it, outermost first."""
    yield compiled
    for child in compiled.children.values():
        yield from _parts(child)


def _hex_lines(compiled: CompiledObject) -> list[str]:
    if compiled.runtime is None:
        return ["0x" + compiled.placeholder_hex()]
    return [f"creation: 0x{compiled.placeholder_hex()}", f"runtime:  0x{compiled.runtime.placeholder_hex()}"]


def _described(compiled: CompiledObject, fork: Fork, asm: bool, source_map: bool) -> dict[str, Any]:
    return {
        "name": compiled.name,
        "code": "0x" + compiled.placeholder_hex(),
        "size": len(compiled.code),
        "immutables": dict(compiled.immutables),
        "linkReferences": {
            name: [{"start": place, "length": ADDRESS_BYTES} for place in places]
            for name, places in compiled.libraries.items()
        },
        "order": compiled.order.value,
        "costs": {
            order.value: {"bytes": cost.bytes, "static_gas": round(cost.gas, 1)}
            for order, cost in compiled.costs.items()
            if cost is not NO_COST
        },
        "notes": list(compiled.notes),
        "runtime": compiled.runtime.name if compiled.runtime is not None else None,
        "functionDebugData": debug_data(compiled.functions),
        **(_map_of(compiled) if source_map else {}),
        **({"assembly": listing(compiled, fork, deep=False)} if asm else {}),
        "children": [_described(child, fork, asm, source_map) for child in compiled.children.values()],
    }


def _map_of(compiled: CompiledObject) -> dict[str, Any]:
    """With the names that an @use-src comment gives the sources; without one there is only the file itself, 0."""
    names = {str(number): name for number, name in compiled.source_names.items()}
    return {"sourceMap": compressed(compiled.locations.values()), "sourceNames": names}


def _validated(validation: Validation | None) -> dict[str, Any]:
    if validation is None:
        return {}
    return {
        "validation": {
            "proved": validation.proved,
            "tried": validation.tried,
            "unchecked": validation.unchecked,
            "dropped": [
                {
                    "pass": each.name,
                    "object": each.object_name,
                    "function": each.function,
                    "calldata": None if each.data is None else "0x" + each.data.hex(),
                }
                for each in validation.dropped
            ],
        }
    }


def _libraries(options: list[str]) -> dict[str, int]:
    libraries = {}
    for option in options:
        name, equals, address = option.rpartition("=")
        if not equals:
            quit_with(f"--library {option}: expected NAME=ADDRESS with an address of 20 bytes")
        try:
            libraries[name] = int.from_bytes(address_from(address, f"--library {name}"), "big")
        except BadInput as error:
            quit_with(str(error))
    return libraries


def _check_given(given: Set[str], known: Set[str]) -> None:
    unknown = sorted(given - known)
    if unknown:
        uses = f"it uses {', '.join(sorted(known))}" if known else "it uses none"
        quit_with(f"--library: the program does not use {', '.join(unknown)}; {uses}")
