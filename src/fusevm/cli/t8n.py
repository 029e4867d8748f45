"""`fusevm t8n`: state transition with the options, files, forms and exit codes of geth's `evm t8n`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer

from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.schedule import BlobSchedule, blobs_from_config, schedule_named
from fusevm.chain.signed import SignedTransaction
from fusevm.cli import options
from fusevm.cli.inputs import BadInput, parse_json, read_file, say_error
from fusevm.reference.hooks import Hooks, Step
from fusevm.reference.tracer import eip3155_step
from fusevm.t8n import MissingHash, body_from_text, transition
from fusevm.tiers import UnknownTier, executor_for
from fusevm.values import BadValue

BAD_CONFIGURATION, MISSING_HASH, BAD_JSON, BAD_FILE = 3, 4, 10, 11


def _file(name: str, what: str) -> Any:
    return typer.Option(name, metavar="FILE", help=what)


def t8n_command(
    input_alloc: Annotated[str, _file("--input.alloc", "accounts, or stdin")] = "alloc.json",
    input_env: Annotated[str, _file("--input.env", "the block's surroundings, or stdin")] = "env.json",
    input_txs: Annotated[str, _file("--input.txs", "transactions as JSON, or as RLP in .rlp, or stdin")] = "txs.json",
    input_blobs: Annotated[str | None, _file("--input.blobParams", "target, max, baseFeeUpdateFraction")] = None,
    output_basedir: Annotated[str, typer.Option("--output.basedir", metavar="FOLDER", help="for what is written")] = "",
    output_alloc: Annotated[str, _file("--output.alloc", "the accounts after it; stdout, stderr")] = "alloc.json",
    output_result: Annotated[str, _file("--output.result", "roots and receipts; stdout, stderr")] = "result.json",
    output_body: Annotated[str, _file("--output.body", "the RLP of the transactions; stdout, stderr")] = "",
    fork: Annotated[
        str, typer.Option("--state.fork", "--fork", "-f", help="the rules: Frontier … Osaka, BPO1, …")
    ] = "Osaka",
    chain_id: Annotated[int, typer.Option("--state.chainid", min=0, help="chain id")] = 1,
    reward: Annotated[int, typer.Option("--state.reward", help="mining reward; -1 for none")] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="EIP-3155 into trace-INDEX-HASH.jsonl")] = False,
    memory: Annotated[bool, typer.Option("--trace.memory/--trace.nomemory", help="memory in traces")] = False,
    no_stack: Annotated[bool, typer.Option("--trace.nostack", help="no stack in traces")] = False,
    returndata: Annotated[bool, typer.Option("--trace.returndata/--trace.noreturndata", help="in traces")] = False,
    tier: options.Tier = "auto",
) -> None:
    """Apply transactions to accounts, as geth's `evm t8n` does.

    Exits 3 for a wrong configuration, 4 for a block hash that is not given, 10 for wrong JSON, 11 for a file.
    """
    reader = _Reader()
    alloc, env = reader.section("alloc", input_alloc), reader.section("env", input_env)
    txs = reader.transactions(input_txs)
    blobs = None if input_blobs is None else _blobs(reader.section("blobParams", input_blobs))
    try:
        schedule_named(fork)
        executor_for(tier)
    except (BadValue, UnknownTier) as error:
        _fail(BAD_CONFIGURATION, error)
    tracer = _Tracer(Path(output_basedir), memory, not no_stack, returndata) if trace else None
    try:
        done = transition(
            alloc,
            env,
            txs,
            fork,
            chain_id=chain_id,
            reward=reward,
            blobs=blobs,
            tier="reference" if trace else tier,
            hooks=tracer.hooks if tracer else None,
            watch=tracer.watch if tracer else None,
        )
    except MissingHash as error:
        _fail(MISSING_HASH, error)
    except BadValue as error:
        _fail(BAD_JSON, error)
    outputs: dict[str, tuple[str, Any]] = {
        "alloc": (output_alloc, done.alloc),
        "result": (output_result, done.result),
        "body": (output_body, "0x" + done.body.hex()),
    }
    _write(outputs, Path(output_basedir))


def _fail(code: int, error: Exception | str) -> NoReturn:
    say_error(str(error))
    raise typer.Exit(code)


class _Reader:
    """Files, and standard input, which is read once."""

    def __init__(self) -> None:
        self._stdin: Mapping[str, Any] | None = None

    def section(self, name: str, source: str) -> Mapping[str, Any]:
        found = self._standard_input().get(name) if source == "stdin" else self._json(self._text(source), source)
        if not isinstance(found, Mapping):
            _fail(BAD_JSON, f"{source}: no object of '{name}'")
        return found

    def transactions(self, source: str) -> list[Any] | bytes:
        if source == "stdin":
            given = self._standard_input()
            raw = given.get("txsRlp")
            return self._body(str(raw), "stdin: txsRlp") if raw else self._listed(given.get("txs"), "stdin: txs")
        text = self._text(source)
        return self._body(text, source) if source.endswith(".rlp") else self._listed(self._json(text, source), source)

    def _listed(self, found: Any, source: str) -> list[Any]:
        if found is None:
            return []
        if not isinstance(found, list):
            _fail(BAD_JSON, f"{source}: expected a list of transactions")
        return found

    def _body(self, text: str, source: str) -> bytes:
        try:
            return body_from_text(text)
        except BadValue as error:
            _fail(BAD_JSON, f"{source}: {error}")

    def _standard_input(self) -> Mapping[str, Any]:
        if self._stdin is None:
            found = self._json(sys.stdin.read(), "stdin")
            if not isinstance(found, Mapping):
                _fail(BAD_JSON, "stdin: expected an object of alloc, env and txs")
            self._stdin = found
        return self._stdin

    def _text(self, source: str) -> str:
        try:
            return read_file(source).decode("utf-8")
        except UnicodeDecodeError:
            _fail(BAD_FILE, f"cannot read {source}: not text")
        except BadInput as error:
            _fail(BAD_FILE, error)

    def _json(self, text: str, source: str) -> Any:
        try:
            return parse_json(text, source)
        except BadInput as error:
            _fail(BAD_JSON, error)


def _blobs(given: Mapping[str, Any]) -> BlobSchedule:
    try:
        return blobs_from_config({"osaka": given})["osaka"]
    except BadValue as error:
        _fail(BAD_JSON, str(error).replace("blobSchedule.osaka", "blobParams"))


def _write(outputs: dict[str, tuple[str, Any]], folder: Path) -> None:
    """Files each by themselves; what goes to a stream is one object there."""
    streams: dict[str, dict[str, Any]] = {"stdout": {}, "stderr": {}}
    try:
        for name, (where, content) in outputs.items():
            if where in streams:
                streams[where][name] = content
            elif where:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / where).write_text(json.dumps(content, indent=2) + "\n")
    except OSError as error:
        _fail(BAD_FILE, f"cannot write {where}: {error.strerror}")
    for name, found in streams.items():
        if found:
            typer.echo(json.dumps(found, indent=2), err=name == "stderr")


class _Tracer:
    """Writes the steps of each transaction into a file of its own."""

    def __init__(self, folder: Path, memory: bool, stack: bool, returndata: bool) -> None:
        self.hooks = Hooks(on_opcode=self._on_opcode, memory=memory)
        self._folder = folder
        self._stack = stack
        self._returndata = returndata
        self._file: TextIO | None = None

    def watch(self, index: int, signed: SignedTransaction, receipt: BlockReceipt | None) -> None:
        if receipt is None:
            self._close()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = (self._folder / f"trace-{index}-0x{signed.hash.hex()}.jsonl").open("w")
        elif self._file is not None:
            last = {"output": receipt.output.hex(), "gasUsed": hex(receipt.gas_used)}
            self._file.write(json.dumps(last) + "\n")
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _on_opcode(self, step: Step) -> None:
        if self._file is None:  # a system call
            return
        line = eip3155_step(step, returndata=self._returndata)
        if not self._stack:
            del line["stack"]
        self._file.write(json.dumps(line) + "\n")
