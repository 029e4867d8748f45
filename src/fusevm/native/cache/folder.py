"""Object code kept in the user's cache folder. It is executed once loaded, so nothing there is trusted blindly.

The folder and its files belong to the user alone, links are not followed, and a file's content must match the hash in
its first bytes. Its name holds everything the code depends on; whatever does not match is rebuilt.

Nothing found there is waited for indefinitely or raised: a directory, a pipe or another user's file in the place of a
cached one, and a builder that was stopped, are passed by with one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from fusevm.folders import cache_folder

DIGEST = 32
MAX_BYTES = 1 << 26  # of all versions and processors
MAGIC = b"fusevm\0\1"
PATIENCE = 15.0  # seconds that another process may take to build what this one needs, too
_POLL = 0.05


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """The content kept under that name; made, and kept if possible, where there is none to trust."""
    folder = usable_folder()
    if folder is None:
        return make()
    path = folder / name
    found = read(path)
    if found is not None:
        return found
    with _locked(folder / f"{name}.lock", lambda: path.exists()):
        found = read(path)  # another process may have made it in the meantime
        if found is not None:
            return found
        content = make()
        write(path, content)
        keep_newest(folder, MAX_BYTES)
        return content


def usable_folder(part: str = "") -> Path | None:
    """The cache folder, or a part of it; None, with a warning, where it cannot be used."""
    try:
        folder = cache_folder()
    except RuntimeError as error:  # there is no home
        _warn("the cache folder", str(error))
        return None
    if not prepare(folder) or (part and not prepare(folder / part)):
        _warn(str(folder / part), "it is not a folder that only this user can write to")
        return None
    return folder / part


@cache
def _warn(what: str, why: str) -> None:
    """Once for each thing."""
    remedy = "what is kept there is built anew by every process; FUSEVM_CACHE names another folder"
    warnings.warn(f"fusevm: {what} cannot be used as a cache: {why} ({remedy})", stacklevel=2)


def prepare(folder: Path) -> bool:
    """Makes the folder, owner-only; whether it can be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_private(found)


def _is_private(found: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def keep_newest(folder: Path, most: int) -> None:
    """Removes the oldest files, half of their bytes, once there are more bytes than `most`."""
    with contextlib.suppress(OSError):
        files = [
            (found.st_mtime, found.st_size, entry.path)
            for entry in os.scandir(folder)
            if entry.is_file(follow_symlinks=False) and (found := entry.stat(follow_symlinks=False))
        ]
        size = sum(each[1] for each in files)
        if size <= most:
            return
        for _, bytes_of_it, path in sorted(files):
            if size <= most // 2:
                return
            os.unlink(path)
            size -= bytes_of_it


def read(path: Path) -> bytes | None:
    """The content, or None where the file is missing, foreign or damaged."""
    nonblocking = getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a writer would block
    try:
        handle = os.open(path, os.O_RDONLY | nonblocking | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(str(path), error.strerror or str(error))
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or not _is_private(found):
            _warn(str(path), "it is not a file that only this user can write to")
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read()
    except OSError as error:
        _warn(str(path), error.strerror or str(error))
        return None
    finally:
        os.close(handle)
    content = data[len(MAGIC) + DIGEST :]
    if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : len(MAGIC) + DIGEST] != hashlib.sha256(content).digest():
        return None
    return content


def write(path: Path, content: bytes) -> None:
    """All of it or nothing: a reader never sees half a file. A cache that cannot be written is a warning."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except IsADirectoryError:
        pass  # a directory has the file's name: reading it has warned already
    except OSError as error:
        _warn(str(path.parent), error.strerror or str(error))


@contextlib.contextmanager
def _locked(path: Path, is_done: Callable[[], bool]) -> Iterator[None]:
    """One builder at a time, where the platform can lock files; but the wait for a builder is bounded."""
    try:
        import fcntl

        nonblocking = getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | nonblocking | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except (ImportError, OSError):
        yield
        return
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_done():
                    break
                if time.monotonic() > until:
                    _warn(str(path), f"another process has held it for {PATIENCE:.0f} s")
                    break
                time.sleep(_POLL)
            except OSError:  # what cannot be locked
                break
        yield
    finally:
        os.close(handle)
