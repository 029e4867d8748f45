"""A whole state as other tools write it: geth's alloc, genesis.json and dump, anvil's dump; read, and written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from fusevm.chain.alloc import alloc_of, state_from_alloc
from fusevm.chain.environment import Block
from fusevm.chain.state import State
from fusevm.values import BadValue, shown, shown_path, to_bytes, to_word

Dump: TypeAlias = Mapping[str, Any] | bytes | str | PathLike[str]

FORMATS = ("alloc", "anvil")
MAX_BYTES = 1 << 31  # of what a compressed dump may hold
_GZIP = b"\x1f\x8b"
_DUMP_FIELDS = ("root", "codeHash", "address", "key")  # of accounts in geth's dump: they follow from the others


def read_state(dump: Dump) -> State:
    """From a document, its JSON text or bytes, anvil's compressed form (bytes, or hex text), or the path of a file."""
    return state_from_document(document_of(dump))


def state_from_document(document: Mapping[str, Any]) -> State:
    """Accounts by address: on their own, or as `alloc` (genesis.json), `pre` (tests) or `accounts` (dumps)."""
    if not isinstance(document, Mapping):
        raise BadValue(f"state: expected accounts by address, got {shown(document)}")
    for part in ("alloc", "pre"):
        if part in document:
            return state_from_alloc(_accounts(document[part], part))
    if "accounts" not in document:
        return state_from_alloc(document)
    accounts = _accounts(document["accounts"], "accounts")
    if "root" not in document:
        return state_from_alloc(accounts)
    return state_from_alloc({where: _plain(fields, where) for where, fields in accounts.items()})


def _accounts(found: Any, part: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise BadValue(f"state: '{part}' is not an object of accounts by address")
    return found


def _plain(fields: Any, where: str) -> Any:
    """An account of geth's dump as an alloc has it: values of slots are hex there, without 0x."""
    if not isinstance(fields, Mapping):
        return fields
    kept = {name: value for name, value in fields.items() if name not in _DUMP_FIELDS}
    storage = kept.get("storage")
    if isinstance(storage, Mapping):
        kept["storage"] = {
            key: to_word(to_bytes(value, f"accounts[{where}].storage[{key}]"), "storage")
            for key, value in storage.items()
        }
    return kept


def write_state(state: State, block: Block, form: str = "alloc") -> dict[str, Any]:
    """As a document: geth's `alloc`, or anvil's dump. Of a forked state, what is loaded."""
    if form not in FORMATS:
        raise BadValue(f"format: {shown(form)} is not known; expected {' or '.join(FORMATS)}")
    accounts = alloc_of(state)
    if form == "alloc":
        return accounts
    return {
        "block": {
            "number": hex(block.number),
            "beneficiary": "0x" + block.coinbase.hex(),
            "timestamp": hex(block.timestamp),
            "gas_limit": block.gas_limit,
            "basefee": block.base_fee,
            "difficulty": hex(block.difficulty),
            "prevrandao": f"0x{block.prev_randao:064x}",
            "blob_excess_gas_and_price": {"excess_blob_gas": block.excess_blob_gas, "blob_gasprice": 1},
        },
        "accounts": {
            where: {
                "nonce": int(fields.get("nonce", "0x0"), 16),
                "balance": fields["balance"],
                "code": fields.get("code", "0x"),
                "storage": fields.get("storage", {}),
            }
            for where, fields in accounts.items()
        },
        "best_block_number": block.number,
    }


def compressed(document: Mapping[str, Any]) -> bytes:
    """As `anvil_loadState` takes a dump."""
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def document_of(dump: Dump) -> Any:
    """The JSON of a dump, whatever form it has."""
    if isinstance(dump, Mapping):
        return dump
    if isinstance(dump, PathLike):
        return _parsed(_read(Path(dump)), str(dump))
    if isinstance(dump, bytes):
        return _parsed(dump, "state")
    if not isinstance(dump, str):
        raise BadValue(f"state: expected a document, JSON, a compressed dump or a path, got {type(dump).__name__}")
    text = dump.strip()
    if text.startswith("{"):
        return _parsed(text.encode(), "state")
    if text.startswith("0x1f8b"):
        return _parsed(to_bytes(text, "state"), "state")
    return _parsed(_read(Path(dump)), shown_path(dump))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadValue(f"state: no such file: {shown_path(str(path))}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadValue(f"state: cannot read {shown_path(str(path))}: {why}") from None


def _parsed(raw: bytes, source: str) -> Any:
    if raw[:2].strip().lower() == b"0x":  # what anvil_dumpState answers, saved as it is
        raw = to_bytes(raw.decode("ascii", "replace"), source)
    try:
        if raw.startswith(_GZIP):
            raw = _decompressed(raw, source)
        return json.loads(raw)
    except json.JSONDecodeError as error:
        raise BadValue(f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise BadValue(f"{source}: not a state: {error}") from None
    except RecursionError:
        raise BadValue(f"{source}: nested too deeply") from None
    except ValueError:
        raise BadValue(f"{source}: an integer has more digits than Python reads") from None


def _decompressed(raw: bytes, source: str) -> bytes:
    import io

    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as opened:
        found = opened.read(MAX_BYTES + 1)
    if len(found) > MAX_BYTES:
        raise BadValue(f"{source}: more than {MAX_BYTES} bytes once decompressed")
    return found
