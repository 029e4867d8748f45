"""A worker process as the server sees it: started when needed, one job at a time, killed on cancel and on time-out."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Any

from fusevm.explorer.frames import packed, receive

START_SECONDS = 60.0


class Cancelled(Exception):
    """The job was stopped from outside."""


class ExplorerWorker:
    """Its answers are JSON in bytes, so that a large document is not decoded on its way to the page."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Process | None = None
        self._cancelled = False
        self._preparing: asyncio.Task[bytes] | None = None

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            command = [sys.executable, "-m", "fusevm.explorer.worker"]
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, limit=1 << 20, env=_environment()
            )
            await asyncio.wait_for(receive(_reader(self._process)), START_SECONDS)
        return self._process

    def prepare(self, job: dict[str, Any]) -> None:
        """Starts the process, and runs a job in advance, whose result the next job can use."""
        self._preparing = asyncio.create_task(self._do(job, lambda text: None))
        self._preparing.add_done_callback(lambda task: task.cancelled() or task.exception())  # the next job tells of it

    async def do(self, job: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        """`{"result": …}` or `{"error": …}`. Raises Cancelled; TimeoutError after the worker is killed."""
        self._cancelled = False
        if self._preparing is not None:
            await asyncio.wait([self._preparing])
            self._preparing = None
            if self._cancelled:
                raise Cancelled
        return await self._do(job, progress)

    async def _do(self, job: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        try:
            process = await self._started()
            if self._cancelled:
                raise Cancelled
            assert process.stdin is not None
            async with asyncio.timeout(self.seconds):
                process.stdin.write(packed({**job, "seconds": self.seconds}))
                await process.stdin.drain()
                while True:
                    message = await receive(_reader(process))
                    if not message.startswith(b'{"progress"'):
                        return message
                    progress(json.loads(message)["progress"])
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.stop()
            if self._cancelled:
                raise Cancelled from None
            raise RuntimeError("the worker process ended; the contract may need more memory than there is") from None
        except (TimeoutError, asyncio.CancelledError):
            await self.stop()
            raise

    def cancel(self) -> None:
        self._cancelled = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def stop(self) -> None:
        if self._preparing is not None and self._preparing is not asyncio.current_task():
            self._preparing.cancel()
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _reader(process: Process) -> asyncio.StreamReader:
    assert process.stdout is not None
    return process.stdout


def _environment() -> dict[str, str]:
    """The same packages as this process has, wherever it found them."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
