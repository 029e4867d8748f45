"""Object code kept in the user's cache folder. It is executed once loaded, so nothing there is trusted blindly.

The folder and its files belong to the user alone, links are not followed, and a file's content must match the hash in
its first bytes. Its name holds everything the code depends on; whatever does not fit is built anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

DIGEST = 32
MOST_FILES = 40  # of versions and processors, with a lock each
MAGIC = b"fusevm\0\1"


def cache_folder() -> Path:
    """$FUSEVM_CACHE, or the platform's place for such things."""
    given = os.environ.get("FUSEVM_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fusevm"


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """The content kept under that name; made, and kept if possible, where there is none to trust."""
    folder = cache_folder()
    if prepare(folder):
        found = read(folder / name)
        if found is not None:
            return found
        with _locked(folder / f"{name}.lock"):
            found = read(folder / name)  # somebody else may have made it while this one waited
            if found is not None:
                return found
            content = make()
            write(folder / name, content)
            keep_newest(folder, MOST_FILES)
            return content
    return make()


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
    """Removes the oldest files, half of them, once there are too many."""
    with contextlib.suppress(OSError):
        names = [entry for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
        if len(names) > most:
            for entry in sorted(names, key=lambda each: each.stat(follow_symlinks=False).st_mtime)[: len(names) // 2]:
                os.unlink(entry.path)


def read(path: Path) -> bytes | None:
    """The content, or None where the file is missing, foreign or damaged."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or not _is_private(found):
            return None
        data = file.read()
    content = data[len(MAGIC) + DIGEST :]
    if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : len(MAGIC) + DIGEST] != hashlib.sha256(content).digest():
        return None
    return content


def write(path: Path, content: bytes) -> None:
    """All of it or nothing: a reader never sees half a file. A cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One builder at a time, where the platform can lock files."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
