"""`fusevm node`: a development chain that clients connect to as they do to anvil."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fusevm.chain.checks import Checks
from fusevm.chain.dumps import state_from_document
from fusevm.cli.inputs import BadInput, parse_json, read_file, require_writable
from fusevm.cli.node_options import IDLE, Given, Idle
from fusevm.rpc.start import DEV_CHECKS, Config
from fusevm.values import to_number

NEWEST = "osaka"
VALUES = "values"
PANEL = "Of anvil, without effect here"


def node(**options: Any) -> None:
    """Runs a development node: JSON-RPC over HTTP and WebSocket, with funded accounts, as anvil has them.

    Options have anvil's names. Those of anvil that change nothing here are accepted, and a warning says why.
    """
    try:
        from fusevm.node.running import Options, run
    except ImportError as error:
        raise BadInput(f"node: {error.name} is not installed; pip install 'fusevm[node]'") from None
    values, may_have = options.pop(VALUES) or [], 0  # values of options that may have one
    for each in IDLE:
        if options.pop(_name(each)):
            may_have += each.takes_value is None
            _warn(f"fusevm: {each.flags[0]} changes nothing here: {each.why}")
    if len(values) > may_have:
        raise BadInput(f"node: {values[-1]!r} is not an option; options begin with --")
    given = Given(**options)
    try:
        given.host.encode("idna")
    except UnicodeError:
        raise BadInput(f"--host {given.host}: not the name or address of a machine") from None
    if given.fork_url is not None and (given.state or given.load_state or given.init):
        raise BadInput(
            "--fork-url: cannot be given with --state, --load-state or --init; what is forked is not all known"
        )
    if given.load_state is not None:
        parse_json(read_file(given.load_state, "a state as JSON"), str(given.load_state))
    if given.dump_state is not None:
        inside = given.dump_state / "state.json" if given.dump_state.is_dir() else given.dump_state  # as anvil
        require_writable(inside, "--dump-state")
    if given.color not in ("auto", "always", "never"):
        raise BadInput(f"--color: {given.color!r} is not auto, always or never")
    run(
        Options(
            config=_config(given),
            host=given.host,
            port=given.port,
            block_time=given.block_time,
            mines=not given.no_mining,
            mixed=given.mixed_mining,
            impersonates=given.auto_impersonate,
            state=given.state,
            load_state=given.load_state,
            dump_state=given.dump_state,
            config_out=given.config_out,
            state_seconds=given.state_interval,
            call_seconds=given.call_timeout,
            silent=given.silent,
            verbosity=4 if given.print_traces else given.verbosity,
            consoles=not given.disable_console_log,
            color=given.color == "always" or (given.color == "auto" and sys.stdout.isatty()),
            as_json=given.as_json,
        ),
        say=lambda text: print(text, flush=True),
        warn=_warn,
    )


def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _config(given: Given) -> Config:
    genesis = {} if given.init is None else _genesis(given.init)
    url, block = _fork(given)
    chain_id = given.chain_id
    if chain_id is None and isinstance(genesis.get("config"), dict) and "chainId" in genesis["config"]:
        chain_id = to_number(genesis["config"]["chainId"], "--init: config.chainId", 64)
    timestamp, gas_limit = genesis.get("timestamp", given.timestamp), genesis.get("gasLimit", given.gas_limit)
    return Config(
        chain_id=chain_id,
        mnemonic=given.mnemonic,
        path=given.derivation_path,
        accounts=given.accounts,
        balance=given.balance * 10**18,
        hardfork=NEWEST if given.hardfork == "latest" else given.hardfork,
        gas_limit=to_number(gas_limit, "--init: gasLimit", 63),
        base_fee=given.base_fee,
        tip=0 if given.disable_min_priority_fee else Config.tip,
        timestamp=None if timestamp is None else to_number(timestamp, "--init: timestamp", 64),
        number=given.number,
        alloc=None if given.init is None else {"alloc": genesis.get("alloc", {})},
        slots_in_an_epoch=given.slots_in_an_epoch,
        create2_deployer=not given.disable_default_create2_deployer,
        checks=Checks(
            eoa=DEV_CHECKS.eoa,
            gas_cap=not given.disable_block_gas_limit,
            tx_gas_cap=given.enable_tx_gas_limit,
            code_size=not given.disable_code_size_limit,
            max_code_size=given.code_size_limit,
        ),
        fork_url=url,
        fork_block=block,
    )


def _genesis(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"--init {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"--init {path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"--init {path}: expected an object with 'alloc', as genesis.json has it")
    state_from_document({"alloc": found.get("alloc", {})})
    return found


def _fork(given: Given) -> tuple[str | None, str | int]:
    """The URL of the node that is forked, and the block after which."""
    url, block = given.fork_url, given.fork_block_number
    if url is None:
        return None, "latest"
    before, _, number = url.rpartition("@")
    if before and number.isdigit():
        url, block = before, int(number) if block is None else block
    if block is None:
        return url, "latest"
    if block >= 0:
        return url, block
    from fusevm.chain.sources.node import NodeSource

    return url, max(to_number(NodeSource.at(url).header["number"], "the other node's block number") + block, 0)


def _name(idle: Idle) -> str:
    return "idle_" + idle.flags[0].strip("-").replace("-", "_")


def _signature() -> inspect.Signature:
    """Of the command, as typer reads it: the fields of `Given`, then what is only accepted."""
    hints = get_type_hints(Given, include_extras=True)
    listed = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(Given)
    ]
    for each in IDLE:
        kind = str | None if each.takes_value else bool
        option = typer.Option(*each.flags, rich_help_panel=PANEL, help=each.why)
        annotation = Annotated[kind, option]  # type: ignore[valid-type]
        default = None if each.takes_value else False
        listed.append(
            inspect.Parameter(_name(each), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    more = Annotated[list[str] | None, typer.Argument(hidden=True)]
    return inspect.Signature(
        [*listed, inspect.Parameter(VALUES, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=more)]
    )


node.__signature__ = _signature()  # type: ignore[attr-defined]
