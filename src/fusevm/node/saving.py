"""The chain's state in a file and a journal: what was acknowledged survives a crash."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fusevm.chain.dumps import write_state
from fusevm.chain.reasons import Rejected
from fusevm.chain.signed import SignedTransaction, decode_transaction, sent_by
from fusevm.chain.state import State
from fusevm.node.journal import TAG, JournalChanges, Json, OpenJournal, followed, journal_of, read_lines
from fusevm.rpc.editing import dump
from fusevm.rpc.session import Session
from fusevm.rpc.start import saved_document
from fusevm.values import BadValue, to_address, to_bytes

SHORTEST = 8 << 20  # the size of a journal at which the whole state is written and a new one begins
TIMES = 2  # or this multiple of the size of the state file


class StateFile:
    """Where a node keeps its state. To be used on the chain's thread.

    The first change since the start writes the file, and begins a journal; each change after it is a line.
    """

    def __init__(self, path: Path, session: Session, *, sync: bool = False) -> None:
        """With `sync`, a change is on the disk before it is acknowledged; without, in the kernel's buffers."""
        self.path, self.session, self._sync = path, session, sync
        self._lines: OpenJournal | None = None
        self._name = _name_of(journal_of(path))  # of the journal that is beside the file now
        self._size = 0  # of the file
        self._watch()

    def _watch(self) -> None:
        self._chain = self.session.dev.chain
        self._changes = JournalChanges(self._chain.state)
        self._chain.watch(self._changes.add)
        self._head: object = self._chain.bookmark()
        self._pending = list(self._chain.pending)

    @property
    def _unchanged(self) -> bool:
        if self.session.dev.chain is not self._chain or self._chain.bookmark() is not self._head:
            return False
        return _same(self._chain.pending, self._pending)

    def keep(self) -> None:
        """Writes what has changed. Raises OSError where that cannot be; then the next attempt writes all of it."""
        if self._unchanged:
            return
        lines, self._lines = self._lines, None
        if lines is not None and self.session.dev.chain is self._chain and lines.size <= self._most:
            lines.append(self._line())
            if self._sync:
                lines.sync()
            self._head, self._pending, self._lines = self._chain.bookmark(), list(self._chain.pending), lines
            return
        if lines is not None:
            lines.close()
        self.save()

    @property
    def _most(self) -> int:
        return max(SHORTEST, TIMES * self._size)

    def _line(self) -> Json:
        chain = self._chain
        block = write_state(State(), chain.environment(chain.head.hash), "anvil")["block"]
        line: Json = {"block": block, "accounts": self._changes.accounts()}
        old, new = self._pending, chain.pending
        if not _same(old, new):
            longer = len(new) > len(old) and _same(old, new[: len(old)])
            line["more" if longer else "pending"] = [_form(each) for each in (new[len(old) :] if longer else new)]
        return line

    def save(self) -> None:
        """Writes the state whole, and begins a journal."""
        self._watch()
        head, self._head = self._head, None  # not written yet
        name = secrets.token_hex(8)
        tag: Json = {"journal": name, "pending": [_form(each) for each in self._pending]}
        if self._name is not None:
            tag["replaces"] = self._name
        content = json.dumps({**dump(self.session), TAG: tag}).encode()
        write_atomically(self.path, content)
        self._size = len(content)
        self._lines = OpenJournal(journal_of(self.path), name)
        self._name, self._head = name, head

    def sync(self) -> None:
        """Brings the journal to the disk; on any thread."""
        lines = self._lines
        if lines is not None:
            with suppress(OSError):  # one that was closed meanwhile has been followed by a whole file
                lines.sync()

    def close(self) -> None:
        """The state whole, without a journal. Raises OSError where it cannot be written."""
        if not self._unchanged or self._lines is not None or not self.path.exists():
            self.save()
        if self._lines is not None:
            self._lines.close()
            self._lines = None
            journal_of(self.path).unlink()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """While it lasts, no other node uses the file: each would undo what the other keeps.

    Raises BadValue where one does. A node that is killed leaves the lock's file, but not the lock.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        import fcntl

        handle = os.open(lock, os.O_WRONLY | os.O_CREAT, 0o644)
    except (ImportError, OSError):  # Windows; or a folder that is not there, of which `keep` tells
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadValue(f"--state {path}: another node uses it; stop that one, or give another file") from None
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
    finally:
        os.close(handle)


def _same(one: list[SignedTransaction], other: list[SignedTransaction]) -> bool:
    return len(one) == len(other) and all(mine is theirs for mine, theirs in zip(one, other, strict=True))


def _form(signed: SignedTransaction) -> list[str]:
    """With its sender, which the signature does not tell where an account is impersonated."""
    return ["0x" + signed.encoded.hex(), "0x" + signed.sender.hex()]


def load(path: Path) -> Mapping[str, Any] | None:
    """The document of a state file and its journal; None where there is neither. Raises BadValue, one line."""
    journal = journal_of(path)
    remedy = f"delete the file and {journal.name}" if journal.exists() else "delete the file"
    try:
        if not path.exists():
            if journal.exists():
                raise BadValue(f"{journal.name} is there without it")
            return None
        document = saved_document(path)
        if not journal.exists():
            return document
        tag = document.get(TAG)
        first, *lines = read_lines(_bytes(journal), journal.name) or [{}]
        name = first.get("journal")
        if name is None or not isinstance(tag, Mapping) or name not in (tag.get("journal"), tag.get("replaces")):
            raise BadValue(f"{journal.name} is another file's journal")
        return followed(document, lines) if name == tag["journal"] else document
    except BadValue as error:
        raise BadValue(f"--state {path}: {error}; {remedy}, or give another") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadValue(
            f"--state {path}: {journal.name} is not of this form: {error}; {remedy}, or give another"
        ) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadValue(f"cannot read {path.name}: {error.strerror or error}") from None


def _name_of(journal: Path) -> str | None:
    """As its first line has it; None where there is none that can be read."""
    with suppress(OSError, BadValue, ValueError, IndexError, AttributeError), journal.open("rb") as opened:
        found: str | None = read_lines(opened.readline(), journal.name)[0].get("journal")
        return found
    return None


def restore_pending(session: Session, document: Mapping[str, Any]) -> None:
    """The transactions that were waiting when the node ended wait again."""
    tag = document.get(TAG)
    for place, each in enumerate(tag.get("pending", ()) if isinstance(tag, Mapping) else ()):
        try:
            raw, sender = each
            signed = decode_transaction(to_bytes(raw, "transaction"))
        except (TypeError, ValueError, Rejected) as error:
            raise BadValue(f"--state: {TAG}.pending[{place}]: not a transaction: {error}; delete it") from None
        session.dev.chain.submit(sent_by(signed, to_address(sender, "sender")))


def write_atomically(path: Path, content: bytes) -> None:
    """All of the new content or the old: it is written beside, brought to the disk, and renamed."""
    handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent or ".")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, path)
        _sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk once its folder is; where folders cannot be opened, the system does without."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
