"""The journal beside a state file: one line per change, with a checksum, and how a state is made of both again.

A line is the CRC-32 of its text, a space, and the text, which is JSON. The first one names the journal; the state file
names the journal that follows it. Values are absolute: what a line holds is how things are after it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fusevm.chain.accounts import Account
from fusevm.chain.diffs import Diff
from fusevm.chain.state import State
from fusevm.values import BadValue

TAG = "fusevm"  # of a state file: what this node needs beyond anvil's form
Json = dict[str, Any]


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + ".journal")


# -- lines


def line_of(document: Json) -> bytes:
    text = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_lines(raw: bytes, where: str) -> list[Json]:
    """The documents of a journal. A last line without an end was being written when the node was killed: nobody has
    been told of it, and it is left out. Raises BadValue for any other line that is damaged."""
    *whole, _ = raw.split(b"\n")
    found = []
    for number, line in enumerate(whole, 1):
        text = line[9:]
        if line[:9] != b"%08x " % zlib.crc32(text):
            raise BadValue(f"{where}: line {number}: damaged: its checksum is another")
        found.append(json.loads(text))
    return found


class OpenJournal:
    """A journal that is open. `append` has handed a line to the kernel when it returns: it outlives the process."""

    def __init__(self, path: Path, name: str) -> None:
        """Starts a new journal; the old one stays until the new one has its first line."""
        part = path.with_name(path.name + ".part")
        self._handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.size = 0
        try:
            self.append({"journal": name})
            self.sync()
            os.replace(part, path)
        except BaseException:
            os.close(self._handle)
            raise

    def append(self, document: Json) -> None:
        """Raises OSError where it does not all fit; then nothing more may be appended."""
        line = line_of(document)
        self.size += len(line)
        while line:
            line = line[os.write(self._handle, line) :]

    def sync(self) -> None:
        os.fsync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


# -- what has changed


@dataclass
class TouchedAccount:
    """What of an account has changed since the last line: all of it, or its code, or some slots."""

    whole: bool = False
    code: bool = False
    slots: set[int] = field(default_factory=set)


class JournalChanges:
    """What has changed since the last line, by address. Diffs name objects; they are looked up here."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._owners: dict[int, bytes] = {}  # of accounts and of their storage, by identity
        self.touched: dict[bytes, TouchedAccount] = {}
        self._learn(state.items())

    def _learn(self, accounts: Iterable[tuple[bytes, Account]]) -> None:
        for address, account in accounts:
            self._owners[id(account)] = self._owners[id(account.storage)] = address

    def add(self, diff: Diff) -> None:
        state = self._state
        for address, _, after in diff.presence:
            self._at(address).whole = True
            if after is not None:
                self._learn([(address, after)])
        for account, name, _, _ in diff.fields:
            found = self._owner(account)
            if found is not None:
                touched = self._at(found)
                if name == "code":
                    touched.code = True
                elif name == "storage":
                    touched.whole = True
                    self._learn([(found, state.account(found))])
        for storage, key, _, _ in diff.slots:
            found = self._owner(storage)
            if found is not None:
                self._at(found).slots.add(key)

    def _at(self, address: bytes) -> TouchedAccount:
        return self.touched.setdefault(address, TouchedAccount())

    def _owner(self, thing: object) -> bytes | None:
        """Whose it is; None where it is not of the state any more. An identity may have been another object's."""
        found = self._owners.get(id(thing))
        if found is None or not self._has(found, thing):
            self._owners.clear()
            self._learn(self._state.items())
            found = self._owners.get(id(thing))
        return found

    def _has(self, address: bytes, thing: object) -> bool:
        account = self._state.account(address)
        return account is thing or account.storage is thing

    def accounts(self) -> Json:
        """As a line has them, and forgotten."""
        state, touched, self.touched = self._state, self.touched, {}
        return {
            "0x" + address.hex(): _account(state.account(address), each) if state.exists(address) else None
            for address, each in touched.items()
        }


def _account(account: Account, touched: TouchedAccount) -> Json:
    form: Json = {"nonce": account.nonce, "balance": hex(account.balance)}
    if touched.whole:
        form["fresh"] = True
    if touched.whole or touched.code:
        form["code"] = "0x" + account.code.hex()
    slots = account.storage.items() if touched.whole else [(key, account.storage.get(key, 0)) for key in touched.slots]
    if slots:
        form["storage"] = {f"0x{key:064x}": f"0x{value:064x}" for key, value in slots}
    return form


# -- both together


def followed(document: Mapping[str, Any], lines: Iterable[Json]) -> Json:
    """A state file's document after the lines of its journal."""
    accounts = {where: dict(fields) for where, fields in document["accounts"].items()}
    found: Json = {**document, "accounts": accounts, TAG: dict(document.get(TAG) or {})}
    for line in lines:
        found["block"], found["best_block_number"] = line["block"], int(line["block"]["number"], 16)
        if "pending" in line:
            found[TAG]["pending"] = line["pending"]
        found[TAG].setdefault("pending", []).extend(line.get("more", ()))
        for where, fields in line["accounts"].items():
            if fields is None:
                accounts.pop(where, None)
            else:
                _merge(accounts, where, fields)
    return found


def _merge(accounts: dict[str, Json], where: str, fields: Json) -> None:
    fresh = fields.pop("fresh", False)
    old: Json = {} if fresh else accounts.get(where, {})
    storage = {**old.get("storage", {}), **fields.get("storage", {})}
    accounts[where] = {**old, **fields, "storage": {key: value for key, value in storage.items() if int(value, 16)}}
