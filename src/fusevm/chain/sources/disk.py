"""What a node has answered, kept in the user's cache folder: one SQLite file per chain, by the block's hash.

A block's state does not change, so what is kept is never wrong. A file that cannot be used is one warning.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fusevm.chain.sources.source import Facts, Place
from fusevm.child import renewed_in_child

MAX_BYTES = 1 << 30  # of a file: beyond that, blocks that were not used for longest are dropped
_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS blocks (hash BLOB PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS codes (number INTEGER PRIMARY KEY, code BLOB NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS accounts (block BLOB, address BLOB, nonce TEXT, balance TEXT, code INTEGER,
    PRIMARY KEY (block, address)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS slots (block BLOB, address BLOB, key BLOB, value BLOB,
    PRIMARY KEY (block, address, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hashes (block BLOB, number INTEGER, hash BLOB, PRIMARY KEY (block, number)) WITHOUT ROWID;
"""


class Disk:
    """The answers about one block. Without a usable file it knows nothing and keeps nothing."""

    def __init__(self, path: Path, block: bytes) -> None:
        self.path, self.block = path, block
        self._unopened()

    def _unopened(self) -> None:
        self._opened: sqlite3.Connection | None = None
        self._process = 0
        self._broken = False
        self._lock = renewed_in_child(threading.RLock())

    def __getstate__(self) -> tuple[Path, bytes]:
        return self.path, self.block

    def __setstate__(self, kept: tuple[Path, bytes]) -> None:
        self.path, self.block = kept
        self._unopened()

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None and self._process == os.getpid():
            with suppress(sqlite3.Error):
                opened.close()

    def accounts(self, addresses: Sequence[bytes]) -> dict[bytes, Facts | None]:
        """Those that are kept, known absences included."""
        found: dict[bytes, Facts | None] = {}
        for address in addresses:
            for nonce, balance, code in self._ask(
                "SELECT nonce, balance, codes.code FROM accounts LEFT JOIN codes ON accounts.code = number"
                " WHERE block = ? AND address = ?",
                (self.block, address),
            ):
                found[address] = None if nonce is None else Facts(int(nonce), int(balance), code or b"")
        return found

    def slots(self, places: Sequence[Place]) -> dict[Place, int]:
        found: dict[Place, int] = {}
        for address, key in places:
            for (value,) in self._ask(
                "SELECT value FROM slots WHERE block = ? AND address = ? AND key = ?",
                (self.block, address, key.to_bytes(32, "big")),
            ):
                found[address, key] = int.from_bytes(value, "big")
        return found

    def block_hash(self, number: int) -> bytes | None:
        for (found,) in self._ask("SELECT hash FROM hashes WHERE block = ? AND number = ?", (self.block, number)):
            return bytes(found)
        return None

    def keep_accounts(self, found: dict[bytes, Facts | None]) -> None:
        codes = {(facts.code,) for facts in found.values() if facts is not None and facts.code}
        rows: list[tuple[Any, ...]] = [
            (self.block, address, None, None, None)
            if facts is None
            else (self.block, address, str(facts.nonce), str(facts.balance), facts.code)
            for address, facts in found.items()
        ]
        self._change(
            ("INSERT OR IGNORE INTO codes (code) VALUES (?)", list(codes)),
            (
                "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, (SELECT number FROM codes WHERE code = ?))",
                rows,
            ),
        )

    def keep_slots(self, found: dict[Place, int]) -> None:
        rows = [
            (self.block, address, key.to_bytes(32, "big"), value.to_bytes(32, "big"))
            for (address, key), value in found.items()
        ]
        self._change(("INSERT OR REPLACE INTO slots VALUES (?, ?, ?, ?)", rows))

    def keep_block_hash(self, number: int, block_hash: bytes) -> None:
        self._change(("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?)", [(self.block, number, block_hash)]))

    # -- the file

    def _ask(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            try:
                connection = self._connection()
                return [] if connection is None else connection.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError, ValueError) as error:
                self._give_up(error)
                return []

    def _change(self, *statements: tuple[str, list[tuple[Any, ...]]]) -> None:
        with self._lock:
            try:
                connection = self._connection()
                if connection is not None:
                    with connection:
                        for statement, rows in statements:
                            connection.executemany(statement, rows)
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)

    def _connection(self) -> sqlite3.Connection | None:
        if self._broken:
            return None
        if self._opened is None or self._process != os.getpid():
            self._opened, self._process = self._open(), os.getpid()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self.path, timeout=5.0, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # what a crash of the system loses is asked for again
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
            raise sqlite3.DatabaseError("written by another version of fusevm")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.executescript(_TABLES)
        with connection:
            connection.execute(
                "INSERT OR REPLACE INTO blocks VALUES (?, (SELECT COALESCE(MAX(used), 0) + 1 FROM blocks))",
                (self.block,),
            )
        if self.path.stat().st_size > MAX_BYTES:
            self._make_room(connection)
        return connection

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Drops the older half of the blocks, and codes that are not referenced any more."""
        old = connection.execute("SELECT hash FROM blocks ORDER BY used DESC").fetchall()
        with connection:
            for (block,) in old[(len(old) + 1) // 2 :]:
                for table in ("accounts", "slots", "hashes"):
                    connection.execute(f"DELETE FROM {table} WHERE block = ?", (block,))
                connection.execute("DELETE FROM blocks WHERE hash = ?", (block,))
            connection.execute("DELETE FROM codes WHERE number NOT IN (SELECT code FROM accounts WHERE code NOT NULL)")
        connection.execute("VACUUM")

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        with suppress(sqlite3.Error):
            if self._opened is not None:
                self._opened.close()
        warnings.warn(
            f"fusevm: {self.path} cannot keep forked state ({error}); delete it, or give cache=False", stacklevel=6
        )
