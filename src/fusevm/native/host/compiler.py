"""Compiles regions in the background: a process that can be killed, and a thread that waits for it.

Nothing here ever makes a call wait, and nothing is missing where no process can be started: code runs on as before.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fusevm.evm.forks import Fork
from fusevm.native.cache.folder import keep_newest, read, usable_folder, write
from fusevm.native.cache.sources import digest_of_sources
from fusevm.native.emit.build import library
from fusevm.native.host.kept_schedules import checksum, checksums_in, file_name
from fusevm.native.region.compiled import Compiled
from fusevm.native.region.worker import MADE, REFUSED, receive, request, send
from fusevm.native.switches import is_on
from fusevm.version import __version__

PATIENCE = 200.0  # seconds by the clock, for a process that is stuck: it limits its own processor time
LARGEST = 49_152  # bytes of code
MOST_BYTES = 1 << 28  # of regions on disk
WAITING = 16  # codes
MOST_FAILED = 32  # processes that died; after that none is started any more
TRIES = 2  # for a code that processes died of: it may have been something else
MOST_REFUSED = 4_096  # codes that are known

Done = Callable[[Compiled | None], None]  # None: there are no regions


class Compiler:
    """One for all engines of this process."""

    def __init__(self) -> None:
        self._asked: queue.Queue[tuple[bytes, Fork, dict[int, int], Done]] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.failed = 0  # compilations that were given up
        self.refused: dict[bytes, str] = {}  # by digest: why there are no regions, so that nobody asks again
        self._deaths: Counter[bytes] = Counter()  # by digest
        self._pid = os.getpid()

    def ask(self, code: bytes, fork: Fork, counts: dict[int, int], done: Done) -> bool:
        """`done` is called by another thread, once; whether that was taken on."""
        if len(code) > LARGEST or not sys.executable or os.getpid() != self._pid:
            return False
        if self.failed >= MOST_FAILED or _digest(code, fork) in self.refused:
            return False
        try:
            self._asked.put_nowait((code, fork, counts, done))
        except queue.Full:
            return False
        if self._thread is None:
            try:
                self._thread = threading.Thread(target=self._serve, name="fusevm regions", daemon=True)
                self._thread.start()
            except RuntimeError:  # the interpreter is ending, or there are no more threads
                self._thread = None
                return False
        return True

    def _serve(self) -> None:
        while True:
            code, fork, counts, done = self._asked.get()
            compiled = None
            with contextlib.suppress(Exception):  # no process, no thread, no disk: whoever asked must be told
                made = self._compiled(request(code, fork.name, counts))
                if made[:1] == MADE:
                    compiled = Compiled.unpacked(made[1:])
                    keep(code, fork, made[1:])
                else:
                    self._note(_digest(code, fork), made)
            done(compiled)

    def _note(self, digest: bytes, made: bytes) -> None:
        """There are no regions: the process said why, or died."""
        if max(len(self.refused), len(self._deaths)) >= MOST_REFUSED:
            self.refused.clear()
            self._deaths.clear()
        if made[:1] == REFUSED:
            self.refused[digest] = made[1:].decode(errors="replace")
            return
        self._deaths[digest] += 1
        if self._deaths[digest] >= TRIES:
            self.refused[digest] = f"{TRIES} processes ended while they compiled it"

    def _compiled(self, asked: bytes) -> bytes:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE, process.kill)
        timer.daemon = True
        timer.start()
        try:
            send(process.stdin, asked)
            made = receive(process.stdout)
        except OSError:
            made = None
        finally:
            timer.cancel()
        if made is None:  # it was killed, or died
            self.failed += 1
            self.stop()
        return made or b""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fusevm.native.region.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_SOURCES), os.environ.get("PYTHONPATH", "")])},
            )
        return self._process

    @property
    def pid(self) -> int | None:
        """Of the process that compiles, if there is one."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert stream is not None
                    stream.close()
            process.wait()


_SOURCES = Path(__file__).parents[3]


def _digest(code: bytes, fork: Fork) -> bytes:
    return hashlib.sha256(fork.name.encode() + b" " + code).digest()


@cache
def compiler() -> Compiler:
    made = Compiler()
    atexit.register(made.stop)
    return made


# -- on disk --------------------------------------------------------------------------------------------------------


@cache
def _fingerprint() -> str:
    kind = "narrow" if is_on("narrowing") else "wide"
    return f"{library().fingerprint} {digest_of_sources(['native.region.build'], __version__)} {kind}"


@cache
def region_names() -> set[int]:
    """How the names of files begin: a quick look before the digest of unseen code is made."""
    return checksums_in(usable_folder("regions"))


def _path(code: bytes, fork: Fork) -> Path | None:
    folder = usable_folder("regions")
    if folder is None:
        return None
    digest = hashlib.sha256(f"{_fingerprint()} {fork.name} ".encode() + code).hexdigest()
    return folder / file_name(code, digest, "regions")


def keep(code: bytes, fork: Fork, made: bytes) -> None:
    path = _path(code, fork)
    if path is not None:
        write(path, made)
        keep_newest(path.parent, MOST_BYTES)
        region_names().add(checksum(code))


def kept(code: bytes, fork: Fork) -> Compiled | None:
    """The regions that were made of this code before, by any process of this user."""
    if len(code) > LARGEST or checksum(code) not in region_names():
        return None
    path = _path(code, fork)
    content = None if path is None else read(path)
    if not content:
        return None
    try:
        return Compiled.unpacked(content)
    except ValueError:
        return None
