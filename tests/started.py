"""A program that runs until it is told to stop, as tests start it."""

from __future__ import annotations

import signal
import subprocess

STOP_SECONDS = 20.0


class Started:
    """A process in a `with` block; what it wrote to standard error is known once it has ended."""

    process: subprocess.Popen[str]
    errors = ""

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            _, self.errors = self.process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, self.errors = self.process.communicate()
        return self.process.returncode
