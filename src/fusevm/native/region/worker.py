"""The process that compiles regions: requests on its standard input, object code on its standard output.

It is a separate process because LLVM holds a lock while it compiles, because a compilation that takes too long can
only be ended with its process, and because LLVM's memory is returned only with the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import time
from collections.abc import Iterable
from typing import IO

from fusevm.evm.forks import fork_named

NOTHING = b"nothing that ran can be in a region"
SIZE = struct.Struct("<I")
MAX_MEMORY = 2 << 30
MAX_SECONDS = 20  # of processor time, for one request
MADE, REFUSED = b"\1", b"\0"  # how an answer begins; then regions, packed, or a reason
NICE = 10  # a tenth of a processor that a caller wants too, and not nothing where all are always busy


def receive(stream: IO[bytes]) -> bytes | None:
    """One message: its size and its bytes; None at the end of the stream."""
    head = _exactly(stream, SIZE.size)
    return None if head is None else _exactly(stream, *SIZE.unpack(head))


def _exactly(stream: IO[bytes], size: int) -> bytes | None:
    """What may come in parts, from a pipe without a buffer."""
    found = bytearray()
    while len(found) < size:
        part = stream.read(size - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def send(stream: IO[bytes], body: bytes) -> None:
    rest = memoryview(SIZE.pack(len(body)) + body)
    while rest:
        rest = rest[stream.write(rest) :]
    stream.flush()


def request(code: bytes, fork: str, noted: Iterable[str], counts: dict[int, int]) -> bytes:
    return json.dumps([code.hex(), fork, sorted(noted), [pair for pair in counts.items() if pair[1]]]).encode()


def answer(asked: bytes) -> bytes:
    """The regions of a code, packed, or why it has none.

    Whatever is raised is an answer too, and the next request is served. After a MemoryError that might not be so.
    """
    from fusevm.native.region.build import compile_hot, why_refused

    try:
        code, fork, noted, counts = json.loads(asked)
        made = compile_hot(bytes.fromhex(code), fork_named(fork), dict(counts), frozenset(noted))
    except MemoryError:
        raise
    except Exception as error:
        return REFUSED + why_refused(error).encode()
    return REFUSED + NOTHING if made is None else MADE + made.packed()


def limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def limit_time() -> None:
    """For the next request: a signal ends the process if it takes longer. A busy machine takes nothing of that away."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = int(time.process_time()) + MAX_SECONDS + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def yield_to_others() -> None:
    """Callers come first: the processor is theirs, and what is compiled is for later."""
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(NICE)


def main() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent process
    limit_memory()
    yield_to_others()
    results = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that prints can spoil them
    while (asked := receive(sys.stdin.buffer)) is not None:
        limit_time()
        send(results, answer(asked))


if __name__ == "__main__":
    main()
