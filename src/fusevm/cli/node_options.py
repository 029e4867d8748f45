"""The options of `fusevm node`, under anvil's names: those with a meaning here, and those that are only accepted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fusevm.rpc.mnemonic import ETHEREUM_PATH, TEST_MNEMONIC
from fusevm.rpc.start import ACCOUNTS, BASE_FEE, GAS_LIMIT, SLOTS_IN_AN_EPOCH

_SERVER, _FORK, _RULES, _PRINTED = "Server", "Fork", "Rules", "Printed"


@dataclass(frozen=True)
class Given:
    """What the command line says: a field is an option, with its default."""

    accounts: Annotated[int, typer.Option("--accounts", "-a", min=0, max=1000, help="how many are funded")] = ACCOUNTS
    balance: Annotated[int, typer.Option(min=0, help="ether of each account")] = 10_000
    mnemonic: Annotated[str, typer.Option("--mnemonic", "-m", help="of the accounts' keys")] = TEST_MNEMONIC
    derivation_path: Annotated[str, typer.Option(help="of the accounts' keys, but for their number")] = ETHEREUM_PATH
    block_time: Annotated[
        float | None,
        typer.Option("--block-time", "--blockTime", "-b", min=0.01, help="seconds between blocks, instead of at once"),
    ] = None
    mixed_mining: Annotated[bool, typer.Option("--mixed-mining", help="with --block-time: at once as well")] = False
    no_mining: Annotated[bool, typer.Option("--no-mining", "--no-mine", help="blocks only on request")] = False
    timestamp: Annotated[int | None, typer.Option(min=0, help="of the first block; default: now")] = None
    number: Annotated[int, typer.Option(min=0, help="of the first block")] = 0
    init: Annotated[Path | None, typer.Option(help="genesis.json: its accounts, chain, time and gas limit")] = None
    slots_in_an_epoch: Annotated[int, typer.Option(min=1, help="blocks until one is safe")] = SLOTS_IN_AN_EPOCH
    state: Annotated[Path | None, typer.Option(help="file to load the state from, and to keep it in")] = None
    load_state: Annotated[Path | None, typer.Option(help="file to load the state from")] = None
    dump_state: Annotated[Path | None, typer.Option(help="file to write the state to when the node stops")] = None
    state_interval: Annotated[
        float, typer.Option("--state-interval", "-s", min=0, help="seconds until changes are on the disk; 0: at once")
    ] = 10.0
    config_out: Annotated[Path | None, typer.Option(help="file for the accounts and keys, as JSON")] = None

    host: Annotated[
        str,
        typer.Option(envvar="ANVIL_IP_ADDR", rich_help_panel=_SERVER, help="address; any but this machine's warns"),
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, rich_help_panel=_SERVER, help="0 takes a free one")
    ] = 8545
    call_timeout: Annotated[
        float, typer.Option(min=0.1, rich_help_panel=_SERVER, help="seconds that a call may take")
    ] = 30.0

    fork_url: Annotated[
        str | None,
        typer.Option(
            "--fork-url",
            "--rpc-url",
            "--fork",
            "-f",
            rich_help_panel=_FORK,
            help="begin on this node's state; URL@NUMBER",
        ),
    ] = None
    fork_block_number: Annotated[
        int | None, typer.Option(rich_help_panel=_FORK, help="default: its latest; below 0: so many before that")
    ] = None

    hardfork: Annotated[str, typer.Option(rich_help_panel=_RULES, help="of all blocks; latest is osaka")] = "osaka"
    chain_id: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_RULES, help="31337, or that of the chain that is forked")
    ] = None
    gas_limit: Annotated[int, typer.Option(min=5000, rich_help_panel=_RULES, help="of a block")] = GAS_LIMIT
    base_fee: Annotated[
        int,
        typer.Option("--block-base-fee-per-gas", "--base-fee", min=0, rich_help_panel=_RULES, help="wei, of block 1"),
    ] = BASE_FEE
    code_size_limit: Annotated[int | None, typer.Option(min=1, rich_help_panel=_RULES, help="bytes of code")] = None
    disable_code_size_limit: Annotated[
        bool, typer.Option("--disable-code-size-limit", rich_help_panel=_RULES, help="code of any size")
    ] = False
    disable_block_gas_limit: Annotated[
        bool, typer.Option("--disable-block-gas-limit", rich_help_panel=_RULES, help="transactions with any gas limit")
    ] = False
    enable_tx_gas_limit: Annotated[
        bool, typer.Option("--enable-tx-gas-limit", "--tx-gas-limit", rich_help_panel=_RULES, help="EIP-7825")
    ] = False
    disable_min_priority_fee: Annotated[
        bool,
        typer.Option("--disable-min-priority-fee", "--no-priority-fee", rich_help_panel=_RULES, help="suggest no tip"),
    ] = False
    auto_impersonate: Annotated[
        bool, typer.Option("--auto-impersonate", "--auto-unlock", rich_help_panel=_RULES, help="any account may send")
    ] = False
    disable_default_create2_deployer: Annotated[
        bool,
        typer.Option(
            "--disable-default-create2-deployer", "--no-create2", rich_help_panel=_RULES, help="it is not deployed"
        ),
    ] = False

    silent: Annotated[
        bool, typer.Option("--silent", "--quiet", "-q", rich_help_panel=_PRINTED, help="print nothing")
    ] = False
    verbosity: Annotated[
        int,
        typer.Option(
            "--verbosity", "-v", count=True, rich_help_panel=_PRINTED,
            help="-v: parameters; -vv: events; -vvv: traces of what fails; -vvvv: all traces",
        ),
    ] = 0  # fmt: skip
    print_traces: Annotated[
        bool, typer.Option("--print-traces", "--enable-trace-printing", rich_help_panel=_PRINTED, help="as -vvvv")
    ] = False
    disable_console_log: Annotated[
        bool,
        typer.Option(
            "--disable-console-log", "--no-console-log", rich_help_panel=_PRINTED, help="console.log is not printed"
        ),
    ] = False
    color: Annotated[str, typer.Option(rich_help_panel=_PRINTED, help="auto, always or never")] = "auto"
    as_json: Annotated[bool, typer.Option("--json", rich_help_panel=_PRINTED, help="a line of JSON for each")] = False


@dataclass(frozen=True)
class Idle:
    """An option of anvil that changes nothing here, and why."""

    flags: tuple[str, ...]
    why: str
    takes_value: bool | None = True  # None: it may have one


_ALL_KEPT = "all blocks and states are kept"
_PATIENT = "the other node is asked as quickly as it answers"
IDLE = (
    Idle(("--mnemonic-random",), "the accounts are those of --mnemonic", takes_value=None),
    Idle(("--mnemonic-seed-unsafe",), "the accounts are those of --mnemonic"),
    Idle(("--ipc", "--ipcpath"), "clients connect by HTTP or WebSocket", takes_value=None),
    Idle(("--threads", "--jobs", "-j"), "one thread has the chain"),
    Idle(("--max-persisted-states",), _ALL_KEPT),
    Idle(("--max-transactions",), "a block has what its gas limit allows"),
    Idle(("--order",), "transactions are mined in the order in which they came"),
    Idle(("--preserve-historical-states",), "a state file has the latest state", takes_value=False),
    Idle(("--prune-history",), _ALL_KEPT, takes_value=None),
    Idle(("--transaction-block-keeper",), _ALL_KEPT),
    Idle(("--md",), "there is text and --json", takes_value=False),
    Idle(("--allow-origin",), "any origin may ask"),
    Idle(("--no-cors",), "any origin may ask", takes_value=False),
    Idle(("--cache-path",), "states are kept in memory"),
    Idle(("--no-request-size-limit",), "requests may have 64 MB", takes_value=False),
    Idle(("--compute-units-per-second",), _PATIENT),
    Idle(("--fork-chain-id",), "the other node is asked for it; --chain-id sets another"),
    Idle(("--fork-header",), "requests to the other node have no headers of their own"),
    Idle(("--fork-retry-backoff",), _PATIENT),
    Idle(("--fork-transaction-hash",), "the fork begins after a whole block: --fork-block-number"),
    Idle(("--no-rate-limit", "--no-rpc-rate-limit"), _PATIENT, takes_value=False),
    Idle(("--no-storage-caching",), "FUSEVM_CACHE says where answers are kept", takes_value=False),
    Idle(("--retries",), "the other node is asked again three times"),
    Idle(("--timeout",), "the other node has 30 seconds for an answer"),
    Idle(("--gas-price",), "eth_gasPrice follows the base fee: --base-fee"),
    Idle(("--disable-pool-balance-checks",), "a transaction that cannot be paid for is refused", takes_value=False),
    Idle(("--memory-limit",), "gas limits what a call may use"),
    Idle(("--steps-tracing", "--tracing"), "debug_trace* has the steps without it", takes_value=False),
    Idle(("--celo",), "the chain is Ethereum's", takes_value=False),
    Idle(("--network", "-n"), "the chain is Ethereum's"),
)
