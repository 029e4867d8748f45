"""Compiles regions in the background: a process that can be killed, and a thread that waits for it.

Nothing here ever makes a call wait, and nothing is missing where no process can be started: code runs on as before.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fusevm.child import renewed_in_child
from fusevm.evm.forks import Fork
from fusevm.native.cache.folder import keep_newest, read, usable_folder, write
from fusevm.native.cache.sources import digest_of_sources
from fusevm.native.emit.build import library
from fusevm.native.host.schedule_cache import checksum, checksums_in, file_name
from fusevm.native.host.tier_policy import Answer
from fusevm.native.region.compiled import LARGEST, Compiled
from fusevm.native.region.worker import MADE, REFUSED, receive, send
from fusevm.native.region.worker import request as worker_request
from fusevm.native.switches import is_on
from fusevm.version import __version__

PATIENCE = 200.0  # seconds by the clock, for a process that is stuck: it limits its own processor time
MAX_BYTES = 1 << 28  # of regions on disk
WAITING = 64  # codes
MAX_FAILED = 32  # processes that died; after that none is started any more
TRIES = 2  # for a code that processes died of: it may have been something else
MAX_REFUSED = 4_096  # codes that are known

Done = Callable[[Compiled | Answer], None]


class Asked(NamedTuple):
    """What is compiled: the regions of a code, which leave the opcodes to the schedule that a recording notes."""

    code: bytes
    fork: Fork
    noted: frozenset[str] = frozenset()

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(f"{self.fork.name} {sorted(self.noted)} ".encode() + self.code).digest()


@dataclass(slots=True)
class CompileRequest:
    """Everybody who asks for the same waits for one compilation."""

    counts: dict[int, int]
    heat: float
    done: list[Done]


class Compiler:
    """One for all engines of this process. A child of `os.fork` begins with an empty one."""

    def __init__(self) -> None:
        self._start()
        renewed_in_child(self)

    def _start(self) -> None:
        self._changed = threading.Condition()  # holds what follows
        self._waiting: dict[Asked, CompileRequest] = {}
        self._current: tuple[Asked, CompileRequest] | None = None
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.failed = 0  # compilations that were given up
        self.refused: dict[bytes, str] = {}  # by digest: why there are no regions, so that nobody asks again
        self._deaths: Counter[bytes] = Counter()  # by digest

    def _at_fork_reinit(self) -> None:
        """The thread and the process are the parent's: the pipes to it are closed here, and nobody is waited for."""
        process, waiting = self._process, list(self._waiting.values())
        if self._current is not None:
            waiting.append(self._current[1])
        self._start()
        for request in waiting:
            _tell(request, Answer.LATER)
        if process is not None:
            process.returncode = 0  # or it would be taken for a child of this one
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()

    def ask(self, asked: Asked, counts: dict[int, int], heat: float, done: Done) -> Answer | None:
        """Unless it is answered at once, `done` is called, by another thread. The hottest request is served first;
        if the queue is full, the coldest one is answered LATER."""
        if len(asked.code) > LARGEST or not sys.executable:
            return Answer.NEVER
        if self.failed >= MAX_FAILED or asked.digest in self.refused:
            return Answer.NEVER
        coldest = None
        with self._changed:
            known = self._waiting.get(asked)
            if known is None and self._current is not None and self._current[0] == asked:
                known = self._current[1]
            if known is not None:
                known.heat = max(known.heat, heat)
                known.done.append(done)
                return None
            if len(self._waiting) >= WAITING:
                last = min(self._waiting, key=lambda each: self._waiting[each].heat)
                if self._waiting[last].heat >= heat:
                    return Answer.LATER
                coldest = self._waiting.pop(last)
            self._waiting[asked] = CompileRequest(counts, heat, [done])
            self._changed.notify()
            if self._thread is None and not self._begin():
                del self._waiting[asked]
                return Answer.LATER
        if coldest is not None:
            _tell(coldest, Answer.LATER)
        return None

    def _begin(self) -> bool:
        try:
            self._thread = threading.Thread(target=self._serve, name="fusevm regions", daemon=True)
            self._thread.start()
        except RuntimeError:  # the interpreter is ending, or there are no more threads
            self._thread = None
        return self._thread is not None

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                asked = max(self._waiting, key=lambda each: self._waiting[each].heat)
                request = self._waiting.pop(asked)
                self._current = asked, request
            try:
                answer = self._answer(asked, request.counts)
            except Exception:  # no process, no thread: whoever asked must be told
                self.failed += 1
                answer = Answer.LATER
            with self._changed:
                self._current = None
            _tell(request, answer)

    def _answer(self, asked: Asked, counts: dict[int, int]) -> Compiled | Answer:
        made = self._compiled(worker_request(asked.code, asked.fork.name, asked.noted, counts))
        if made[:1] != MADE:
            self._note(asked.digest, made)
            return Answer.NEVER if asked.digest in self.refused else Answer.LATER
        compiled = Compiled.unpacked(made[1:])
        with contextlib.suppress(OSError):  # no disk
            keep(asked, made[1:])
        return compiled

    def _note(self, digest: bytes, made: bytes) -> None:
        """There are no regions: the process said why, or died."""
        if max(len(self.refused), len(self._deaths)) >= MAX_REFUSED:
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
                bufsize=0,  # a buffer has a lock, which the thread holds while it waits: see `_at_fork_reinit`
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


def _tell(request: CompileRequest, answer: Compiled | Answer) -> None:
    for done in request.done:
        done(answer)


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


def _path(asked: Asked) -> Path | None:
    folder = usable_folder("regions")
    if folder is None:
        return None
    digest = hashlib.sha256(_fingerprint().encode() + asked.digest).hexdigest()
    return folder / file_name(asked.code, digest, "regions")


def keep(asked: Asked, made: bytes) -> None:
    path = _path(asked)
    if path is not None:
        write(path, made)
        keep_newest(path.parent, MAX_BYTES)
        region_names().add(checksum(asked.code))


def kept(asked: Asked) -> Compiled | None:
    """The regions that were made of this code before, by any process of this user."""
    if len(asked.code) > LARGEST or checksum(asked.code) not in region_names():
        return None
    path = _path(asked)
    content = None if path is None else read(path)
    if not content:
        return None
    try:
        return Compiled.unpacked(content)
    except ValueError:
        return None


def discard(asked: Asked) -> None:
    """These regions do not pay: nobody shall take them from disk again."""
    path = _path(asked)
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()
