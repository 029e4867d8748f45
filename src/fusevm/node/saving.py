"""The chain's state in a file: written so that a crash at any moment leaves the old file or the new one."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from fusevm.rpc.editing import dump
from fusevm.rpc.session import Session


class StateFile:
    """Where a node keeps its state. To be used on the chain's thread."""

    def __init__(self, path: Path, session: Session) -> None:
        self.path, self.session = path, session
        self._saved: object = session.dev.chain.bookmark() if path.exists() else None

    def save(self) -> bool:
        """Writes the state, if it has changed since; whether it had."""
        now = self.session.dev.chain.bookmark()
        if now is self._saved:
            return False
        write_atomically(self.path, json.dumps(dump(self.session)).encode())
        self._saved = now
        return True


def write_atomically(path: Path, content: bytes) -> None:
    """All of the new content or the old: it is written beside, brought to the disk, and renamed."""
    handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent or ".")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
