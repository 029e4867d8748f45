"""A node from start to stop: the server, the state file, signals."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from fusevm.node.saving import StateFile, alone, load, restore_pending
from fusevm.node.server import NodeServer
from fusevm.node.talk import Printer, Talk
from fusevm.rpc.editing import dump
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
    mixed: bool = False  # at once, and at intervals as well
    impersonates: bool = False  # any account
    state: Path | None = None
    load_state: Path | None = None
    dump_state: Path | None = None
    config_out: Path | None = None
    state_seconds: float = 10.0
    call_seconds: float | None = CALL_SECONDS
    silent: bool = False
    verbosity: int = 0
    consoles: bool = True  # whether console.log is printed
    color: bool = False
    as_json: bool = False


def run(options: Options, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM. Raises BadValue where it cannot begin."""
    with nullcontext() if options.state is None else alone(options.state):
        _run(options, say, warn)


def _run(options: Options, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    source = options.load_state or options.state
    saved = None if source is None else load(source)
    if saved is None and options.load_state is not None:
        raise BadValue(f"--load-state {options.load_state}: no such file; --state begins without one")
    session = Session(options.config, saved=saved, call_seconds=options.call_seconds)
    if saved is not None:
        restore_pending(session, saved)
    session.automine = options.mines and (options.mixed or options.block_time is None)
    session.interval = options.block_time
    session.impersonates_all = options.impersonates
    if options.config_out is not None:
        write_config(options.config_out, options.config, session)
    if options.host not in LOOPBACK:
        warn(f"fusevm: {options.host} is not this machine alone: whoever reaches it can spend from all accounts")
    gc.collect()
    gc.freeze()  # current objects live as long as the node: the collector need not scan them again
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(options, session, say, warn))


async def _serve(options: Options, session: Session, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopped.set)
    file = None if options.state is None else StateFile(options.state, session, sync=options.state_seconds == 0)
    if file is not None:
        session.on_block.append(lambda block: _kept(file, warn))  # before the block is announced
    server = NodeServer(session)
    server.scheduler.keep = None if file is None else file.keep
    printer = None if options.silent else Printer(say)
    if printer is not None:
        server.scheduler.talk = _talk(options, session, printer)
        session.on_block.append(server.scheduler.talk.block)
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        listening = await _listen(runner, server, options)
        port = int(listening.sockets[0].getsockname()[1])
        if printer is not None:
            printer.say(_opening(options, session, port))
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
            await server.scheduler.on_chain(_kept, file, warn, file.close)
        if options.dump_state is not None:
            await server.scheduler.on_chain(write_dump, options.dump_state, session, warn)
        await server.close()
        await runner.cleanup()
        if printer is not None:
            await asyncio.to_thread(printer.close)


def _talk(options: Options, session: Session, printer: Printer) -> Talk:
    return Talk(
        session,
        printer.say,
        verbosity=options.verbosity,
        consoles=options.consoles,
        color=options.color,
        as_json=options.as_json,
    )


async def _listen(runner: web.AppRunner, server: NodeServer, options: Options) -> asyncio.Server:
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


def write_dump(path: Path, session: Session, warn: Callable[[str], None]) -> None:
    """In a folder, `state.json`, as anvil."""
    try:
        (path / "state.json" if path.is_dir() else path).write_text(json.dumps(dump(session)), "utf-8")
    except OSError as error:
        warn(f"fusevm: --dump-state {path}: not written: {error.strerror or error}")


def config_of(config: Config, session: Session) -> dict[str, Any]:
    """What the banner says, in anvil's form."""
    header = session.dev.head.header
    return {
        "available_accounts": ["0x" + address.hex() for address in session.dev.accounts],
        "private_keys": ["0x" + key.hex() for key in session.dev.keys.values()],
        "wallet": {"derivation_path": config.path, "mnemonic": config.mnemonic},
        "base_fee": str(header.base_fee or 0),
        "gas_limit": str(header.gas_limit),
        "gas_price": str((header.base_fee or 0) + config.tip),
        "genesis_timestamp": str(header.timestamp),
    }


def write_config(path: Path, config: Config, session: Session) -> None:
    try:
        path.write_text(json.dumps(config_of(config, session), indent=2) + "\n", "utf-8")
    except OSError as error:
        raise BadValue(f"--config-out {path}: cannot be written: {error.strerror or error}") from None


def _opening(options: Options, session: Session, port: int) -> str:
    if options.as_json:
        return json.dumps(
            {"event": "listening", "host": options.host, "port": port, **config_of(options.config, session)}
        )
    return banner(options.config, session, options.host, port)


def banner(config: Config, session: Session, host: str, port: int) -> str:
    """Accounts and keys, so that people can copy them; the last line says where the node listens."""
    dev, ether = session.dev, config.balance / ETHER
    keys = list(dev.keys.values())
    lines = ["Available Accounts", "=================="]
    lines += [f"({at}) 0x{address.hex()} ({ether:.18f} ETH)" for at, address in enumerate(dev.accounts)]
    lines += ["", "Private Keys", "=================="]
    lines += [f"({at}) 0x{key.hex()}" for at, key in enumerate(keys)]
    lines += ["", f"Mnemonic:  {config.mnemonic}", f"Chain ID:  {dev.chain_id}"]
    lines += [f"Base Fee:  {dev.head.header.base_fee}", f"Gas Limit: {dev.head.header.gas_limit}"]
    if session.upstream is not None:
        lines.append(f"Forked:    {session.upstream.url}, block {session.upstream.number}")
    return "\n".join([*lines, "", f"Listening on {host}:{port}"])
