"""`fusevm node`: a development chain that clients connect to as they do to anvil."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fusevm.cli.inputs import BadInput
from fusevm.rpc.mnemonic import TEST_MNEMONIC
from fusevm.rpc.start import ACCOUNTS, BASE_FEE, GAS_LIMIT, Config


def node(
    host: Annotated[str, typer.Option(help="address to listen on; anything but this machine warns")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = 8545,
    chain_id: Annotated[int | None, typer.Option(min=1, help="31337, or that of the chain that is forked")] = None,
    accounts: Annotated[int, typer.Option("--accounts", "-a", min=0, max=1000, help="how many are funded")] = ACCOUNTS,
    balance: Annotated[int, typer.Option(min=0, help="ether of each account")] = 10_000,
    mnemonic: Annotated[str, typer.Option("--mnemonic", "-m", help="of the accounts' keys")] = TEST_MNEMONIC,
    hardfork: Annotated[str, typer.Option(help="the rules of all blocks")] = "osaka",
    gas_limit: Annotated[int, typer.Option(min=5000, help="of a block")] = GAS_LIMIT,
    base_fee: Annotated[int, typer.Option("--base-fee", min=0, help="wei, of the first block")] = BASE_FEE,
    timestamp: Annotated[int | None, typer.Option(min=0, help="of the first block; default: now")] = None,
    block_time: Annotated[
        float | None, typer.Option("--block-time", "-b", min=0.01, help="seconds between blocks, instead of at once")
    ] = None,
    no_mining: Annotated[bool, typer.Option("--no-mining", help="blocks only on request")] = False,
    fork: Annotated[str | None, typer.Option("--fork", "--fork-url", "-f", help="begin on this node's state")] = None,
    fork_block: Annotated[int | None, typer.Option("--fork-block-number", min=0, help="default: its latest")] = None,
    state: Annotated[Path | None, typer.Option(help="file to load the state from, and to keep it in")] = None,
    state_interval: Annotated[
        float, typer.Option(min=0, help="seconds until changes are on the disk; 0: before they are answered")
    ] = 10.0,
    call_timeout: Annotated[float, typer.Option(min=0.1, help="seconds that a call may take")] = 30.0,
    silent: Annotated[bool, typer.Option("--silent", help="print nothing")] = False,
) -> None:
    """Runs a development node: JSON-RPC over HTTP and WebSocket, with funded accounts, as anvil has them."""
    try:
        from fusevm.node.running import Options, run
    except ImportError as error:
        raise BadInput(f"node: {error.name} is not installed; pip install 'fusevm[node]'") from None
    if state is not None and fork is not None:
        raise BadInput("--state: cannot be given with --fork; what is forked is not all known")
    config = Config(
        chain_id=chain_id,
        mnemonic=mnemonic,
        accounts=accounts,
        balance=balance * 10**18,
        hardfork=hardfork,
        gas_limit=gas_limit,
        base_fee=base_fee,
        timestamp=timestamp,
        fork_url=fork,
        fork_block="latest" if fork_block is None else fork_block,
    )
    options = Options(
        config=config,
        host=host,
        port=port,
        block_time=block_time,
        mines=not no_mining,
        state=state,
        state_seconds=state_interval,
        call_seconds=call_timeout,
        silent=silent,
    )
    run(options, say=lambda text: print(text, flush=True), warn=lambda text: print(text, file=sys.stderr, flush=True))
