"""A run that ends soon or not at all: for replays."""

from __future__ import annotations

from functools import cache

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.reference.apart import Runner
from fusevm.reference.frame import Frame
from fusevm.reference.instructions import Entry, table_of
from fusevm.reference.interpreter import run
from fusevm.reference.trampoline import drive

JUMPS = (BY_NAME["JUMP"].byte, BY_NAME["JUMPI"].byte)


class _TooLong(Exception):
    pass


def drive_briefly(frame: Frame, most: int, run_precompile: Runner) -> bool:
    """Runs a frame and all it calls to its end; whether that took no more than so many jumps and calls."""
    table = _counting(frame.context.fork)
    frame.context.jumps_left = most

    def run_counted(each: Frame) -> Frame:
        _count(each)
        return run(each, table)

    try:
        drive(frame, run_counted, run_precompile=run_precompile)
    except _TooLong:
        return False
    return True


def _count(frame: Frame) -> None:
    frame.context.jumps_left -= 1
    if frame.context.jumps_left < 0:
        raise _TooLong


@cache
def _counting(fork: Fork) -> tuple[Entry, ...]:
    """The fork's instructions, with jumps that are counted."""

    def counting(entry: Entry) -> Entry:
        def jump(frame: Frame) -> Frame | None:
            _count(frame)
            return entry.instruction(frame)

        return entry._replace(instruction=jump)

    return tuple(counting(entry) if byte in JUMPS else entry for byte, entry in enumerate(table_of(fork)))
