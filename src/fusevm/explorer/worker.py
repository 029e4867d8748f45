"""The worker process: reads jobs from standard input, writes progress and results. The server ends it at will."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, BinaryIO

from fusevm.explorer.frames import packed, read
from fusevm.explorer.jobs import Jobs, failure

GRACE_SECONDS = 10.0  # beyond the time that the server allows; a server that is gone cannot end its workers


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Until the input ends."""
    work = Jobs()

    def say(kind: str, content: Any) -> None:
        answers.write(packed({kind: content}))
        answers.flush()

    say("ready", True)
    while (job := read(jobs)) is not None:
        watchdog = threading.Timer(job["seconds"] + GRACE_SECONDS, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
        try:
            say("result", work.do(job, lambda text: say("progress", text)))
        except Exception as error:
            say("error", failure(error))
        finally:
            watchdog.cancel()


def main() -> None:
    """Whatever prints goes to standard error: standard output carries messages."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
