"""Options that several commands share, spelt once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Code = Annotated[str, typer.Argument(help="hex, 0x-hex, a file of hex or binary, or - for standard input")]
CodeFork = Annotated[str, typer.Option("--fork", "-f", help="the fork whose opcodes exist")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="CODE",
        help="hex, a file of hex or binary, - for standard input, a .json state file, or a build tool's artifact",
    ),
]
Data = Annotated[str | None, typer.Option("--data", "-d", help="calldata in hex")]
Sig = Annotated[
    str | None,
    typer.Option(help="'transfer(address,uint256)' or 'balanceOf(address)(uint256)'; of an artifact the name alone"),
]
Args = Annotated[
    list[str] | None, typer.Option("--args", "-a", help="the arguments of --sig: --args A B C, lists as JSON")
]
MoreArgs = Annotated[list[str] | None, typer.Argument(hidden=True, metavar="[ARGS]...")]
Value = Annotated[int | None, typer.Option(help="wei to send")]
Caller = Annotated[str | None, typer.Option(help="address of the caller")]
To = Annotated[str | None, typer.Option(help="address of the code")]
Gas = Annotated[int | None, typer.Option(help="gas limit of the call")]
ForkName = Annotated[
    str | None, typer.Option("--fork", "-f", help="frontier … osaka (default: osaka, or the state file's)")
]
Tier = Annotated[str, typer.Option(help="auto, native, regions, lockstep, reference or another one (docs/api.md)")]
Create = Annotated[
    bool,
    typer.Option(
        "--create", help="the code is init code: deploy it, then call what it deployed; trace it if no call is given"
    ),
]
ContractName = Annotated[str | None, typer.Option("--contract", help="which one, where an artifact has several")]
ConstructorArgs = Annotated[
    str | None, typer.Option("--constructor", help="the arguments of an artifact's constructor: '1000 0xa1…'")
]
BlockFields = Annotated[
    list[str] | None,
    typer.Option(
        "--block", help="a field of the block: number=5, timestamp=…, coinbase=0x…, chain_id=…; may be repeated"
    ),
]
Sources = Annotated[
    list[Path] | None,
    typer.Option("--artifact", help="an artifact with sources, for the stack trace of a failure; as many as needed"),
]
AsJson = Annotated[bool, typer.Option("--json", help="for machines")]
ForkUrl = Annotated[
    str | None, typer.Option("--fork-url", help="run on a node's state; CODE may be the address of a contract there")
]
ForkBlock = Annotated[
    str | None, typer.Option("--fork-block", help="number, hash or tag of the block to fork from (default: latest)")
]
LoadState = Annotated[
    str | None, typer.Option("--load-state", help="file to start from: geth's alloc, genesis or dump, or anvil's dump")
]
DumpState = Annotated[
    str | None, typer.Option("--dump-state", help="file to write the state to afterwards, as geth's alloc")
]

Shared = dict[str, tuple[Any, object]]  # parameters of several commands: their types, and defaults
REQUIRED = inspect.Parameter.empty


def takes(shared: Shared, read: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command these options. It gets what `read` makes of them, before its own."""

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        kinds = get_type_hints(command, include_extras=True)
        own = list(inspect.signature(command).parameters.values())[1:]

        def run(**given: Any) -> None:
            command(read(**{name: given.pop(name) for name in shared}), **given)

        parameters = shared | {each.name: (kinds[each.name], each.default) for each in own}
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, (kind, default) in parameters.items()
            ]
        )
        return run

    return taking
