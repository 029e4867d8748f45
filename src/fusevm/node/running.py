"""A node from start to stop: the server, the state file, signals."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from fusevm.node.saving import StateFile, alone, load, restore_pending
from fusevm.node.server import Server
from fusevm.rpc.mnemonic import keys_of
from fusevm.rpc.session import CALL_SECONDS, Session
from fusevm.rpc.start import Config
from fusevm.values import BadValue

ETHER = 10**18
LOOPBACK = ("127.0.0.1", "::1", "localhost")
STOP_SECONDS = 5.0  # that open connections have when the node stops


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    config: Config
    host: str = "127.0.0.1"
    port: int = 8545
    block_time: float | None = None
    mines: bool = True
    state: Path | None = None
    state_seconds: float = 10.0
    call_seconds: float | None = CALL_SECONDS
    silent: bool = False


def run(options: Options, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM. Raises BadValue where it cannot begin."""
    with nullcontext() if options.state is None else alone(options.state):
        _run(options, say, warn)


def _run(options: Options, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    saved = None if options.state is None else load(options.state)
    session = Session(options.config, saved=saved, call_seconds=options.call_seconds)
    if saved is not None:
        restore_pending(session, saved)
    session.automine = options.mines and options.block_time is None
    session.interval = options.block_time
    if options.host not in LOOPBACK:
        warn(f"fusevm: {options.host} is not this machine alone: whoever reaches it can spend from all accounts")
    gc.collect()
    gc.freeze()  # current objects live as long as the node: the collector need not scan them again
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(options, session, (lambda text: None) if options.silent else say, warn))


async def _serve(options: Options, session: Session, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopped.set)
    file = None if options.state is None else StateFile(options.state, session, sync=options.state_seconds == 0)
    if file is not None:
        session.on_block.append(lambda block: _kept(file, warn))  # before the block is announced
    server = Server(session)
    server.lanes.keep = None if file is None else file.keep
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        listening = await _listen(runner, server, options)
        port = int(listening.sockets[0].getsockname()[1])
        say(banner(session.config, session, options.host, port))
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(server.mine_at_intervals())]
        if file is not None and options.state_seconds:
            tasks.append(asyncio.create_task(_sync_at_intervals(file, options.state_seconds)))
        tasks.append(asyncio.create_task(stopped.wait(), name="stop"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            listening.close()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        if file is not None:
            await server.lanes.on_chain(_kept, file, warn, file.close)
        await server.close()
        await runner.cleanup()


async def _listen(runner: web.AppRunner, server: Server, options: Options) -> asyncio.Server:
    other = runner.server
    assert other is not None
    try:
        return await asyncio.get_running_loop().create_server(
            lambda: server.protocol(other), options.host, options.port, reuse_address=True
        )
    except OSError as error:
        where = f"{options.host}:{options.port}"
        raise BadValue(f"--port {options.port}: cannot listen on {where}: {error.strerror or error}") from None


async def _sync_at_intervals(file: StateFile, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(file.sync)


def _kept(file: StateFile, warn: Callable[[str], None], write: Callable[[], None] | None = None) -> None:
    """A file that cannot be written is reported in one line; the node continues and tries again."""
    try:
        (write or file.keep)()
    except OSError as error:
        warn(f"fusevm: --state {file.path}: not written: {error.strerror or error}; make room, or give another file")


def banner(config: Config, session: Session, host: str, port: int) -> str:
    """Accounts and keys, so that people can copy them; the last line says where the node listens."""
    dev, ether = session.dev, config.balance / ETHER
    keys = keys_of(config.mnemonic, config.accounts)
    lines = ["Available Accounts", "=================="]
    lines += [f"({at}) 0x{address.hex()} ({ether:.18f} ETH)" for at, address in enumerate(dev.accounts)]
    lines += ["", "Private Keys", "=================="]
    lines += [f"({at}) 0x{key.hex()}" for at, key in enumerate(keys)]
    lines += ["", f"Mnemonic:  {config.mnemonic}", f"Chain ID:  {dev.chain_id}"]
    lines += [f"Base Fee:  {dev.head.header.base_fee}", f"Gas Limit: {dev.head.header.gas_limit}"]
    if session.upstream is not None:
        lines.append(f"Forked:    {session.upstream.url}, block {session.upstream.number}")
    return "\n".join([*lines, "", f"Listening on {host}:{port}"])
