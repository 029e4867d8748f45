"""A line on a terminal that shows how far something is which is done once: a bar, drawn by a thread of its own.

LLVM does not report progress, but it lets other threads run. So its part of the bar follows the clock: it is assumed to
need a multiple of the time that was needed before it, and the bar waits just before its end.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TextIO

WIDTH = 30  # characters
ALMOST = 0.97
MOMENT = 1.0  # seconds after which a log wants to know
_PAUSE = 0.1  # seconds between two drawings


class Bar:
    """`with Bar(…) as bar`: a stream that is not a terminal gets one line, if it takes longer than a moment."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._draws = stream.isatty()
        self._began = time.monotonic()
        self._share = 0.0  # of all the work
        self._clock: tuple[float, float, float] | None = None  # since when, from which share, for how long
        self._done = threading.Event()
        self._drawer = threading.Thread(target=self._draw_on, name="fusevm shows progress", daemon=True)

    def __enter__(self) -> Bar:
        self._drawer.start()
        return self

    def reach(self, share: float) -> None:
        """Sets the fraction that is done."""
        self._share, self._clock = share, None

    def follow_clock(self, times: float) -> None:
        """Assumes that the rest needs `times` the seconds that have passed."""
        now = time.monotonic()
        self._clock = (now, self._share, max((now - self._began) * times, 1e-3))

    def share(self) -> float:
        if self._clock is None:
            return self._share
        since, start, seconds = self._clock
        return min(start + (1 - start) * (time.monotonic() - since) / seconds, ALMOST)

    def text(self) -> str:
        full = round(self.share() * WIDTH)
        return f"fusevm: building {self._what}, once: [{'#' * full}{'.' * (WIDTH - full)}] {self._seconds():.0f} s"

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _draw_on(self) -> None:
        if not self._draws:
            if not self._done.wait(MOMENT):
                self._write(f"fusevm: building {self._what}, once; this takes some seconds\n")
            return
        while not self._done.wait(_PAUSE):
            self._write("\r" + self.text())

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._done.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._drawer.join()
        if not self._draws:
            return
        ended = "built" if kind is None else "interrupted while building"
        line = f"fusevm: {ended} {self._what} in {self._seconds():.1f} s"
        self._write("\r" + line.ljust(len(self.text())) + "\n")
